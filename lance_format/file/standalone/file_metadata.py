"""Metadata and sizes of a single data file, as pylance's `lance.file` shows them."""

from __future__ import annotations

import pyarrow as pa
from google.protobuf import text_format

from lance_format.array_encodings.legacy import LegacyPage
from lance_format.byte_io import ByteRange
from lance_format.file.container.column_metadata import PageEncoding
from lance_format.file.reading.reader import FileReader
from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LanceBufferDescriptor:
    """Byte range of a buffer."""

    position: int
    size: int


@dataclass(frozen=True, slots=True)
class LancePageMetadata:
    """A page: its buffers and, as text, its encoding."""

    buffers: list[LanceBufferDescriptor]
    encoding: str
    num_rows: int


@dataclass(frozen=True, slots=True)
class LanceColumnMetadata:
    """A column: its own buffers and its pages."""

    column_buffers: list[LanceBufferDescriptor]
    pages: list[LancePageMetadata]


@dataclass(frozen=True, slots=True)
class LanceColumnStatistics:
    """Size of a column: its pages, and the bytes of their buffers."""

    num_pages: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LanceFileStatistics:
    """Sizes of the columns of a file."""

    columns: list[LanceColumnStatistics]


@dataclass(frozen=True, slots=True)
class LanceFileMetadata:
    """Metadata of a file."""

    schema: pa.Schema
    num_rows: int
    num_data_bytes: int
    num_column_metadata_bytes: int
    num_global_buffer_bytes: int
    global_buffers: list[LanceBufferDescriptor]
    columns: list[LanceColumnMetadata]
    major_version: int
    minor_version: int


def describe_file(reader: FileReader) -> LanceFileMetadata:
    """Return the metadata of a file."""
    columns = [_describe_column(reader, index) for index in range(reader.num_columns)]
    data = sum(buffer.size for column in columns for page in column.pages for buffer in page.buffers)
    major, minor = reader.version.footer_numbers
    return LanceFileMetadata(
        schema=reader.schema.to_arrow(),
        num_rows=reader.num_rows,
        num_data_bytes=data,
        num_column_metadata_bytes=sum(column.size for column in reader.metadata.columns),
        num_global_buffer_bytes=sum(buffer.size for buffer in reader.metadata.global_buffers),
        global_buffers=[_describe_buffer(buffer) for buffer in reader.metadata.global_buffers],
        columns=columns,
        major_version=major,
        minor_version=minor,
    )


def measure_columns(metadata: LanceFileMetadata) -> LanceFileStatistics:
    """Return the numbers of pages and bytes of each column."""
    return LanceFileStatistics(
        [
            LanceColumnStatistics(
                len(column.pages), sum(buffer.size for page in column.pages for buffer in page.buffers)
            )
            for column in metadata.columns
        ]
    )


def _describe_buffer(buffer: ByteRange) -> LanceBufferDescriptor:
    return LanceBufferDescriptor(buffer.offset, buffer.size)


def _describe_layout(layout: PageEncoding | LegacyPage) -> str:
    return str(layout) if isinstance(layout, LegacyPage) else text_format.MessageToString(layout, as_one_line=True)


def _describe_column(reader: FileReader, index: int) -> LanceColumnMetadata:
    column = reader.column(index)
    pages = [
        LancePageMetadata(
            [_describe_buffer(buffer) for buffer in page.buffers],
            _describe_layout(page.layout),
            page.num_rows,
        )
        for page in column.pages
    ]
    return LanceColumnMetadata([_describe_buffer(buffer) for buffer in column.buffers], pages)
