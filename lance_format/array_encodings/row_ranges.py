"""Requested rows of an array: half-open ranges, which every encoding converts to ranges of its inner encodings."""

from __future__ import annotations

import numpy as np

from lance_format.data_block import Counts
from lance_format.lazy_dataclasses import dataclass
from lance_format.structural.page import RowSelection


@dataclass(frozen=True, slots=True)
class RowRanges:
    """Ranges of rows, in the requested order.

    Parameters
    ----------
    begins, ends : int64[num_ranges]
        Neither decreases, and no range is empty; ranges may repeat.
    """

    begins: Counts
    ends: Counts

    @classmethod
    def single(cls, start: int, stop: int) -> RowRanges:
        """Return one range, or none if it is empty."""
        if start == stop:
            return _EMPTY
        return cls(np.array([start], np.int64), np.array([stop], np.int64))

    @classmethod
    def select(cls, rows: RowSelection) -> RowRanges:
        """Return the ranges of some rows; consecutive ones become one range."""
        if isinstance(rows, range):
            return cls.single(rows.start, rows.stop)
        if rows.size == 0:
            return _EMPTY
        begins_run = np.ones(rows.size, np.bool_)
        begins_run[1:] = rows[1:] != rows[:-1] + 1
        firsts = np.flatnonzero(begins_run)
        return cls(rows[firsts], rows[np.append(firsts[1:], rows.size) - 1] + 1)

    @property
    def count(self) -> int:
        """The number of ranges."""
        return self.begins.size

    @property
    def sizes(self) -> Counts:
        """The rows of each range."""
        return self.ends - self.begins

    @property
    def num_rows(self) -> int:
        """The rows of all ranges."""
        if self.count == 1:
            return int(self.ends[0]) - int(self.begins[0])
        return int(self.sizes.sum())

    def scaled(self, factor: int) -> RowRanges:
        """Return the ranges of what every row has `factor` of; at least 1."""
        return self if factor == 1 else RowRanges(self.begins * factor, self.ends * factor)

    def moved(self, distance: int) -> RowRanges:
        """Return the ranges counted from another row."""
        return self if distance == 0 else RowRanges(self.begins + distance, self.ends + distance)

    def within(self, start: int, stop: int) -> RowRanges:
        """Return the parts of the ranges that lie within one."""
        first = int(np.searchsorted(self.ends, start, side="right"))
        last = int(np.searchsorted(self.begins, stop, side="left"))
        return RowRanges(np.maximum(self.begins[first:last], start), np.minimum(self.ends[first:last], stop))


_EMPTY = RowRanges(np.empty(0, np.int64), np.empty(0, np.int64))


def without_empty(begins: Counts, ends: Counts) -> RowRanges:
    """Drop empty ranges, such as the items of empty lists, and join adjacent ones."""
    filled = ends > begins
    if not filled.all():
        begins, ends = begins[filled], ends[filled]
    if begins.size < 2:
        return RowRanges(begins, ends)
    starts = np.ones(begins.size, np.bool_)
    starts[1:] = begins[1:] != ends[:-1]
    firsts = np.flatnonzero(starts)
    return RowRanges(begins[firsts], ends[np.append(firsts[1:], begins.size) - 1])
