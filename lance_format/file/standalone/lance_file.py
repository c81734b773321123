"""Stand-alone data files, with the names and signatures of pylance's `lance.file`."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.arguments import checked_methods
from lance_format.blob_fields import as_bytes
from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError
from lance_format.file.blobs.payloads import StoredBlobs
from lance_format.file.columns.field_paths import project
from lance_format.file.columns.indices import column_indices
from lance_format.file.columns.projection import ColumnProjection
from lance_format.file.container.search_cache import DEFAULT_CACHE_BYTES, SearchCache
from lance_format.file.container.zone_entries import check_zone_index
from lance_format.file.reading.file_end import Verification
from lance_format.file.reading.reader import FileReader
from lance_format.file.standalone.file_metadata import (
    LanceFileMetadata,
    LanceFileStatistics,
    describe_file,
    measure_columns,
)
from lance_format.file.standalone.page_description import PageDescription, describe_pages
from lance_format.file.writing.encoding_requests import check_requests
from lance_format.file.writing.writer import FileWriter
from lance_format.object_store import resolve
from lance_format.version import STABLE, FileVersion

_DEFAULT_BATCH_SIZE = 1024


def stable_version() -> str:
    """Return the file format version that is written by default."""
    return str(STABLE)


class _SchemaChecks:
    """Checks of the schemas of new files; successive files often have the same one, which is checked once."""

    def __init__(self) -> None:
        self._last = pa.schema([]), Schema(())

    def __call__(self, schema: pa.Schema) -> Schema:
        """Return the schema of a file, or refuse what the metadata of its fields requests."""
        known, checked = self._last
        if not known.equals(schema, check_metadata=True):
            checked = Schema.from_arrow(schema)
            check_requests(checked.fields)
            self._last = schema, checked
        return checked


_checked_schema = _SchemaChecks()


@checked_methods
class ReaderResults:
    """Requested rows, which are read once, on first use."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self.reader = reader

    def to_batches(self) -> pa.RecordBatchReader:
        """Return the rows batch by batch."""
        return self.reader

    def to_table(self) -> pa.Table:
        """Return all rows."""
        return self.reader.read_all()


