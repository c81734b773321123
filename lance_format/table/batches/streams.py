"""Streams of record batches, handed out in pieces of any size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lance_format.errors import SchemaMismatchError


def of_equal_size(batches: Iterable[pa.RecordBatch], num_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches in batches of `num_rows` rows; the last may have fewer."""
    pieces: list[pa.RecordBatch] = []
    lacking = num_rows
    for batch in batches:
        while batch.num_rows:
            pieces.append(batch.slice(0, lacking))
            batch = batch.slice(pieces[-1].num_rows)
            lacking -= pieces[-1].num_rows
            if not lacking:
                yield pa.concat_batches(pieces)
                pieces, lacking = [], num_rows
    if pieces:
        yield pa.concat_batches(pieces)


def within_bytes(batches: Iterable[pa.RecordBatch], num_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield batches; those with at least twice a number of bytes in parts of about that size."""
    for batch in batches:
        num_parts = min(batch.nbytes // num_bytes, batch.num_rows)
        size = -(-batch.num_rows // max(num_parts, 1))
        for start in range(0, batch.num_rows, size) if num_parts > 1 else (0,):
            yield batch.slice(start, size)


def first_rows(batches: Iterator[pa.RecordBatch], num_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the first rows of batches, without reading more batches than needed."""
    while num_rows and (batch := next(batches, None)) is not None:
        yield batch.slice(0, num_rows)
        num_rows -= min(num_rows, batch.num_rows)


class RowStream:
    """Hands out the rows of batches.

    Parameters
    ----------
    batches : iterable of pa.RecordBatch
        Consumed one by one.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self._rest: pa.RecordBatch | None = None

    def take(self, num_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the next rows.

        Raises
        ------
        SchemaMismatchError
            If there are not so many.
        """
        while num_rows:
            batch = self._next()
            if batch is None:
                raise SchemaMismatchError(
                    f"Stream ended before producing values for all rows in dataset: {num_rows} more are needed"
                )
            piece = batch.slice(0, num_rows)
            self._rest = batch.slice(num_rows) if batch.num_rows > num_rows else None
            num_rows -= piece.num_rows
            yield piece

    def check_exhausted(self) -> None:
        """Raise `SchemaMismatchError` if there are more rows."""
        while (batch := self._next()) is not None:
            if batch.num_rows:
                raise SchemaMismatchError(
                    "Stream produced more values than expected for dataset: there are more rows than to be filled"
                )

    def _next(self) -> pa.RecordBatch | None:
        rest, self._rest = self._rest, None
        return next(self._batches, None) if rest is None else rest
