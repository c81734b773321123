"""The columns of passing rows that the filter does not need.

Many passing rows of a fragment are gathered, so that these columns take few requests. Few wait for those of the next
fragments, whose columns are read by the same calls.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import pyarrow as pa

from lance_format.object_store import ReadCounter
from lance_format.table.fragments.joined_take import take_fragments
from lance_format.table.fragments.open_files import FragmentFiles, in_step
from lance_format.table.fragments.row_columns import LiveRows
from lance_format.table.scan.pace import MAX_FILES_TOGETHER, Pace
from lance_format.table.scan.scanned_fragment import OpenFragment, ScannedRows
from lance_format.table.scan.stages import Stages, of_size

_MOST_OF_FRAGMENT = 1024
_MOST_ROWS = 8 * 1024
_MOST_BYTES = 16 * 1024 * 1024
"""Maximum numbers of rows that wait, of each fragment and together, and of bytes of columns of the filter."""
_GROWTH = 4
_MOST_SEEN = 1024 * 1024
"""Number of rows that are tested while some wait: of large fragments, the calls that waiting saves do not matter."""


class LateColumns:
    """Completes passing rows, which it yields in order.

    Parameters
    ----------
    stages : Stages
    pace : Pace
    counter : ReadCounter
    may_wait : bool
        Whether rows may wait for those of further fragments.

    Attributes
    ----------
    opened : dict of int to FragmentFiles
        The open files of fragments, by their ids.
    """

    def __init__(self, stages: Stages, pace: Pace, counter: ReadCounter, *, may_wait: bool) -> None:
        self.stages = stages
        self.opened: dict[int, FragmentFiles] = {}
        self._pace = pace
        self._counter = counter
        self._may_wait = may_wait and bool(stages.late.fields)
        self._waiting: list[ScannedRows] = []
        self._waits_since = 0
        self._together = 1  # It grows, so that the first rows arrive early.

    def whole(self, batch: pa.RecordBatch, rows: LiveRows) -> Iterator[ScannedRows]:
        """Take rows that have all columns."""
        yield from self.rest()
        self._pace.count_late(batch.nbytes, batch.num_rows)
        yield from self._pieces(batch, rows)

    def passed(self, fragment: OpenFragment, group: Sequence[ScannedRows]) -> Iterator[ScannedRows]:
        """Take rows of a fragment that have the columns of the filter."""
        num_rows = sum(batch.num_rows for batch, _ in group)
        if self._may_wait and num_rows <= _MOST_OF_FRAGMENT:
            yield from self.few(group)
        elif group:
            yield from self.rest()
            yield from self._complete(fragment, group)

    def few(self, passed: Sequence[ScannedRows]) -> Iterator[ScannedRows]:
        """Take few rows of some fragments that have the columns of the filter."""
        if not self._waiting:
            self._waits_since = self._pace.num_seen
        self._waiting += passed
        num_rows = sum(batch.num_rows for batch, _ in self._waiting)
        num_bytes = sum(batch.nbytes for batch, _ in self._waiting)
        if num_rows >= _MOST_ROWS or num_bytes >= _MOST_BYTES or not self._may_wait:
            yield from self.rest()

    def end_fragments(self, stack: contextlib.ExitStack) -> Iterator[ScannedRows]:
        """Complete rows that have waited enough after some fragments, and close the files for which none wait."""
        is_enough = len(self._waiting) >= self._together or len(self.opened) >= MAX_FILES_TOGETHER
        if is_enough or self._pace.num_seen - self._waits_since >= _MOST_SEEN:
            yield from self.rest()
        if not self._waiting:
            self.opened.clear()
            stack.close()

    def rest(self) -> Iterator[ScannedRows]:
        """Complete the rows that wait."""
        waiting, self._waiting = self._waiting, []
        if not self.stages.late.fields:
            for batch, rows in waiting:
                yield from self._pieces(self.stages.join(batch), rows)
        elif waiting:
            self._together = min(self._together * _GROWTH, MAX_FILES_TOGETHER)
            yield from self._complete_together(waiting)

    def _complete_together(self, waiting: Sequence[ScannedRows]) -> Iterator[ScannedRows]:
        left = iter(waiting)
        (kept, _), position = next(left), 0
        for late, parts in take_fragments([rows for _, rows in waiting], self.stages.late, self._counter, self.opened):
            self._pace.count_late(late.nbytes, late.num_rows)
            start = 0
            for rows in parts:
                if position == kept.num_rows:
                    (kept, _), position = next(left), 0
                num_rows = rows.offsets.size
                joined = self.stages.join(kept.slice(position, num_rows), late.slice(start, num_rows))
                yield from self._pieces(joined, rows)
                position, start = position + num_rows, start + num_rows

    def _complete(self, fragment: OpenFragment, group: Sequence[ScannedRows]) -> Iterator[ScannedRows]:
        """Read the other columns of many rows of a fragment."""
        batch_size = self._pace.batch_size
        rows = LiveRows.concatenate([rows for _, rows in group])
        streams = [of_size([batch for batch, _ in group], batch_size)]
        if self.stages.late.fields:
            streams.append(batch for batch, _ in fragment.take(self.stages.late, rows, batch_size=batch_size))
        first = 0
        for pieces in in_step(streams):
            joined = self.stages.join(*pieces)
            yield joined, rows.slice(first, joined.num_rows)
            first += joined.num_rows
            self._pace.count_late(pieces[-1].nbytes, joined.num_rows)

    def _pieces(self, batch: pa.RecordBatch, rows: LiveRows) -> Iterator[ScannedRows]:
        """Cut rows into batches; there are none of no rows."""
        size = self._pace.batch_size
        if 0 < batch.num_rows <= size:
            yield batch, rows
            return
        for first in range(0, batch.num_rows, size):
            piece = batch.slice(first, size)
            yield piece, rows.slice(first, piece.num_rows)
