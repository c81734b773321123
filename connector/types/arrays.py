"""Conversion of arrays to another Arrow type with the same values, inside of lists, maps and structs too.

An array of the same type is returned unchanged. One whose inner fields only have other names keeps its buffers and gets
a new type. If inner values are converted, offsets are kept, or cut down to the rows of a slice.

| | |
|---|---|
| list, large_list, map | offsets kept, entries converted |
| fixed_size_list to list | offsets computed |
| list to fixed_size_list | the length of every row checked, null rows filled up with nulls |
| struct | fields converted, found by name |
| anything else | converted like a column |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format import InvalidInputError
from lance_format.arrow_rows import keep_rows, take_rows
from lance_format.lazy_dataclasses import dataclass

_NANOSECONDS_PER_MICROSECOND = 1_000
_MILLISECONDS_PER_DAY = 86_400_000


class ConversionError(Exception):
    """Values do not fit a type.

    Parameters
    ----------
    path : str
        Path of the misfit: the name of the column, and those of the nested fields.
    source, target : pyarrow.DataType
    cause : Exception
    """

    def __init__(self, path: str, source: pa.DataType, target: pa.DataType, cause: Exception) -> None:
        super().__init__(f"column {path!r}: {source} to {target}: {cause}")
        self.path = path
        self.source = source
        self.target = target
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Origin:
    """The field of an array that a field of the result has its values from.

    Parameters
    ----------
    name : str
    below : mapping of str to Origin, optional
        Those of the fields below, by the names of the result; the others are null. Lists have a field `element`, maps
        `key` and `value`. None if all fields below have their own names.
    """

    name: str
    below: Mapping[str, Origin] | None = None


def convert(array: pa.Array, target: pa.DataType, path: str, below: Mapping[str, Origin] | None = None) -> pa.Array:
    """Convert an array, copying only if necessary.

    Parameters
    ----------
    array : pyarrow.Array
    target : pyarrow.DataType
        Type of the result, except for the names and metadata of fields inside of lists and maps.
    path : str
        Names of the column and of the nested fields, for messages.
    below : mapping of str to Origin, optional
        The fields of the array that those below the column have their values from; see `Origin`.

    Returns
    -------
    pyarrow.Array

    Raises
    ------
    ConversionError
        If a value does not fit.
    InvalidInputError
        If an array does not have the length of the vector.
    """
    source = array.type
    if isinstance(source, pa.BaseExtensionType):
        return convert(array.storage, target, path, below)
    if source == target and below is None:
        return array
    if pa.types.is_dictionary(source):
        return convert(array.dictionary_decode(), target, path)
    try:
        if pa.types.is_struct(source) and pa.types.is_struct(target):
            return _convert_struct(array, target, path, below)
        if pa.types.is_map(source) and pa.types.is_map(target):
            return _convert_map(array, target, path, below)
        if has_items(source) and pa.types.is_fixed_size_list(target):
            return _to_vectors(array, target, path, _below(below, "element"))
        if has_items(source) and has_items(target):
            return _convert_list(array, target, path, _below(below, "element"))
        return _convert_values(array, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as cause:
        raise ConversionError(path, source, target, cause) from cause


def find_nulls(array: pa.Array, field: pa.Field) -> str | None:
    """Return the path of a non-nullable field that is null in some row; None if there is none.

    Parameters
    ----------
    array : pyarrow.Array
    field : pyarrow.Field
        A field of the same type. Nested nulls inside of null parents are ignored.
    """
    if _find_nulls(array, field, field.name, exact=False) is None:
        return None
    return _find_nulls(array, field, field.name, exact=True)


def _find_nulls(array: pa.Array, field: pa.Field, path: str, *, exact: bool) -> str | None:
    """Look for nulls. If not `exact`, nulls inside of nulls are found too, but nothing is copied."""
    if not field.nullable and array.null_count:
        return path
    if not _may_lack_nulls(field.type):
        return None
    if exact and array.null_count:
        array = keep_rows(array, array.is_valid())
    if pa.types.is_struct(field.type):
        children = [(child, array.field(index), child.name) for index, child in enumerate(field.type)]
    else:
        items = items_of(array)
        if pa.types.is_map(field.type):
            key, value = field.type.key_field, field.type.item_field
            children = [(key, items.field(0), "key"), (value, items.field(1), "value")]
        else:
            children = [(field.type.value_field, items, "element")]
    found = (_find_nulls(child, part, f"{path}.{name}", exact=exact) for part, child, name in children)
    return next((name for name in found if name is not None), None)


def _may_lack_nulls(arrow_type: pa.DataType) -> bool:
    """Return whether a field inside of a type is declared not nullable."""
    if pa.types.is_map(arrow_type):
        return True
    if pa.types.is_struct(arrow_type):
        children = list(arrow_type)
    elif has_items(arrow_type):
        children = [arrow_type.value_field]
    else:
        return False
    return any(not child.nullable or _may_lack_nulls(child.type) for child in children)


def is_rounded(stored: pa.DataType) -> bool:
    """Return whether Spark sees values of a stored type rounded, also those of nested fields."""
    if pa.types.is_timestamp(stored) or pa.types.is_duration(stored):
        return bool(stored.unit == "ns")
    return pa.types.is_date64(stored) or any(is_rounded(stored.field(i).type) for i in range(stored.num_fields))


def has_items(arrow_type: pa.DataType) -> bool:
    """Return whether values of a type are lists of any kind, maps not among them."""
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_kind(arrow_type) for is_kind in kinds)


def items_of(array: pa.Array) -> pa.Array:
    """Return the items of all rows, or the entries of maps, without those outside of a slice and without a copy."""
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        return array.values.slice(array.offset * size, len(array) * size)
    offsets = offsets_of(array)
    return array.values.slice(offsets[0], offsets[-1] - offsets[0])


def offsets_of(array: pa.Array) -> npt.NDArray[np.signedinteger]:
    """Return the offsets of lists: the start of each row, and the end of the last."""
    if not len(array):
        return np.zeros(1, np.int32)
    dtype = np.dtype(np.int64 if pa.types.is_large_list(array.type) else np.int32)
    return np.frombuffer(array.buffers()[1], dtype, len(array) + 1, array.offset * dtype.itemsize)


def valid_rows(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which rows are not null, `bool[num_rows]`."""
    valid: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _validity(array: pa.Array) -> pa.Buffer | None:
    """Return the validity bitmap, starting at its first bit; None if there are no nulls."""
    return array.is_valid().buffers()[1] if array.null_count else None


