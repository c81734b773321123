"""The columns of passing rows that the filter does not need.

Many passing rows of a fragment are gathered, so that these columns take few requests. Few wait for those of the next
fragments, whose columns are read by the same calls.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence

from lance_format.object_store import ReadCounter
from lance_format.table.fragments.joined_take import take_fragments
from lance_format.table.fragments.open_files import FragmentFiles, in_step
from lance_format.table.fragments.row_columns import LiveRows
from lance_format.table.scan.joined_rows import JoinedRows, ScannedRows
from lance_format.table.scan.pace import MAX_FILES_TOGETHER, Pace
from lance_format.table.scan.scanned_fragment import OpenFragment
from lance_format.table.scan.stages import Stages, concatenated, of_size

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

    def whole(self, passed: JoinedRows) -> Iterator[JoinedRows]:
        """Take rows that have all columns."""
        yield from self.rest()
        self._pace.count_late([passed.batch.column(name) for name in self.stages.late.names])
        yield from passed.cut(self._pace.batch_size)

    def passed(self, fragment: OpenFragment, group: Sequence[ScannedRows]) -> Iterator[JoinedRows]:
        """Take rows of a fragment that have the columns of the filter."""
        num_rows = sum(batch.num_rows for batch, _ in group)
        if self._may_wait and num_rows <= _MOST_OF_FRAGMENT:
            yield from self.few(group)
        elif group:
            yield from self.rest()
            yield from self._complete(fragment, group)

    def few(self, passed: Sequence[ScannedRows]) -> Iterator[JoinedRows]:
        """Take few rows of some fragments that have the columns of the filter."""
        if not self._waiting:
            self._waits_since = self._pace.num_seen
        self._waiting += passed
        num_rows = sum(batch.num_rows for batch, _ in self._waiting)
        num_bytes = sum(batch.nbytes for batch, _ in self._waiting)
        if num_rows >= _MOST_ROWS or num_bytes >= _MOST_BYTES or not self._may_wait:
            yield from self.rest()

    def end_fragments(self, stack: contextlib.ExitStack) -> Iterator[JoinedRows]:
        """Complete rows that have waited enough after some fragments, and close the files for which none wait."""
        is_enough = len(self._waiting) >= self._together or len(self.opened) >= MAX_FILES_TOGETHER
        if is_enough or self._pace.num_seen - self._waits_since >= _MOST_SEEN:
            yield from self.rest()
        if not self._waiting:
            self.opened.clear()
            stack.close()

    def rest(self) -> Iterator[JoinedRows]:
        """Complete the rows that wait."""
        waiting, self._waiting = self._waiting, []
        if not self.stages.late.fields:
            for found in united(map(JoinedRows.of_one, waiting)):
                yield from JoinedRows(self.stages.join(found.batch), found.parts).cut(self._pace.batch_size)
        elif waiting:
            self._together = min(self._together * _GROWTH, MAX_FILES_TOGETHER)
            yield from self._complete_together(_by_fragment(waiting))

    def _complete_together(self, waiting: Sequence[ScannedRows]) -> Iterator[JoinedRows]:
        left = iter(waiting)
        (kept, _), position = next(left), 0
        for late, parts in take_fragments([rows for _, rows in waiting], self.stages.late, self._counter, self.opened):
            self._pace.count_late(late.columns)
            pieces = []
            for rows in parts:
                if position == kept.num_rows:
                    (kept, _), position = next(left), 0
                pieces.append(JoinedRows(kept.slice(position, rows.num_rows), (rows,)))
                position += rows.num_rows
            start = 0
            for found in united(pieces):
                joined = self.stages.join(found.batch, late.slice(start, found.num_rows))
                yield from JoinedRows(joined, found.parts).cut(self._pace.batch_size)
                start += found.num_rows

    def _complete(self, fragment: OpenFragment, group: Sequence[ScannedRows]) -> Iterator[JoinedRows]:
        """Read the other columns of many rows of a fragment."""
        batch_size = self._pace.batch_size
        rows = LiveRows.concatenate([rows for _, rows in group])
        streams = [of_size([batch for batch, _ in group], batch_size)]
        if self.stages.late.fields:
            streams.append(batch for batch, _ in fragment.take(self.stages.late, rows, batch_size=batch_size))
        first = 0
        for pieces in in_step(streams):
            joined = self.stages.join(*pieces)
            yield JoinedRows(joined, (rows.slice(first, joined.num_rows),))
            first += joined.num_rows
            self._pace.count_late(pieces[-1].columns if self.stages.late.fields else ())


def united(found: Iterable[JoinedRows]) -> list[JoinedRows]:
    """Join rows of one fragment after the other, if arrays can hold them."""
    members = list(found)
    batches = concatenated([rows.batch for rows in members])
    if len(members) < 2 or len(batches) > 1:
        return members
    return [JoinedRows(batches[0], [part for rows in members for part in rows.parts])]


def _by_fragment(found: Sequence[ScannedRows]) -> list[ScannedRows]:
    """Join the rows of each fragment, which follow each other."""
    united: list[ScannedRows] = []
    for _, group in itertools.groupby(found, key=lambda rows: rows[1].scan.fragment.id):
        members = list(group)
        batches = concatenated([batch for batch, _ in members])
        if len(batches) == 1:
            united.append((batches[0], LiveRows.concatenate([rows for _, rows in members])))
        else:
            united += members
    return united
