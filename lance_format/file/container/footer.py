"""The container of a file of format 2.x: its footer, its tables and its schema.

File format document, "File Structure". All numbers are little-endian:

    │ data buffers │ global buffers │ column metadata │ column table │ global buffer table │ footer │

A table has an entry of `u64 position, u64 size` for each column or global buffer. The footer has 40 bytes:

    │ u64 column metadata │ u64 column table │ u64 global buffer table │ u32 global buffers │ u32 columns │
    │ u16 major │ u16 minor │ "LANC" │

Global buffer 0 is the `FileDescriptor`: schema and number of rows. From format 2.1 on data and global buffers start at
multiples of 64 bytes, and readers insist on it.
"""

from __future__ import annotations

import functools
import itertools
import struct
from collections.abc import Iterator, Mapping, Sequence

from google.protobuf.message import DecodeError

from lance_format.blob_fields import NUM_DESCRIPTION_PARTS, marks_description
from lance_format.byte_io import ByteRange, RangeReader
from lance_format.datatypes import UNASSIGNED, Field, Schema, parse_schema, serialize_fields, serialize_metadata
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.file.container.scheduler import fetch
from lance_format.file.container.small_messages import parsed_once
from lance_format.file.container.zone_entries import CHECKSUMS_KEY, names_zones, without_zones
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import file_pb2
from lance_format.version import FileVersion

ALIGNMENT = 64
"""Alignment of data and global buffers."""

_FOOTER = struct.Struct("<QQQIIHH4s")
FOOTER_BYTES = _FOOTER.size
"""Size of the footer."""

_VERSION = struct.Struct("<HH4s")
_ENTRY = struct.Struct("<QQ")
_MAGIC = b"LANC"
MAX_TAIL_BYTES = 64 * 1024
"""Bytes to read of the end of an unknown file."""
_RANGE_BYTES = 128
_PARSED_BYTES = 10  # Memory of a schema per byte of its message.
MAX_ROWS = 2**48
"""Limit that keeps sums of rows, and products with the size of a value, within 64 bits."""


class RangeTable:
    """The ranges that a table of a file lists, as the bytes that it has: most are never looked at.

    Parameters
    ----------
    data : bytes
        Of the table.
    """

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data) // _ENTRY.size

    def __getitem__(self, index: int) -> ByteRange:
        if not 0 <= index < len(self):
            raise IndexError(index)
        return ByteRange(*_ENTRY.unpack_from(self._data, index * _ENTRY.size))

    def __iter__(self) -> Iterator[ByteRange]:
        return itertools.starmap(ByteRange, _ENTRY.iter_unpack(self._data))

    def check(self, file_size: int, what: str, offset: int) -> None:
        """Raise `CorruptFileError` if a range ends after the file.

        Parameters
        ----------
        file_size : int
        what : str
            Kind of the ranges, for the message.
        offset : int
            Byte offset of the table in the file.
        """
        for index, (start, size) in enumerate(_ENTRY.iter_unpack(self._data)):
            if start + size > file_size:
                raise CorruptFileError(f"{what} {index} ends at byte {start + size}, after the file", offset=offset)


