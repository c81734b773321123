"""Files of format 2.0 put together from pages given as bytes, for encodings that no writer makes any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from google.protobuf import text_format

from lance_format.byte_io import ByteRange
from lance_format.datatypes import Schema
from lance_format.file.container.column_metadata import PageMetadata, serialize_column
from lance_format.file.container.footer import serialize_descriptor, serialize_end
from lance_format.proto import array_encodings_pb2 as pb
from lance_format.proto import file_pb2
from lance_format.version import FileVersion


@dataclass(frozen=True)
class Page:
    """A page: its encoding as text, its buffers and its rows."""

    encoding: str
    buffers: Sequence[bytes]
    num_rows: int


@dataclass(frozen=True)
class Column:
    """A column: its pages, and the buffers that they share."""

    pages: Sequence[Page]
    buffers: Sequence[bytes] = ()
    is_blob: bool = False


def write_file(path: Path, schema: pa.Schema, columns: Sequence[Column], file_buffers: Sequence[bytes] = ()) -> Path:
    """Write a file; global buffer 0 is the schema, and `file_buffers` follow it."""
    data = bytearray()

    def place(buffer: bytes) -> ByteRange:
        data.extend(bytes(-len(data) % 64))
        start = len(data)
        data.extend(buffer)
        return ByteRange(start, len(buffer))

    messages = []
    for column in columns:
        pages = []
        for page in column.pages:
            encoding = text_format.Parse(page.encoding, pb.ArrayEncoding())
            pages.append(PageMetadata(tuple(map(place, page.buffers)), page.num_rows, encoding))
        message = file_pb2.ColumnMetadata.FromString(serialize_column(pages, [0] * len(pages), is_blob=column.is_blob))
        for shared in map(place, column.buffers):
            message.buffer_offsets.append(shared.offset)
            message.buffer_sizes.append(shared.size)
        messages.append(message.SerializeToString())
    num_rows = sum(page.num_rows for page in columns[0].pages)
    shared_by_all = [place(buffer) for buffer in file_buffers]
    descriptor = place(serialize_descriptor(Schema.from_arrow(schema), num_rows))
    data.extend(b"".join(serialize_end(messages, [descriptor, *shared_by_all], len(data), FileVersion.V2_0)))
    path.write_bytes(data)
    return path
