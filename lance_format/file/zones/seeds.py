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

import functools
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyroaring

from lance_format.arrow_ipc import read_file
from lance_format.errors import CorruptFileError
from lance_format.expressions.zones import ZoneStatistics
from lance_format.file.zones.collector import LONGEST_BOUND, LeafZones, is_text, stored_numbers, to_arrow
from lance_format.half_floats import if_else, nan_of
from lance_format.lazy_dataclasses import dataclass

_NULL_ROWS = b"seed_null_bitmap"
_MAX_EXPANSION = 64
_LEAST_MAX_BYTES = 1 << 20
"""Maximum size of expanded seeds: a multiple of their bytes, or this. The reference does not compress."""
_KEPT_FORMS = 64
_MOST_ZONES = 1000
"""Seeds of more are large: what they have in common with others is not kept."""
_Stored: TypeAlias = tuple[
    pa.Array, pa.Array, npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64], bytes | None
]
"""Content of a seed: bounds, the numbers of nulls, NaN and rows, and the null rows as text."""

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
    counts: list[npt.NDArray[Any]] = [
        np.array(zones.num_nulls, np.uint32),
        np.array(zones.num_nan, np.uint32),
        np.array(zones.num_rows, np.uint64),
    ]
    if _has_form(leaf.arrow_type, len(zones.num_rows)) and None not in zones.lower and not any(zones.num_nan):
        bounds = [stored_numbers(keys, leaf.arrow_type) for keys in (zones.lower, zones.upper)]
        return _Form.of(leaf.arrow_type, len(zones.num_rows)).filled([*bounds, *counts])
    upper = to_arrow(zones.upper, leaf.arrow_type)
    if any(zones.num_nan):
        upper = if_else(pa.array(np.array(zones.num_nan) > 0), nan_of(leaf.arrow_type), upper)
    return _serialize(leaf.arrow_type, [to_arrow(zones.lower, leaf.arrow_type), upper, *map(pa.array, counts)])


def _has_form(arrow_type: pa.DataType, num_zones: int) -> bool:
    """Return whether seeds are of numbers, and small enough to keep what they have in common."""
    return 0 < num_zones <= _MOST_ZONES and pa.types.is_primitive(arrow_type) and not pa.types.is_boolean(arrow_type)


