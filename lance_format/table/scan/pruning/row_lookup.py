"""Finding the only rows that can pass a filter, by the ids, addresses, offsets or fragments that it names.

Conjunctive terms that compare one row column with constants (`_rowid = 5`, `_rowaddr IN (…)`, `_fragid = 2`,
`_rowoffset BETWEEN 10 AND 20`) select rows before anything is read. The whole filter is still evaluated over these
rows, so a term that is not recognised costs time, but never a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.expressions import BoundExpression, Expression, conjuncts
from lance_format.expressions.nodes import Column, Comparison, In, Literal
from lance_format.lazy_dataclasses import dataclass
from lance_format.row_numbers import distinct
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.fragments.reader import FragmentReader, to_physical
from lance_format.table.fragments.row_columns import ROW_ADDRESS, ROW_ID, ROW_OFFSET
from lance_format.table.row_ids.index import row_addresses
from lance_format.table.scan.row_ranges import RowRanges
from lance_format.table.versions.row_places import find_row_ids
from lance_format.table.versions.table_version import TableVersion

_FRAGMENT_ID = "_fragid"
_ADDRESS_BITS = 32
_MAX_U64 = 2**64 - 1

U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class _Intervals:
    """Closed intervals of numbers, ascending and disjoint."""

    lows: U64
    highs: U64

    @classmethod
    def of_values(cls, values: U64) -> _Intervals:
        """Return the intervals of single numbers."""
        once = distinct(values)
        return cls(once, once)

    def within(self, low: int, high: int) -> _Intervals:
        """Return the numbers from `low` to `high`, both included."""
        first, last = np.searchsorted(self.highs, np.uint64(low)), np.searchsorted(self.lows, np.uint64(high), "right")
        lows, highs = self.lows[first:last], self.highs[first:last]
        return _Intervals(np.maximum(lows, np.uint64(low)), np.minimum(highs, np.uint64(high)))

    def meet(self, lows: U64, highs: U64) -> npt.NDArray[np.bool_]:
        """Return for each of some other intervals whether it overlaps one of these."""
        if not self.lows.size:
            return np.zeros(lows.size, np.bool_)
        index = np.searchsorted(self.highs, lows)
        found = self.lows[np.minimum(index, self.lows.size - 1)] <= highs
        return found & (index < self.lows.size)


@dataclass(frozen=True, slots=True)
class RowLookup:
    """Rows that can pass a filter according to its terms on row columns.

    Parameters
    ----------
    addresses, positions, fragment_ids : tuple of _Intervals
        Intervals of addresses, of offsets in the table, and of fragments. A row must be in all of them.
    """

    addresses: tuple[_Intervals, ...] = ()
    positions: tuple[_Intervals, ...] = ()
    fragment_ids: tuple[_Intervals, ...] = ()

    @classmethod
    def of(cls, predicate: BoundExpression | None, names: Sequence[str], table: TableVersion) -> RowLookup:
        """Find the terms that select rows.

        Parameters
        ----------
        predicate : BoundExpression, optional
        names : sequence of str
            The row columns that it reads, without stored columns of the same names.
        table : TableVersion
        """
        found: dict[str, list[_Intervals]] = {}
        for term in () if predicate is None else conjuncts(predicate.expression):
            name, intervals = _intervals_of(term)
            if name not in names or intervals is None:
                continue
            if name == ROW_ID and table.manifest.stable_row_ids:
                if (intervals.lows != intervals.highs).any():
                    continue  # Consecutive ids may be anywhere.
                fragment_ids, offsets = find_row_ids(table, intervals.lows)
                there = fragment_ids >= 0
                intervals = _Intervals.of_values(row_addresses(fragment_ids[there], offsets[there]))
            found.setdefault(ROW_ADDRESS if name == ROW_ID else name, []).append(intervals)
        return cls(*(tuple(found.get(name, ())) for name in (ROW_ADDRESS, ROW_OFFSET, _FRAGMENT_ID)))

    @property
    def is_selective(self) -> bool:
        """True if there are such terms."""
        return bool(self.addresses or self.positions or self.fragment_ids)

    def fragments(self, fragments: FragmentList) -> Sequence[FragmentMetadata]:
        """Return the fragments that may have such rows."""
        if not self.fragment_ids and not self.addresses:
            return fragments
        ids = fragments.columns.ids.astype(np.uint64)
        kept = np.ones(ids.size, np.bool_)
        for intervals in self.fragment_ids:
            kept &= intervals.meet(ids, ids)
        for intervals in self.addresses:
            first = ids << np.uint64(_ADDRESS_BITS)
            kept &= intervals.meet(first, first | np.uint64(2**_ADDRESS_BITS - 1))
        return [fragments[index] for index in np.flatnonzero(kept).tolist()]

    def rows(self, scan: FragmentReader, position: int) -> RowRanges:
        """Return the matching rows of a fragment.

        Parameters
        ----------
        scan : FragmentReader
        position : int
            Number of rows of the table before the fragment.
        """
        num_rows = scan.physical_rows()
        found = RowRanges.whole(num_rows)
        for intervals in self.addresses if num_rows else ():
            first = scan.fragment.id << _ADDRESS_BITS
            mine = intervals.within(first, first + num_rows - 1)
            found = found.intersect(_ranges(mine.lows - np.uint64(first), mine.highs - np.uint64(first)))
        num_live = scan.num_rows() if self.positions else 0
        for intervals in self.positions:
            if not num_live:
                return RowRanges.of([])
            mine = intervals.within(position, position + num_live - 1)
            lows, highs = ((bounds - np.uint64(position)).astype(np.int64) for bounds in (mine.lows, mine.highs))
            deleted = scan.deleted_rows()
            found = found.intersect(_ranges(to_physical(lows, deleted), to_physical(highs, deleted)))
        return found


def _ranges(firsts: npt.NDArray[np.integer[Any]], lasts: npt.NDArray[np.integer[Any]]) -> RowRanges:
    """Return ranges from first and last rows, both included."""
    return RowRanges(firsts.astype(np.int64), lasts.astype(np.int64) + 1, np.zeros(firsts.size, np.bool_))


def _intervals_of(term: Expression) -> tuple[str, _Intervals | None]:
    """Return the column that a term compares with constants, and the values that can make it true."""
    match term:
        case Comparison(operator, Column((name,)), Literal(value)) if pa.types.is_unsigned_integer(value.type):
            return name, _compared(operator, value.as_py())
        case In(Column((name,)), values) if pa.types.is_unsigned_integer(values.type):
            return name, _Intervals.of_values(values.drop_null().cast(pa.uint64()).to_numpy(zero_copy_only=False))
    return "", None


def _compared(operator: str, value: int | None) -> _Intervals | None:
    if value is None:
        return None
    low, high = {
        "=": (value, value),
        "<": (0, value - 1),
        "<=": (0, value),
        ">": (value + 1, _MAX_U64),
        ">=": (value, _MAX_U64),
    }.get(operator, (0, _MAX_U64))
    if low > high:
        return _Intervals(np.zeros(0, np.uint64), np.zeros(0, np.uint64))
    return _Intervals(np.array([low], np.uint64), np.array([high], np.uint64))
