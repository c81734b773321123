"""Arrow arrays without nesting <-> blocks of values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_format.compression import packed_struct, variable_packed_struct
from lance_format.compression.fixed_size_list import join_rows, split_rows
from lance_format.data_block import (
    MAX_INT32,
    Bytes,
    DataBlock,
    DictionaryBlock,
    FixedSizeListBlock,
    FixedWidthBlock,
    ListLevel,
    ListShape,
    PackedStructBlock,
    ValueBlock,
    ValueShape,
    VariableWidthBlock,
    aligned,
)
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.extension_types import map_leaf_types, storage_of
from lance_format.file.columns import dictionaries
from lance_format.file.columns.value_checks import check_read, check_written, is_utf8
from lance_format.file.columns.zeroing import zero_nulls
from lance_format.kernels.compression import variable as kernels
from lance_format.list_items import offsets_of
from lance_format.logical_types import stored_leaf_type
from lance_format.memory import empty
from lance_format.structural.rep_def import Validity

_UTF8 = (pa.string(), pa.large_string())
_SHAPES: dict[pa.DataType, ValueShape] = {
    pa.bool_(): ValueShape(bits_per_value=1),
    pa.string(): ValueShape(bits_per_offset=32),
    pa.binary(): ValueShape(bits_per_offset=32),
    pa.large_string(): ValueShape(bits_per_offset=64),
    pa.large_binary(): ValueShape(bits_per_offset=64),
}
_OFFSET_BYTES = {pa.string(): 4, pa.binary(): 4, pa.large_string(): 8, pa.large_binary(): 8}
_MAX_NULL_BYTES = 2**30
NULL_SHAPE = ValueShape()
"""The shape of the null type and of structs without fields, which have no values."""
_UNPACKABLE = (NULL_SHAPE, *(ValueShape(bits_per_value=bits) for bits in (0, 1)))


FIXED_SIZE_LIST_SHAPE = ValueShape()
"""The shape of fixed-size lists; each page describes its rows."""
PACKED_SHAPE = ValueShape()
"""The shape of packed structs; each page describes its rows."""
BLOB_SHAPE = ValueShape()
"""The shape of descriptions that are written in the blob layout."""


def is_empty_struct(arrow_type: pa.DataType) -> bool:
    """Return whether a type is a struct without fields."""
    return bool(pa.types.is_struct(arrow_type) and arrow_type.num_fields == 0)


def shape_of(arrow_type: pa.DataType, name: str) -> ValueShape:
    """Return the kind of block of the values of a leaf column.

    Raises
    ------
    NotSupportedError
        If leaves of this type can be neither read nor written yet.
    """
    if pa.types.is_null(arrow_type) or is_empty_struct(arrow_type):
        return NULL_SHAPE
    shape = _SHAPES.get(arrow_type)
    if shape is not None:
        return shape
    if pa.types.is_fixed_size_list(arrow_type):
        item_type = innermost(arrow_type)
        if pa.types.is_dictionary(item_type) or not shape_of(item_type, name).bits_per_value:
            raise NotSupportedError(f"column {name!r} is a {arrow_type}, which Lance cannot store")
        return FIXED_SIZE_LIST_SHAPE
    if pa.types.is_dictionary(arrow_type):
        if pa.types.is_nested(arrow_type.value_type) or pa.types.is_dictionary(arrow_type.value_type):
            raise NotSupportedError(f"column {name!r} is a {arrow_type}, which Lance cannot store")
        return shape_of(arrow_type.value_type, name)
    if pa.types.is_struct(arrow_type):
        for field in arrow_type:
            unpackable = shape_of(innermost(field.type), name) in _UNPACKABLE
            if unpackable or pa.types.is_dictionary(field.type):
                raise NotSupportedError(
                    f"column {name!r} is a packed struct with a {field.type}, which cannot be packed"
                )
        return PACKED_SHAPE
    if pa.types.is_nested(arrow_type):
        raise NotSupportedError(f"column {name!r} has type {arrow_type}, which is not supported yet")
    return ValueShape(bits_per_value=arrow_type.bit_width)


def build_array(
    values: ValueBlock | None,
    validity: Validity | pa.Buffer | None,
    num_values: int,
    arrow_type: pa.DataType,
    shape: ValueShape,
) -> pa.Array:
    """Build an array from the values of a leaf.

    Parameters
    ----------
    values : ValueBlock or None
        The values; None if the type has none.
    validity : bool[num_values], pa.Buffer or None
        Validity of the values, or its bitmap; None if all are valid.
    num_values : int
    arrow_type : pa.DataType
    shape : ValueShape

    Raises
    ------
    CorruptFileError
        If the values are not of the type, such as strings that are not UTF-8.
    """
    if values is None:
        if num_values * bytes_per_slot(arrow_type) > _MAX_NULL_BYTES:
            raise NotSupportedError(f"{num_values} nulls of type {arrow_type} take too much memory; read fewer at once")
        return pa.nulls(num_values, arrow_type)
    if pa.types.is_dictionary(arrow_type):
        return _build_dictionaries(values, validity, num_values, arrow_type, shape)
    items = None
    if isinstance(values, DictionaryBlock):
        items, values = values.items, values.look_up()
    if isinstance(values, FixedSizeListBlock):
        return _build_lists(values, validity, num_values, arrow_type)
    if isinstance(values, PackedStructBlock):
        return _build_structs(values, validity, num_values, arrow_type)
    if shape.bits_per_value == 1 and isinstance(values, FixedWidthBlock) and values.bits_per_value == 8:
        bits = np.packbits(values.data[: values.num_values], bitorder="little")  # full-zip pages have whole bytes only
        values = FixedWidthBlock(bits, 1, values.num_values)
    if shape is NULL_SHAPE or not shape.matches(values) or values.num_values != num_values:
        raise CorruptFileError(f"a page does not hold {num_values} values of type {arrow_type}")
    if isinstance(values, FixedWidthBlock):
        array = _build(arrow_type, num_values, validity, [aligned(values.data)])
        if pa.types.is_decimal(arrow_type):
            check_read(array)
        return array
    if isinstance(items, VariableWidthBlock) and items.size_bytes < values.size_bytes:
        return _build_strings(values, validity, arrow_type, shape, distinct=items)
    return _build_strings(values, validity, arrow_type, shape, distinct=values)


def bytes_per_slot(arrow_type: pa.DataType) -> float:
    """Return what every slot of a leaf's array takes, null or not; of byte strings, the offset."""
    if pa.types.is_fixed_size_list(arrow_type):
        return float(arrow_type.list_size * bytes_per_slot(arrow_type.value_type))
    if pa.types.is_fixed_size_binary(arrow_type):
        return float(arrow_type.byte_width)
    if pa.types.is_struct(arrow_type):
        return sum(bytes_per_slot(field.type) for field in arrow_type)
    return 0 if pa.types.is_null(arrow_type) else _OFFSET_BYTES.get(arrow_type) or arrow_type.bit_width / 8


