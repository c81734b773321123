"""Writing a data file: batches in, pages out, the metadata at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from lance_format.byte_io import ByteRange, RangeWriter
from lance_format.compression.defaults import EncodingDefaults
from lance_format.datatypes import Field, Schema
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.file.blobs.payloads import store_payloads
from lance_format.file.columns.dictionaries import concat, size_bytes
from lance_format.file.columns.leaf_columns import Leaf
from lance_format.file.columns.shared_memory import detached
from lance_format.file.container.footer import ALIGNMENT, serialize_descriptor, serialize_end
from lance_format.file.container.seal import BLOCK_BYTES, SUM_TYPE, serialize_seal
from lance_format.file.container.summed_sink import SummedSink
from lance_format.file.container.zone_entries import (
    CHECKSUMS_KEY,
    ZonesEntry,
    check_zone_index,
    names_zones,
    without_zones,
)
from lance_format.file.writing.array_columns import ArrayWriting
from lance_format.file.writing.columns import ColumnWriting
from lance_format.file.writing.given_columns import GivenColumns
from lance_format.file.writing.layout import ColumnLayout, layout_of
from lance_format.file.writing.structural_columns import StructuralWriting
from lance_format.file.zones.collector import ROWS_PER_ZONE, ColumnZones
from lance_format.file.zones.storing import stored_zone_indices, stored_zones
from lance_format.lazy_dataclasses import dataclass
from lance_format.version import STABLE, FileVersion

_DEFAULT_CACHE_BYTES = 32 * 1024 * 1024
_MAX_COLUMN_CACHE_BYTES = 8 * 1024 * 1024
_MIN_COLUMN_CACHE_BYTES = 256 * 1024  # Smaller pages cost more time than they save memory.
_DEFAULT_PAGE_BYTES = 64 * 1024 * 1024
_PADDING = b"\0" * ALIGNMENT


@dataclass(frozen=True, slots=True)
class FileSummary:
    """Content of a finished file, as manifests record it.

    Parameters
    ----------
    num_rows : int
    size_bytes : int
    field_ids : tuple of int
        The fields that have a column.
    column_indices : tuple of int
        The column of each.
    """

    num_rows: int
    size_bytes: int
    field_ids: tuple[int, ...]
    column_indices: tuple[int, ...]


class _ColumnWriter:
    """Gathers the rows of a top-level column until there is a page's worth."""

    def __init__(
        self,
        layout: ColumnLayout,
        rows_per_zone: int | None,
        make: Callable[[Field, Sequence[Leaf]], ColumnWriting],
    ) -> None:
        self.field = layout.field
        self.described = layout.described
        self.pages = make(layout.described, layout.leaves)
        self.zones = None if rows_per_zone is None else ColumnZones(layout.zoned, rows_per_zone)
        self.arrays: list[pa.Array] = []
        self.buffered_bytes = 0
        self._num_detached = 0

    def take(self) -> list[pa.Array]:
        """Return the gathered rows, and gather others."""
        arrays, self.arrays, self.buffered_bytes, self._num_detached = self.arrays, [], 0, 0
        return arrays

    def detach(self) -> None:
        """Let go of the memory of other columns."""
        start = self._num_detached
        self.arrays[start:] = map(detached, self.arrays[start:])
        self._num_detached = len(self.arrays)


class _Buffer:
    """A file in memory; a `RangeWriter`."""

    path = "<memory>"

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.position = 0

    def write(self, data: bytes | memoryview) -> None:
        self._parts.append(bytes(data))
        self.position += len(data)

    def close(self) -> None:
        """Nothing is left to do."""

    def abort(self) -> None:
        """Nothing is left to do."""

    def getvalue(self) -> bytes:
        return b"".join(self._parts)


