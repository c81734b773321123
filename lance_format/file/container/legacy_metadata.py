"""The container of a file of format 0.1: batches of rows, a page of each field for each batch, and where pages are.

File format 0.1 precedes the file format document. All numbers are little-endian:

    │ pages, items of dictionaries │ page table │ statistics │ manifest │ metadata │ footer │

Metadata and manifest are protobuf messages, each after its size as u32. The fields of the manifest are the schema of
the file. The page table has an entry of `i64 position, i64 length` for each field from the lowest to the highest id,
struct or not, and for each batch; lengths count values, of lists one more than there are lists. The footer has 16
bytes:

    │ u64 metadata │ u16 major │ u16 minor │ "LANC" │
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

from lance_format.array_encodings.legacy import LegacyPage
from lance_format.byte_io import ByteRange
from lance_format.data_block import Counts
from lance_format.datatypes import Field, parse_schema
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.file.columns.leaf_columns import Kind, kind_of
from lance_format.file.container.column_metadata import ColumnMetadata, PageMetadata
from lance_format.file.container.footer import FileMetadata, RangeTable, TailReader
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import array_encodings_pb2, file_pb2, table_pb2
from lance_format.version import FileVersion

_FOOTER = struct.Struct("<QHH4s")
_SIZE = struct.Struct("<I")
_ENTRY_BYTES = 16
_MAX_FIELDS = 2**20
_NEVER_NULL = 2**62
_POSITION_BYTES = 8
_MOST_VALUES = 2**48
_WIDTHS_OF_DECIMALS = {"128": 16, "256": 32}


@dataclass(frozen=True, slots=True)
class LegacyMetadata(FileMetadata):
    """Content of the end of a file.

    Parameters
    ----------
    file_size : int
    batch_rows : int64[num_batches]
        The rows of each batch.
    page_table : int64[num_fields, num_batches, 2]
        The position and the length of each page.
    first_field : int
        The lowest id of a field.
    dictionaries : mapping of int to ByteRange
        Of dictionaries, by the id of their field: where the items, or the starts of them, are, and how many they are.
    statistics : LegacyMetadata or None
        Of the file's statistics, as if they were a file of a single batch, with a row for each batch of this one.
    """

    file_size: int
    batch_rows: Counts
    page_table: Counts
    first_field: int
    dictionaries: Mapping[int, ByteRange]
    statistics: LegacyMetadata | None

    @property
    def memory_bytes(self) -> int:
        """An estimate of the memory that it takes."""
        return self.page_table.nbytes + 1024 * len(self.schema.fields)

    @property
    def num_columns(self) -> int:
        """Number of columns: one for each id from the lowest to the highest."""
        return len(self.page_table)

    def column_of(self, field_id: int) -> int:
        """Return the column of a field, -1 if there is none."""
        column = field_id - self.first_field
        return column if 0 <= column < self.num_columns else -1

    def column(self, number: int) -> ColumnMetadata:
        """Return a column.

        Raises
        ------
        CorruptFileError
            If its pages are not within the file, or not of its batches.
        NotSupportedError
            If it cannot be read.
        """
        field = next((node for node in self.schema.walk() if node.id == self.first_field + number), None)
        if field is None:
            return ColumnMetadata([])  # Ids have gaps.
        pages = [self._page(field, number, batch) for batch in range(self.batch_rows.size)]
        items = self.dictionaries.get(field.id)
        buffers = () if items is None else (ByteRange(items.offset, self.file_size - items.offset),)
        return ColumnMetadata(pages, buffers)

    def _page(self, field: Field, number: int, batch: int) -> PageMetadata:
        position, length = self.page_table[number, batch].tolist()
        if not 0 <= position <= self.file_size or not 0 <= length <= _MOST_VALUES:
            raise CorruptFileError(f"a page of field {field.name!r} has {length} values at byte {position}")
        kind = kind_of(field)
        if kind is Kind.LIST:
            return self._lists(field, batch, position, length)
        if kind is Kind.STRUCT:
            return self._header(batch)
        if kind is not Kind.LEAF:
            raise NotSupportedError(
                f"field {field.name!r} is a {field.logical_type}, which file format 0.1 cannot hold"
            )
        arrow_type = field.to_arrow_type()
        if pa.types.is_struct(arrow_type):
            return self._header(batch)
        items = self.dictionaries.get(field.id)
        layout = LegacyPage(
            self.file_size,
            field.nullable,
            has_values=not pa.types.is_null(arrow_type),
            key_bits=arrow_type.index_type.bit_width if pa.types.is_dictionary(arrow_type) else 0,
            num_items=0 if items is None else items.size,
        )
        size = min(_size_of(arrow_type, length), self.file_size - position)
        return PageMetadata((ByteRange(position, size),), length, layout)

    def _header(self, batch: int) -> PageMetadata:
        """Return the page of structs, which holds nothing."""
        struct = array_encodings_pb2.ArrayEncoding(struct=array_encodings_pb2.SimpleStruct())
        return PageMetadata((), int(self.batch_rows[batch]), struct)

    def _lists(self, field: Field, batch: int, position: int, length: int) -> PageMetadata:
        """Return the page of lists, whose positions are ends, except the first, which is 0."""
        width = 8 if field.logical_type.startswith("large_list") else 4
        if length == 0 or position + length * width > self.file_size:
            raise CorruptFileError(f"a page of lists of field {field.name!r} has {length} positions at byte {position}")
        flat = array_encodings_pb2.Flat(bits_per_value=width * 8, buffer=array_encodings_pb2.Buffer())
        lists = array_encodings_pb2.List(
            offsets=array_encodings_pb2.ArrayEncoding(flat=flat),
            null_offset_adjustment=_NEVER_NULL,
            num_items=self._num_rows(field.children[0], batch),
        )
        ends = ByteRange(position + width, (length - 1) * width)
        return PageMetadata((ends,), length - 1, array_encodings_pb2.ArrayEncoding(list=lists))

    def _num_rows(self, field: Field, batch: int) -> int:
        """Return how many rows of a field a batch has; structs, which have no page, have those of their fields."""
        while kind_of(field) is Kind.STRUCT:
            field = field.children[0]
        length = int(self.page_table[self.column_of(field.id), batch, 1])
        if not 0 <= length <= _MOST_VALUES:
            raise CorruptFileError(f"a page of field {field.name!r} has {length} values")
        return max(length - 1, 0) if kind_of(field) is Kind.LIST else length


def _size_of(arrow_type: pa.DataType, length: int) -> int:
    """Return the size in bytes of a page at its position."""
    if pa.types.is_null(arrow_type):
        return 0
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.index_type
    items = 1
    while pa.types.is_fixed_size_list(arrow_type):
        items, arrow_type = items * arrow_type.list_size, arrow_type.value_type
    if pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type) or _is_binary(arrow_type):
        return (length + 1) * _POSITION_BYTES
    return (length * items * int(arrow_type.bit_width) + 7) // 8


def _is_binary(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type))


def read_legacy_metadata(tail: TailReader, version: FileVersion) -> LegacyMetadata:
    """Read the footer, the metadata, the schema and the page table.

    Raises
    ------
    CorruptFileError
        If the end of the file contradicts itself.
    NotSupportedError
        If the file has no schema.
    """
    size = tail.size_bytes
    if size < _FOOTER.size:
        raise CorruptFileError(f"this is no Lance file: it has {size} bytes, fewer than a footer")
    (footer,) = tail.read([ByteRange(size - _FOOTER.size, _FOOTER.size)])
    position = _FOOTER.unpack(footer)[0]
    metadata = _parse(file_pb2.LegacyMetadata, _read_message(tail, position), "metadata")
    if metadata.manifest_position == 0:
        raise NotSupportedError("the file lacks its own schema, and cannot be read without it")
    manifest = _parse(table_pb2.Manifest, _read_message(tail, metadata.manifest_position), "schema")
    schema = parse_schema(manifest.fields, {})
    bounds = np.array(metadata.batch_offsets or [0], np.int64)
    rows = np.diff(bounds)
    if bounds[0] != 0 or (rows < 0).any():
        raise CorruptFileError("the batches of the file do not follow each other")
    ids = [node.id for node in schema.walk()]
    first, count = min(ids, default=0), max(ids, default=-1) - min(ids, default=0) + 1
    if first < 0 or count > _MAX_FIELDS:
        raise CorruptFileError(f"the fields of the file have ids from {first} to {first + count - 1}")
    table = _read_page_table(tail, metadata.page_table_position, count, rows.size)
    dictionaries = {
        field.id: _locate_items(field, size) for field in manifest.fields if field.logical_type.startswith("dict:")
    }
    num_rows = int(bounds[-1])
    statistics = None
    if metadata.HasField("statistics") and rows.size:
        statistics = _read_statistics(tail, version, metadata.statistics, rows.size)
    return LegacyMetadata(
        version, schema, num_rows, RangeTable(b""), (), {}, size, rows, table, first, dictionaries, statistics
    )


def _read_statistics(
    tail: TailReader, version: FileVersion, message: file_pb2.LegacyMetadata.StatisticsMetadata, num_batches: int
) -> LegacyMetadata:
    """Read the metadata of the statistics; their page table starts with field 0.

    Bounds of decimals are byte strings: unknown ones have more digits than decimals can have.
    """
    fields = [_with_bytes_of_decimals(field) for field in message.schema]
    schema = parse_schema(fields, {})
    count = max(message.fields, default=-1) + 1
    if not 0 <= count <= _MAX_FIELDS:
        raise CorruptFileError(f"statistics have fields up to {count - 1}")
    table = _read_page_table(tail, message.page_table_position, count, 1)
    rows = np.array([num_batches], np.int64)
    size = tail.size_bytes
    return LegacyMetadata(version, schema, num_batches, RangeTable(b""), (), {}, size, rows, table, 0, {}, None)


def _with_bytes_of_decimals(field: file_pb2.Field) -> file_pb2.Field:
    kind, _, rest = field.logical_type.partition(":")
    width = _WIDTHS_OF_DECIMALS.get(rest.partition(":")[0])
    if kind != "decimal" or width is None:
        return field
    found = file_pb2.Field()
    found.CopyFrom(field)
    found.logical_type = f"fixed_size_binary:{width}"
    return found


def _locate_items(field: file_pb2.Field, file_size: int) -> ByteRange:
    """Return the offset and the number of the items of a dictionary."""
    offset, length = field.dictionary.offset, field.dictionary.length
    if not 0 <= offset <= file_size or not 0 <= length <= file_size * 8:
        raise CorruptFileError(f"the dictionary of field {field.name!r} has {length} items at byte {offset}")
    return ByteRange(offset, length)


def _read_page_table(tail: TailReader, position: int, num_fields: int, num_batches: int) -> Counts:
    table = ByteRange(position, num_fields * num_batches * _ENTRY_BYTES)
    if table.end > tail.size_bytes:
        raise CorruptFileError(f"the page table of {table.size} bytes ends after the file", offset=position)
    (data,) = tail.read([table])
    return np.frombuffer(data, "<i8").reshape(num_fields, num_batches, 2)


def _read_message(tail: TailReader, position: int) -> bytes:
    """Return the bytes of a length-prefixed message."""
    file_size = tail.size_bytes
    if position + _SIZE.size > file_size:
        raise CorruptFileError("a message of the end of the file lies after it", offset=position)
    (size,) = _SIZE.unpack(tail.read([ByteRange(position, _SIZE.size)])[0])
    message = ByteRange(position + _SIZE.size, size)
    if message.end > file_size:
        raise CorruptFileError(f"a message of {size} bytes ends after the file", offset=position)
    return tail.read([message])[0]


def _parse(kind: type, data: bytes, what: str):  # type: ignore[no-untyped-def]
    try:
        return kind.FromString(data)  # type: ignore[attr-defined]
    except DecodeError as error:
        raise CorruptFileError(f"the {what} of the file is no valid protobuf message: {error}") from error
