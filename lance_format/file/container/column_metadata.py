"""The metadata of a column: its pages, their buffers, and the encodings of the pages and the column.

File format document, "File Structure". Encodings are self-describing messages. Those of pages are layouts from format
2.1 on and array encodings in 2.0; that of a column describes the meaning of its values.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypeVar

from google.protobuf import any_pb2
from google.protobuf.message import DecodeError, Message

from lance_format.array_encodings.legacy import LegacyPage
from lance_format.byte_io import ByteRange
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.file.container.footer import MAX_ROWS
from lance_format.file.container.small_messages import parsed_once
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import array_encodings_pb2, encodings_pb2, file_pb2
from lance_format.version import FileVersion

_COLUMN_ENCODING_URL = "/lance.encodings.ColumnEncoding"
_PAGE_LAYOUT_URL = "/lance.encodings21.PageLayout"
_ARRAY_ENCODING_URL = "/lance.encodings.ArrayEncoding"

PageEncoding: TypeAlias = encodings_pb2.PageLayout | array_encodings_pb2.ArrayEncoding
"""Metadata of a page."""


@dataclass(frozen=True, slots=True)
class PageMetadata:
    """A page: its buffers, all within the file, its rows, and its layout or, up to format 2.0, its encoding."""

    buffers: tuple[ByteRange, ...]
    num_rows: int
    layout: PageEncoding | LegacyPage


@dataclass(frozen=True, slots=True)
class ZoneIndexEntry:
    """Place of the zone index of a column, which nobody has looked at yet.

    Parameters
    ----------
    rows_per_zone : int
    buffer : int
    is_in_file : bool
        Whether the buffer is one of the file, instead of the column.
    """

    rows_per_zone: int
    buffer: int
    is_in_file: bool = False


@dataclass(frozen=True, slots=True)
class ColumnMetadata:
    """A column.

    Parameters
    ----------
    pages : list of PageMetadata
    buffers : tuple of ByteRange
        Those that its pages share; all within the file.
    is_blob : bool
        Whether it says of itself that its values are descriptions of blobs. From 2.1 on pages say that.
    zone_index : ZoneIndexEntry, optional
        Where statistics of its zones are; see `zone_index`.
    """

    pages: list[PageMetadata]
    buffers: tuple[ByteRange, ...] = ()
    is_blob: bool = False
    zone_index: ZoneIndexEntry | None = None


def parse_column(data: bytes, file_size: int, version: FileVersion) -> ColumnMetadata:
    """Parse a column's metadata.

    Parameters
    ----------
    data : bytes
        The serialized message.
    file_size : int
        Bytes of the file.
    version : FileVersion

    Raises
    ------
    CorruptFileError
        If it is malformed, or a buffer lies outside of the file.
    NotSupportedError
        If it uses an encoding that cannot be read.
    """
    column, end = _parse_column(data, version)
    if end > file_size:
        _check_ranges(column, file_size)
    return column


def _check_ranges(column: ColumnMetadata, file_size: int) -> None:
    """Raise `CorruptFileError` with the first buffer that lies outside of the file."""
    for what, buffers in (("column", column.buffers), *(("page", page.buffers) for page in column.pages)):
        for buffer in buffers:
            if buffer.end > file_size:
                raise CorruptFileError(
                    f"a {what} buffer of {buffer.size} bytes ends after the file", offset=buffer.offset
                )


@parsed_once(64)
def _parse_column(data: bytes, version: FileVersion) -> tuple[ColumnMetadata, int]:
    """Return the metadata of a column, and the offset at which its last buffer ends."""
    try:
        column = file_pb2.ColumnMetadata.FromString(data)
    except DecodeError as error:
        raise CorruptFileError(f"the column metadata is no valid protobuf message: {error}") from error
    zone_index, is_blob = _parse_column_encoding(_direct(column.encoding, "column"))
    if is_blob and not version.has_array_encodings:
        raise NotSupportedError(f"column encoding 'blob' cannot be read in a file of format {version}")
    buffers = _ranges(column.buffer_offsets, column.buffer_sizes, "column")
    url, kind = _layout_kind(version)
    pages = [_parse_page(page, url, kind) for page in column.pages]
    num_rows = sum([page.num_rows for page in pages])
    if num_rows > MAX_ROWS:
        raise CorruptFileError(f"the pages of a column have {num_rows} rows; at most {MAX_ROWS} are possible")
    end = max([buffer.end for part in (buffers, *[page.buffers for page in pages]) for buffer in part], default=0)
    return ColumnMetadata(pages, buffers, is_blob, zone_index), end


@parsed_once(64)
def _parse_column_encoding(data: bytes) -> tuple[ZoneIndexEntry | None, bool]:
    """Return where the zone index of a column is, of which the outermost counts, and whether its values are blobs."""
    encoding = _parse_encoding(data, _COLUMN_ENCODING_URL, encodings_pb2.ColumnEncoding, "column")
    position = None
    while encoding.HasField("zone_index"):
        found = encoding.zone_index
        in_file = found.zone_map_buffer.buffer_type == array_encodings_pb2.Buffer.file
        position = position or ZoneIndexEntry(found.rows_per_zone, found.zone_map_buffer.buffer_index, in_file)
        encoding = found.inner
    return position, encoding.WhichOneof("column_encoding") == "blob"


def _ranges(offsets: Sequence[int], sizes: Sequence[int], what: str) -> tuple[ByteRange, ...]:
    if len(offsets) != len(sizes):
        raise CorruptFileError(f"a {what} has {len(offsets)} offsets for {len(sizes)} buffers")
    return tuple(map(ByteRange, offsets, sizes)) if offsets else ()


_EncodingT = TypeVar("_EncodingT", bound=Message)


def _layout_kind(version: FileVersion) -> tuple[str, type[PageEncoding]]:
    """Return the URL and the message of the layouts of pages."""
    if version.has_array_encodings:
        return _ARRAY_ENCODING_URL, array_encodings_pb2.ArrayEncoding
    return _PAGE_LAYOUT_URL, encodings_pb2.PageLayout


def _parse_page(page: file_pb2.ColumnMetadata.Page, url: str, kind: type[PageEncoding]) -> PageMetadata:
    layout = _parse_encoding(_direct(page.encoding, "page"), url, kind, "page")
    return PageMetadata(_ranges(page.buffer_offsets, page.buffer_sizes, "page"), page.length, layout)


def _direct(encoding: file_pb2.Encoding, what: str) -> bytes:
    """Return the serialized message of an encoding."""
    location = encoding.WhichOneof("location")
    if location != "direct":
        raise NotSupportedError(f"the encoding of a {what} is stored as {location!r}; only 'direct' is read")
    return encoding.direct.encoding


@parsed_once(64)
def _parse_encoding(data: bytes, url: str, kind: type[_EncodingT], what: str) -> _EncodingT:
    """Parse an encoding; only the part of its type name after the slash counts."""
    try:
        wrapped = any_pb2.Any.FromString(data)
        if wrapped.type_url != url and wrapped.type_url.rpartition("/")[2] != url.rpartition("/")[2]:
            raise NotSupportedError(f"the encoding of a {what} is of type {wrapped.type_url!r}, which cannot be read")
        return kind.FromString(wrapped.value)
    except DecodeError as error:
        raise CorruptFileError(f"the encoding of a {what} is no valid protobuf message: {error}") from error


def serialize_column(
    pages: Iterable[PageMetadata],
    first_rows: Iterable[int],
    *,
    is_blob: bool = False,
    zone_index: ZoneIndexEntry | None = None,
    buffers: Sequence[ByteRange] = (),
) -> bytes:
    """Serialize a column's metadata.

    Parameters
    ----------
    pages : iterable of PageMetadata
    first_rows : iterable of int
        The first row of each page.
    is_blob : bool
        Whether the values are blob descriptions.
    zone_index : ZoneIndexEntry, optional
    buffers : sequence of ByteRange
        Those of the column itself.
    """
    column = file_pb2.ColumnMetadata(encoding=_column_encoding(is_blob, zone_index))
    if buffers:
        column.buffer_offsets.extend(buffer.offset for buffer in buffers)
        column.buffer_sizes.extend(buffer.size for buffer in buffers)
    for page, first_row in zip(pages, first_rows, strict=True):
        assert not isinstance(page.layout, LegacyPage)
        is_array = isinstance(page.layout, array_encodings_pb2.ArrayEncoding)
        column.pages.add(
            buffer_offsets=[buffer.offset for buffer in page.buffers],
            buffer_sizes=[buffer.size for buffer in page.buffers],
            length=page.num_rows,
            encoding=_pack(page.layout, _ARRAY_ENCODING_URL if is_array else _PAGE_LAYOUT_URL),
            priority=first_row,
        )
    return column.SerializeToString()


@functools.lru_cache(maxsize=16)
def _column_encoding(is_blob: bool, zone_index: ZoneIndexEntry | None) -> file_pb2.Encoding:
    """Return the encoding of a column, a message that columns have in common: it must not be modified."""
    encoding = encodings_pb2.ColumnEncoding()
    values = encoding
    if zone_index is not None:
        values.zone_index.rows_per_zone = zone_index.rows_per_zone
        kind = array_encodings_pb2.Buffer.file if zone_index.is_in_file else array_encodings_pb2.Buffer.column
        values.zone_index.zone_map_buffer.buffer_index = zone_index.buffer
        values.zone_index.zone_map_buffer.buffer_type = kind
        values = values.zone_index.inner
    values = values.blob.inner if is_blob else values
    values.values.SetInParent()
    return _pack(encoding, _COLUMN_ENCODING_URL)


def _pack(message: PageEncoding | encodings_pb2.ColumnEncoding, url: str) -> file_pb2.Encoding:
    wrapped = any_pb2.Any(type_url=url, value=message.SerializeToString())
    return file_pb2.Encoding(direct=file_pb2.DirectEncoding(encoding=wrapped.SerializeToString()))
