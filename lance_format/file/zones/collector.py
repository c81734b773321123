"""Statistics per zone of the rows of a file, collected while it is written.

Zones have the same number of rows, the last may have fewer. Columns have them if their values have an order, and each
row has one value at most: columns at the top, and fields of structs below these, but not the items of lists and maps.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.blob_fields import format_of
from lance_format.data_block import Counts, aligned
from lance_format.file.columns.indices import is_packed
from lance_format.file.columns.leaf_columns import Leaf
from lance_format.file.columns.leaves import validity_of
from lance_format.kernels.columns import zones as kernels
from lance_format.lazy_dataclasses import dataclass
from lance_format.list_items import offsets_of
from lance_format.logical_types import JSON

ROWS_PER_ZONE = 8192
"""Number of rows per zone, as in the reference."""

LONGEST_BOUND = 256
"""Longer byte strings are cut one byte after this limit, which marks them as longer."""

Key: TypeAlias = int | bytes
"""A value in a form that orders as it does: of floating-point numbers an integer, of strings their bytes."""
Keys: TypeAlias = list[Key | None]
_Bounds: TypeAlias = tuple[Keys, Keys, list[int]]
_Mask: TypeAlias = npt.NDArray[np.bool_]

_SIGNED: dict[int, np.dtype[Any]] = {
    8: np.dtype(np.int8),
    16: np.dtype(np.int16),
    32: np.dtype(np.int32),
    64: np.dtype(np.int64),
}
_INFINITY = {16: 0x7C00, 32: 0x7F80_0000, 64: 0x7FF0_0000_0000_0000}
_ALL_VALID = np.empty(0, np.bool_)
_MOST_FIXED_BYTES = 64


@dataclass(slots=True)
class LeafZones:
    """The zones of a leaf so far.

    Parameters
    ----------
    leaf : Leaf
    lower, upper : list of int or bytes or None
        None where a zone has no value but NaN and null.
    num_rows, num_nulls, num_nan : list of int
    """

    leaf: Leaf
    lower: Keys = field(default_factory=list)
    upper: Keys = field(default_factory=list)
    num_rows: list[int] = field(default_factory=list)
    num_nulls: list[int] = field(default_factory=list)
    num_nan: list[int] = field(default_factory=list)

    def append(self, array: pa.Array, valid: _Mask | None, rows_per_zone: int) -> None:
        """Add rows.

        Parameters
        ----------
        array : pa.Array
            The values of the leaf.
        valid : bool[num_rows], optional
            Whether a value is not null; by default all are valid.
        rows_per_zone : int
        """
        left = rows_per_zone - self.num_rows[-1] if self.num_rows else 0  # in the zone that is not full yet
        starts = _zone_starts(len(array), left or rows_per_zone, rows_per_zone)
        mask = _ALL_VALID if valid is None else valid
        lower, upper, num_nan = _measure_of(array.type)(array, mask, starts)
        num_rows = (starts[1:] - starts[:-1]).tolist()
        num_nulls = [0] * len(num_rows)
        if valid is not None:
            num_nulls = [
                end - start - int(np.count_nonzero(valid[start:end])) for start, end in pairwise(starts.tolist())
            ]
        if left:
            self.lower[-1] = _merged(min, self.lower[-1], lower.pop(0))
            self.upper[-1] = _merged(max, self.upper[-1], upper.pop(0))
            self.num_nan[-1] += num_nan.pop(0)
            self.num_rows[-1] += num_rows.pop(0)
            self.num_nulls[-1] += num_nulls.pop(0)
        self.lower += lower
        self.upper += upper
        self.num_nan += num_nan
        self.num_rows += num_rows
        self.num_nulls += num_nulls


def _zone_starts(num_rows: int, first: int, others: int) -> Counts:
    """Return the start of each zone, and the end of the last.

    Parameters
    ----------
    num_rows : int
        At least 1.
    first, others : int
        Number of rows of the first zone and of all others, but for the last, which may have fewer.
    """
    first, others = min(first, num_rows), min(others, num_rows)
    num_zones = 1 - (first - num_rows) // others
    starts: Counts = np.arange(first - others, first + num_zones * others, others, dtype=np.int64)
    starts[0], starts[-1] = 0, num_rows
    return starts


class ColumnZones:
    """Collector of the zones of a top-level column.

    Parameters
    ----------
    leaves : sequence of Leaf
        Those that have them; see `has_order`.
    rows_per_zone : int
    """

    def __init__(self, leaves: Sequence[Leaf], rows_per_zone: int) -> None:
        self.leaves = [LeafZones(leaf) for leaf in leaves]
        self._rows_per_zone = rows_per_zone

    def append(self, array: pa.Array) -> None:
        """Add rows of the column."""
        for zones in self.leaves:
            values, valid = _values_of(array, zones.leaf)
            zones.append(values, valid, self._rows_per_zone)


def has_order(leaf: Leaf) -> bool:
    """Return whether a leaf has zones: at most one value per row, of a type with an order.

    Dictionaries and JSON have none, since their stored form is ordered differently. Struct fields of extension types
    have none, since they have no meaning alone.
    """
    for part in leaf.path[:-1]:
        if part.logical_type != "struct" or is_packed(part) or part.extension_name:
            return False
    if format_of(leaf.field) is not None or leaf.field.logical_type == JSON:
        return False
    return is_ordered(leaf.arrow_type)


def is_ordered(arrow_type: pa.DataType) -> bool:
    """Return whether zones of values of a type have bounds."""
    types = pa.types
    if types.is_fixed_size_binary(arrow_type):
        return 0 < int(arrow_type.byte_width) <= _MOST_FIXED_BYTES
    checks = (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal128, types.is_decimal256)
    if any(check(arrow_type) for check in checks) or arrow_type in _STRINGS:
        return True
    return bool(types.is_temporal(arrow_type) and not types.is_interval(arrow_type))


_STRINGS = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _values_of(array: pa.Array, leaf: Leaf) -> tuple[pa.Array, _Mask | None]:
    """Return the values of a leaf below structs, and which of them are there; None if all are."""
    valid = validity_of(array)
    for part in leaf.path[1:]:
        array = array.field(array.type.get_field_index(part.name))
        own = validity_of(array)
        if own is not None:
            valid = own if valid is None else valid & own
    return array, valid


def _merged(pick: Callable[[Any, Any], Any], one: Key | None, other: Key | None) -> Key | None:
    if one is None or other is None:
        return other if one is None else one
    merged: Key = pick(one, other)
    return merged


def _measure_of(arrow_type: pa.DataType) -> Callable[[pa.Array, _Mask, Counts], _Bounds]:
    if pa.types.is_boolean(arrow_type):
        return _measure_booleans
    if pa.types.is_floating(arrow_type):
        return _measure_floats
    if pa.types.is_decimal(arrow_type):
        return _measure_decimals
    return _measure_strings if _is_bytes(arrow_type) else _measure_integers


def _is_bytes(arrow_type: pa.DataType) -> bool:
    return arrow_type in _STRINGS or pa.types.is_fixed_size_binary(arrow_type)


def _fixed_width(array: pa.Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    width = array.type.bit_width // 8
    data = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * width : (array.offset + len(array)) * width]
    return aligned(data).view(dtype)


def _limits(dtype: np.dtype[Any], count: int) -> npt.NDArray[Any]:
    """Return bounds of so many zones without values: lower ones, and upper ones, which are less."""
    return _extremes(dtype).repeat(count, axis=1)


@functools.cache
def _extremes(dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the greatest and the least integer of a type as two rows."""
    info = np.iinfo(dtype)
    return np.array([[info.max], [info.min]], dtype)


