"""Reading of a range of rows: windows of all columns are decoded together, the next ones ahead where it pays."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pyarrow as pa

from lance_format.byte_io import RangeReader
from lance_format.file.container.locating import Locating
from lance_format.file.container.scheduler import run_plans
from lance_format.file.reading.batches import BatchBuilder
from lance_format.file.reading.column_reader import Cursor
from lance_format.file.reading.cpu_threads import cpu_threads
from lance_format.file.reading.read_ahead import ReadAhead, Window
from lance_format.structural.page import rows_within_answer

_ANSWERS_AT_ONCE = 2
"""Number of answers of whole size that are held at once. Those of more columns are smaller, which bounds memory."""

_UNITS_AHEAD = 3
"""Parts of that memory where rows are read ahead: the rows in use, the rows ahead, and their bytes as they arrive."""

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
    """

    def __init__(self, source: RangeReader, batches: BatchBuilder, start: int, stop: int) -> None:
        self._source = source
        self._batches = batches
        self._start = start
        self._stop = stop
        self._ahead = ReadAhead(source)
        num_columns = len(batches.cursors)
        units = _UNITS_AHEAD if self._ahead.is_wanted else 1
        self._share = -(-num_columns * units // _ANSWERS_AT_ONCE)
        self._unit_rows = dict.fromkeys(batches.cursors, start)
        """The row of each column where the rows that were planned last begin."""

    def read(self, batch_size: int) -> Iterator[pa.RecordBatch]:
        """Yield the batches.

        Parameters
        ----------
        batch_size : int
            Rows of every batch except the last; see `FileReader.read`.

        Raises
        ------
        CorruptFileError, NotSupportedError
            With the file and the column that it is about.
        """
        row = self._start
        try:
            while row < self._stop:
                wanted = min(batch_size, self._stop - row)
                self._fill(wanted)
                num_rows, batches = self._batches.pop(wanted)
                row += num_rows
                yield from batches
        finally:
            self._ahead.abandon()

    def _fill(self, num_rows: int) -> None:
        """Decode until every cursor has that many rows; pages of different columns are read together.

        Reading ahead begins with the use of the rows that were decoded last.
        """
        cursors, ahead = self._batches.cursors, self._ahead
        if ahead.is_ready or any(cursor.available < num_rows for cursor in cursors):
            self._push(*ahead.finish())
        while lacking := [cursor for cursor in cursors if cursor.available < num_rows]:
            planned = self._plan_windows(lacking)
            self._push(planned, run_plans(self._source, [window.plan for window in planned], cpu_threads))
        if ahead.is_wanted and ahead.is_idle:
            used = [cursor for cursor in cursors if cursor.next_row - cursor.available >= self._unit_rows[cursor]]
            ahead.start(self._plan_windows([cursor for cursor in used if cursor.next_row < self._stop]))

    def _plan_windows(self, cursors: Sequence[Cursor]) -> list[Window]:
        planned = []
        for cursor in cursors:
            row = self._unit_rows[cursor] = cursor.next_row
            with Locating(self._source.path, cursor.column.leaf.name):
                for window in itertools.count(1):
                    row, plan = cursor.column.plan_window(row, self._stop, self._share, cursor.row_bytes)
                    planned.append(Window(cursor, row, plan))
                    if row == self._stop or self._is_enough(cursor, row, window, len(cursors)):
                        break
        return planned

    def _is_enough(self, cursor: Cursor, row: int, num_windows: int, num_columns: int) -> bool:
        """Return whether a column needs no further window: all threads, or the connections, have work.

        Parameters
        ----------
        cursor : Cursor
        row : int
            Where its last window ends.
        num_windows : int
        num_columns : int
            Number of columns that are read together.
        """
        if self._ahead.has_failed:
            return True
        if not self._ahead.is_wanted or not cursor.row_bytes:
            return num_windows == min(-(-cpu_threads() // num_columns), _MAX_WINDOWS)
        with_another = (row - cursor.next_row) * (num_windows + 1) / num_windows
        most = rows_within_answer(cursor.row_bytes * self._share)
        return num_windows == _MAX_WINDOWS_AHEAD or with_another > most

    def _push(self, planned: Sequence[Window], results: Sequence[list[pa.Array]]) -> None:
        for window, arrays in zip(planned, results, strict=True):
            with Locating(self._source.path, window.cursor.column.leaf.name):
                window.cursor.push(arrays, window.end)
