"""Division of a scan into tasks of about the same size.

A task is a list of ranges of physical rows. Small fragments are packed together. A large one is cut at page boundaries
of its widest column, so that no page is decoded twice, and within pages only if these are larger than a task. The cost
of a fragment is the bytes of the columns that are read: those of its pages if it is opened, else a share of the size in
the manifest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError
from lance_format.file import ROWS_PER_ZONE, PageSizes
from lance_format.lazy_dataclasses import dataclass
from lance_format.row_numbers import distinct
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.fragment_arrays import FragmentColumns, columns_of
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.fragments.reader import FragmentReader
from lance_format.table.scan.row_ranges import RowRanges
from lance_format.table.versions.table_version import TableVersion

DEFAULT_SPLIT_SIZE_BYTES = 128 * 1024 * 1024
_SMALLEST_TASK_BYTES = 1024 * 1024
_OPENING_BYTES = 128 * 1024
"""Estimated cost of opening a fragment, in bytes that take as long to read as the end of a file."""
_MAX_EXCESS = 1.5
_MAX_SAMPLES = 8

FragmentRanges: TypeAlias = tuple[FragmentReader, RowRanges]
"""Rows of a fragment."""
_Counts: TypeAlias = npt.NDArray[np.int64]
_Sizes: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ScanTask:
    """A part of a scan.

    Parameters
    ----------
    ranges : tuple of (int, int, int)
        The id of a fragment and a half-open range of its physical rows, deleted ones included, in the order of the
        table. Fragments of early releases that share an id have their `FragmentList.numbers` instead.
    """

    ranges: tuple[tuple[int, int, int], ...]

    @property
    def num_rows(self) -> int:
        """Number of physical rows of the task."""
        return sum(stop - start for _, start, stop in self.ranges)

    @property
    def fragment_ids(self) -> set[int]:
        """Ids of the fragments that the task reads."""
        return {fragment_id for fragment_id, _, _ in self.ranges}

    def by_fragment(self) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """Yield the id of each fragment and the ranges of its rows."""
        for fragment_id, group in itertools.groupby(self.ranges, key=lambda found: found[0]):
            yield fragment_id, [(start, stop) for _, start, stop in group]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows of fragments that are to be divided among tasks.

    Parameters
    ----------
    numbers : int64[num_fragments]
        The fragments; see `FragmentList.numbers`.
    columns : FragmentColumns
        Their properties.
    physical_rows : int64[num_fragments]
        Number of rows in the files of each.
    num_rows : int64[num_fragments]
        Number of those that are read.
    scan : function of int that returns a FragmentReader
        By the position of the fragment among these.
    ranges : sequence of RowRanges, optional
        The rows that are read; by default all.
    """

    numbers: _Counts
    columns: FragmentColumns
    physical_rows: _Counts
    num_rows: _Counts
    scan: Callable[[int], FragmentReader]
    ranges: Sequence[RowRanges] | None = None

    @classmethod
    def of(cls, fragments: FragmentList, ranges: Sequence[FragmentRanges]) -> Candidates:
        """Return some rows of some fragments of a list."""
        columns = columns_of(scan.fragment for scan, _ in ranges)
        numbers, all_numbers = columns.ids.copy(), fragments.numbers
        for index in np.flatnonzero(np.isin(numbers, list(fragments.repeated_ids))).tolist():
            numbers[index] = all_numbers[fragments.index(ranges[index][0].fragment)]
        physical_rows = np.array([scan.physical_rows() for scan, _ in ranges], np.int64)
        num_rows = np.array([rows.num_rows for _, rows in ranges], np.int64)
        made = [rows for _, rows in ranges]
        return cls(numbers, columns, physical_rows, num_rows, lambda index: ranges[index][0], made)

    @classmethod
    def whole(cls, table: TableVersion, fragments: FragmentList, schema: Schema) -> Candidates:
        """Return all rows of fragments, of which none is parsed whose number of rows the manifest has.

        Parameters
        ----------
        table : TableVersion
        fragments : FragmentList
        schema : Schema
            The columns that are read.
        """

        def scan(index: int) -> FragmentReader:
            return table.scan(fragments[index], schema)

        physical_rows = fragments.columns.physical_rows.copy()
        for index in np.flatnonzero(physical_rows == 0).tolist():
            physical_rows[index] = scan(index).physical_rows()
        return cls(fragments.numbers, fragments.columns, physical_rows, physical_rows, scan)

    def select(self, positions: _Counts) -> Candidates:
        """Return some of them, by position."""
        ranges = None if self.ranges is None else [self.ranges[position] for position in positions.tolist()]
        return Candidates(
            self.numbers[positions],
            self.columns.select(positions),
            self.physical_rows[positions],
            self.num_rows[positions],
            lambda index: self.scan(int(positions[index])),
            ranges,
        )

    def __len__(self) -> int:
        return self.num_rows.size

    def not_empty(self) -> Candidates:
        """Return those of which rows are read."""
        return self.select(np.flatnonzero(self.num_rows))

    @property
    def shares(self) -> _Sizes:
        """Share of the rows of each that is read."""
        return self.num_rows / np.maximum(self.physical_rows, 1)

    def pieces(self, costs: _Sizes) -> _Pieces:
        """Return the ranges, which have their share of the costs of the fragments, float64[num_fragments]."""
        if self.ranges is None:
            return _Pieces(np.arange(len(self)), np.zeros_like(self.num_rows), self.num_rows, costs)
        owners = np.repeat(np.arange(len(self)), [len(rows) for rows in self.ranges])
        starts = np.concatenate([rows.starts for rows in self.ranges])
        stops = np.concatenate([rows.stops for rows in self.ranges])
        return _Pieces(owners, starts, stops, (costs / self.num_rows)[owners] * (stops - starts))

    def ranges_of(self, index: int) -> RowRanges:
        """Return the rows that are read of a fragment."""
        return RowRanges.whole(int(self.num_rows[index])) if self.ranges is None else self.ranges[index]


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Rows that are not divided among tasks.

    Parameters
    ----------
    owners : int64[num_pieces]
        The candidate of each, ascending.
    starts, stops : int64[num_pieces]
        Half-open ranges of its rows.
    costs : float64[num_pieces]
    """

    owners: _Counts
    starts: _Counts
    stops: _Counts
    costs: _Sizes

    def with_cut(self, cut: Sequence[_Pieces]) -> _Pieces:
        """Return these pieces, with those of some candidates in their place."""
        kept = np.flatnonzero(~np.isin(self.owners, [piece.owners[0] for piece in cut]))
        kinds = [[getattr(piece, field) for piece in cut] for field in ("owners", "starts", "stops", "costs")]
        order = np.argsort(np.concatenate([self.owners[kept], *kinds[0]]), kind="stable")
        own = (self.owners[kept], self.starts[kept], self.stops[kept], self.costs[kept])
        return _Pieces(*(np.concatenate([mine, *cuts])[order] for mine, cuts in zip(own, kinds, strict=True)))


def plan_tasks(candidates: Candidates, schema: Schema, split_size_bytes: int, min_tasks: int) -> list[ScanTask]:
    """Divide rows into tasks.

    Parameters
    ----------
    candidates : Candidates
        In the order of the table; at least one row of each.
    schema : Schema
        The columns that are read.
    split_size_bytes : int
        Approximate maximum number of bytes that a task reads.
    min_tasks : int
        Minimum number of tasks, as long as each reads 1 MiB.
    """
    if not len(candidates):
        return []
    smallest = min(split_size_bytes, _SMALLEST_TASK_BYTES)
    costs = _estimate(candidates, schema, split_size_bytes if min_tasks == 1 else smallest)
    total = float(costs.sum())
    wanted = min(min_tasks, int(total // smallest))
    num_tasks = max(math.ceil(total / split_size_bytes), wanted, 1)
    pieces = candidates.pieces(costs)
    large = np.flatnonzero(costs > _MAX_EXCESS * total / num_tasks).tolist()
    if large:
        pieces = pieces.with_cut([_cut(candidates, index, schema, total / num_tasks) for index in large])
    return _pack(candidates.numbers[pieces.owners], pieces, num_tasks)


def divide_fragments(
    table: TableVersion, positions: Sequence[int], schema: Schema, split_size_bytes: int | None
) -> list[tuple[int, ...]]:
    """Divide work on whole fragments.

    Parameters
    ----------
    table : TableVersion
    positions : sequence of int
        Positions of the fragments in the list of the version. Ids are not unique in some early tables.
    schema : Schema
        The columns that are read.
    split_size_bytes : int, optional
        Approximate number of bytes per part. By default there is one part.

    Returns
    -------
    list of tuple of int
        The positions of each part, in the given order. No part is empty.

    Raises
    ------
    InvalidInputError
        If the size is invalid.
    """
    if split_size_bytes is None:
        return [tuple(positions)] if positions else []
    if isinstance(split_size_bytes, bool) or not isinstance(split_size_bytes, int) or split_size_bytes < 1:
        raise InvalidInputError(f"split_size_bytes is {split_size_bytes!r}; a whole number from 1 on is needed")
    if not positions:
        return []
    candidates = Candidates.whole(table, table.manifest.fragments, schema).select(np.array(positions, np.int64))
    costs = _estimate(candidates, schema, split_size_bytes)
    groups = _groups(costs, math.ceil(float(costs.sum()) / split_size_bytes))
    return [tuple(positions[index] for index in group) for group in groups]


def divided_by(split_size_bytes: int) -> Callable[[TableVersion, Sequence[int], Schema], list[tuple[int, ...]]]:
    """Return `divide_fragments` for tasks of a size."""
    return lambda table, positions, schema: divide_fragments(table, positions, schema, split_size_bytes)


def _pack(numbers: _Counts, pieces: _Pieces, num_tasks: int) -> list[ScanTask]:
    """Pack pieces of fragments of some numbers into tasks of about the same cost, in order."""
    groups = _groups(pieces.costs, num_tasks)
    joins = (numbers[1:] == numbers[:-1]) & (pieces.starts[1:] == pieces.stops[:-1])
    joins[[group.start - 1 for group in groups[1:]]] = False
    firsts = np.flatnonzero(np.append(True, ~joins))
    lasts = np.append(firsts[1:], numbers.size) - 1
    ranges = list(
        zip(numbers[firsts].tolist(), pieces.starts[firsts].tolist(), pieces.stops[lasts].tolist(), strict=True)
    )
    begins = np.searchsorted(firsts, [group.start for group in groups]).tolist()
    return [ScanTask(tuple(ranges[begin:end])) for begin, end in itertools.pairwise([*begins, len(ranges)])]


def _groups(costs: _Sizes, num_groups: int) -> list[range]:
    """Divide costs, in order, into groups of about the same sum; fewer than `num_groups` if some were empty."""
    middles = np.cumsum(costs) - costs / 2
    owners = np.minimum((middles / max(float(costs.sum()) / num_groups, 1)).astype(np.int64), num_groups - 1)
    bounds = [0, *(np.flatnonzero(np.diff(owners)) + 1).tolist(), owners.size]
    return [range(start, stop) for start, stop in itertools.pairwise(bounds)]


def _cut(candidates: Candidates, index: int, schema: Schema, task_bytes: float) -> _Pieces:
    """Cut ranges at page boundaries of the widest column, and cut pages that are larger than a task."""
    columns = _columns(candidates.scan(index), schema)
    parts: list[tuple[_Counts, _Sizes]] = []
    for start, stop in candidates.ranges_of(index).pairs():
        bounds = np.array([start, stop], np.int64)
        if columns:
            widest = max(columns, key=lambda column: int(column.size_bytes.sum()))
            inner = widest.first_rows[(widest.first_rows > start) & (widest.first_rows < stop)]
            bounds = distinct(np.concatenate([bounds, inner]))
        costs = np.diff(_bytes_before(columns, bounds))
        counts = np.where(costs > _MAX_EXCESS * task_bytes, np.ceil(costs / task_bytes), 1).astype(np.int64)
        cuts = [
            _cuts(int(bounds[each]), int(bounds[each + 1]), int(counts[each])) for each in np.flatnonzero(counts > 1)
        ]
        bounds = distinct(np.concatenate([bounds, *cuts]))
        parts.append((bounds, np.maximum(np.diff(_bytes_before(columns, bounds)), 1)))
    starts = np.concatenate([bounds[:-1] for bounds, _ in parts])
    stops = np.concatenate([bounds[1:] for bounds, _ in parts])
    return _Pieces(np.full(starts.size, index), starts, stops, np.concatenate([costs for _, costs in parts]))


def _cuts(start: int, stop: int, num_parts: int) -> npt.NDArray[np.int64]:
    """Return the cuts of a page that is too large for one task, at multiples of the rows of a zone if possible."""
    cuts = np.linspace(start, stop, num_parts + 1)[1:-1].astype(np.int64)
    aligned = cuts // ROWS_PER_ZONE * ROWS_PER_ZONE
    within = (aligned > start) & (np.diff(aligned, prepend=-1) > 0)
    return np.where(within, aligned, cuts)


def _bytes_before(columns: Sequence[PageSizes], rows: npt.NDArray[np.int64]) -> _Sizes:
    """Return the bytes of all rows before each of some, assuming equal sizes within a page."""
    before = np.zeros(rows.size)
    for column in columns:
        before += np.interp(rows, column.first_rows, np.append(0, np.cumsum(column.size_bytes)))
    return before


def _estimate(candidates: Candidates, schema: Schema, negligible_bytes: int) -> _Sizes:
    """Estimate the cost of reading some columns of rows: float64[num_fragments].

    Data files with the same fields are assumed to divide their bytes among them alike. One fragment per kind of partly
    read files is opened, if the kind is large enough to matter.

    Parameters
    ----------
    candidates : Candidates
    schema : Schema
    negligible_bytes : int
        Fragments of one kind with fewer bytes in all need no exact estimate.
    """
    _, kinds, sizes = np.unique(candidates.columns.layouts, return_inverse=True, return_counts=True)
    by_kind = np.split(np.argsort(kinds, kind="stable"), np.cumsum(sizes)[:-1])
    costs = np.full(len(candidates), float(_OPENING_BYTES))
    num_samples = 0
    for members in sorted(by_kind, key=lambda found: (-found.size, found[0])):
        kind = _Kind.of(candidates.select(members), schema)
        known = bool(kind.sizes.all())
        few_bytes = max(negligible_bytes, _OPENING_BYTES * members.size)  # Opening them costs more.
        if not known or (kind.is_partial and kind.sizes.sum() > few_bytes and num_samples < _MAX_SAMPLES):
            num_samples += 1
            costs[members] += kind.sampled(schema)
        else:
            costs[members] += kind.sizes
    return costs


@dataclass(frozen=True, slots=True)
class _Kind:
    """Candidates that have the same fields in the same files.

    Parameters
    ----------
    candidates : Candidates
    sizes : float64[num_fragments]
        Bytes of their rows in the files that are read, with all of their columns; 0 if unknown.
    is_partial : bool
        Whether the files hold columns that are not read.
    """

    candidates: Candidates
    sizes: _Sizes
    is_partial: bool

    @classmethod
    def of(cls, candidates: Candidates, schema: Schema) -> _Kind:
        """Make a kind from the files of its first fragment."""
        first = candidates.scan(0)
        wanted = first.open().parts(schema)
        positions = [position for position, file in enumerate(first.fragment.files) if file in wanted]
        held = {node.id for parts in wanted.values() for part in parts for node in part.field.walk()}
        stored = {node for file in wanted for node in file.fields if node >= 0}
        if not positions:
            sizes = np.ones(len(candidates))
        elif len(first.fragment.files) == 1:
            sizes = candidates.columns.size_bytes * candidates.shares
        else:
            fragments = (candidates.scan(index).fragment for index in range(len(candidates)))
            sizes = np.array([_stated_size(fragment, positions) for fragment in fragments]) * candidates.shares
        return cls(candidates, sizes, not held >= stored)

    def sampled(self, schema: Schema) -> _Sizes:
        """Estimate the bytes of the columns by the largest of the fragments."""
        num_rows = self.candidates.num_rows
        largest = int(np.argmax(np.maximum(self.sizes, num_rows)))
        found = sum(int(column.size_bytes.sum()) for column in _columns(self.candidates.scan(largest), schema))
        per_row = found / max(int(self.candidates.physical_rows[largest]), 1)
        per_byte = per_row * num_rows[largest] / max(float(self.sizes[largest]), 1)
        return np.where(self.sizes > 0, self.sizes * min(per_byte, 1), num_rows * per_row)


def _stated_size(fragment: FragmentMetadata, positions: Sequence[int]) -> float:
    """Return the size of some files of a fragment; 0 if that of one is unknown."""
    sizes = [fragment.files[position].file_size_bytes for position in positions]
    return float(sum(sizes)) if all(sizes) else 0.0


def _columns(scan: FragmentReader, schema: Schema) -> list[PageSizes]:
    """Open a fragment and return the bytes of the pages of its columns."""
    with scan.open() as files:
        return [
            column for file, parts in files.parts(schema).items() for column in files.reader(file).page_sizes(parts)
        ]