def _below(origins: Mapping[str, Origin] | None, name: str) -> Mapping[str, Origin] | None:
    return None if origins is None else origins[name].below


def _convert_struct(
    array: pa.Array, target: pa.StructType, path: str, below: Mapping[str, Origin] | None = None
) -> pa.Array:
    children = []
    for field in target:
        origin = Origin(field.name) if below is None else below.get(field.name)
        if origin is None:
            children.append(pa.nulls(len(array), field.type))
            continue
        index = array.type.get_field_index(origin.name)
        if index < 0:
            raise pa.ArrowInvalid(f"there is no field {origin.name!r}")
        children.append(convert(array.field(index), field.type, f"{path}.{field.name}", origin.below))
    return with_fields(array, target, children)


def with_fields(array: pa.Array, target: pa.StructType, children: Sequence[pa.Array]) -> pa.Array:
    """Return structs with other fields, which are null where those of `array` are.

    Parameters
    ----------
    array : pyarrow.Array
        Structs.
    target : pyarrow.StructType
    children : sequence of pyarrow.Array
        The fields, with a value for every struct.
    """
    return pa.Array.from_buffers(target, len(array), [_validity(array)], array.null_count, 0, children)


def _convert_map(array: pa.Array, target: pa.MapType, path: str, below: Mapping[str, Origin] | None = None) -> pa.Array:
    items = items_of(array)
    key = convert(items.field(0), target.key_type, f"{path}.key", _below(below, "key"))
    value = convert(items.field(1), target.item_type, f"{path}.value", _below(below, "value"))
    entries_type = pa.struct([target.key_field, target.item_field])
    entries = pa.Array.from_buffers(entries_type, len(items), [None], 0, 0, [key, value])
    return _with_offsets(array, target, offsets_of(array), entries)


def _convert_list(
    array: pa.Array, target: pa.DataType, path: str, below: Mapping[str, Origin] | None = None
) -> pa.Array:
    items = convert(items_of(array), target.value_type, f"{path}.element", below)
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        return _with_offsets(array, target, np.arange(len(array) + 1, dtype=np.int64) * size, items)
    return _with_offsets(array, target, offsets_of(array), items)


