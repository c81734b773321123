"""The open data files of one fragment: their columns together, and columns that no file has as nulls.

Rows are *physical* rows here: those of the data files, deleted or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.byte_io import RangeReader
from lance_format.datatypes import Field, Schema
from lance_format.errors import CorruptFileError, DatasetNotFoundError
from lance_format.expressions import FieldPath
from lance_format.expressions.zones import ZoneStatistics
from lance_format.file import (
    MAX_TAIL_BYTES,
    ColumnProjection,
    FileReader,
    HeldSource,
    RecoveringStore,
    RemovableSource,
    SearchCache,
    StoredBlobs,
)
from lance_format.object_store import CountedStore, ObjectNotFoundError, ReadableStore, ReadCounter
from lance_format.table.format.base_paths import BasePath
from lance_format.table.format.file_entries import DataFile
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.fragments.column_parts import ColumnParts, column_parts
from lance_format.version import FileVersion

_BYTES_OF_STATISTICS = 2048
_BYTES_PER_CHECKSUM = 2048
_Stream = Generator[pa.RecordBatch, None, None]


class FragmentFiles:
    """A context manager that opens data files on first use, and closes all of them at the end.

    Parameters
    ----------
    directory : TableDirectory
    fragment : FragmentMetadata
    cache : SearchCache
        Of the table.
    bases : mapping of int to BasePath
        See `Manifest.bases`.
    table : Schema
        All columns of the table.
    counter : ReadCounter, optional
        Counts the reads.
    recovers : bool
        Whether damaged checksums are computed again where the data proves right; see `RecoveringStore`.
    """

    def __init__(
        self,
        directory: TableDirectory,
        fragment: FragmentMetadata,
        cache: SearchCache,
        bases: Mapping[int, BasePath],
        table: Schema,
        counter: ReadCounter | None = None,
        *,
        recovers: bool = False,
    ) -> None:
        self._store: ReadableStore = directory.store if counter is None else CountedStore(directory.store, counter)
        if recovers:
            self._store = RecoveringStore(self._store)
        self._directory = directory
        self._fragment = fragment
        self._cache = cache
        self._bases = bases
        self._table = table
        self._open: dict[DataFile, FileReader] = {}
        self._sources: dict[DataFile, HeldSource] = {}

    def __enter__(self) -> FragmentFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the data files that are open."""
        self._sources.clear()
        while self._open:
            self._open.popitem()[1].close()

    def reader(self, file: DataFile) -> FileReader:
        """Return a data file of the fragment, checked against the manifest; it stays open as long as the others.

        Raises
        ------
        DatasetNotFoundError
            If the file is missing.
        CorruptFileError
            If it is not the file that the manifest describes.
        """
        reader = self._open.get(file)
        if reader is None:
            reader = self._open[file] = self._open_file(file)
        return reader

    def hold(self, schema: Schema, most_bytes: int) -> None:
        """Read some columns of each data file into memory, if they have few bytes and a request takes long.

        Parameters
        ----------
        schema : Schema
        most_bytes : int
            Maximum number of bytes to hold per fragment.
        """
        parts = self.parts(schema)
        for file, held in parts.items():
            extents = self.reader(file).extents(held)
            if file in self._sources:
                self._sources[file].hold(extents, most_bytes // len(parts))

    def parts(self, schema: Schema) -> Mapping[DataFile, Sequence[ColumnProjection]]:
        """Return the parts of some columns that each data file holds."""
        files = self._fragment.files
        return {files[position]: held for position, held in self._parts(schema).held.items()}

    def read(
        self, schema: Schema, start: int, stop: int, *, batch_size: int, batch_bytes: int | None
    ) -> Iterator[pa.RecordBatch]:
        """Read a range of rows, in batches of limited size.

        Parameters
        ----------
        schema : Schema
            The columns, in output order.
        start, stop : int
            Half-open, and within the fragment.
        batch_size : int
        batch_bytes : int or None
            See `FileReader.read`.
        """
        parts = self._parts(schema)
        files = self._fragment.files
        streams = [
            self._read_file(files[position], held, start, stop, batch_size, batch_bytes)
            for position, held in parts.held.items()
        ]
        yield from self._side_by_side(schema, parts, streams, stop - start, batch_size)

    def take(self, schema: Schema, rows: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """Read single rows, which ascend and may repeat, as one batch."""
        parts, files = self._parts(schema), self._fragment.files
        pieces = [self.reader(files[position]).take(held, rows) for position, held in parts.held.items()]
        return self._assemble(schema, parts, pieces, rows.size)

    def take_batches(self, schema: Schema, rows: npt.NDArray[np.int64], *, batch_size: int) -> Iterator[pa.RecordBatch]:
        """Read single rows in batches.

        Parameters
        ----------
        schema : Schema
            The columns.
        rows : int64[num_rows]
            Physical rows, ascending and distinct.
        batch_size : int
            Maximum number of rows per batch.
        """
        parts, files = self._parts(schema), self._fragment.files
        streams = [self._take_file(files[position], held, rows, batch_size) for position, held in parts.held.items()]
        yield from self._side_by_side(schema, parts, streams, rows.size, batch_size)

    def batch_rows(self) -> tuple[int, ...]:
        """Return the rows per batch of the data files if all have the same; only files of format 0.1 do."""
        first = self._fragment.files[0]
        version = FileVersion.from_manifest(first.file_major_version, first.file_minor_version)
        return self.reader(first).batch_rows if version is not None and version.has_page_table else ()

    def zone_statistics(self, schema: Schema) -> dict[FieldPath, ZoneStatistics]:
        """Return the zone statistics of columns in the data files; see `FileReader.zone_statistics`.

        Columns that no file holds are null. Columns with fields in several files have no statistics, because no single
        file has all nulls of a struct.

        Parameters
        ----------
        schema : Schema
        """
        parts = self.parts(schema)
        num_parts = Counter(part.field.id for held in parts.values() for part in held)
        found: dict[FieldPath, ZoneStatistics] = {}
        for file, held in parts.items():
            whole = [part for part in held if num_parts[part.field.id] == 1]
            if whole:
                found |= self.reader(file).zone_statistics(whole)
        for field in schema.fields:
            if field.id not in num_parts and field.nullable:
                found |= _all_null(field, (), self._fragment.physical_rows)
        return found

    def _side_by_side(
        self, schema: Schema, parts: ColumnParts, streams: Sequence[_Stream], num_rows: int, batch_size: int
    ) -> Iterator[pa.RecordBatch]:
        if not streams:
            for row in range(0, num_rows, batch_size):
                yield self._assemble(schema, parts, [], min(batch_size, num_rows - row))
            return
        found = 0
        try:
            for pieces in in_step(streams):
                found += pieces[0].num_rows
                yield self._assemble(schema, parts, pieces, pieces[0].num_rows)
        finally:
            for stream in streams:
                stream.close()
        if found != num_rows:
            raise CorruptFileError(f"fragment {self._fragment.id}: {found} rows found, {num_rows} expected")

    def _read_file(
        self,
        file: DataFile,
        columns: Sequence[ColumnProjection],
        start: int,
        stop: int,
        batch_size: int,
        batch_bytes: int | None,
    ) -> _Stream:
        yield from self.reader(file).read(columns, start, stop, batch_size=batch_size, batch_bytes=batch_bytes)

    def _take_file(
        self, file: DataFile, columns: Sequence[ColumnProjection], rows: npt.NDArray[np.int64], batch_size: int
    ) -> _Stream:
        yield from self.reader(file).take_batches(columns, rows, batch_size=batch_size)

    def _parts(self, schema: Schema) -> ColumnParts:
        return column_parts(schema, self._fragment.files, self._table)

    def _assemble(
        self, schema: Schema, parts: ColumnParts, pieces: Sequence[pa.RecordBatch], num_rows: int
    ) -> pa.RecordBatch:
        if not schema.fields:
            return empty_columns_batch(num_rows)
        try:
            return parts.assemble(pieces, num_rows)
        except CorruptFileError as error:
            raise CorruptFileError(f"fragment {self._fragment.id}: {error.what}") from error

    def _open_file(self, file: DataFile) -> FileReader:
        fragment = self._fragment
        path = self._directory.holding(file, self._bases).path(file.relative_path)
        missing = (
            f"the data file {path} of fragment {fragment.id} is missing; if a cleanup has removed this version of"
            " the table, open the latest"
        )
        try:
            source = self._store.open_reader(path, file.exact_size_bytes)
            if self._directory.store.is_remote:
                source = self._sources[file] = HeldSource(RemovableSource(source, missing))
            reader = self._parse_end(source, file)
        except ObjectNotFoundError as error:
            raise DatasetNotFoundError(missing) from error
        try:
            if fragment.physical_rows not in (0, reader.num_rows):
                raise CorruptFileError(
                    f"the file has {reader.num_rows} rows, fragment {fragment.id} {fragment.physical_rows}", path=path
                )
        except BaseException:
            source.close()
            raise
        return reader

    def _parse_end(self, source: RangeReader, file: DataFile) -> FileReader:
        try:
            return FileReader(
                source,
                self._cache,
                StoredBlobs(self._store, source.path),
                _tail_bytes(file, source),
                verification=self._directory.verification(file.path),
            )
        except BaseException:
            source.close()
            raise


def _all_null(field: Field, above: FieldPath, num_rows: int) -> dict[FieldPath, ZoneStatistics]:
    """Return the statistics of an all-null column and the fields below it; 0 rows if their number is unknown."""
    if not num_rows:
        return {}
    path = (*above, field.name)
    count = np.array([num_rows], np.int64)
    bounds = pa.nulls(1, field.to_storage().type)
    found = {path: ZoneStatistics(count, count, bounds, bounds, exact=False)}
    if field.logical_type == "struct":
        for child in field.children:
            found |= _all_null(child, path, num_rows)
    return found


def _tail_bytes(file: DataFile, source: RangeReader) -> int:
    """Return the usual size of the end of a data file with its footer, schema and columns.

    A field takes some 200 bytes in the schema and in the metadata of a column, and each further page 100 more. If
    requests are expensive, more is read, which usually includes the statistics: some 2 KiB per field. Small files are
    read whole then. Checksums take 4 bytes per block.
    """
    wanted = 4096 + 512 * len(file.fields) + source.size_bytes // 65_536 + source.size_bytes // _BYTES_PER_CHECKSUM
    gap = source.request_shape.gap_bytes
    if gap < MAX_TAIL_BYTES:
        return min(MAX_TAIL_BYTES, wanted)
    wanted = min(2 * gap, max(gap // 2, wanted + _BYTES_OF_STATISTICS * len(file.fields)))
    return source.size_bytes if source.size_bytes - wanted <= gap else wanted


def empty_columns_batch(num_rows: int) -> pa.RecordBatch:
    """Return a batch of rows without columns."""
    return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), num_rows, [None]))


def in_step(streams: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[list[pa.RecordBatch]]:
    """Yield pieces of equal length from several streams of the same rows.

    Raises
    ------
    CorruptFileError
        If the streams differ in their number of rows.
    """
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
