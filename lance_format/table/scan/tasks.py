"""Division of a scan into tasks of about the same size.

A task is a list of ranges of physical rows. Small fragments are packed together. A large one is cut at page boundaries
of its widest column, so that no page is decoded twice, and within pages only if these are larger than a task. The cost
of a fragment is the bytes of the columns that are read: those of its pages if it is opened, else a share of the size in
the manifest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError
from lance_format.file import ROWS_PER_ZONE, PageSizes
from lance_format.lazy_dataclasses import dataclass
from lance_format.row_numbers import distinct
from lance_format.table.format.fragment import FragmentMetadata
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
_Sizes = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ScanTask:
    """A part of a scan.

    Parameters
    ----------
    ranges : tuple of (int, int, int)
        The id of a fragment and a half-open range of its physical rows, deleted ones included, in the order of the
        table.
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


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows that are not divided among tasks."""

    fragment_id: int
    start: int
    stop: int
    cost: float


def plan_tasks(
    ranges: Sequence[FragmentRanges], schema: Schema, split_size_bytes: int, min_tasks: int
) -> list[ScanTask]:
    """Divide ranges of rows into tasks.

    Parameters
    ----------
    ranges : sequence of FragmentRanges
        In the order of the table.
    schema : Schema
        The columns that are read.
    split_size_bytes : int
        Approximate maximum number of bytes that a task reads.
    min_tasks : int
        Minimum number of tasks, as long as each reads 1 MiB.
    """
    if not ranges:
        return []
    smallest = min(split_size_bytes, _SMALLEST_TASK_BYTES)
    costs = _estimate(ranges, schema, split_size_bytes if min_tasks == 1 else smallest)
    total = float(costs.sum())
    wanted = min(min_tasks, int(total // smallest))
    num_tasks = max(math.ceil(total / split_size_bytes), wanted, 1)
    pieces: list[_Piece] = []
    for (scan, rows), cost in zip(ranges, costs.tolist(), strict=True):
        if cost > _MAX_EXCESS * total / num_tasks:
            pieces += _cut(scan, rows, schema, total / num_tasks)
        else:
            share = cost / max(rows.num_rows, 1)
            pieces += [_Piece(scan.fragment.id, start, stop, share * (stop - start)) for start, stop in rows.pairs()]
    return _pack(pieces, num_tasks)


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
    scans = [table.scan(table.manifest.fragments[position], schema) for position in positions]
    costs = _estimate([(scan, RowRanges.whole(scan.physical_rows())) for scan in scans], schema, split_size_bytes)
    groups = _groups(costs, math.ceil(float(costs.sum()) / split_size_bytes))
    return [tuple(positions[index] for index in group) for group in groups]


def divided_by(split_size_bytes: int) -> Callable[[TableVersion, Sequence[int], Schema], list[tuple[int, ...]]]:
    """Return `divide_fragments` for tasks of a size."""
    return lambda table, positions, schema: divide_fragments(table, positions, schema, split_size_bytes)


def _pack(pieces: Sequence[_Piece], num_tasks: int) -> list[ScanTask]:
    """Pack pieces into tasks of about the same cost, in order."""
    tasks = []
    for group in _groups(np.array([piece.cost for piece in pieces]), num_tasks):
        ranges: list[tuple[int, int, int]] = []
        for piece in pieces[group.start : group.stop]:
            if ranges and ranges[-1][0] == piece.fragment_id and ranges[-1][2] == piece.start:
                ranges[-1] = (piece.fragment_id, ranges[-1][1], piece.stop)
            else:
                ranges.append((piece.fragment_id, piece.start, piece.stop))
        tasks.append(ScanTask(tuple(ranges)))
    return tasks


def _groups(costs: _Sizes, num_groups: int) -> list[range]:
    """Divide costs, in order, into groups of about the same sum; fewer than `num_groups` if some were empty."""
    middles = np.cumsum(costs) - costs / 2
    owners = np.minimum((middles / max(float(costs.sum()) / num_groups, 1)).astype(np.int64), num_groups - 1)
    bounds = [0, *(np.flatnonzero(np.diff(owners)) + 1).tolist(), owners.size]
    return [range(start, stop) for start, stop in itertools.pairwise(bounds)]


def _cut(scan: FragmentReader, rows: RowRanges, schema: Schema, task_bytes: float) -> list[_Piece]:
    """Cut ranges at page boundaries of the widest column, and cut pages that are larger than a task."""
    columns = _columns(scan, schema)
    pieces = []
    for start, stop in rows.pairs():
        bounds = np.array([start, stop], np.int64)
        if columns:
            widest = max(columns, key=lambda column: int(column.size_bytes.sum()))
            inner = widest.first_rows[(widest.first_rows > start) & (widest.first_rows < stop)]
            bounds = distinct(np.concatenate([bounds, inner]))
        costs = np.diff(_bytes_before(columns, bounds))
        parts = np.where(costs > _MAX_EXCESS * task_bytes, np.ceil(costs / task_bytes), 1).astype(np.int64)
        cuts = [
            _cuts(int(bounds[index]), int(bounds[index + 1]), int(parts[index])) for index in np.flatnonzero(parts > 1)
        ]
        bounds = distinct(np.concatenate([bounds, *cuts]))
        costs = np.diff(_bytes_before(columns, bounds))
        for begin, end, cost in zip(bounds[:-1].tolist(), bounds[1:].tolist(), costs.tolist(), strict=True):
            pieces.append(_Piece(scan.fragment.id, begin, end, max(cost, 1.0)))
    return pieces


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


def _estimate(ranges: Sequence[FragmentRanges], schema: Schema, negligible_bytes: int) -> _Sizes:
    """Estimate the cost of reading some columns of ranges.

    Data files with the same fields are assumed to divide their bytes among them alike. One fragment per kind of partly
    read files is opened, if the kind is large enough to matter.

    Parameters
    ----------
    ranges : sequence of FragmentRanges
    schema : Schema
    negligible_bytes : int
        Fragments of one kind with fewer bytes in all need no exact estimate.
    """
    layouts: dict[tuple[tuple[int, ...], ...], list[int]] = {}
    for index, (scan, _) in enumerate(ranges):
        layouts.setdefault(tuple([file.fields for file in scan.fragment.files]), []).append(index)
    costs = np.full(len(ranges), float(_OPENING_BYTES))
    num_samples = 0
    for members in sorted(layouts.values(), key=len, reverse=True):
        kind = _Kind.of([ranges[index] for index in members], schema)
        known = bool(kind.sizes.all())
        few_bytes = max(negligible_bytes, _OPENING_BYTES * len(members))  # Opening them costs more.
        if not known or (kind.is_partial and kind.sizes.sum() > few_bytes and num_samples < _MAX_SAMPLES):
            num_samples += 1
            costs[members] += kind.sampled(schema)
        else:
            costs[members] += kind.sizes
    return costs


@dataclass(frozen=True, slots=True)
class _Kind:
    """Ranges of fragments that have the same fields in the same files.

    Parameters
    ----------
    ranges : sequence of FragmentRanges
    rows : float64[num_ranges]
    sizes : float64[num_ranges]
        Bytes of these rows in the files that are read, with all of their columns; 0 if unknown.
    is_partial : bool
        Whether the files hold columns that are not read.
    """

    ranges: Sequence[FragmentRanges]
    rows: _Sizes
    sizes: _Sizes
    is_partial: bool

    @classmethod
    def of(cls, ranges: Sequence[FragmentRanges], schema: Schema) -> _Kind:
        """Make a kind from the files of its first fragment."""
        first = ranges[0][0]
        wanted = first.open().parts(schema)
        positions = [position for position, file in enumerate(first.fragment.files) if file in wanted]
        held = {node.id for parts in wanted.values() for part in parts for node in part.field.walk()}
        stored = {node for file in wanted for node in file.fields if node >= 0}
        rows = np.array([found.num_rows for _, found in ranges], np.float64)
        shares = rows / np.array([max(scan.physical_rows(), 1) for scan, _ in ranges])
        sizes = np.array([_stated_size(scan.fragment, positions) for scan, _ in ranges])
        return cls(ranges, rows, sizes * shares if positions else np.full(rows.size, 1.0), not held >= stored)

    def sampled(self, schema: Schema) -> _Sizes:
        """Estimate the bytes of the columns by the largest of the fragments."""
        largest = int(np.argmax(np.maximum(self.sizes, self.rows)))
        scan = self.ranges[largest][0]
        found = sum(int(column.size_bytes.sum()) for column in _columns(scan, schema))
        per_row = found / max(scan.physical_rows(), 1)
        per_byte = per_row * self.rows[largest] / max(float(self.sizes[largest]), 1)
        return np.where(self.sizes > 0, self.sizes * min(per_byte, 1), self.rows * per_row)


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
