"""Record batches from the decoded rows of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lance_format.extension_types import retype
from lance_format.file.blobs.payloads import BlobReader
from lance_format.file.columns.assembly import merge
from lance_format.file.columns.projection import ColumnProjection
from lance_format.file.container.locating import Locating
from lance_format.file.reading.column_reader import ColumnReader, Cursor


class BatchBuilder:
    """Builds batches of columns, whose leaves are decoded into cursors.

    Parameters
    ----------
    columns : sequence of ColumnProjection
    leaves : sequence of sequence of ColumnReader
        Leaves of each column.
    start : int
        The first row.
    blobs : BlobReader
    path : str
        Of the file.

    Attributes
    ----------
    cursors : list of Cursor
        Cursors of all leaves, in order.
    """

    def __init__(
        self,
        columns: Sequence[ColumnProjection],
        leaves: Sequence[Sequence[ColumnReader]],
        start: int,
        blobs: BlobReader,
        path: str,
    ) -> None:
        self._fields = [column.field for column in columns]
        self._stored = [column.stored for column in columns]
        self._has_payloads = any(column.stored is not column.field for column in columns)
        self._schema = pa.schema([column.arrow_field for column in columns])
        self._by_column = [[Cursor(leaf, start) for leaf in leaves_of_column] for leaves_of_column in leaves]
        self.cursors = [cursor for cursors in self._by_column for cursor in cursors]
        self._blobs = blobs
        self._path = path

    def pop(self, num_rows: int, batch_size: int) -> tuple[int, Iterator[pa.RecordBatch]]:
        """Take the next rows out of the cursors, which have them for one batch.

        Several batches are slices of a large one if all of their rows were decoded together.

        Parameters
        ----------
        num_rows : int
            Number of rows that are left; at least 1.
        batch_size : int
            Rows of every batch except the last. A batch has fewer if an array cannot hold so many, or because of the
            payloads of blobs.

        Returns
        -------
        num_rows : int
            Number of rows taken.
        batches : iterator of pyarrow.RecordBatch

        Raises
        ------
        CorruptFileError, NotSupportedError
            With the file and the column that it is about; also from the iterator.
        """
        together = min((cursor.rows_together for cursor in self.cursors), default=0)
        most = batch_size if self._has_payloads else max(min(together, num_rows) // batch_size, 1) * batch_size
        most = min(most, num_rows)
        num_rows = min((cursor.fits(most) for cursor in self.cursors), default=most)
        arrays = []
        for field, cursors in zip(self._stored, self._by_column, strict=True):
            with Locating(self._path, field.name):
                arrays.append(merge(field, [cursor.pop(num_rows) for cursor in cursors]))
        return num_rows, self._resolve(num_rows, arrays, batch_size)

    def _resolve(self, num_rows: int, arrays: list[pa.Array], batch_size: int) -> Iterator[pa.RecordBatch]:
        for resolved in self._blobs.resolve(arrays, self._stored, self._fields):
            batch = to_batch(resolved, self._schema, len(resolved[0]) if resolved else num_rows)
            size = min(batch_size, max(batch.num_rows, 1))
            for start in range(0, batch.num_rows, size):
                yield batch.slice(start, size)


def to_batch(arrays: list[pa.Array], schema: pa.Schema, num_rows: int) -> pa.RecordBatch:
    """Return a batch of arrays, with extension types where the schema has them.

    Parameters
    ----------
    arrays : list of pyarrow.Array
    schema : pyarrow.Schema
    num_rows : int
        Number of rows of the batch, which may have no columns.
    """
    if not arrays:
        return pa.record_batch([pa.nulls(num_rows)], names=["_"]).select([])
    columns = [retype(array, field.type) for array, field in zip(arrays, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