class FileWriter:
    """Writer of a data file.

    Parameters
    ----------
    sink : RangeWriter
        The destination; `finish` closes it, `abort` aborts it.
    schema : Schema
        With field ids.
    version : FileVersion
    data_cache_bytes : int, optional
        Memory of buffered rows, shared evenly by all columns. By default 32 MiB, but at most 8 MiB and at least 256 KiB
        per column.
    max_page_bytes : int, optional
        Maximum size of a page in bytes before compression, by default 64 MiB. A single larger value is a page.
    encoding : mapping of str to str, optional
        Compression options of all columns whose fields do not set them, such as `{"compression": "zstd"}`; see
        `lance_format/compression/options.py`.
    column_encoding : mapping of str to mapping, optional
        The same for single columns, which overrides `encoding`: `{"text": {"compression": "fsst"}}`. A nested field is
        named `outer.inner`. Fields inherit the options of their parents.
    rows_per_zone : int, optional
        Number of rows per zone of the statistics, with which readers skip rows that cannot match a filter; None for no
        statistics. `lance_format/file/zones/collector.py` lists the columns with statistics.
    zone_index : {"column", "unportable_column"}, optional
        Whether the encodings of columns include the statistics too (`lance_format/file/zones/index.py`). Pylance does
        not use these, and cannot read files of format 2.0 that have them, which only "unportable_column" allows.
    checksums : bool
        Whether to write checksums of all bytes (`lance_format/file/container/seal.py`).
    name : str
        Name of the file that the checksums include, so that readers who know it find another file in its place.

    Raises
    ------
    InvalidInputError
        If an option or a column is unknown, or a value out of range.
    NotSupportedError
        If the version or a type cannot be written. Nothing is written then.
    """

    def __init__(
        self,
        sink: RangeWriter,
        schema: Schema,
        *,
        version: FileVersion = STABLE,
        data_cache_bytes: int | None = None,
        max_page_bytes: int | None = None,
        encoding: Mapping[str, Any] | None = None,
        column_encoding: Mapping[str, Mapping[str, Any]] | None = None,
        rows_per_zone: int | None = ROWS_PER_ZONE,
        zone_index: str | None = None,
        checksums: bool = True,
        name: str = "",
    ) -> None:
        version.require_writable()
        check_zone_index(zone_index, version, rows_per_zone)
        for option, value in (
            ("data_cache_bytes", data_cache_bytes),
            ("max_page_bytes", max_page_bytes),
            ("rows_per_zone", rows_per_zone),
        ):
            if value is not None and value < 1:
                raise InvalidInputError(f"{option} is {value}; it must be at least 1")
        self._sums = SummedSink(sink) if checksums else None
        self._sink: RangeWriter = self._sums or sink
        self._name = name
        self._schema = schema
        self._given = GivenColumns(schema)
        self._version = version
        self._layout = layout_of(schema, version)
        known = _column_names(schema.fields) if column_encoding else ()
        defaults = EncodingDefaults.parse(encoding, column_encoding, known)
        writing = ArrayWriting if version.has_array_encodings else StructuralWriting

        def make(field: Field, leaves: Sequence[Leaf]) -> ColumnWriting:
            return writing(field, leaves, defaults, version, self._write_aligned)

        self._columns = [_ColumnWriter(column, rows_per_zone, make) for column in self._layout.columns]
        num_columns = max(len(self._columns), 1)
        share = min(max(_DEFAULT_CACHE_BYTES // num_columns, _MIN_COLUMN_CACHE_BYTES), _MAX_COLUMN_CACHE_BYTES)
        self._column_cache_bytes = share if data_cache_bytes is None else data_cache_bytes // num_columns
        self._max_page_bytes = _DEFAULT_PAGE_BYTES if max_page_bytes is None else max_page_bytes
        self._metadata = without_zones(schema.metadata)
        self._rows_per_zone = rows_per_zone
        self._has_zone_indices = zone_index is not None
        self._global_buffers: list[bytes] = []
        self._finished = False
        self._has_written = False
        """Whether values of the last batch, or of those before it, are in the file."""
        self.num_rows = 0

    @property
    def buffered_bytes(self) -> int:
        """The bytes of rows that have not become pages yet."""
        return sum(column.buffered_bytes for column in self._columns)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write rows; columns are found by name.

        Raises
        ------
        SchemaMismatchError
            If the batch's columns are not those of the schema, or a column that must not be null is.
        InvalidInputError
            If a text that is to become JSON is none, or a value is not of its type: a string that is no UTF-8, say.
            Some are found when their page is written, by a later call or by `finish`.
        """
        if self._finished:
            raise InvalidInputError(f"{self._sink.path} is finished; no more rows can be written")
        arrays = self._given.stored(batch, self.num_rows)
        for column, array in zip(self._columns, arrays, strict=True):
            self._append(column, self._without_payloads(column, array))
        self.num_rows += batch.num_rows
        if self._has_written:  # Rows of other columns that still wait would hold the memory of those.
            self._has_written = False
            for column in self._columns:
                column.detach()

    def _without_payloads(self, column: _ColumnWriter, array: pa.Array) -> pa.Array:
        """Write the payloads of blobs, which wait for no page; returns the column with their descriptions instead."""
        if column.described is column.field:
            return array
        self._has_written = True
        return store_payloads(array, column.field, column.described, lambda data: self._write_aligned(data).offset)

    def _append(self, column: _ColumnWriter, array: pa.Array) -> None:
        if not len(array):
            return
        size = size_bytes(array)
        if size > self._max_page_bytes and len(array) > 1:
            middle = len(array) // 2
            self._append(column, array.slice(0, middle))
            self._append(column, array.slice(middle))
            return
        if column.arrays and column.buffered_bytes + size > self._max_page_bytes:
            self._write_pages(column)
        column.arrays.append(array)
        column.buffered_bytes += size
        if column.buffered_bytes >= self._column_cache_bytes:
            self._write_pages(column)

    def _write_pages(self, column: _ColumnWriter) -> None:
        self._has_written = True
        for array in _joined(column.take()):
            column.pages.write(array)
            if column.zones is not None:
                column.zones.append(array)

    def _align(self) -> None:
        missing = -self._sink.position % ALIGNMENT
        if missing:
            self._sink.write(_PADDING[:missing])

    def _write_aligned(self, data: bytes | memoryview) -> ByteRange:
        self._align()
        position = self._sink.position
        self._sink.write(data)
        return ByteRange(position, len(data))

    def add_schema_metadata(self, key: str, value: str) -> None:
        """Add an entry to the metadata of the file's schema.

        Raises
        ------
        InvalidInputError
            If the key locates the statistics of a file.
        """
        if names_zones(key.encode()):
            raise InvalidInputError(
                f"the metadata {key!r} says where statistics or checksums of the file are, and cannot be set"
            )
        self._metadata[key.encode()] = value.encode()

    def add_global_buffer(self, data: bytes) -> int:
        """Add a buffer that belongs to no column; returns its number, which counts from 1."""
        self._global_buffers.append(data)
        return len(self._global_buffers)

    def finish(self) -> FileSummary:
        """Write the remaining rows, the metadata and the footer, and close the sink.

        Raises
        ------
        InvalidInputError
            If the writer is closed already.
        """
        if self._finished:
            raise InvalidInputError(f"{self._sink.path} is finished already")
        self._finished = True
        for column in self._columns:
            if column.arrays:
                self._write_pages(column)
        self._store_zones()
        added = [self._write_aligned(data) for data in self._global_buffers]
        self._align()
        tail_start = self._sink.position
        if self._sums is not None:
            self._metadata[CHECKSUMS_KEY] = b"%d:%d" % (len(added) + 1, BLOCK_BYTES)
            added.append(self._write_aligned(self._sums.end_region().astype(SUM_TYPE).tobytes()))
        schema = Schema(self._layout.stored_fields, self._metadata)
        descriptor = self._write_aligned(serialize_descriptor(schema, self.num_rows))
        written = [part for column in self._columns for part in column.pages.columns]
        columns = [part.serialize() for part in written]
        metadata, footer = serialize_end(columns, [descriptor, *added], self._sink.position, self._version)
        self._sink.write(metadata)
        if self._sums is not None:
            self._sink.write(serialize_seal(tail_start, BLOCK_BYTES, self._sums.end_region(), self._name, footer))
        self._sink.write(footer)
        size = self._sink.position
        self._sink.close()
        ids = tuple(part.field_id for part in written)
        return FileSummary(self.num_rows, size, ids, tuple(range(len(ids))))

    def _store_zones(self) -> None:
        if self._rows_per_zone is None:
            return
        leaves = [leaf for column in self._columns if column.zones is not None for leaf in column.zones.leaves]
        size = self._sink.position
        if self._has_zone_indices:
            columns = {part.field_id: part for column in self._columns for part in column.pages.columns}
            for field_id, data in stored_zone_indices(leaves, size, partial(_embed, version=FileVersion.V2_0)):
                columns[field_id].add_zone_index(self._rows_per_zone, self._write_aligned(data))
        for key, data in stored_zones(leaves, size, partial(_embed, version=self._version)):
            entry = ZonesEntry(self.add_global_buffer(data), self._rows_per_zone)
            self._metadata[key] = entry.serialize()

    def abort(self) -> None:
        """Leave nothing behind."""
        self._finished = True
        self._sink.abort()


def _embed(batch: pa.RecordBatch, version: FileVersion) -> bytes:
    """Return a batch as a file without statistics."""
    sink = _Buffer()
    writer = FileWriter(sink, Schema.from_arrow(batch.schema), version=version, rows_per_zone=None, checksums=False)
    writer.write_batch(batch)
    writer.finish()
    return sink.getvalue()


def _joined(arrays: list[pa.Array]) -> list[pa.Array]:
    """Join arrays into one, or into as few as their dictionaries allow."""
    try:
        return [concat(arrays)]
    except NotSupportedError:
        middle = len(arrays) // 2
        return [*_joined(arrays[:middle]), *_joined(arrays[middle:])]


def _column_names(fields: Sequence[Field], prefix: str = "") -> list[str]:
    """Return the names of all fields, those within others with the names of these before them."""
    names = []
    for one in fields:
        names.append(prefix + one.name)
        names += _column_names(one.children, f"{prefix}{one.name}.")
    return names
