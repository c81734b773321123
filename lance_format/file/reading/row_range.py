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

_MAX_WINDOWS_AHEAD = 4
_COLUMNS_AT_FULL_SIZE = 2
"""Number of columns that may have whole answers at once; those of more are smaller, which bounds memory."""


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
        self._share = -(-len(batches.cursors) // _COLUMNS_AT_FULL_SIZE)

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
        while row < self._stop:
            wanted = min(batch_size, self._stop - row)
            self._fill(wanted)
            num_rows, batches = self._batches.pop(wanted)
            row += num_rows
            yield from batches

    def _fill(self, num_rows: int) -> None:
        """Decode until every cursor has that many rows; pages of different columns are read together.

        If reading ahead pays, it then starts on the rows after these.
        """
        cursors = self._batches.cursors
        self._push(*self._ahead.finish())
        while lacking := [cursor for cursor in cursors if cursor.available < num_rows]:
            planned = self._plan_windows(lacking)
            self._push(planned, run_plans(self._source, [window.plan for window in planned], cpu_threads))
        if self._ahead.is_wanted:
            next_rows = [
                cursor for cursor in cursors if cursor.available < 2 * num_rows and cursor.next_row < self._stop
            ]
            self._ahead.start(self._plan_windows(next_rows))

    def _plan_windows(self, cursors: Sequence[Cursor]) -> list[Window]:
        planned = []
        for cursor in cursors:
            row = cursor.next_row
            with Locating(self._source.path, cursor.column.leaf.name):
                for window in itertools.count(1):
                    row, plan = cursor.column.plan_window(row, self._stop, self._share)
                    planned.append(Window(cursor, row, plan))
                    if row == self._stop or window == _windows_ahead(len(cursors)):
                        break
        return planned

    def _push(self, planned: Sequence[Window], results: Sequence[list[pa.Array]]) -> None:
        for window, arrays in zip(planned, results, strict=True):
            with Locating(self._source.path, window.cursor.column.leaf.name):
                window.cursor.push(arrays, window.end)


def _windows_ahead(num_columns: int) -> int:
    """Return the number of pages per column to decode at once, so that all threads have work."""
    return min(-(-cpu_threads() // num_columns), _MAX_WINDOWS_AHEAD)
