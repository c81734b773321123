"""Zones in the statistics form of the file format document: a Lance file embedded in the file.

File format document, "Statistics". The embedded file is a global buffer, which the metadata of the schema names:

    lance.statistics = <global buffer>:<rows per zone>

It has a row per zone, and a column per field with zones, below structs too, named by the field's id:

    <field id>: struct<null_count: int64, min_value, max_value>

The bounds are of the field's type, and need not be values of the zone. If no bound is known (all values are null or
NaN), integers, dates, timestamps and durations have the limits of their types, booleans false and true, floating-point
numbers the infinities, and other types null. NaN is not recorded otherwise. A lower bound of zero is -0.0, an upper one
+0.0. Byte strings are cut after 64 bytes, strings between two characters. A cut upper bound is incremented in the last
byte or character that has a successor; it is null if there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from lance_format.file.zones.collector import Key, Keys, LeafZones, is_text, to_arrow

NULL_COUNT, MIN_VALUE, MAX_VALUE = "null_count", "min_value", "max_value"

_LONGEST = 64
_LAST_CHARACTER = 0x10FFFF
_BEFORE_SURROGATES, _AFTER_SURROGATES = 0xD7FF, 0xE000
_MS_PER_DAY = 86_400_000


def serialize_zones(leaves: Sequence[LeafZones], write: Callable[[pa.RecordBatch], bytes]) -> bytes:
    """Return the embedded file.

    Parameters
    ----------
    leaves : sequence of LeafZones
        At least one; all have the same number of zones.
    write : callable
        Makes a Lance file from a batch.
    """
    columns = {str(zones.leaf.field.id): _struct(zones) for zones in leaves}
    return write(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))


def _struct(zones: LeafZones) -> pa.StructArray:
    arrow_type = zones.leaf.arrow_type
    nulls = pa.array(zones.num_nulls, pa.int64())
    lower, upper = _bounds(zones.lower, zones.upper, arrow_type)
    return pa.StructArray.from_arrays([nulls, lower, upper], [NULL_COUNT, MIN_VALUE, MAX_VALUE])


def cut_keys(lower: Sequence[Key | None], upper: Sequence[Key | None], arrow_type: pa.DataType) -> tuple[Keys, Keys]:
    """Return bounds as keys: of strings and byte strings those that are not too long to be stored.

    Parameters
    ----------
    lower, upper : sequence of key or None
        A bound of each zone.
    arrow_type : pa.DataType
        The type of the column.
    """
    has_text = pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type)
    if not has_text and not pa.types.is_binary(arrow_type) and not pa.types.is_large_binary(arrow_type):
        return list(lower), list(upper)
    cut = _cut_text if has_text else _cut_bytes
    least: Keys = [cut(key, upwards=False) if isinstance(key, bytes) else None for key in lower]
    greatest: Keys = [cut(key, upwards=True) if isinstance(key, bytes) else None for key in upper]
    return least, greatest


def _bounds(lower: Sequence[Key | None], upper: Sequence[Key | None], arrow_type: pa.DataType) -> tuple[pa.Array, ...]:
    bounds = [to_arrow(keys, arrow_type) for keys in cut_keys(lower, upper, arrow_type)]
    limits = _limits(arrow_type)
    if limits is not None and pa.types.is_floating(arrow_type):
        given = zip(bounds, limits, (-0.0, 0.0), strict=True)
        bounds = [_float_bounds(bound, limit.as_py(), zero) for bound, limit, zero in given]
    elif limits is not None:
        bounds = [bound.fill_null(limit) for bound, limit in zip(bounds, limits, strict=True)]
    return tuple(bounds)


def _float_bounds(bounds: pa.Array, limit: float, zero: float) -> pa.Array:
    """Return bounds with a limit for null, and zeros of one sign; Arrow cannot compute with half floats everywhere."""
    numbers = bounds.to_numpy(zero_copy_only=False)
    if bounds.null_count:
        numbers = np.where(bounds.is_null().to_numpy(zero_copy_only=False), numbers.dtype.type(limit), numbers)
    is_zero = numbers == 0
    if is_zero.any():
        numbers = np.where(is_zero, numbers.dtype.type(zero), numbers)
    return pa.array(numbers, bounds.type)


def _limits(arrow_type: pa.DataType) -> tuple[pa.Scalar, pa.Scalar] | None:
    """Return the representation of unknown bounds, None for null."""
    types = pa.types
    if types.is_boolean(arrow_type):
        return pa.scalar(False), pa.scalar(True)
    if types.is_floating(arrow_type):
        infinity = np.array(np.inf, arrow_type.to_pandas_dtype())[()]
        return pa.scalar(-infinity, arrow_type), pa.scalar(infinity, arrow_type)
    checks = (types.is_integer, types.is_date, types.is_timestamp, types.is_duration)
    if not any(check(arrow_type) for check in checks):
        return None
    unsigned = types.is_unsigned_integer(arrow_type)
    info = np.iinfo(f"{'u' if unsigned else 'i'}{arrow_type.bit_width // 8}")
    limits = [int(info.min), int(info.max)]
    if types.is_date64(arrow_type):  # whole days only
        limits = [-(-limits[0] // _MS_PER_DAY) * _MS_PER_DAY, limits[1] // _MS_PER_DAY * _MS_PER_DAY]
    lower, upper = (to_arrow([limit], arrow_type)[0] for limit in limits)
    return lower, upper


def _cut_bytes(key: bytes, *, upwards: bool) -> bytes | None:
    if len(key) <= _LONGEST:
        return key
    key = key[:_LONGEST]
    if not upwards:
        return key
    key = key.rstrip(b"\xff")
    return key[:-1] + bytes([key[-1] + 1]) if key else None


def _cut_text(key: bytes, *, upwards: bool) -> bytes | None:
    if len(key) <= _LONGEST:
        return key if is_text(key) else None
    text = _valid_part(key[:_LONGEST])
    if not upwards:
        return text.encode()
    text = text.rstrip(chr(_LAST_CHARACTER))
    if not text:
        return None
    last = ord(text[-1])
    following = _AFTER_SURROGATES if last == _BEFORE_SURROGATES else last + 1
    return (text[:-1] + chr(following)).encode()


def _valid_part(key: bytes) -> str:
    """Return the leading characters of UTF-8 bytes, without one that is cut."""
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        return key[: error.start].decode()