def _build_dictionaries(
    values: ValueBlock,
    validity: Validity | pa.Buffer | None,
    num_values: int,
    arrow_type: pa.DictionaryType,
    shape: ValueShape,
) -> pa.DictionaryArray:
    value_type = arrow_type.value_type
    if not isinstance(values, DictionaryBlock):
        return _encode_dictionary(build_array(values, validity, num_values, value_type, shape), arrow_type)
    if values.num_values != num_values:
        raise CorruptFileError(f"a page does not hold {num_values} values of type {arrow_type}")
    words, items = values.words, values.items
    if items.num_values > num_values:  # a few rows of a page need few of its items
        used, words = np.unique(words, return_inverse=True)
        items = items.take(used)
    item_array = build_array(items, None, items.num_values, value_type, shape)
    if values.is_joined:
        words, item_array = dictionaries.distinct(words, item_array)
    return dictionaries.build(words, bitmap(validity), item_array, arrow_type)


def _encode_dictionary(array: pa.Array, arrow_type: pa.DictionaryType) -> pa.DictionaryArray:
    try:
        return array.dictionary_encode().cast(arrow_type)
    except pa.ArrowNotImplementedError as error:
        raise NotSupportedError(f"values of type {arrow_type} cannot be read yet: {error}") from error
    except pa.ArrowInvalid as error:
        raise CorruptFileError(f"a page holds more distinct values than {arrow_type} has indices: {error}") from error


