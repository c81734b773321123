"""Arrow arrays without nesting <-> decoded arrays of file format 2.0."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_format.array_encodings.array import ArrayShape, DecodedArray, ItemsBlock, pack_validity
from lance_format.array_encodings.blob import FIELDS
from lance_format.data_block import FixedWidthBlock, PackedStructBlock, ValueShape
from lance_format.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_format.file.columns.assembly import bytes_of_strings
from lance_format.file.columns.leaf_columns import Leaf
from lance_format.file.columns.leaves import (
    BLOB_SHAPE,
    build_array,
    is_empty_struct,
    plain,
    shape_of,
    validity_of,
    values_of,
)
from lance_format.file.columns.limits import MAX_OFFSET
from lance_format.structural.rep_def import Validity

NULL_STRUCTS = "null structs, which file format 2.0 cannot hold; write 2.1, or make the fields of the structs null"
"""The end of a sentence that refuses them."""


def array_shape(leaf: Leaf) -> ArrayShape:
    """Return the shape of the values of a leaf.

    Raises
    ------
    NotSupportedError
        If files of format 2.0 cannot hold such values.
    """
    if leaf.shape is BLOB_SHAPE:
        return ArrayShape(ValueShape(), fields=FIELDS)
    return _shape_of(leaf.arrow_type, leaf.name)


def _shape_of(arrow_type: pa.DataType, name: str) -> ArrayShape:
    if pa.types.is_fixed_size_list(arrow_type):
        items = _shape_of(arrow_type.value_type, name)
        return ArrayShape(ValueShape(), items=items, dimension=arrow_type.list_size)
    if pa.types.is_dictionary(arrow_type):
        return ArrayShape(shape_of(arrow_type.value_type, name), is_dictionary=True)
    if pa.types.is_struct(arrow_type) and arrow_type.num_fields:
        return ArrayShape(ValueShape(), fields=tuple(_shape_of(field.type, name) for field in arrow_type))
    return ArrayShape(shape_of(arrow_type, name))


def build_values(decoded: DecodedArray, leaf: Leaf) -> list[pa.Array]:
    """Build the array of a leaf's rows; several where the offsets of one would overflow.

    Raises
    ------
    CorruptFileError
        If the values are not of the leaf's type.
    NotSupportedError
        If the offsets of a single row overflow.
    """
    values = decoded.values
    is_narrow = leaf.shape.bits_per_offset == 32
    if is_narrow and not isinstance(values, ItemsBlock) and bytes_of_strings(values, leaf.arrow_type) > MAX_OFFSET:
        middle = decoded.num_rows // 2
        if middle == 0:
            raise NotSupportedError(f"a row has more than {MAX_OFFSET} bytes, more than its type can hold")
        halves = (_slice(decoded, 0, middle), _slice(decoded, middle, decoded.num_rows))
        return [array for half in halves for array in build_values(half, leaf)]
    if is_empty_struct(leaf.arrow_type):
        return [pa.Array.from_buffers(leaf.arrow_type, decoded.num_rows, [None])]
    return [_build(decoded, leaf.arrow_type, leaf.shape)]


def _slice(decoded: DecodedArray, start: int, stop: int) -> DecodedArray:
    assert decoded.values is not None
    assert not isinstance(decoded.values, ItemsBlock)
    validity = None if decoded.validity is None else decoded.validity.slice(start, stop)
    return DecodedArray(decoded.values.slice(start, stop), validity, stop - start)


def _build(decoded: DecodedArray, arrow_type: pa.DataType, shape: ValueShape) -> pa.Array:
    values = decoded.values
    if isinstance(values, ItemsBlock):
        item_type = arrow_type.value_type
        items = _build(values.items, item_type, shape_of(item_type, ""))
        return pa.Array.from_buffers(arrow_type, decoded.num_rows, [validity_buffer(decoded)], children=[items])
    if isinstance(values, PackedStructBlock):
        return _build_struct(values, decoded, arrow_type)
    return build_array(values, validity_buffer(decoded), decoded.num_rows, arrow_type, shape)


def _build_struct(values: PackedStructBlock, decoded: DecodedArray, arrow_type: pa.StructType) -> pa.Array:
    children = []
    for field, block in zip(arrow_type, values.codec.split_rows(values.rows), strict=True):
        if not isinstance(block, FixedWidthBlock):
            raise CorruptFileError("the fields of a packed struct have no fixed width")
        children.append(_build_field(block, field.type))
    return pa.Array.from_buffers(arrow_type, decoded.num_rows, [validity_buffer(decoded)], children=children)


def _build_field(block: FixedWidthBlock, arrow_type: pa.DataType) -> pa.Array:
    if pa.types.is_fixed_size_list(arrow_type):
        size = arrow_type.list_size
        items = FixedWidthBlock(block.data, block.bits_per_value // size, block.num_values * size)
        child = _build_field(items, arrow_type.value_type)
        return pa.Array.from_buffers(arrow_type, block.num_values, [None], children=[child])
    return build_array(block, None, block.num_values, arrow_type, shape_of(arrow_type, ""))


def validity_buffer(decoded: DecodedArray) -> pa.Buffer | None:
    """Return the validity of rows as Arrow has it."""
    return None if decoded.validity is None else pa.py_buffer(decoded.validity.data)


def take_apart(array: pa.Array, leaf: Leaf) -> DecodedArray:
    """Return the values of a leaf, and which are null; the array may be a slice and hold anything beneath its nulls.

    Raises
    ------
    InvalidInputError
        If a value is not of its type.
    NotSupportedError
        If a packed struct, or a field of it, is null.
    """
    if leaf.field.logical_type == "struct" and leaf.shape is not BLOB_SHAPE and array.null_count:
        raise NotSupportedError(f"column {leaf.name!r} has {array.null_count} {NULL_STRUCTS}")
    try:
        return _take_apart(plain(array), None)
    except InvalidInputError as error:
        raise InvalidInputError(f"column {leaf.name!r}: {error}") from error


def _take_apart(array: pa.Array, outer: Validity | None) -> DecodedArray:
    """Take apart values; those that are not valid by `outer` are ignored."""
    own = validity_of(array)
    valid = own if outer is None else outer if own is None else own & outer
    validity = None if own is None else pack_validity(own)
    if not pa.types.is_fixed_size_list(array.type):
        return DecodedArray(values_of(array, valid), validity, len(array))
    size = array.type.list_size
    items = array.values.slice(array.offset * size, len(array) * size)
    inner = _take_apart(items, None if valid is None else np.repeat(valid, size))
    return DecodedArray(ItemsBlock(inner), validity, len(array))
