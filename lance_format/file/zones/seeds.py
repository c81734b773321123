"""Zones of top-level columns as the reference writes and harvests them for its zone map index: "seeds".

A seed is a global buffer with an Arrow IPC file of one row per zone. The metadata of the file's schema names it, with
the number of rows of all zones except the last:

    lance.seed.<column> = <global buffer>:<rows per zone>

    │ min │ max │ null_count: u32 │ nan_count: u32 │ zone_length: u64 │

The reference adds the null rows to the metadata of the IPC file (`seed_null_bitmap`): a Roaring bitmap, as text.

`min` and `max` are of the column's type: null where all values are null or NaN, except that `max` is NaN wherever NaN
occurs. The reference trusts them without reading the column, so they are exact or not written at all.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyroaring

from lance_format.arrow_ipc import read_file
from lance_format.errors import CorruptFileError
from lance_format.expressions.zones import ZoneStatistics
from lance_format.file.zones.collector import LONGEST_BOUND, LeafZones, is_text, to_arrow
from lance_format.half_floats import if_else, nan_of
from lance_format.lazy_dataclasses import dataclass

_NULL_ROWS = b"seed_null_bitmap"
_MAX_EXPANSION = 64
_LEAST_MAX_BYTES = 1 << 20
"""Maximum size of expanded seeds: a multiple of their bytes, or this. The reference does not compress."""
_COUNTS: Mapping[str, pa.DataType] = {"null_count": pa.uint32(), "nan_count": pa.uint32(), "zone_length": pa.uint64()}


@dataclass(frozen=True, slots=True, eq=False)
class Seed:
    """Content of a seed.

    Parameters
    ----------
    statistics : ZoneStatistics
    num_nan : int64[num_zones]
    null_rows_text : bytes, optional
        The stored null rows; None if unknown.
    """

    statistics: ZoneStatistics
    num_nan: npt.NDArray[np.int64]
    null_rows_text: bytes | None

    def null_rows(self) -> bytes | None:
        """Return the offsets of null rows as a 32-bit Roaring bitmap; None if unknown.

        Raises
        ------
        CorruptFileError
            If their number is not that of the zones.
        """
        num_nulls = int(self.statistics.num_nulls.sum())
        if not num_nulls:
            return pyroaring.BitMap().serialize()
        if self.null_rows_text is None:
            return None
        try:
            content = bytes.fromhex(self.null_rows_text.decode("ascii"))
            rows = pyroaring.BitMap.deserialize(content)
        except (ValueError, IndexError) as error:
            raise CorruptFileError(f"the bitmap of null rows is malformed: {error}") from error
        if len(rows) != num_nulls or rows.max() >= self.statistics.num_rows.sum():
            raise CorruptFileError(f"the bitmap of null rows has {len(rows)} of {num_nulls} rows")
        return content


def serialize_seed(zones: LeafZones) -> bytes | None:
    """Return the seed of a column; None if the reference has none for its type, or a bound is too long."""
    leaf = zones.leaf
    if len(leaf.path) > 1 or pa.types.is_fixed_size_binary(leaf.arrow_type):
        return None
    strings = [key for key in (*zones.lower, *zones.upper) if isinstance(key, bytes)]
    if any(len(key) > LONGEST_BOUND for key in strings):
        return None
    if leaf.arrow_type in (pa.string(), pa.large_string()) and not all(map(is_text, strings)):
        return None
    upper = to_arrow(zones.upper, leaf.arrow_type)
    if any(zones.num_nan):
        upper = if_else(pa.array(np.array(zones.num_nan) > 0), nan_of(leaf.arrow_type), upper)
    columns = [to_arrow(zones.lower, leaf.arrow_type), upper]
    for counts, arrow_type in zip((zones.num_nulls, zones.num_nan, zones.num_rows), _COUNTS.values(), strict=True):
        columns.append(pa.array(counts, arrow_type))
    fields = [pa.field(name, leaf.arrow_type) for name in ("min", "max")]
    fields += [pa.field(name, arrow_type, nullable=False) for name, arrow_type in _COUNTS.items()]
    schema = pa.schema(fields)
    out = io.BytesIO()
    with pa.ipc.new_file(out, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return out.getvalue()


def parse_seed(data: bytes, arrow_type: pa.DataType) -> Seed | None:
    """Read the seed of a column.

    Parameters
    ----------
    data : bytes
    arrow_type : pa.DataType
        Of the column.

    Returns
    -------
    Seed or None
        None if it is of values of another type.

    Raises
    ------
    CorruptFileError
        If it is malformed.
    """
    table = read_file(data, max(len(data) * _MAX_EXPANSION, _LEAST_MAX_BYTES))
    for name in ("min", "max", *_COUNTS):
        wanted = _COUNTS.get(name)
        if table.schema.names.count(name) != 1 or (wanted and table.schema.field(name).type != wanted):
            raise CorruptFileError(f"it has no column {name!r} that is {wanted or arrow_type}; it has {table.schema}")
    if any(table.schema.field(name).type != arrow_type for name in ("min", "max")):
        return None
    lower, upper = (table[name].combine_chunks() for name in ("min", "max"))
    num_nulls, num_nan, num_rows = (_counts(table[name], name) for name in _COUNTS)
    if (num_nulls > num_rows).any() or (num_nan > num_rows - num_nulls).any():
        raise CorruptFileError("a zone has more nulls, or more NaN, than rows")
    if pa.types.is_floating(arrow_type):
        nan = nan_of(arrow_type)
        only_nan = (num_nan > 0) & (num_nan + num_nulls == num_rows)
        lower = if_else(pa.array(only_nan), nan, lower)
        upper = if_else(pa.array(num_nan > 0), nan, upper)
    has_value = pa.array(num_nulls < num_rows)
    missing = pc.and_(has_value, pc.or_(lower.is_null(), upper.is_null()))
    statistics = ZoneStatistics(num_rows, num_nulls, lower, upper, exact=not pc.any(missing).as_py())
    return Seed(statistics, num_nan, (table.schema.metadata or {}).get(_NULL_ROWS))


def _counts(column: pa.ChunkedArray, name: str) -> npt.NDArray[np.int64]:
    if column.null_count:
        raise CorruptFileError(f"{name!r} is null for some zone")
    counts: npt.NDArray[Any] = column.combine_chunks().to_numpy()
    if (counts >= 2**48).any():
        raise CorruptFileError(f"{name!r} is {counts.max()} for some zone, which is more than files can have rows")
    return counts.astype(np.int64)