def _build_lists(
    values: FixedSizeListBlock, validity: Validity | pa.Buffer | None, num_values: int, arrow_type: pa.DataType
) -> pa.Array:
    types = [arrow_type]
    while pa.types.is_fixed_size_list(types[-1]):
        types.append(types[-1].value_type)
    levels, has_items = values.shape.levels, values.shape.bits_per_item > 0
    if not has_items:  # Nulls may stand for inner lists as a whole.
        types = types[: len(levels) + 1]
    item_type = types.pop()
    expected = [list_type.list_size for list_type in types]
    if [level.dimension for level in levels] != expected or (
        has_items and values.shape.bits_per_item != item_type.bit_width
    ):
        raise CorruptFileError(f"a page holds lists of {[level.dimension for level in levels]} items, not {arrow_type}")
    if values.num_values != num_values:
        raise CorruptFileError(f"a page holds {values.num_values} lists instead of {num_values}")
    validities, items = split_rows(values.rows, values.shape)
    bitmaps = iter([pa.py_buffer(found) for found in validities])
    inner = [next(bitmaps) if level.has_validity else None for level in levels]
    if has_items:
        array = pa.Array.from_buffers(item_type, items.num_values, [inner[-1], pa.py_buffer(aligned(items.data))])
    else:
        array = _nulls(validities[-1], items.num_values, item_type)
    if has_items and pa.types.is_decimal(item_type):
        check_read(array)
    for list_type, found in zip(reversed(types), [*reversed(inner[:-1]), bitmap(validity)], strict=True):
        array = pa.Array.from_buffers(list_type, len(array) // list_type.list_size, [found], children=[array])
    return array


def _nulls(validity: Bytes, num_items: int, item_type: pa.DataType) -> pa.Array:
    """Return the items of lists that hold nothing but nulls, as a bitmap says too."""
    if np.unpackbits(validity, count=num_items, bitorder="little").any():
        raise CorruptFileError("items of fixed-size lists have no bytes, and are not null")
    if num_items * bytes_per_slot(item_type) > _MAX_NULL_BYTES:
        raise NotSupportedError(f"{num_items} nulls of type {item_type} take too much memory; read fewer at once")
    return pa.nulls(num_items, item_type)


def _build_structs(
    values: PackedStructBlock, validity: Validity | pa.Buffer | None, num_values: int, arrow_type: pa.StructType
) -> pa.Array:
    fields = values.codec.split_rows(values.rows)
    if len(fields) != arrow_type.num_fields or values.num_values != num_values:
        raise CorruptFileError(f"a page does not hold {num_values} packed structs of {arrow_type.num_fields} fields")
    if isinstance(values.rows, VariableWidthBlock):
        assert not isinstance(validity, pa.Buffer)
        is_null = np.zeros(num_values, np.bool_) if validity is None else ~validity
        if (np.diff(values.rows.offsets)[~is_null] == 0).any():
            raise CorruptFileError("a packed struct that is not null has no bytes")
    children = [
        build_array(block, None, num_values, field.type, shape_of(field.type, field.name))
        for field, block in zip(arrow_type, fields, strict=True)
    ]
    return pa.Array.from_buffers(arrow_type, num_values, [bitmap(validity)], children=children)


def innermost(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type of the items of fixed-size lists, or a type itself that is none."""
    while pa.types.is_fixed_size_list(arrow_type):
        arrow_type = arrow_type.value_type
    return arrow_type


def _build_strings(
    values: VariableWidthBlock,
    validity: Validity | pa.Buffer | None,
    arrow_type: pa.DataType,
    shape: ValueShape,
    *,
    distinct: VariableWidthBlock,
) -> pa.Array:
    """Build an array of byte strings, each of which is also one of `distinct`."""
    if values.bits_per_offset == shape.bits_per_offset:
        array = _build(arrow_type, values.num_values, validity, [values.offsets.view(np.uint8), values.data])
        if arrow_type in _UTF8 and not is_utf8(distinct):
            check_read(array)
        return array
    if values.size_bytes > MAX_INT32:
        raise NotSupportedError(f"{values.num_values} values of {arrow_type} have {values.size_bytes} bytes, too many")
    begin = int(values.offsets[0])
    data = values.data[begin : int(values.offsets[-1])]
    narrow = VariableWidthBlock(data, (values.offsets - begin).astype(np.int32))
    return _build_strings(narrow, validity, arrow_type, shape, distinct=distinct)


def _build(
    arrow_type: pa.DataType, num_values: int, validity: Validity | pa.Buffer | None, buffers: list[Bytes]
) -> pa.Array:
    data = [pa.py_buffer(buffer) for buffer in buffers]
    return pa.Array.from_buffers(arrow_type, num_values, [bitmap(validity), *data])


def bitmap(validity: Validity | pa.Buffer | None) -> pa.Buffer | None:
    """Return validity as Arrow has it, which it may be already."""
    if validity is None or isinstance(validity, pa.Buffer):
        return validity
    return pa.py_buffer(np.packbits(validity, bitorder="little"))


def as_stored(array: pa.Array) -> pa.Array:
    """Return an array without extension types and promises of sorted keys, which costs nothing.

    Views, and dictionaries that the format has no name for, become their values, which costs a copy.
    """
    array = storage_of(array)
    stored = map_leaf_types(array.type, stored_leaf_type)
    return array if stored == array.type else array.cast(stored)


def plain(array: pa.Array) -> pa.Array:
    """Return the array without null items of dictionaries."""
    return dictionaries.without_null_items(array) if isinstance(array, pa.DictionaryArray) else array


def validity_of(array: pa.Array) -> Validity | None:
    """Return which slots of an array, which may be a slice, are not null; None if all are."""
    if array.null_count == 0:
        return None
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.bool_)
    return bits_of(array.buffers()[0], array.offset, len(array))


def values_of(array: pa.Array, valid: Validity | None) -> ValueBlock | None:
    """Return the values of an array or slice.

    Invalid values become zeros or empty strings. None for types without values.

    Raises
    ------
    InvalidInputError
        If a value does not fit its type, such as a string that is not UTF-8.
    """
    if pa.types.is_null(array.type) or is_empty_struct(array.type):
        return None
    if pa.types.is_dictionary(array.type):
        items = values_of(array.dictionary, None)
        assert isinstance(items, FixedWidthBlock | VariableWidthBlock)
        return dictionaries.block_of(_fixed_width_of(array.indices, valid), items, valid)
    if pa.types.is_boolean(array.type):
        return _booleans_of(array, valid)
    if array.type in _SHAPES:
        return _strings_of(array, valid)
    if pa.types.is_fixed_size_list(array.type):
        return _lists_of(array, valid)
    if pa.types.is_struct(array.type):
        return _structs_of(array, valid)
    return _fixed_width_of(array, valid)


def _booleans_of(array: pa.Array, valid: Validity | None) -> FixedWidthBlock:
    first, past = array.offset, array.offset + len(array)
    if valid is None and first % 8 == past % 8 == 0:
        return FixedWidthBlock(_bytes(array.buffers()[1])[first // 8 : past // 8], 1, len(array))
    bits = bits_of(array.buffers()[1], array.offset, len(array))
    if valid is not None:
        bits &= valid
    return FixedWidthBlock(np.packbits(bits, bitorder="little"), 1, len(array))


def _structs_of(array: pa.Array, valid: Validity | None) -> PackedStructBlock:
    fields: list[DataBlock] = []
    for field, part in zip(array.type, _children(array), strict=True):
        there = validity_of(part)
        if there is not None and not (there if valid is None else there | ~valid).all():
            raise NotSupportedError(f"field {field.name!r} of a packed struct is null, which cannot be stored")
        block = values_of(part, valid)
        if isinstance(block, FixedSizeListBlock) and not any(level.has_validity for level in block.shape.levels):
            block = block.rows
        if not isinstance(block, FixedWidthBlock | VariableWidthBlock):
            raise NotSupportedError(
                f"field {field.name!r} of a packed struct is a {field.type}, which cannot be packed"
            )
        fields.append(block)
    fixed = [block for block in fields if isinstance(block, FixedWidthBlock)]
    if len(fixed) == len(fields):
        codec = packed_struct.PackedStructDecompressor(tuple(block.bits_per_value for block in fixed))
        return PackedStructBlock(packed_struct.join_rows(fixed), codec)
    return PackedStructBlock(variable_packed_struct.join_rows(fields), variable_packed_struct.codec_of(fields))


def _children(array: pa.StructArray) -> list[pa.Array]:
    return [array.field(index) for index in range(array.type.num_fields)]


def _lists_of(array: pa.Array, valid: Validity | None) -> FixedSizeListBlock:
    levels: list[ListLevel] = []
    validities: list[Bytes] = []
    while pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        array = array.values.slice(array.offset * size, len(array) * size)
        own = validity_of(array)
        outer = None if valid is None else np.repeat(valid, size)
        if own is not None and outer is not None and (own | ~outer).all():
            own = None  # Only items of null lists are null, and these are invisible.
        levels.append(ListLevel(size, own is not None))
        if own is not None:
            validities.append(np.packbits(own, bitorder="little"))
        valid = outer if own is None else own if outer is None else outer & own
    items = values_of(array, valid)
    assert isinstance(items, FixedWidthBlock)
    shape = ListShape(tuple(levels), items.bits_per_value)
    return FixedSizeListBlock(join_rows(validities, items, shape), shape)


def _fixed_width_of(array: pa.Array, valid: Validity | None) -> FixedWidthBlock:
    width = array.type.bit_width // 8
    data = _bytes(array.buffers()[1])[array.offset * width : (array.offset + len(array)) * width]
    if valid is not None and width:
        data = zero_nulls(data, width, valid)
    block = FixedWidthBlock(aligned(data), width * 8, len(array))
    check_written(block, array.type)
    return block


def _strings_of(array: pa.Array, valid: Validity | None) -> VariableWidthBlock:
    offsets = offsets_of(array)
    data = _bytes(array.buffers()[2])
    if valid is not None and kernels.count_null_bytes(offsets, valid):
        out = empty(int(offsets[-1] - offsets[0]), np.uint8)
        out_offsets = empty(offsets.size, offsets.dtype)
        written = kernels.drop_null_bytes(data, offsets, valid, out, out_offsets)
        block = VariableWidthBlock(out[:written], out_offsets)
    else:
        block = VariableWidthBlock(data, offsets)
    check_written(block, array.type)
    return block


def bits_of(buffer: pa.Buffer | None, offset: int, count: int) -> Validity:
    """Copy bits of a buffer into a new array.

    Parameters
    ----------
    buffer : pa.Buffer or None
    offset, count : int
        The first bit, and their number.
    """
    first = offset // 8
    packed = _bytes(buffer)[first : (offset + count + 7) // 8]
    bits = np.unpackbits(packed, count=offset - first * 8 + count, bitorder="little")
    return bits[offset - first * 8 :].view(np.bool_)


def _bytes(buffer: pa.Buffer | None) -> Bytes:
    return np.empty(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)
