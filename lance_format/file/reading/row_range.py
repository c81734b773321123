"""Reading of a range of rows: windows of all columns are decoded together, the next ones ahead where it pays."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from threading import Event

import pyarrow as pa

from lance_format.byte_io import RangeReader
from lance_format.file.container.locating import Locating
from lance_format.file.reading.batches import BatchBuilder
from lance_format.file.reading.column_groups import Window, run_windows
from lance_format.file.reading.column_reader import Cursor
from lance_format.file.reading.cpu_threads import cpu_threads
from lance_format.file.reading.read_ahead import ReadAhead
from lance_format.structural.page import rows_within_answer

_ANSWERS_AT_ONCE = 2
"""Number of answers of whole size that are held at once. Those of more columns are smaller, which bounds memory."""

_ANSWERS_TOGETHER = 1.5
"""The same where all columns are read up to one row, as most windows end after it."""

_PARTS_OF_MEMORY = 3
"""Parts of that memory where rows are read ahead: the rows in use, the rows ahead, and their bytes as they arrive."""

_LEAST_SHARE_AHEAD = 6
"""Number of windows that share that memory at least where rows are read ahead, so that several are read at once."""

_HELD_BYTES = 32 * 1024 * 1024
"""While the rows in use and those ahead have fewer bytes, further ones are read."""

_LEAST_PART_BYTES = 2 * 1024 * 1024
"""A column is divided among threads into windows of so many bytes of the file at least. One thread decodes fewer as
fast as memory takes the values."""

_MAX_WINDOWS = 4
_MAX_WINDOWS_AHEAD = 16


class RangeScan:
    """Reads the rows of a range, batch by batch.

    Parameters
    ----------
    source : RangeReader
    batches : BatchBuilder
        Its cursors stand at the first row.
    start, stop : int
        Rows `start <= row < stop`.
    batch_size : int
    batch_bytes : int or None
        See `FileReader.read`.
    """

    def __init__(
        self,
        source: RangeReader,
        batches: BatchBuilder,
        start: int,
        stop: int,
        batch_size: int,
        batch_bytes: int | None = None,
    ) -> None:
        self._source = source
        self._batches = batches
        self._batch_size = batch_size
        self._batch_bytes = batch_bytes
        self._start = start
        self._stop = stop
        self._ahead = ReadAhead(source)
        num_columns = len(batches.cursors)
        self._share = -(-num_columns // _ANSWERS_AT_ONCE)
        self._share_of_rest = -(-self._share * 2 // 3)
        """The same for windows with the rest of a page, which may be half as large again."""
        if self._ahead.is_wanted:
            self._share = max(-(-num_columns * _PARTS_OF_MEMORY // _ANSWERS_AT_ONCE), _LEAST_SHARE_AHEAD)
            self._share_of_rest = self._share // 2
        self._needed = start
        """The row up to which the next batch needs rows."""
        self._planned = dict.fromkeys(batches.cursors, start)
        """The row of each column up to which rows are decoded or being read."""
        self._indexed: dict[Cursor, Event] = {}
        """Set once the table of chunks of the last page of each column is known."""

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches.

        Raises
        ------
        CorruptFileError, NotSupportedError
            With the file and the column that it is about.
        """
        row = self._start
        try:
            while row < self._stop:
                batch_size = self._batch_size if self._batch_bytes is None else self._rows_within(self._batch_bytes)
                self._needed = min(row + batch_size, self._stop)
                self._fill(self._needed - row)
                num_rows, batches = self._batches.pop(self._stop - row, batch_size)
                row += num_rows
                yield from batches
        finally:
            self._ahead.abandon()

    def _rows_within(self, num_bytes: int) -> int:
        """Return how many of the next rows have some bytes, judged by those that were decoded last: at least 1."""
        self._fill(1)
        row_bytes = sum(cursor.row_bytes for cursor in self._batches.cursors)
        return max(min(self._batch_size, int(num_bytes / max(row_bytes, 1))), 1)

    def _fill(self, num_rows: int) -> None:
        """Decode until every cursor has that many rows; pages of different columns are read together."""
        ahead = self._ahead
        while ahead.is_ready:
            self._push(*ahead.finish())
        while lacking := [cursor for cursor in self._batches.cursors if cursor.available < num_rows]:
            if not ahead.is_idle:
                self._push(*ahead.finish())
                continue
            for cursor in self._batches.cursors:  # What was read ahead in vain is read again.
                self._planned[cursor] = cursor.next_row
            planned = self._plan_windows(lacking)
            self._push(planned, run_windows(self._source, planned))
        self._read_ahead()

    def _read_ahead(self) -> None:
        """Start to read the next rows, as far as memory permits: always those of the columns that are behind."""
        ahead, planned = self._ahead, self._planned
        while ahead.is_wanted and not ahead.is_full and self._held_bytes() < _HELD_BYTES:
            left = [cursor for cursor in self._batches.cursors if planned[cursor] < self._stop]
            if not left:
                return
            last = min(left, key=planned.__getitem__)
            begins = {cursor: planned[cursor] for cursor in left}
            most = self._most_windows(1)
            windows = self._plan_column(last, most, self._stop)
            for cursor in left:
                if planned[cursor] < windows[-1].end and cursor is not last:
                    windows += self._plan_column(cursor, most, windows[-1].end)
            self._begin(windows, begins)

    def _begin(self, windows: list[Window], begins: Mapping[Cursor, int]) -> None:
        """Start to read windows. Those that continue a page wait for its table of chunks, which is read once."""
        cursors = dict.fromkeys(window.cursor for window in windows)
        known = [self._indexed[cursor] for cursor in cursors if cursor in self._indexed]
        after = [event for event in known if not event.is_set()]
        indexed = self._ahead.start(windows, after)
        for cursor in cursors:
            row = self._planned[cursor]
            first, end = cursor.column.page_bounds(row - 1)
            if begins[cursor] <= first and row < end:
                self._indexed[cursor] = indexed

    def _held_bytes(self) -> float:
        """Return the approximate size of the rows that are decoded or being read, and not handed out."""
        return sum(
            (row - cursor.next_row + cursor.available) * cursor.row_bytes for cursor, row in self._planned.items()
        )

    def _plan_windows(self, lacking: Sequence[Cursor]) -> list[Window]:
        """Plan the next windows of the columns that lack rows, or of all columns, so that threads have enough to do."""
        cursors = self._batches.cursors
        is_ahead = self._ahead.is_wanted or self._ahead.has_failed
        is_known = all(cursor.row_bytes for cursor in cursors)
        if is_ahead or not is_known or len(cursors) == 1 or cpu_threads() == 1:
            most = self._most_windows(len(lacking))
            return [window for cursor in lacking for window in self._plan_column(cursor, most, self._stop)]
        row = min(cursor.next_row for cursor in cursors)
        enough = row + rows_within_answer(sum(cursor.expected_row_bytes() for cursor in cursors) / _ANSWERS_TOGETHER)
        behind = [cursor for cursor in cursors if cursor.next_row < min(enough, self._stop) or cursor in lacking]
        return [window for cursor in behind for window in self._plan_column(cursor, _MAX_WINDOWS_AHEAD, enough)]

    @staticmethod
    def _most_windows(num_columns: int) -> int:
        """Return how many windows of each of some columns give all threads work."""
        return min(-(-cpu_threads() // num_columns), _MAX_WINDOWS)

    def _plan_column(self, cursor: Cursor, most: int, enough: int) -> list[Window]:
        """Plan the next windows of a column.

        Parameters
        ----------
        cursor : Cursor
        most : int
            Number of windows; there are more only where rows are read ahead and their size is known.
        enough : int
            The row at which they may end.
        """
        planned = []
        row = self._planned[cursor]
        part_rows = self._part_rows(cursor, row, most)
        with Locating(self._source.path, cursor.column.leaf.name):
            for window in itertools.count(1):
                start = row
                row, result_bytes = self._window(cursor, start, min(start + part_rows, self._stop))
                planned.append(Window(cursor, start, row, result_bytes))
                if row >= enough or self._is_enough(cursor, row, window, most):
                    break
        self._planned[cursor] = row
        return planned

    def _part_rows(self, cursor: Cursor, row: int, num_parts: int) -> int:
        """Return how many rows a window takes at most, so that threads have equal parts of what is left of a column.

        Other columns than flat ones end with their pages: part of a page would need its index as well.
        """
        left = self._stop - row
        if num_parts == 1 or left <= self._batch_size or self._ahead.is_wanted or not cursor.column.leaf.is_flat:
            return left
        rows = -(-left // (num_parts * self._batch_size)) * self._batch_size
        return rows if rows * cursor.column.stored_row_bytes(row) >= _LEAST_PART_BYTES else left

    def _window(self, cursor: Cursor, row: int, stop: int) -> tuple[int, int]:
        """Return where the next window ends, and its bytes.

        It takes the rest of a page that is not much larger, which saves the calls of another window and the copy that
        joins both, and all rows of the next batch, which are held together anyway. Otherwise it ends with a batch if it
        has whole ones, so that batches are slices of arrays.
        """
        column = cursor.column
        page_end = column.page_bounds(row)[1]
        end, result_bytes = column.window(row, stop, self._share_of_rest, cursor.row_bytes)
        if end == page_end:
            return end, result_bytes
        end, result_bytes = column.window(row, stop, self._share, cursor.row_bytes)
        if end < self._needed and not self._ahead.is_wanted:
            return column.window(row, min(stop, self._needed), 1, cursor.row_bytes)
        beyond = (end - self._start) % self._batch_size
        if beyond < end - row and end < min(stop, page_end):
            return end - beyond, result_bytes
        return end, result_bytes

    def _is_enough(self, cursor: Cursor, row: int, num_windows: int, most_windows: int) -> bool:
        """Return whether a column needs no further window: all threads, or the connections, have work.

        Parameters
        ----------
        cursor : Cursor
        row : int
            Where its last window ends.
        num_windows, most_windows : int
            See `_plan_column`.
        """
        if row == self._stop or self._ahead.has_failed:
            return True
        if not self._ahead.is_wanted or not cursor.row_bytes:
            return num_windows == most_windows
        with_another = (row - self._planned[cursor]) * (num_windows + 1) / num_windows
        most = rows_within_answer(cursor.row_bytes * self._share)
        return num_windows == _MAX_WINDOWS_AHEAD or with_another > most

    def _push(self, planned: Sequence[Window], results: Sequence[list[pa.Array]]) -> None:
        for window, arrays in zip(planned, results, strict=True):
            with Locating(self._source.path, window.cursor.column.leaf.name):
                window.cursor.push(arrays, window.end)
