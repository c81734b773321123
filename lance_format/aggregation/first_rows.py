"""The first rows of each group: a filter of a stream of batches that drops rows with enough better ones in their group.

A table has the best values of each group. Rows that are worse than all of them are dropped at once. The others wait, as
better ones may follow, until they take some bytes; then those are dropped that are worse by now. If that does not make
room, they are returned. So more rows may be returned than the first ones, but never fewer.

Groups of few rows gain nothing from this: all rows are returned for a while, before it is tried again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.aggregation.keys import make_key_table
from lance_format.aggregation.scores import are_exact, score
from lance_format.aggregation.trials import Trials, are_futile
from lance_format.aggregation.words import I32, I64, frozen
from lance_format.arrow_rows import keep_rows
from lance_format.kernels.aggregation.best_values import LEAST, keep_best, mark_best
from lance_format.lazy_dataclasses import dataclass

DEFAULT_MAX_BYTES = 128 << 20
DEFAULT_MAX_WAITING_BYTES = 64 << 20
_SLICE_ROWS = 1 << 16
_RETURNED_ROWS, _RETURNED_BYTES = 1 << 14, 8 << 20
"""Numbers of rows and bytes that are returned together, if there are more."""
_LONG_TRIAL_ROWS = 1 << 21
_MOST_KEPT = 0.9
"""Share of the rows of a long trial that may be kept, if they are worth comparing."""


@dataclass(frozen=True, slots=True)
class GroupOrder:
    """Groups of rows, and the order of the rows of a group.

    Parameters
    ----------
    keys : tuple of str
        The columns by which rows are grouped.
    column : str
        The column by which rows are ordered; other columns may decide the order of rows that are equal in it.
    ascending : bool
    nulls_first : bool
    """

    keys: tuple[str, ...]
    column: str
    ascending: bool = True
    nulls_first: bool = True


class FirstRows:
    """Filter of the batches of a stream.

    Parameters
    ----------
    schema : pa.Schema
        The columns of the batches. Those of the order have types for which `is_key` is true.
    order : GroupOrder
    limit : int
        Number of rows of each group, 1 or more. Rows that equal the last of these in the order are returned, too.
    distinct : bool
        Whether rows that are equal in the order count as one.
    drops_ties : bool
        Whether rows that equal the last one may be dropped, as any of them will do. No other column may decide their
        order then.
    max_bytes : int
        Approximate size of the table of groups at which it is emptied.
    max_waiting_bytes : int
        Approximate size of the rows that wait for better ones.
    """

    def __init__(
        self,
        schema: pa.Schema,
        order: GroupOrder,
        limit: int,
        *,
        distinct: bool = False,
        drops_ties: bool = False,
        max_bytes: int = DEFAULT_MAX_BYTES,
        max_waiting_bytes: int = DEFAULT_MAX_WAITING_BYTES,
    ) -> None:
        self._order = order
        self._limit = limit
        self._distinct = distinct
        ordered = schema.field(order.column).type
        self._drops_ties = drops_ties and are_exact(ordered)
        self._max_bytes = max_bytes
        self._max_waiting_bytes = max_waiting_bytes
        self._keys = make_key_table([schema.field(name).type for name in order.keys])
        self._trials = Trials()
        self._waiting: list[_Part] = []
        self._waiting_bytes = 0
        self._best: I64 = np.empty((0, limit), np.int64)
        self._clear()

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add rows; yield rows that need not or cannot wait.

        Parameters
        ----------
        batch : pa.RecordBatch
        """
        for start in range(0, batch.num_rows, _SLICE_ROWS):
            part = batch.slice(start, _SLICE_ROWS)
            if self._trials.passes(part.num_rows):
                yield part
                continue
            self._compare(part)
            if self._is_futile():
                yield from self._flush()
                self._trials.pause()
            elif self._keys.size_bytes + 8 * self._limit * self._keys.count > self._max_bytes:
                yield from self._flush()
            elif self._waiting_bytes > self._max_waiting_bytes:
                self._shrink()
                if 2 * self._waiting_bytes > self._max_waiting_bytes:
                    yield from self._return()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that wait."""
        yield from self._flush()

    def _compare(self, batch: pa.RecordBatch) -> None:
        order = self._order
        groups = self._keys.number([batch.column(name) for name in order.keys], batch.num_rows)
        scores = score(batch.column(order.column), ascending=order.ascending, nulls_first=order.nulls_first)
        self._reserve()
        kept = np.empty(batch.num_rows, np.bool_)
        count = keep_best(scores, groups, self._best, self._distinct, self._drops_ties, kept)
        self._rows += batch.num_rows
        if count:
            self._wait(_Part(batch, groups, scores).filter(kept, count))

    def _is_futile(self) -> bool:
        if are_futile(self._rows, self._keys.count):
            return True
        if self._rows < self._next_trial:
            return False
        self._next_trial *= 2
        self._shrink()
        kept: int = self._returned + sum(part.batch.num_rows for part in self._waiting)
        return kept > _MOST_KEPT * self._rows

    def _reserve(self) -> None:
        """Make room for the best values of all groups."""
        known, needed = self._best.shape[0], self._keys.count
        if known < needed:
            larger = np.full((max(needed, 2 * known), self._limit), LEAST, np.int64)
            larger[:known] = self._best
            self._best = larger

    def _wait(self, part: _Part) -> None:
        self._waiting.append(part)
        self._waiting_bytes += part.size_bytes

    def _shrink(self) -> None:
        """Drop rows that wait and are worse than others by now."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        for part in waiting:
            kept = np.empty(part.batch.num_rows, np.bool_)
            count = mark_best(part.scores, part.groups, self._best, kept)
            if count:
                self._wait(part.filter(kept, count))

    def _return(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that wait, a few small batches as one."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        gathered: list[pa.RecordBatch] = []
        num_rows = num_bytes = 0
        for part in waiting:
            gathered.append(part.batch)
            num_rows += part.batch.num_rows
            num_bytes += part.size_bytes
            self._returned += part.batch.num_rows
            if num_rows >= _RETURNED_ROWS or num_bytes >= _RETURNED_BYTES:
                yield _joined(gathered)
                gathered, num_rows, num_bytes = [], 0, 0
        if gathered:
            yield _joined(gathered)

    def _flush(self) -> Iterator[pa.RecordBatch]:
        self._shrink()
        yield from self._return()
        self._clear()

    def _clear(self) -> None:
        """Forget all groups."""
        self._keys.clear()
        self._best = np.empty((0, self._limit), np.int64)
        self._rows = 0
        self._returned = 0
        self._next_trial = _LONG_TRIAL_ROWS


class _Part:
    """Rows that wait, with their groups and scores."""

    def __init__(self, batch: pa.RecordBatch, groups: I32, scores: I64) -> None:
        self.batch, self.groups, self.scores = batch, groups, scores
        self.size_bytes = batch.nbytes + groups.nbytes + scores.nbytes

    def filter(self, kept: npt.NDArray[np.bool_], count: int) -> _Part:
        """Return the rows that are kept, whose number is known."""
        if count == self.batch.num_rows:
            return self
        return _Part(keep_rows(self.batch, pa.array(kept)), self.groups[kept], frozen(self.scores[kept]))


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
