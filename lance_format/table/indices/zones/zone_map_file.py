"""The file of a ZONEMAP index: a data file with a row per zone.

| column | |
|---|---|
| `min`, `max` | of the type of the indexed column; null if a zone has no value, and always for types without an order. The maximum is NaN if a zone has one; the minimum is NaN or null if it has no other number |
| `null_count`, `nan_count` | uint32 |
| `fragment_id`, `zone_start`, `zone_length` | uint64: physical rows of a fragment |

The metadata of its schema holds the maximum number of rows per zone (`rows_per_zone`). It also names the global buffer
of the null rows (`null_bitmap`), unless they are unknown for some fragment, or an early release wrote the file. The
buffer holds, for each fragment with null rows, its id, and the size and the bytes of a Roaring bitmap of their offsets.

    u32 fragments │ u32 fragment id │ u32 size │ bitmap │ u32 fragment id │ …

Integers are little-endian.
"""  # noqa: E501

from __future__ import annotations

import struct
from collections.abc import Sequence
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyroaring

from lance_format.byte_io import ByteRange, RangeReader, RangeWriter, RequestShape
from lance_format.datatypes import Schema
from lance_format.errors import CorruptFileError
from lance_format.expressions.values.order import compare
from lance_format.file import (
    ROWS_PER_ZONE,
    ColumnProjection,
    FileReader,
    FileWriter,
    SearchCache,
    Verification,
    column_indices,
)
from lance_format.table.indices.zones.zone_map import NullRows, ZoneNumbers, Zones, comparable, has_bounds, with_nan
from lance_format.version import FileVersion

ZONE_MAP_FILE = "zonemap.lance"

_ROWS_PER_ZONE = b"rows_per_zone"
_NULL_BITMAP = b"null_bitmap"
_BATCH_ROWS = 4096
_WHOLE_BYTES = 4 << 20
"""Files up to this size are read by one request."""

_MAX_ROWS = 2**32
_COUNT = struct.Struct("<I")
_ENTRY = struct.Struct("<II")
_NUMBERS = {
    "null_count": pa.uint32(),
    "nan_count": pa.uint32(),
    "fragment_id": pa.uint64(),
    "zone_start": pa.uint64(),
    "zone_length": pa.uint64(),
}


class TooLargeError(Exception):
    """The index has too many or too large zones to be useful."""


class ZoneMapFile:
    """Reads the file of an index; a context manager.

    Parameters
    ----------
    source : RangeReader
        The bytes; closed with the file.
    value_type : pa.DataType
        Of the column.
    verification : Verification, optional
        See `FileReader`.

    Attributes
    ----------
    rows_per_zone : int
    knows_null_rows : bool

    Raises
    ------
    CorruptFileError
        If it is no such file, or belongs to a column of another type.
    NotSupportedError
        If its format version cannot be read.
    """

    def __init__(self, source: RangeReader, value_type: pa.DataType, verification: Verification | None = None) -> None:
        self._path = source.path
        self._value_type = value_type
        source = _WholeFile(source) if source.size_bytes <= _WHOLE_BYTES else source
        self._reader = FileReader(source, SearchCache(0), verification=verification or Verification())
        self._check_schema()
        metadata = self._reader.schema.metadata
        self.rows_per_zone = self._parse_number(metadata.get(_ROWS_PER_ZONE, b"%d" % ROWS_PER_ZONE))
        self.knows_null_rows = _NULL_BITMAP in metadata

    def __enter__(self) -> ZoneMapFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.close()

    def read_zones(self, max_zones: int, max_bytes: int) -> Zones:
        """Read all zones, by fragment and first row.

        Parameters
        ----------
        max_zones, max_bytes : int
            Limits of the read: a small damaged file may seem to hold any number of zones.

        Raises
        ------
        CorruptFileError
            If a zone contradicts itself.
        TooLargeError
            If there are more zones.
        """
        if self._reader.num_rows > max_zones:
            raise TooLargeError(f"{self._reader.num_rows} zones")
        schema = self._reader.schema
        indices = column_indices(schema, self._reader.version)
        columns = [ColumnProjection(schema.field(name), indices) for name in ("min", "max", *_NUMBERS)]
        parts, size = [Zones.empty(self._value_type)], 0
        for batch in self._reader.read(columns, 0, self._reader.num_rows, batch_size=_BATCH_ROWS):
            parts.append(self._parse(batch))
            size += parts[-1].size_bytes
            if size > max_bytes:
                raise TooLargeError(f"more than {max_bytes} bytes of zones")
        return Zones.concatenate(parts).in_order()

    def read_null_rows(self) -> NullRows | None:
        """Read the null rows; None if the file lacks them.

        Raises
        ------
        CorruptFileError
            If that is malformed.
        """
        number = self._reader.schema.metadata.get(_NULL_BITMAP)
        if number is None:
            return None
        index = self._parse_number(number)
        if index >= len(self._reader.metadata.global_buffers):
            raise self._corrupt(f"null rows are said to be in global buffer {index}, which there is not")
        return parse_null_rows(self._reader.read_global_buffer(index), self._path)

    def _check_schema(self) -> None:
        found = {field.name: field.to_arrow_type() for field in self._reader.schema.fields}
        expected = {"min": self._value_type, "max": self._value_type, **_NUMBERS}
        for name, value_type in expected.items():
            if found.get(name) != value_type:
                raise self._corrupt(f"column {name!r} of {value_type} is expected; {found.get(name, 'none')} is found")

    def _parse(self, batch: pa.RecordBatch) -> Zones:
        numbers = [self._whole_numbers(batch.column(name), name) for name in _NUMBERS]
        null_counts, nan_counts, fragment_ids, starts, lengths = numbers
        if (fragment_ids >= _MAX_ROWS).any() or (starts >= _MAX_ROWS).any() or (starts + lengths > _MAX_ROWS).any():
            raise self._corrupt("a zone lies beyond all rows that a fragment may have")
        if (lengths < 1).any() or (null_counts + nan_counts > lengths).any():
            raise self._corrupt("a zone has no rows, or fewer than it has nulls")
        lower, upper = batch.column("min"), batch.column("max")
        if pa.types.is_floating(self._value_type):
            lower, upper = with_nan(lower, upper, nan_counts)
        elif nan_counts.any():
            raise self._corrupt(f"a zone of {self._value_type} has NaN")
        if has_bounds(self._value_type) and pc.any(compare(">", comparable(lower), comparable(upper))).as_py():
            raise self._corrupt("the minimum of a zone exceeds the maximum")
        return Zones(fragment_ids, starts, lengths, null_counts, nan_counts, lower, upper)

    def _whole_numbers(self, array: pa.Array, name: str) -> ZoneNumbers:
        values = array.to_numpy(zero_copy_only=False) if not array.null_count else None
        if values is None or (values > np.uint64(2**62)).any():
            raise self._corrupt(f"column {name!r} has nulls, or invalid numbers")
        whole: ZoneNumbers = values.astype(np.int64)
        return whole

    def _parse_number(self, text: bytes) -> int:
        if not text.isdigit() or len(text) > 18:
            raise self._corrupt(f"{text[:40]!r} in the metadata is no whole number")
        return int(text)

    def _corrupt(self, what: str) -> CorruptFileError:
        return CorruptFileError(what, path=self._path)


