"""Rows of fragments that follow each other, in one batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from lance_format.lazy_dataclasses import dataclass
from lance_format.table.fragments.reader import filter_rows
from lance_format.table.fragments.row_columns import LiveRows

ScannedRows = tuple[pa.RecordBatch, LiveRows]


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """Rows of one fragment, or of several that follow each other.

    Parameters
    ----------
    batch : pa.RecordBatch
    parts : sequence of LiveRows
        The rows of each fragment, in order.
    """

    batch: pa.RecordBatch
    parts: Sequence[LiveRows]

    @classmethod
    def of_one(cls, found: ScannedRows) -> JoinedRows:
        """Return the rows of one fragment."""
        batch, rows = found
        return cls(batch, (rows,))

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return int(self.batch.num_rows)

    def cut(self, batch_size: int) -> Iterator[JoinedRows]:
        """Yield batches of at most a number of rows; there are none of no rows."""
        if 0 < self.num_rows <= batch_size:
            yield self
            return
        for batch, rows in self.split():
            for first in range(0, batch.num_rows, batch_size):
                piece = batch.slice(first, batch_size)
                yield JoinedRows(piece, (rows.slice(first, piece.num_rows),))

    def split(self) -> Iterator[ScannedRows]:
        """Yield the rows of each fragment."""
        if len(self.parts) == 1:
            yield self.batch, self.parts[0]
            return
        start = 0
        for rows in self.parts:
            yield self.batch.slice(start, rows.num_rows), rows
            start += rows.num_rows

    def filter(self, mask: pa.BooleanArray) -> JoinedRows:
        """Return the rows where a mask without nulls is true, without fragments that have none."""
        if mask.true_count == self.num_rows:
            return self
        if len(self.parts) == 1:
            return JoinedRows(filter_rows(self.batch, mask), (self.parts[0].filter(mask),))
        parts, start = [], 0
        for rows in self.parts:
            own = mask.slice(start, rows.num_rows)
            start += rows.num_rows
            if own.true_count:
                parts.append(rows.filter(own))
        return JoinedRows(filter_rows(self.batch, mask), parts)

    def slice(self, start: int, num_rows: int) -> JoinedRows:
        """Return a range of the rows, without fragments that have none in it."""
        if num_rows == self.num_rows:
            return self
        parts, first, stop = [], 0, start + num_rows
        for rows in self.parts:
            begin, end = max(start - first, 0), min(stop - first, rows.num_rows)
            if begin < end:
                parts.append(rows.slice(begin, end - begin))
            first += rows.num_rows
        return JoinedRows(self.batch.slice(start, num_rows), parts)


def by_fragment(found: Iterable[JoinedRows]) -> Iterator[ScannedRows]:
    """Yield the rows of each fragment."""
    for joined in found:
        yield from joined.split()