def _keys(lower: npt.NDArray[Any], upper: npt.NDArray[Any]) -> tuple[Keys, Keys]:
    """Return bounds as keys; a lower one above the upper one says that there was no value."""
    none = lower > upper
    if not none.any():
        return lower.tolist(), upper.tolist()
    return tuple(  # type: ignore[return-value]
        [None if empty else key for key, empty in zip(bounds.tolist(), none.tolist(), strict=True)]
        for bounds in (lower, upper)
    )


def _measure_integers(array: pa.Array, valid: _Mask, starts: Counts) -> _Bounds:
    dtype = np.dtype(f"{'u' if pa.types.is_unsigned_integer(array.type) else 'i'}{array.type.bit_width // 8}")
    lower, upper = _limits(dtype, len(starts) - 1)
    kernels.bound_integers(_fixed_width(array, dtype), valid, starts, lower, upper)
    return *_keys(lower, upper), [0] * len(lower)


def _measure_booleans(array: pa.Array, valid: _Mask, starts: Counts) -> _Bounds:
    lower, upper = _limits(_SIGNED[8], len(starts) - 1)
    bits = np.frombuffer(array.buffers()[1], np.uint8)
    kernels.bound_booleans(bits, array.offset, valid, starts, lower, upper)
    return *_keys(lower, upper), [0] * len(lower)


