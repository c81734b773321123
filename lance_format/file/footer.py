"""The container of a file of format 2.x: its footer, its tables and its protobuf messages.

File format document, "File Structure". All numbers are little-endian:

    │ data buffers │ global buffers │ column metadata │ column table │ global buffer table │ footer │

A table has an entry of `u64 position, u64 size` for each column or global buffer. The footer has 40 bytes:

    │ u64 column metadata │ u64 column table │ u64 global buffer table │ u32 global buffers │ u32 columns │
    │ u16 major │ u16 minor │ "LANC" │

Global buffer 0 is the `FileDescriptor`: schema and number of rows. From format 2.1 on data and global buffers start at
multiples of 64 bytes, and readers insist on it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf import any_pb2
from google.protobuf.message import DecodeError

from lance_format.byte_io import ByteRange, RangeReader
from lance_format.datatypes import Schema, parse_schema, serialize_fields, serialize_metadata
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.proto import encodings_pb2, file_pb2
from lance_format.version import FileVersion

ALIGNMENT = 64
"""Where data and global buffers may start."""

_FOOTER = struct.Struct("<QQQIIHH4s")
_ENTRY = struct.Struct("<QQ")
_MAGIC = b"LANC"
_TAIL_BYTES = 64 * 1024
_COLUMN_ENCODING_URL = "/lance.encodings.ColumnEncoding"
_PAGE_LAYOUT_URL = "/lance.encodings21.PageLayout"


@dataclass(frozen=True, slots=True)
class FileMetadata:
    """What the end of a file says.

    Parameters
    ----------
    version : FileVersion
    schema : Schema
    num_rows : int
    columns : tuple of ByteRange
        Where each column's metadata is.
    global_buffers : tuple of ByteRange
    """

    version: FileVersion
    schema: Schema
    num_rows: int
    columns: tuple[ByteRange, ...]
    global_buffers: tuple[ByteRange, ...]


@dataclass(frozen=True, slots=True)
class PageMetadata:
    """A page: its buffers, all within the file, its rows and its layout."""

    buffers: tuple[ByteRange, ...]
    num_rows: int
    layout: encodings_pb2.PageLayout


class TailReader:
    """Serves ranges near the end of a file from one read of its last bytes."""

    def __init__(self, source: RangeReader) -> None:
        self.source = source
        size = min(source.size_bytes, _TAIL_BYTES)
        self._start = source.size_bytes - size
        (self._tail,) = source.read_ranges([ByteRange(self._start, size)])

    def read(self, wanted: ByteRange) -> bytes:
        """Return the bytes of a range."""
        if wanted.offset >= self._start:
            return self._tail[wanted.offset - self._start : wanted.end - self._start]
        return self.source.read_ranges([wanted])[0]


def read_metadata(tail: TailReader) -> FileMetadata:
    """Read the footer, the tables and the schema.

    Raises
    ------
    CorruptFileError
        If this is no Lance file, or its end contradicts itself.
    NotSupportedError
        If its version cannot be read.
    """
    size = tail.source.size_bytes
    if size < _FOOTER.size:
        raise CorruptFileError(f"this is no Lance file: it has {size} bytes, fewer than a footer")
    position = size - _FOOTER.size
    footer = tail.read(ByteRange(position, _FOOTER.size))
    _, columns_at, globals_at, num_globals, num_columns, major, minor, magic = _FOOTER.unpack(footer)
    if magic != _MAGIC:
        raise CorruptFileError(
            f"this is no Lance file, or it is cut short: it ends with {magic!r} instead of {_MAGIC!r}"
        )
    version = FileVersion.from_footer(major, minor)
    if version is None:
        raise NotSupportedError(f"file format version {major}.{minor} is unknown; a newer release may have written it")
    version.require_readable("the file")
    columns = _read_table(tail, columns_at, num_columns, "column")
    global_buffers = _read_table(tail, globals_at, num_globals, "global buffer")
    if not global_buffers:
        raise CorruptFileError("the file has no global buffer, and so no schema")
    descriptor = _parse(file_pb2.FileDescriptor, tail.read(global_buffers[0]), "file descriptor")
    schema = parse_schema(descriptor.schema.fields, descriptor.schema.metadata)
    return FileMetadata(version, schema, descriptor.length, columns, global_buffers)


def _read_table(tail: TailReader, position: int, count: int, what: str) -> tuple[ByteRange, ...]:
    size = tail.source.size_bytes
    if position + count * _ENTRY.size > size:
        raise CorruptFileError(f"the {what} table with {count} entries ends after the file", offset=position)
    data = tail.read(ByteRange(position, count * _ENTRY.size))
    ranges = tuple(ByteRange(offset, length) for offset, length in _ENTRY.iter_unpack(data))
    for index, entry in enumerate(ranges):
        if entry.end > size:
            raise CorruptFileError(f"{what} {index} ends at byte {entry.end}, after the file", offset=position)
    return ranges


_MessageT = TypeVar("_MessageT", file_pb2.FileDescriptor, file_pb2.ColumnMetadata)


def _parse(kind: type[_MessageT], data: bytes, what: str) -> _MessageT:
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise CorruptFileError(f"the {what} is no valid protobuf message: {error}") from error


def parse_column(data: bytes, file_size: int) -> list[PageMetadata]:
    """Parse a column's metadata.

    Raises
    ------
    CorruptFileError
        If it is malformed, or a buffer lies outside of the file.
    NotSupportedError
        If it uses an encoding that cannot be read.
    """
    column = _parse(file_pb2.ColumnMetadata, data, "column metadata")
    encoding = encodings_pb2.ColumnEncoding()
    _unpack(column.encoding, _COLUMN_ENCODING_URL, encoding, "column")
    kind = encoding.WhichOneof("column_encoding")
    if kind == "blob":
        raise NotSupportedError("column encoding 'blob' cannot be read yet")
    return [_parse_page(page, file_size) for page in column.pages]


def _parse_page(page: file_pb2.ColumnMetadata.Page, file_size: int) -> PageMetadata:
    if len(page.buffer_offsets) != len(page.buffer_sizes):
        raise CorruptFileError(f"a page has {len(page.buffer_offsets)} offsets for {len(page.buffer_sizes)} buffers")
    buffers = tuple(ByteRange(*pair) for pair in zip(page.buffer_offsets, page.buffer_sizes, strict=True))
    for buffer in buffers:
        if buffer.end > file_size:
            raise CorruptFileError(f"a page buffer of {buffer.size} bytes ends after the file", offset=buffer.offset)
    layout = encodings_pb2.PageLayout()
    _unpack(page.encoding, _PAGE_LAYOUT_URL, layout, "page")
    return PageMetadata(buffers, page.length, layout)


def _unpack(
    encoding: file_pb2.Encoding,
    url: str,
    message: encodings_pb2.PageLayout | encodings_pb2.ColumnEncoding,
    what: str,
) -> None:
    """Parse an encoding into `message`; only the part of its type name after the slash counts."""
    location = encoding.WhichOneof("location")
    if location != "direct":
        raise NotSupportedError(f"the encoding of a {what} is stored as {location!r}; only 'direct' is read")
    try:
        wrapped = any_pb2.Any.FromString(encoding.direct.encoding)
        if wrapped.type_url.rpartition("/")[2] != url.rpartition("/")[2]:
            raise NotSupportedError(f"the encoding of a {what} is of type {wrapped.type_url!r}, which cannot be read")
        message.ParseFromString(wrapped.value)
    except DecodeError as error:
        raise CorruptFileError(f"the encoding of a {what} is no valid protobuf message: {error}") from error


def serialize_column(pages: Iterable[PageMetadata], first_rows: Iterable[int]) -> bytes:
    """Serialize a column's metadata."""
    values = encodings_pb2.ColumnEncoding()
    values.values.SetInParent()
    column = file_pb2.ColumnMetadata(encoding=_pack(values, _COLUMN_ENCODING_URL))
    for page, first_row in zip(pages, first_rows, strict=True):
        column.pages.add(
            buffer_offsets=[buffer.offset for buffer in page.buffers],
            buffer_sizes=[buffer.size for buffer in page.buffers],
            length=page.num_rows,
            encoding=_pack(page.layout, _PAGE_LAYOUT_URL),
            priority=first_row,
        )
    return column.SerializeToString()


def _pack(message: encodings_pb2.PageLayout | encodings_pb2.ColumnEncoding, url: str) -> file_pb2.Encoding:
    wrapped = any_pb2.Any(type_url=url, value=message.SerializeToString())
    return file_pb2.Encoding(direct=file_pb2.DirectEncoding(encoding=wrapped.SerializeToString()))


def serialize_descriptor(schema: Schema, num_rows: int) -> bytes:
    """Serialize global buffer 0."""
    message = file_pb2.Schema(fields=serialize_fields(schema.fields), metadata=serialize_metadata(schema.metadata))
    return file_pb2.FileDescriptor(schema=message, length=num_rows).SerializeToString(deterministic=True)


def serialize_end(
    columns: Sequence[bytes], global_buffers: Sequence[ByteRange], position: int, version: FileVersion
) -> bytes:
    """Return all that follows the global buffers, which end at `position`."""
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
    return b"".join((*columns, tables, footer))