def _with_offsets(
    array: pa.Array, target: pa.DataType, offsets: npt.NDArray[np.signedinteger], items: pa.Array
) -> pa.Array:
    """Return rows of the items of `array` from its first row on."""
    dtype: np.dtype[np.signedinteger] = np.dtype(np.int64 if pa.types.is_large_list(target) else np.int32)
    starts = offsets - offsets[0] if offsets[0] else offsets
    if starts[-1] > np.iinfo(dtype).max:
        raise pa.ArrowInvalid(f"{starts[-1]} values in {len(array)} rows; read fewer rows in a batch")
    buffers = [_validity(array), pa.py_buffer(np.ascontiguousarray(starts, dtype=dtype))]
    return pa.Array.from_buffers(target, len(array), buffers, array.null_count, 0, [items])


def _to_vectors(
    array: pa.Array, target: pa.FixedSizeListType, path: str, below: Mapping[str, Origin] | None = None
) -> pa.Array:
    size = target.list_size
    items = convert(items_of(array), target.value_type, f"{path}.element", below)
    if pa.types.is_fixed_size_list(array.type):
        if array.type.list_size != size:
            raise InvalidInputError(_wrong_length(path, array.type.list_size, size))
    else:
        offsets = offsets_of(array)
        lengths = np.diff(offsets)
        valid = valid_rows(array)
        wrong = valid & (lengths != size)
        if wrong.any():
            raise InvalidInputError(_wrong_length(path, int(lengths[wrong.argmax()]), size))
        if array.null_count:
            items = _fill_up(items, offsets[:-1] - offsets[0], valid, size)
    return pa.Array.from_buffers(target, len(array), [_validity(array)], array.null_count, 0, [items])


def _wrong_length(path: str, length: int, size: int) -> str:
    return f"column {path!r} has an array of {length} values, where vectors of {size} values are stored"


def _fill_up(
    items: pa.Array, starts: npt.NDArray[np.signedinteger], valid: npt.NDArray[np.bool_], size: int
) -> pa.Array:
    """Return `size` items per row; those of null rows are null."""
    indices = starts.astype(np.int64)[:, None] + np.arange(size)
    absent = np.repeat(~valid, size)
    return take_rows(items, pa.array(indices.ravel(), mask=absent))


def _convert_values(array: pa.Array, target: pa.DataType) -> pa.Array:
    source = array.type
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target) and (source.unit, target.unit) == ("ns", "us"):
        return _divide(array, _NANOSECONDS_PER_MICROSECOND, np.dtype(np.int64), target)
    if pa.types.is_duration(source) and pa.types.is_duration(target) and (source.unit, target.unit) == ("ns", "us"):
        return _divide(array, _NANOSECONDS_PER_MICROSECOND, np.dtype(np.int64), target)
    if pa.types.is_date64(source) and pa.types.is_date32(target):
        return _divide(array, _MILLISECONDS_PER_DAY, np.dtype(np.int32), target)
    if pa.types.is_float16(target) and source in (pa.float32(), pa.float64()):
        return _round_to_halves(array)
    if pa.types.is_dictionary(target):  # Arrow's own casts make dictionaries of text and bytes only.
        return _convert_values(array, target.value_type).dictionary_encode().cast(target)
    return array.cast(target)


def _round_to_halves(array: pa.Array) -> pa.Array:
    """Round numbers to 16 bits; Arrow's own cast makes those infinite that exceed 16 bits."""
    halves = array.cast(pa.float16())
    overflows = pc.and_not(pc.is_inf(halves.cast(pa.float32())), pc.is_inf(array))
    if pc.any(overflows).as_py():
        raise pa.ArrowInvalid(f"a value is out of range of {halves.type}")
    return halves


def _divide(array: pa.Array, divisor: int, dtype: np.dtype[np.signedinteger], target: pa.DataType) -> pa.Array:
    """Divide int64 values, rounding down; Arrow's own casts round towards zero, which shifts times before 1970."""
    if not len(array):
        return pa.array([], target)
    values: npt.NDArray[np.int64] = np.frombuffer(array.buffers()[1], np.int64, len(array), array.offset * 8)
    quotients = np.floor_divide(values, divisor)
    limits = np.iinfo(dtype)
    outside = (quotients < limits.min) | (quotients > limits.max)
    if outside.any() and (outside & valid_rows(array)).any():
        raise pa.ArrowInvalid(f"a value is out of range of {target}")
    data = pa.py_buffer(np.ascontiguousarray(quotients, dtype=dtype))
    return pa.Array.from_buffers(target, len(array), [_validity(array), data], array.null_count)