def _serialize(arrow_type: pa.DataType, columns: list[pa.Array]) -> bytes:
    fields = [pa.field(name, arrow_type) for name in ("min", "max")]
    fields += [pa.field(name, counted, nullable=False) for name, counted in _COUNTS.items()]
    schema = pa.schema(fields)
    out = pa.BufferOutputStream()
    with pa.ipc.new_file(out, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return bytes(out.getvalue())


@dataclass(frozen=True, slots=True)
class _Form:
    """A seed without nulls, and where its values are. Those of other columns of a type differ in the values alone.

    Parameters
    ----------
    content : bytes
        The seed with zeros for all values.
    places : tuple of (int, int)
        Byte range of each column: its start and its end.
    """

    content: bytes
    places: tuple[tuple[int, int], ...]

    @classmethod
    @functools.lru_cache(_KEPT_FORMS)
    def of(cls, arrow_type: pa.DataType, num_zones: int) -> _Form:
        """Make the form of numbers of a type."""
        types = (arrow_type, arrow_type, *_COUNTS.values())
        sizes = [num_zones * kind.bit_width // 8 for kind in types]
        zeros = [pa.py_buffer(bytes(size)) for size in sizes]
        columns = [
            pa.Array.from_buffers(kind, num_zones, [None, part]) for kind, part in zip(types, zeros, strict=True)
        ]
        content = _serialize(arrow_type, columns)
        stored = pa.py_buffer(content)
        with pa.ipc.open_file(stored) as file:
            batch = file.get_batch(0)
        starts = [column.buffers()[1].address - stored.address for column in batch.columns]
        return cls(content, tuple((start, start + size) for start, size in zip(starts, sizes, strict=True)))

    def filled(self, columns: list[npt.NDArray[Any]]) -> bytes:
        """Return the seed with these values."""
        out = bytearray(self.content)
        for (start, end), column in zip(self.places, columns, strict=True):
            out[start:end] = column.tobytes()
        return bytes(out)

    def is_of(self, data: bytes) -> bool:
        """Return whether a seed differs in values alone."""
        if len(data) != len(self.content):
            return False
        without_values = bytearray(data)
        for start, end in self.places:
            without_values[start:end] = bytes(end - start)
        return without_values == self.content


def parse_seed(data: bytes, arrow_type: pa.DataType, num_zones: int) -> Seed | None:
    """Read the seed of a column.

    Parameters
    ----------
    data : bytes
    arrow_type : pa.DataType
        Of the column.
    num_zones : int
        How many zones the file has; seeds of other numbers are read, too.

    Returns
    -------
    Seed or None
        None if it is of values of another type.

    Raises
    ------
    CorruptFileError
        If it is malformed.
    """
    found = _parse_numbers(data, arrow_type, num_zones) or _parse_any(data, arrow_type)
    if found is None:
        return None
    lower, upper, num_nulls, num_nan, num_rows, null_rows_text = found
    if (num_nulls > num_rows).any() or (num_nan > num_rows - num_nulls).any():
        raise CorruptFileError("a zone has more nulls, or more NaN, than rows")
    if pa.types.is_floating(arrow_type) and num_nan.any():
        nan = nan_of(arrow_type)
        only_nan = (num_nan > 0) & (num_nan + num_nulls == num_rows)
        lower = if_else(pa.array(only_nan), nan, lower)
        upper = if_else(pa.array(num_nan > 0), nan, upper)
    exact = True
    if lower.null_count or upper.null_count:
        has_value = pa.array(num_nulls < num_rows)
        missing = pc.and_(has_value, pc.or_(lower.is_null(), upper.is_null()))
        exact = not pc.any(missing).as_py()
    return Seed(ZoneStatistics(num_rows, num_nulls, lower, upper, exact=exact), num_nan, null_rows_text)


def _parse_numbers(data: bytes, arrow_type: pa.DataType, num_zones: int) -> _Stored | None:
    """Return the content of a seed that was written as one of numbers without nulls; None if it is none."""
    if not _has_form(arrow_type, num_zones):
        return None
    form = _Form.of(arrow_type, num_zones)
    if not form.is_of(data):
        return None
    stored = pa.py_buffer(data)
    lower, upper = (
        pa.Array.from_buffers(arrow_type, num_zones, [None, stored.slice(start, end - start)])
        for start, end in form.places[:2]
    )
    counts = [
        _checked(np.frombuffer(data, kind.to_pandas_dtype(), num_zones, start), name)
        for (start, _), (name, kind) in zip(form.places[2:], _COUNTS.items(), strict=True)
    ]
    return lower, upper, *counts, None


def _parse_any(data: bytes, arrow_type: pa.DataType) -> _Stored | None:
    table = read_file(data, max(len(data) * _MAX_EXPANSION, _LEAST_MAX_BYTES))
    for name in ("min", "max", *_COUNTS):
        wanted = _COUNTS.get(name)
        if table.schema.names.count(name) != 1 or (wanted and table.schema.field(name).type != wanted):
            raise CorruptFileError(f"it has no column {name!r} that is {wanted or arrow_type}; it has {table.schema}")
    if any(table.schema.field(name).type != arrow_type for name in ("min", "max")):
        return None
    lower, upper = (table[name].combine_chunks() for name in ("min", "max"))
    counts = [_counts(table[name], name) for name in _COUNTS]
    return lower, upper, *counts, (table.schema.metadata or {}).get(_NULL_ROWS)


def _counts(column: pa.ChunkedArray, name: str) -> npt.NDArray[np.int64]:
    if column.null_count:
        raise CorruptFileError(f"{name!r} is null for some zone")
    return _checked(column.combine_chunks().to_numpy(), name)


def _checked(counts: npt.NDArray[Any], name: str) -> npt.NDArray[np.int64]:
    if (counts >= 2**48).any():
        raise CorruptFileError(f"{name!r} is {counts.max()} for some zone, which is more than files can have rows")
    return counts.astype(np.int64)