@dataclass(frozen=True, slots=True)
class FileMetadata:
    """Content of the end of a file.

    Parameters
    ----------
    version : FileVersion
    schema : Schema
    num_rows : int
    columns : RangeTable
        Location of the metadata of each column.
    global_buffers : tuple of ByteRange
    zones : mapping of bytes to bytes
        Entries of the schema's metadata that locate the statistics of the file; `schema` lacks them, since they hold
        for this file only.
    """

    version: FileVersion
    schema: Schema
    num_rows: int
    columns: RangeTable
    global_buffers: tuple[ByteRange, ...]
    zones: Mapping[bytes, bytes]

    @property
    def num_columns(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @property
    def memory_bytes(self) -> int:
        """An estimate of the memory that it takes."""
        tables = len(self.columns) * _ENTRY.size + len(self.global_buffers) * _RANGE_BYTES
        return tables + self.global_buffers[0].size * _PARSED_BYTES


class TailReader:
    """Reader that serves ranges of a file from its last bytes if possible.

    Parameters
    ----------
    source : RangeReader
    tail : bytes, optional
        The end of the file if already read; may be empty.
    tail_bytes : int
        Number of bytes to read otherwise.

    Attributes
    ----------
    size_bytes : int
        Of the file.
    """

    def __init__(self, source: RangeReader, tail: bytes | None = None, tail_bytes: int = MAX_TAIL_BYTES) -> None:
        self.source = source
        self.size_bytes = source.size_bytes
        if tail is None:
            size = min(self.size_bytes, tail_bytes)
            (tail,) = source.read_ranges([ByteRange(self.size_bytes - size, size)])
        self.tail = tail

    def read(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Return the bytes of ranges; missing ones are read together."""
        tail, start = self.tail, self.size_bytes - len(self.tail)
        if not start:
            return [tail[offset : offset + size] for offset, size in ranges]
        before = [wanted for wanted in ranges if wanted.offset < start]
        fetched = iter(fetch(self.source, before) if before else ())
        found = []
        for wanted in ranges:
            offset = wanted.offset - start
            found.append(next(fetched).tobytes() if offset < 0 else tail[offset : offset + wanted.size])
        return found


def read_version(tail: TailReader) -> FileVersion:
    """Read which version a file has.

    Raises
    ------
    CorruptFileError
        If this is no Lance file.
    NotSupportedError
        If its version cannot be read.
    """
    size = tail.size_bytes
    if size < _VERSION.size:
        raise CorruptFileError(f"this is no Lance file: it has {size} bytes, fewer than a footer")
    (end,) = tail.read([ByteRange(size - _VERSION.size, _VERSION.size)])
    major, minor, magic = _VERSION.unpack(end)
    if magic != _MAGIC:
        raise CorruptFileError(
            f"this is no Lance file, or it is cut short: it ends with {magic!r} instead of {_MAGIC!r}"
        )
    version = FileVersion.from_footer(major, minor)
    if version is None:
        raise NotSupportedError(f"file format version {major}.{minor} is unknown; a newer release may have written it")
    version.require_readable("the file")
    return version


def read_metadata(tail: TailReader, version: FileVersion) -> FileMetadata:
    """Read the footer, the tables and the schema of a file of format 2.x.

    Raises
    ------
    CorruptFileError
        If its end contradicts itself.
    """
    size = tail.size_bytes
    if size < _FOOTER.size:
        raise CorruptFileError(f"this is no Lance file: it has {size} bytes, fewer than a footer")
    (footer,) = tail.read([ByteRange(size - _FOOTER.size, _FOOTER.size)])
    _, columns_at, globals_at, num_globals, num_columns, _, _, _ = _FOOTER.unpack(footer)
    tables = [
        _locate_table(columns_at, num_columns, size, "column"),
        _locate_table(globals_at, num_globals, size, "global buffer"),
    ]
    columns, global_buffers = _parse_tables(b"".join(tail.read(tables)), tables[0], tables[1], size)
    (descriptor,) = tail.read(global_buffers[:1])
    schema, num_rows, zones = _parse_descriptor(descriptor)
    return FileMetadata(version, schema, num_rows, columns, global_buffers, zones)


@parsed_once(64)
def _parse_tables(
    data: bytes, column_table: ByteRange, global_table: ByteRange, file_size: int
) -> tuple[RangeTable, tuple[ByteRange, ...]]:
    """Return the ranges of the columns, and of the global buffers, given both tables and where they are."""
    columns, listed = RangeTable(data[: column_table.size]), RangeTable(data[column_table.size :])
    columns.check(file_size, "column", column_table.offset)
    listed.check(file_size, "global buffer", global_table.offset)
    if not len(listed):
        raise CorruptFileError("the file has no global buffer, and so no schema")
    return columns, tuple(listed)


@parsed_once(16, max_bytes=128 * 1024)
def _parse_descriptor(data: bytes) -> tuple[Schema, int, Mapping[bytes, bytes]]:
    """Return the schema without the locations of statistics, the number of rows, and these locations."""
    descriptor = _parse_message(data)
    schema = parse_schema(_without_parts_of_blobs(descriptor.schema.fields), descriptor.schema.metadata)
    if descriptor.length > MAX_ROWS or (descriptor.length and not schema.fields):
        raise CorruptFileError(f"the file says that it has {descriptor.length} rows of {len(schema.fields)} columns")
    zones = {key: value for key, value in schema.metadata.items() if names_zones(key) and key != CHECKSUMS_KEY}
    return Schema(schema.fields, without_zones(schema.metadata)), descriptor.length, zones


def _without_parts_of_blobs(fields: Sequence[file_pb2.Field]) -> list[file_pb2.Field]:
    """Drop the child fields of blob descriptions: fields without an id after a field of known type.

    Any other field without an id is kept; the parser refuses it.
    """
    kept: list[file_pb2.Field] = []
    parts_left = 0
    for field in fields:
        if field.id == UNASSIGNED and parts_left:
            parts_left -= 1
            continue
        metadata = {key.encode(): value for key, value in field.metadata.items()} if field.metadata else {}
        parts_left = NUM_DESCRIPTION_PARTS if marks_description(metadata) else 0
        kept.append(field)
    return kept


def _locate_table(position: int, count: int, file_size: int, what: str) -> ByteRange:
    if position + count * _ENTRY.size > file_size:
        raise CorruptFileError(f"the {what} table with {count} entries ends after the file", offset=position)
    return ByteRange(position, count * _ENTRY.size)


def _parse_message(data: bytes) -> file_pb2.FileDescriptor:
    try:
        return file_pb2.FileDescriptor.FromString(data)
    except DecodeError as error:
        raise CorruptFileError(f"the file descriptor is no valid protobuf message: {error}") from error


@functools.lru_cache(maxsize=16)
def _serialized_fields(fields: tuple[Field, ...]) -> file_pb2.Schema:
    """Return a message with fields alone, which files of a table have in common; it must not be modified."""
    return file_pb2.Schema(fields=serialize_fields(fields))


def serialize_descriptor(schema: Schema, num_rows: int) -> bytes:
    """Serialize global buffer 0."""
    message = file_pb2.Schema()
    message.CopyFrom(_serialized_fields(schema.fields))
    message.metadata.update(serialize_metadata(schema.metadata))
    return file_pb2.FileDescriptor(schema=message, length=num_rows).SerializeToString(deterministic=True)


def serialize_end(
    columns: Sequence[bytes], global_buffers: Sequence[ByteRange], position: int, version: FileVersion
) -> tuple[bytes, bytes]:
    """Return everything between the global buffers and the footer, and the footer.

    Parameters
    ----------
    columns : sequence of bytes
        The serialized metadata of each column.
    global_buffers : sequence of ByteRange
    position : int
        Byte offset of the end of the global buffers.
    version : FileVersion
    """
    column_ranges = []
    offset = position
    for column in columns:
        column_ranges.append(ByteRange(offset, len(column)))
        offset += len(column)
    columns_at = offset
    globals_at = columns_at + _ENTRY.size * len(columns)
    tables = b"".join(_ENTRY.pack(entry.offset, entry.size) for entry in (*column_ranges, *global_buffers))
    major, minor = version.footer_numbers
    footer = _FOOTER.pack(position, columns_at, globals_at, len(global_buffers), len(columns), major, minor, _MAGIC)
    return b"".join((*columns, tables)), footer


def complete_end(source: RangeReader, schema: Schema, num_rows: int) -> tuple[int, bytes] | None:
    """Return the end that a file without global buffers, and so without a descriptor, would have with one.

    Parameters
    ----------
    source : RangeReader
    schema : Schema
    num_rows : int

    Returns
    -------
    (int, bytes) or None
        How many bytes of the file precede the end, and the end. None if the file has global buffers.

    Raises
    ------
    CorruptFileError
        If it is shorter than a footer.
    """
    kept = source.size_bytes - _FOOTER.size
    if kept < 0:
        raise CorruptFileError(f"this is no Lance file: it has {source.size_bytes} bytes, fewer than a footer")
    (footer,) = source.read_ranges([ByteRange(kept, _FOOTER.size)])
    metadata_at, columns_at, _, num_globals, *rest = _FOOTER.unpack(footer)
    if num_globals:
        return None
    descriptor = serialize_descriptor(schema, num_rows)
    table = _ENTRY.pack(kept, len(descriptor))
    return kept, descriptor + table + _FOOTER.pack(metadata_at, columns_at, kept + len(descriptor), 1, *rest)
