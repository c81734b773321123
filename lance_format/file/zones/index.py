"""Zones of one column in its column encoding, `ZoneIndex`: as a Lance file within a buffer of the column.

File format document, `ColumnEncoding`. The encoding wraps that of the column, and names the buffer:

    ZoneIndex { rows_per_zone, zone_map_buffer, inner }

The embedded file has a row per zone, as the reference's crate `lance-encoding-datafusion` wrote it:

    │ min │ max │ null_count: u32, never null │

`min` and `max` are of the column's type, and null where all values are null. Floating-point numbers are in total order:
if a zone has NaN, `max` is NaN, or `min` is NaN of the other sign. Byte strings are cut as in `zone_file`. Any other
bound that is null is not known. The crate wrote files of format 2.0 without a file descriptor. Those that are written
here have one, so that any reader opens them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.byte_io import ByteRange, RangeReader
from lance_format.datatypes import Schema
from lance_format.errors import CorruptFileError
from lance_format.expressions.zones import ZoneStatistics
from lance_format.file.container.footer import complete_end
from lance_format.file.zones.collector import LeafZones, to_arrow
from lance_format.file.zones.statistics_file import cut_keys
from lance_format.half_floats import if_else, is_nan, nan_of

MIN, MAX, NULL_COUNT = "min", "max", "null_count"


def zone_index_schema(arrow_type: pa.DataType) -> pa.Schema:
    """Return the columns of the embedded file of a column of some type."""
    fields = [pa.field(MIN, arrow_type), pa.field(MAX, arrow_type), pa.field(NULL_COUNT, pa.uint32(), nullable=False)]
    return pa.schema(fields)


def serialize_zone_index(zones: LeafZones, write: Callable[[pa.RecordBatch], bytes]) -> bytes:
    """Return the embedded file of a column.

    Parameters
    ----------
    zones : LeafZones
    write : callable
        Makes a Lance file of format 2.0 of a batch.
    """
    arrow_type = zones.leaf.arrow_type
    lower, upper = (to_arrow(keys, arrow_type) for keys in cut_keys(zones.lower, zones.upper, arrow_type))
    num_nan, num_nulls, num_rows = (np.array(counts) for counts in (zones.num_nan, zones.num_nulls, zones.num_rows))
    if num_nan.any():
        nan = nan_of(arrow_type)
        lower = if_else(pa.array((num_nan > 0) & (num_nan + num_nulls == num_rows)), nan, lower)
        upper = if_else(pa.array(num_nan > 0), nan, upper)
    columns = [lower, upper, pa.array(num_nulls, pa.uint32())]
    return write(pa.RecordBatch.from_arrays(columns, schema=zone_index_schema(arrow_type)))


def to_statistics(
    columns: Mapping[str, pa.Array], arrow_type: pa.DataType, num_rows: npt.NDArray[np.int64]
) -> ZoneStatistics:
    """Return the statistics of an embedded file.

    Parameters
    ----------
    columns : mapping of str to pa.Array
        Its columns of `zone_index_schema`, with all rows.
    arrow_type : pa.DataType
        Of the column.
    num_rows : int64[num_zones]
        Rows of each zone.

    Raises
    ------
    CorruptFileError
        If it lacks a column, or a count.
    """
    for field in zone_index_schema(arrow_type):
        found = columns.get(field.name)
        if found is None or found.type != field.type or (found.null_count and not field.nullable):
            raise CorruptFileError(
                f"it has no column {field.name!r} that is {field.type}{'' if field.nullable else ' and never null'}"
            )
    lower, upper = columns[MIN], columns[MAX]
    num_nulls = columns[NULL_COUNT].to_numpy().astype(np.int64)
    if pa.types.is_floating(arrow_type):
        # NaN of either sign is an end of the total order, and nothing is known of the values between two of them.
        has_nan = pc.or_(*(pc.fill_null(is_nan(bound), False) for bound in (lower, upper)))
        upper = if_else(has_nan, nan_of(arrow_type), upper)
        lower = if_else(is_nan(lower), pa.scalar(None, arrow_type), lower)
    return ZoneStatistics(num_rows, num_nulls, lower, upper, exact=False)


def with_descriptor(file: RangeReader, arrow_type: pa.DataType, num_zones: int) -> RangeReader:
    """Return an embedded file, completed by a descriptor if it has none.

    Parameters
    ----------
    file : RangeReader
    arrow_type : pa.DataType
        Of the column.
    num_zones : int
        Rows that the file has to have.

    Raises
    ------
    CorruptFileError
        If it is too short to be a Lance file.
    """
    completed = complete_end(file, Schema.from_arrow(zone_index_schema(arrow_type)), num_zones)
    return file if completed is None else _Extended(file, *completed)


class _Extended:
    """The start of a file, and other bytes after it; a `RangeReader`."""

    def __init__(self, file: RangeReader, kept: int, end: bytes) -> None:
        self.path = file.path
        self.size_bytes = kept + len(end)
        self.request_shape = file.request_shape
        self._file = file
        self._kept = kept
        self._end = end

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        return [self._read(wanted) for wanted in ranges]

    def _read(self, wanted: ByteRange) -> bytes:
        before = min(wanted.end, self._kept) - wanted.offset
        start = b"" if before <= 0 else bytes(self._file.read_ranges([ByteRange(wanted.offset, before)])[0])
        return start + self._end[max(wanted.offset - self._kept, 0) : max(wanted.end - self._kept, 0)]

    def close(self) -> None:
        """The file stays open."""