@checked_methods
class LanceFileReader:
    """Reader of a data file, which returns blobs as bytes.

    Parameters
    ----------
    path : str or path
        A local path or `file:` URI.
    storage_options : mapping, optional
    columns : sequence of str, optional
        The columns to read, by default all. A path such as `a.b` reads only that field of a struct, and returns the
        struct without its other fields; see `lance_format/file/columns/field_paths.py`.
    metadata_cache_size_bytes : int, optional
        Size of the cache that finds rows sooner. 64 MiB by default, 0 for no cache.
    verify_checksums : bool
        Whether reads compare the checksums of the file, if it has them.

    Raises
    ------
    ChecksumError
        If the file is not what was written. Reads raise it as well.
    CorruptFileError
        If the file is not a Lance file, or is truncated.
    NotSupportedError
        If the version cannot be read.
    StorageError
        If the file cannot be opened.
    InvalidInputError
        If a column does not exist, or the size of the cache is invalid.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        columns: Sequence[str] | None = None,
        *,
        metadata_cache_size_bytes: int = DEFAULT_CACHE_BYTES,
        verify_checksums: bool = True,
    ) -> None:
        cache = SearchCache(metadata_cache_size_bytes)
        store, location = resolve(path, storage_options)
        source, blobs = store.open_reader(location), StoredBlobs(store, location)
        self._reader = FileReader(source, cache, blobs, verification=Verification(verify_checksums))
        stored = self._reader.schema
        schema = Schema(tuple(as_bytes(field) for field in stored.fields), stored.metadata)
        self._schema = schema if columns is None else project(schema, columns)
        indices = column_indices(schema, self._reader.version)
        self._columns = [ColumnProjection(field, indices) for field in self._schema.fields]

    def read_all(self, *, batch_size: int = _DEFAULT_BATCH_SIZE, batch_readahead: int = 16) -> ReaderResults:
        """Read the whole file in batches of `batch_size` rows; `batch_readahead` is accepted and ignored."""
        del batch_readahead
        return self._results(self._reader.read(self._columns, 0, self.num_rows(), batch_size=batch_size))

    def read_range(
        self, start: int, num_rows: int, *, batch_size: int = _DEFAULT_BATCH_SIZE, batch_readahead: int = 16
    ) -> ReaderResults:
        """Read consecutive rows.

        Parameters
        ----------
        start : int
            The first row.
        num_rows : int
            Number of rows.
        batch_size : int
            Maximum number of rows per batch.
        batch_readahead : int
            Ignored.

        Raises
        ------
        InvalidInputError
            If a row does not exist.
        """
        del batch_readahead
        return self._results(self._reader.read(self._columns, start, start + num_rows, batch_size=batch_size))

    def take_rows(
        self, indices: Sequence[int], *, batch_size: int = _DEFAULT_BATCH_SIZE, batch_readahead: int = 16
    ) -> ReaderResults:
        """Read single rows.

        Parameters
        ----------
        indices : sequence of int
            The rows, ascending.
        batch_size : int
            Maximum number of rows per batch.
        batch_readahead : int
            Ignored.

        Raises
        ------
        InvalidInputError
            If a row does not exist or they do not ascend.
        """
        del batch_readahead
        rows = _row_numbers(indices)
        if batch_size < 1:
            raise InvalidInputError(f"batch_size is {batch_size}; it must be at least 1")
        taken = self._reader.take(self._columns, rows)
        pieces = (taken.slice(start, batch_size) for start in range(0, rows.size, batch_size))
        return self._results(pieces)

    def metadata(self) -> LanceFileMetadata:
        """Return the metadata of the file."""
        return describe_file(self._reader)

    def file_statistics(self) -> LanceFileStatistics:
        """Return the numbers of pages and bytes of each column."""
        return measure_columns(self.metadata())

    def describe_pages(
        self, columns: Sequence[str] | None = None, *, read_values: bool = True
    ) -> list[PageDescription]:
        """Describe the pages: layout, compression, bytes, and the bytes of the plain values.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns, or dotted paths of fields below them. By default all.
        read_values : bool
            Whether to read the values, to learn their plain size.

        Raises
        ------
        InvalidInputError
            If the file lacks a column.
        """
        return describe_pages(self._reader, columns, read_values=read_values)

    def read_global_buffer(self, index: int) -> bytes:
        """Return a global buffer; 0 is the file descriptor."""
        return self._reader.read_global_buffer(index)

    def num_rows(self) -> int:
        """Return the number of rows."""
        return self._reader.num_rows

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    def _results(self, batches: Iterator[pa.RecordBatch]) -> ReaderResults:
        return ReaderResults(pa.RecordBatchReader.from_batches(self._schema.to_arrow(), batches))


def _row_numbers(indices: Sequence[int]) -> npt.NDArray[np.int64]:
    try:
        given = np.asarray(indices)
        if given.size and given.dtype.kind not in "iu":
            raise TypeError(f"they are {given.dtype}")
        return given.astype(np.int64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"the indices are no whole numbers: {error}") from error


@checked_methods
class LanceFileWriter:
    """Writer of a data file. As a context manager it closes the file, or leaves none after an exception.

    Several threads may write batches. The rows of a batch stay together; the order of batches is undefined.

    Parameters
    ----------
    path : str or path
        A local path or `file:` URI. An existing file is replaced on closing.
    schema : pyarrow.Schema, optional
        By default that of the first batch.
    data_cache_bytes : int, optional
        Memory of buffered rows, shared evenly by all columns. By default 32 MiB, but at most 8 MiB and at least 256 KiB
        per column.
    version : str, optional
        The file format version or an alias; `stable` by default.
    storage_options : mapping, optional
    max_page_bytes : int, optional
        Maximum size of a page in bytes before compression, by default 64 MiB.
    encoding, column_encoding : mapping, optional
        Compression options; see `FileWriter`.
    zone_index : {"column", "unportable_column"}, optional
        Whether the encodings of columns include zone statistics; see `FileWriter`.
    checksums : bool
        Whether the file gets checksums of all its bytes, which readers of this library compare.

    Attributes
    ----------
    size_bytes : int or None
        The size of the file, once it is closed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema | None = None,
        *,
        data_cache_bytes: int | None = None,
        version: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        max_page_bytes: int | None = None,
        encoding: Mapping[str, Any] | None = None,
        column_encoding: Mapping[str, Mapping[str, Any]] | None = None,
        zone_index: str | None = None,
        checksums: bool = True,
    ) -> None:
        check_zone_index(zone_index)
        self._store, self._location = resolve(path, storage_options)
        self._version = STABLE if version is None else FileVersion.parse(version)
        self._version.require_writable()
        self._data_cache_bytes = data_cache_bytes
        self._max_page_bytes = max_page_bytes
        self._encoding = encoding
        self._column_encoding = column_encoding
        self._zone_index = zone_index
        self._checksums = checksums
        self._writer: FileWriter | None = None
        self._lock = threading.Lock()
        self.closed = False
        self.size_bytes: int | None = None
        if schema is not None:
            self._open(schema)

    def _open(self, schema: pa.Schema) -> FileWriter:
        ours = _checked_schema(schema)
        sink = self._store.open_writer(self._location)
        try:
            self._writer = FileWriter(
                sink,
                ours,
                version=self._version,
                data_cache_bytes=self._data_cache_bytes,
                max_page_bytes=self._max_page_bytes,
                encoding=self._encoding,
                column_encoding=self._column_encoding,
                zone_index=self._zone_index,
                checksums=self._checksums,
            )
        except BaseException:
            sink.abort()
            raise
        return self._writer

    def _opened(self) -> FileWriter:
        if self.closed:
            raise InvalidInputError(f"{self._location} is closed")
        if self._writer is None:
            raise InvalidInputError(
                f"Schema is unknown and file cannot be created: give {self._location} one, or write a batch first"
            )
        return self._writer

    def write_batch(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Write rows.

        Raises
        ------
        SchemaMismatchError
            If the batch's columns are not those of the schema.
        """
        with self._lock:
            if self._writer is None and not self.closed:
                self._open(batch.schema)
            writer = self._opened()
            for piece in batch.to_batches() if isinstance(batch, pa.Table) else (batch,):
                writer.write_batch(piece)

    def close(self) -> int | None:
        """Finish the file; returns the number of rows, or None if it was closed already."""
        if self.closed:
            return None
        writer = self._opened()
        self.closed = True
        try:
            summary = writer.finish()
        except BaseException:
            writer.abort()
            raise
        self.size_bytes = summary.size_bytes
        return summary.num_rows

    def add_schema_metadata(self, key: str, value: str) -> None:
        """Add an entry to the metadata of the schema."""
        self._opened().add_schema_metadata(key, value)

    def add_global_buffer(self, data: bytes) -> int:
        """Add a buffer of any bytes; returns its number, which counts from 1."""
        return self._opened().add_global_buffer(data)

    def __enter__(self) -> LanceFileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        elif not self.closed:
            self.closed = True
            if self._writer is not None:
                self._writer.abort()
