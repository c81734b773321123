"""A fragment in a scan, with open files and its position in the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from lance_format.datatypes import Schema
from lance_format.file import ROWS_PER_ZONE
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import ReadCounter
from lance_format.table.fragments.deletion_file import RowOffsets
from lance_format.table.fragments.dictionary_columns import as_dictionaries
from lance_format.table.fragments.joined_take import NONE_OPEN, OpenFiles, take_alike
from lance_format.table.fragments.open_files import FragmentFiles
from lance_format.table.fragments.reader import FragmentReader, OffsetsFunction, to_live, to_physical
from lance_format.table.fragments.row_columns import LiveRows
from lance_format.table.fragments.small_fragments import read_small_fragments, smallness
from lance_format.table.scan.joined_rows import JoinedRows, ScannedRows
from lance_format.table.scan.row_ranges import RowRanges

_FEW_ROWS = 1024
"""Ranges of a larger fragment that are shorter on average are read together, like single rows."""
_LEAST_KEYS = 8 * 1024
"""So few rows of strings cost less than to find out whether they are keys of dictionaries."""
_BRIDGED_ROWS, _BRIDGED_ROWS_IF_REMOTE = 4 * ROWS_PER_ZONE, ROWS_PER_ZONE
"""So many rows of a few numbers cost less than the end of one range and the begin of another."""


@dataclass(slots=True)
class Window:
    """Limit and offset of a scan: numbers of rows to skip and to return. They decrease with every passing row.

    Parameters
    ----------
    to_skip : int
    left : int, optional
        By default all.
    """

    to_skip: int = 0
    left: int | None = None

    @property
    def is_over(self) -> bool:
        """True if no further row is needed."""
        return self.left == 0

    @property
    def is_open(self) -> bool:
        """True if all rows are needed."""
        return self.left is None and not self.to_skip

    def pass_rows(self, num_rows: int) -> tuple[int, int]:
        """Return how many of some passing rows to skip, and how many of the rest to return."""
        skipped = min(self.to_skip, num_rows)
        kept = num_rows - skipped if self.left is None else min(num_rows - skipped, self.left)
        self.to_skip -= skipped
        if self.left is not None:
            self.left -= kept
        return skipped, kept


@dataclass(frozen=True, slots=True)
class OpenFragment:
    """A fragment, and the number of rows of the table before it.

    Parameters
    ----------
    scan : FragmentReader
    files : FragmentFiles
    position : int
        Number of live rows before the fragment.
    within : RowRanges
        The rows that may be read.
    batch_bytes : int or None
        Approximate maximum size of a batch in memory; None for any.
    """

    scan: FragmentReader
    files: FragmentFiles
    position: int
    within: RowRanges
    batch_bytes: int | None

    def bridged(self, ranges: RowRanges) -> RowRanges:
        """Join ranges that are close to each other, which includes rows that fail the filter, unless all are few."""
        if _are_single(self.scan, ranges):
            return ranges
        is_remote = self.scan.directory.store.is_remote
        return ranges.bridged(_BRIDGED_ROWS_IF_REMOTE if is_remote else _BRIDGED_ROWS).intersect(self.within)

    def read(self, schema: Schema, ranges: RowRanges, *, batch_size: int) -> Iterator[ScannedRows]:
        """Read some columns of the live rows of ranges, in batches of at most `batch_size` rows; see `take`."""
        if _are_single(self.scan, ranges):
            rows = self._live(_live_rows(self.scan, ranges))
            yield from self.take(schema, rows, batch_size=batch_size)
            return
        for start, stop in ranges.pairs():
            for batch, offsets in self.scan.read_range(
                self.files, schema, start, stop, batch_size=batch_size, batch_bytes=self.batch_bytes
            ):
                yield batch, self._live(offsets)

    def as_dictionaries(self, schema: Schema, ranges: RowRanges) -> Schema:
        """Return some columns as to read them from ranges, with dictionaries where many rows gain by that."""
        return schema if ranges.num_rows < _LEAST_KEYS else as_dictionaries(schema, self.files)

    def take(self, schema: Schema, rows: LiveRows, *, batch_size: int) -> Iterator[ScannedRows]:
        """Read some columns of rows.

        Parameters
        ----------
        schema : Schema
            The columns.
        rows : LiveRows
        batch_size : int
            Maximum number of rows per batch.
        """
        first = 0
        for batch in self.files.take_batches(schema, rows.offsets, batch_size=batch_size):
            yield batch, rows.slice(first, batch.num_rows)
            first += batch.num_rows

    def _live(self, offsets: RowOffsets | OffsetsFunction) -> LiveRows:
        return LiveRows(self.scan, offsets, self.position)


def read_together(
    fragments: Sequence[tuple[FragmentReader, RowRanges, int]],
    schema: Schema,
    batch_size: int,
    counter: ReadCounter,
    opened: OpenFiles = NONE_OPEN,
    *,
    keeps_dictionaries: bool = False,
) -> list[tuple[slice, JoinedRows | None]]:
    """Read some columns of small fragments, and of fragments with few wanted rows, at once.

    Parameters
    ----------
    fragments : sequence of (FragmentReader, RowRanges, int)
        The wanted rows of each, and its position; see `OpenFragment`.
    schema : Schema
        The columns.
    batch_size : int
        Maximum number of rows of several fragments per batch.
    counter : ReadCounter
    opened : mapping of int to FragmentFiles
        See `take_fragments`.
    keeps_dictionaries : bool
        Whether fragments that may be read as dictionaries are to be opened; see `OpenFragment.as_dictionaries`.

    Returns
    -------
    list of (slice, JoinedRows or None)
        Which of the fragments, in order, and their rows; None for one fragment that has to be opened.
    """
    found: dict[int, JoinedRows] = {}
    read: set[int] = set()
    is_small = smallness(schema)
    small = [
        number
        for number, (scan, ranges, _) in enumerate(fragments)
        if is_small(scan)
        and not (keeps_dictionaries and ranges.num_rows >= _LEAST_KEYS)
        and not scan.directory.store.is_remote
        and ranges.is_all_of(scan.fragment.physical_rows)
    ]
    if len(small) > 1:
        scans = [fragments[number][0] for number in small]
        for positions, batch, offsets in read_small_fragments(scans, schema, counter):
            numbers = [small[position] for position in positions]
            read.update(numbers)
            parts = [
                LiveRows(fragments[number][0], rows, fragments[number][2])
                for number, rows in zip(numbers, offsets, strict=True)
            ]
            found.update(_join(numbers, parts, batch, batch_size))
    few = [
        number
        for number, (scan, ranges, _) in enumerate(fragments)
        if number not in read and _are_single(scan, ranges) and ranges.num_rows <= batch_size
    ]
    if len(few) > 1:
        wanted = [
            LiveRows(scan, _live_rows(scan, ranges), position)
            for scan, ranges, position in (fragments[number] for number in few)
        ]
        whole = take_alike(wanted, schema, counter, opened)
        if whole is not None:
            found.update(_join(few, wanted, whole, batch_size))
    joined: list[tuple[slice, JoinedRows | None]] = []
    stop = 0
    while stop < len(fragments):
        start, rows = stop, found.get(stop)
        stop += 1 if rows is None else len(rows.parts)
        joined.append((slice(start, stop), rows))
    return joined


def _join(
    numbers: Sequence[int], parts: Sequence[LiveRows], batch: pa.RecordBatch, batch_size: int
) -> Iterator[tuple[int, JoinedRows]]:
    """Divide a batch of the rows of some fragments where others are in between, or where it is too long.

    Parameters
    ----------
    numbers : sequence of int
        The number of each fragment, ascending.
    parts : sequence of LiveRows
    batch : pa.RecordBatch
        The rows of all.
    batch_size : int

    Yields
    ------
    (int, JoinedRows)
        The number of the first fragment, and the rows of it and the next ones.
    """
    first = start = stop = 0
    for position, rows in enumerate(parts):
        size = rows.num_rows
        if first < position and (numbers[position] != numbers[position - 1] + 1 or stop + size - start > batch_size):
            yield numbers[first], JoinedRows(batch.slice(start, stop - start), parts[first:position])
            first, start = position, stop
        stop += size
    yield numbers[first], JoinedRows(batch.slice(start, stop - start), parts[first:])


def _are_single(scan: FragmentReader, ranges: RowRanges) -> bool:
    """Return whether rows are better read one by one than as ranges."""
    return ranges.num_rows < _FEW_ROWS * len(ranges) and not ranges.is_all_of(scan.physical_rows())


def _live_rows(scan: FragmentReader, ranges: RowRanges) -> RowOffsets:
    """Return the offsets of the rows of ranges that are not deleted."""
    rows, deleted = ranges.rows(), scan.deleted_rows()
    return rows[np.isin(rows, deleted, assume_unique=True, invert=True)] if deleted.size else rows


def within(
    fragments: Iterable[tuple[FragmentReader, RowRanges]], window: Window
) -> Iterator[tuple[FragmentReader, RowRanges]]:
    """Yield the rows of fragments that are in a window, if all of them pass; none without a row."""
    for scan, ranges in fragments:
        if window.is_over:
            return
        wanted = clip(scan, ranges, window)
        if len(wanted):
            yield scan, wanted


def clip(scan: FragmentReader, ranges: RowRanges, window: Window) -> RowRanges:
    """Return the part of ranges whose live rows are in a window, if all of their rows pass.

    The manifest's entry of a fragment suffices to skip it as a whole.

    Parameters
    ----------
    scan : FragmentReader
    ranges : RowRanges
    window : Window
        Moved by the rows.
    """
    if window.is_open:
        return ranges
    if ranges.is_all_of(scan.physical_rows()):
        skipped, kept = window.pass_rows(num_rows := scan.num_rows())
    else:
        deleted = scan.deleted_rows()
        num_rows = int((to_live(ranges.stops, deleted) - to_live(ranges.starts, deleted)).sum())
        skipped, kept = window.pass_rows(num_rows)
    if kept == num_rows:
        return ranges
    deleted = scan.deleted_rows() if kept else np.zeros(0, np.int64)
    before = to_live(ranges.starts, deleted)
    sizes = to_live(ranges.stops, deleted) - before
    firsts = np.cumsum(sizes) - sizes
    begins = np.clip(skipped - firsts, 0, sizes)
    ends = np.clip(skipped + kept - firsts, 0, sizes)
    some = begins < ends
    starts = to_physical(before[some] + begins[some], deleted)
    stops = to_physical(before[some] + ends[some] - 1, deleted) + 1
    return RowRanges(starts, stops, ranges.certain[some])