def _measure_floats(array: pa.Array, valid: _Mask, starts: Counts) -> _Bounds:
    bits = array.type.bit_width
    lower, upper = _limits(_SIGNED[bits], len(starts) - 1)
    num_nan = np.zeros(len(lower), np.int64)
    kernels.bound_floats(_fixed_width(array, _SIGNED[bits]), valid, starts, _INFINITY[bits], lower, upper, num_nan)
    return *_keys(lower, upper), num_nan.tolist()


def _measure_decimals(array: pa.Array, valid: _Mask, starts: Counts) -> _Bounds:
    width = array.type.bit_width // 8
    lower, upper = np.empty((2, len(starts) - 1), np.int64)
    words = _fixed_width(array, np.dtype(np.uint64))
    kernels.find_wide_bounds(words, width // 8, valid, starts, lower, upper)

    def key(index: int) -> int | None:
        if index < 0:
            return None
        stored = words[index * width // 8 : (index + 1) * width // 8].tobytes()
        return int.from_bytes(stored, sys.byteorder, signed=True)

    return list(map(key, lower.tolist())), list(map(key, upper.tolist())), [0] * len(lower)


def _measure_strings(array: pa.Array, valid: _Mask, starts: Counts) -> _Bounds:
    lower, upper = np.empty((2, len(starts) - 1), np.int64)
    if pa.types.is_fixed_size_binary(array.type):
        data = _fixed_width(array, np.dtype(np.uint8))
        offsets = np.arange(len(array) + 1, dtype=np.int64) * array.type.byte_width
    else:
        buffer = array.buffers()[2]
        data = np.empty(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)
        offsets = offsets_of(array)
    kernels.find_string_bounds(offsets, data, valid, starts, lower, upper)

    def key(index: int) -> bytes | None:
        if index < 0:
            return None
        start, end = int(offsets[index]), int(offsets[index + 1])
        return data[start : min(end, start + LONGEST_BOUND + 1)].tobytes()

    return list(map(key, lower.tolist())), list(map(key, upper.tolist())), [0] * len(lower)


def is_text(key: bytes) -> bool:
    """Return whether an unchecked byte string is UTF-8."""
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True


def to_arrow(keys: Sequence[Key | None], arrow_type: pa.DataType) -> pa.Array:
    """Convert keys to the values that they represent, None to null.

    Parameters
    ----------
    keys : sequence of int or bytes or None
        Keys of the values; those of strings are UTF-8.
    arrow_type : pa.DataType
        An ordered type.
    """
    if _is_bytes(arrow_type):
        return pa.array(keys, pa.large_binary() if arrow_type in _LARGE else pa.binary()).cast(arrow_type)
    has_nulls = None in keys
    numbers: list[Any] = [0 if key is None else key for key in keys] if has_nulls else list(keys)
    mask = np.array([key is None for key in keys], np.bool_) if has_nulls else None
    if pa.types.is_boolean(arrow_type):
        return pa.array(np.array(numbers, np.bool_), mask=mask)
    stored = stored_numbers(numbers, arrow_type)
    bitmap = None if mask is None else pa.py_buffer(np.packbits(~mask, bitorder="little"))
    return pa.Array.from_buffers(arrow_type, len(numbers), [bitmap, pa.py_buffer(stored)])


def stored_numbers(keys: Sequence[Any], arrow_type: pa.DataType) -> npt.NDArray[Any]:
    """Return the values that keys represent as they are in memory.

    Parameters
    ----------
    keys : sequence of int
    arrow_type : pa.DataType
        An ordered type of fixed width, not booleans.
    """
    if pa.types.is_decimal(arrow_type):
        width = arrow_type.bit_width // 8
        return np.frombuffer(b"".join(key.to_bytes(width, sys.byteorder, signed=True) for key in keys), np.uint8)
    if pa.types.is_floating(arrow_type):
        return _bits_of(np.array(keys, _SIGNED[arrow_type.bit_width]))
    return np.array(keys, f"{'u' if pa.types.is_unsigned_integer(arrow_type) else 'i'}{arrow_type.bit_width // 8}")


_LARGE = (pa.large_string(), pa.large_binary())


def _bits_of(keys: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the bits of floating-point numbers by their keys."""
    bits: npt.NDArray[Any] = keys ^ ((keys >> (keys.itemsize * 8 - 1)) & np.iinfo(keys.dtype).max)
    return bits
