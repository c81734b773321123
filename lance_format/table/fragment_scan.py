"""Reading one fragment: its data files side by side, columns that no file holds as nulls, deleted rows left out.

Rows are counted in two ways. *Physical* rows are those of the data files; *live* rows are what is left of them once
deleted rows are skipped. Callers speak of live rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.datatypes import Field, Schema
from lance_format.errors import CorruptFileError, DatasetNotFoundError
from lance_format.extension_types import storage_of
from lance_format.file import BlobFile, ColumnProjection, FileReader, SearchCache, StoredBlobs
from lance_format.object_store import ObjectNotFoundError, ObjectStore
from lance_format.table.column_parts import ColumnPart, combine_parts, split_column
from lance_format.table.deletion_vector import RowOffsets, read_deleted_rows
from lance_format.table.fragment import DataFile, FragmentMetadata, place_of

_Stream = Generator[pa.RecordBatch, None, None]


@dataclass(frozen=True, slots=True)
class FragmentScan:
    """Some columns of one fragment.

    Parameters
    ----------
    store : ObjectStore
    root : str
        The path of the table in the store.
    fragment : FragmentMetadata
    schema : Schema
        The columns, in the order wanted.
    cache : SearchCache
        Of the table.
    bases : mapping of int to str
        Where files of a branch lie that its parents wrote; see `Manifest.bases`.
    memory : dict
        What has been found out about the fragment, for those who scan it.
    """

    store: ObjectStore
    root: str
    fragment: FragmentMetadata
    schema: Schema
    cache: SearchCache
    bases: Mapping[int, str] = dataclasses.field(default_factory=dict)
    memory: dict[str, Any] = dataclasses.field(default_factory=dict, repr=False, compare=False)

    def physical_rows(self) -> int:
        """Return how many rows the data files have."""
        if self.fragment.physical_rows:
            return self.fragment.physical_rows
        with _OpenFile(self, self.fragment.files[0]) as reader:
            return reader.num_rows

    def num_deletions(self) -> int:
        """Return how many rows are deleted."""
        deletion = self.fragment.deletion_file
        if deletion is None or deletion.num_deleted_rows:
            return 0 if deletion is None else deletion.num_deleted_rows
        return self.deleted_rows().size

    def num_rows(self) -> int:
        """Return how many live rows there are."""
        return self.physical_rows() - self.num_deletions()

    def deleted_rows(self) -> RowOffsets:
        """Read the offsets of the deleted rows, ascending."""
        deletion = self.fragment.deletion_file
        if deletion is None:
            return np.zeros(0, dtype=np.int64)
        if "deleted_rows" not in self.memory:
            place = place_of(deletion, self.root, self.bases)
            found = read_deleted_rows(self.store, place, self.fragment, self.physical_rows())
            self.memory["deleted_rows"] = found
        rows: RowOffsets = self.memory["deleted_rows"]
        return rows

    def read(self, start: int, stop: int, *, batch_size: int) -> Iterator[tuple[pa.RecordBatch, RowOffsets]]:
        """Read a range of live rows, in order.

        Parameters
        ----------
        start, stop : int
            Half-open; within the live rows.
        batch_size : int
            No batch is larger; deleted rows make some smaller.

        Yields
        ------
        batch : pa.RecordBatch
        offsets : int64[num_rows]
            Which physical rows these are.
        """
        if start >= stop:
            return
        deleted = self.deleted_rows()
        first, last = to_physical(np.array([start, stop - 1], dtype=np.int64), deleted)
        row = int(first)
        for batch in self._read_physical(row, int(last) + 1, batch_size):
            offsets = np.arange(row, row + batch.num_rows, dtype=np.int64)
            gone = deleted[slice(*np.searchsorted(deleted, [row, row + batch.num_rows]))] - row
            row += batch.num_rows
            if gone.size:
                kept = np.ones(batch.num_rows, dtype=np.bool_)
                kept[gone] = False
                batch, offsets = filter_rows(batch, pa.array(kept)), offsets[kept]
            if batch.num_rows:
                yield batch, offsets

    def take(self, rows: RowOffsets) -> pa.RecordBatch:
        """Read live rows by their place, in the order given; places may repeat."""
        return self.take_physical(to_physical(rows, self.deleted_rows()))

    def take_physical(self, physical: RowOffsets) -> pa.RecordBatch:
        """Read physical rows, deleted or not, in the order given; they may repeat."""
        if not self.schema.fields:
            return empty_columns_batch(physical.size)
        order = np.argsort(physical, kind="stable")
        batch = self._take_physical(physical[order])
        if (order[:-1] < order[1:]).all():
            return batch
        inverse = np.empty_like(order)
        inverse[order] = np.arange(order.size)
        return batch.take(pa.array(inverse))

    def take_blobs(self, physical: RowOffsets) -> list[BlobFile | None]:
        """Open the blobs of the only column in physical rows, deleted or not, which ascend; they may repeat."""
        for file, (part,) in self._split_by_file().items():
            with _OpenFile(self, file) as reader:
                locations = reader.locate_blobs(part.projection, physical)
            return [None if location is None else BlobFile(location) for location in locations]
        return [None] * physical.size

    def _read_physical(self, start: int, stop: int, batch_size: int) -> Iterator[pa.RecordBatch]:
        parts = self._split_by_file()
        streams = [
            self._read_file(file, [part.projection for part in held], start, stop, batch_size)
            for file, held in parts.items()
        ]
        if not streams:
            for row in range(start, stop, batch_size):
                yield self._assemble(parts, [], min(batch_size, stop - row))
            return
        num_rows = 0
        try:
            for pieces in _in_step(streams):
                num_rows += pieces[0].num_rows
                yield self._assemble(parts, pieces, pieces[0].num_rows)
        finally:
            for stream in streams:
                stream.close()
        if num_rows != stop - start:
            raise CorruptFileError(f"fragment {self.fragment.id}: {num_rows} rows found, {stop - start} expected")

    def _read_file(
        self, file: DataFile, columns: Sequence[ColumnProjection], start: int, stop: int, batch_size: int
    ) -> _Stream:
        with _OpenFile(self, file) as reader:
            yield from reader.read(columns, start, stop, batch_size=batch_size)

    def _take_physical(self, rows: RowOffsets) -> pa.RecordBatch:
        parts = self._split_by_file()
        pieces = []
        for file, held in parts.items():
            with _OpenFile(self, file) as reader:
                pieces.append(reader.take([part.projection for part in held], rows))
        return self._assemble(parts, pieces, rows.size)

    def _split_by_file(self) -> _Parts:
        """Return which data file holds what of the columns."""
        parts: _Parts = {}
        for column in self.schema.fields:
            for part in split_column(column, self.fragment.files):
                parts.setdefault(part.file, []).append(part)
        return parts

    def _assemble(self, parts: _Parts, pieces: Sequence[pa.RecordBatch], num_rows: int) -> pa.RecordBatch:
        """Put the columns of several files, and those of none, in order."""
        if not self.schema.fields:
            return empty_columns_batch(num_rows)
        found: dict[int, list[tuple[Field, pa.Array]]] = {field.id: [] for field in self.schema.fields}
        for held, piece in zip(parts.values(), pieces, strict=False):
            for part, array in zip(held, piece.columns, strict=True):
                found[part.projection.field.id].append((part.projection.field, storage_of(array)))
        try:
            arrays = [combine_parts(field, found[field.id], num_rows) for field in self.schema.fields]
        except CorruptFileError as error:
            raise CorruptFileError(f"fragment {self.fragment.id}: {error.what}") from error
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema.to_storage())


_Parts = dict[DataFile, list[ColumnPart]]


def empty_columns_batch(num_rows: int) -> pa.RecordBatch:
    """Return a batch of rows without columns."""
    return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), num_rows, [None]))


class _OpenFile:
    """Opens a data file of a fragment, and checks it against the manifest."""

    def __init__(self, scan: FragmentScan, file: DataFile) -> None:
        self._scan = scan
        self._file = file

    def __enter__(self) -> FileReader:
        scan, file = self._scan, self._file
        path = f"{place_of(file, scan.root, scan.bases)}/{file.path}"
        try:
            source = scan.store.open_reader(path, file.size_bytes or None)
        except ObjectNotFoundError as error:
            raise DatasetNotFoundError(
                f"the data file {path} of fragment {scan.fragment.id} is gone; if a cleanup has removed this version of"
                " the table, open the latest"
            ) from error
        try:
            self._reader = FileReader(source, scan.cache, StoredBlobs(scan.store, path))
        except BaseException:
            source.close()
            raise
        if scan.fragment.physical_rows not in (0, self._reader.num_rows):
            self._reader.close()
            raise CorruptFileError(
                f"the file has {self._reader.num_rows} rows, fragment {scan.fragment.id} {scan.fragment.physical_rows}",
                path=path,
            )
        return self._reader

    def __exit__(self, *_: object) -> None:
        self._reader.close()


def to_physical(live: npt.NDArray[np.int64], deleted: RowOffsets) -> RowOffsets:
    """Return which physical rows are the live rows of these places."""
    # Deleted row number i has deleted[i] - i live rows before it.
    return live + np.searchsorted(deleted - np.arange(deleted.size), live, side="right")


def filter_rows(batch: pa.RecordBatch, mask: pa.BooleanArray) -> pa.RecordBatch:
    """Return the rows of a batch, possibly one without columns, for which a mask without nulls is true."""
    if not batch.num_columns:
        return empty_columns_batch(mask.true_count)
    return batch.filter(mask)


def _in_step(streams: Sequence[_Stream]) -> Iterator[list[pa.RecordBatch]]:
    """Yield from several streams of the same rows pieces of equal length."""
    if len(streams) == 1:
        for batch in streams[0]:
            yield [batch]
        return
    pending: list[pa.RecordBatch | None] = [next(stream, None) for stream in streams]
    while True:
        current = [batch for batch in pending if batch is not None]
        if len(current) < len(streams):
            if current:
                raise CorruptFileError("the data files of a fragment have different numbers of rows")
            return
        num_rows = min(batch.num_rows for batch in current)
        yield [batch.slice(0, num_rows) for batch in current]
        pending = [
            batch.slice(num_rows) if batch.num_rows > num_rows else next(stream, None)
            for batch, stream in zip(current, streams, strict=True)
        ]