def write_zone_map(
    sink: RangeWriter,
    zones: Zones,
    null_rows: NullRows | None,
    rows_per_zone: int,
    version: FileVersion,
    name: str = "",
) -> int:
    """Write the file of an index.

    Parameters
    ----------
    sink : RangeWriter
        Closed afterwards, aborted after an exception.
    zones : Zones
    null_rows : mapping of int to bytes, optional
        None if they are unknown.
    rows_per_zone : int
    version : FileVersion
    name : str
        See `FileWriter`.

    Returns
    -------
    int
        The size of the file in bytes.
    """
    value_type = zones.lower.type
    numbers = (zones.null_counts, zones.nan_counts, zones.fragment_ids, zones.starts, zones.lengths)
    schema = pa.schema(
        [pa.field("min", value_type), pa.field("max", value_type)]
        + [pa.field(name, number_type, nullable=False) for name, number_type in _NUMBERS.items()],
        metadata={_ROWS_PER_ZONE: b"%d" % rows_per_zone},
    )
    arrays = [pa.array(column, kind) for column, kind in zip(numbers, _NUMBERS.values(), strict=True)]
    batch = pa.RecordBatch.from_arrays([zones.lower, zones.upper, *arrays], schema=schema)
    try:
        writer = FileWriter(sink, Schema.from_arrow(schema), version=version, name=name)
        writer.write_batch(batch)
        if null_rows is not None:
            number = writer.add_global_buffer(serialize_null_rows(null_rows))
            writer.add_schema_metadata(_NULL_BITMAP.decode(), str(number))
        return writer.finish().size_bytes
    except BaseException:
        sink.abort()
        raise


class _WholeFile:
    """A file that is read as a whole when any of it is needed."""

    def __init__(self, source: RangeReader) -> None:
        self._source = source
        self._data: bytes | None = None

    @property
    def path(self) -> str:
        return self._source.path

    @property
    def size_bytes(self) -> int:
        return self._source.size_bytes

    @property
    def request_shape(self) -> RequestShape:
        return self._source.request_shape

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        if self._data is None:
            (self._data,) = self._source.read_ranges([ByteRange(0, self.size_bytes)])
        for wanted in ranges:
            if wanted.end > self.size_bytes:
                raise CorruptFileError(f"a range ends at byte {wanted.end} of {self.size_bytes}", path=self.path)
        return [self._data[wanted.offset : wanted.end] for wanted in ranges]

    def close(self) -> None:
        self._source.close()


def parse_null_rows(content: bytes, path: str) -> NullRows:
    """Return the null rows of a global buffer.

    Parameters
    ----------
    content : bytes
    path : str
        The file.

    Raises
    ------
    CorruptFileError
        If they are malformed.
    """
    try:
        return _parse_bitmaps(content)
    except (struct.error, ValueError, IndexError) as error:
        raise CorruptFileError(f"malformed bitmaps of null rows: {error}", path=path) from error


def _parse_bitmaps(content: bytes) -> dict[int, bytes]:
    (count,) = _COUNT.unpack_from(content)
    found, position = {}, _COUNT.size
    for _ in range(count):
        fragment_id, size = _ENTRY.unpack_from(content, position)
        position += _ENTRY.size
        bitmap = content[position : position + size]
        if len(bitmap) < size or fragment_id in found:
            raise ValueError(f"fragment {fragment_id} has {len(bitmap)} of {size} bytes, or is named twice")
        if size:  # An empty bitmap represents all rows.
            pyroaring.BitMap.deserialize(bitmap)
        found[fragment_id] = bitmap
        position += size
    if position != len(content):
        raise ValueError(f"{len(content) - position} bytes are left over")
    return found


def serialize_null_rows(null_rows: NullRows) -> bytes:
    """Return the bytes of the global buffer of null rows."""
    parts = [_COUNT.pack(len(null_rows))]
    for fragment_id in sorted(null_rows):
        parts += (_ENTRY.pack(fragment_id, len(null_rows[fragment_id])), null_rows[fragment_id])
    return b"".join(parts)
