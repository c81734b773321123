"""Building Arrow arrays from the leaves of a column on reading.

`build_leaf` builds, for each leaf, an array that is nested like the column but has only this leaf; `merge` unites the
arrays of a column. The intermediate form is an ordinary Arrow array, which can be sliced and concatenated independently
of the leaf's pages.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_format.data_block import (
    DictionaryBlock,
    PackedStructBlock,
    ValueBlock,
    VariableWidthBlock,
)
from lance_format.datatypes import Field
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.file.columns import limits
from lance_format.file.columns.leaf_columns import Kind, Leaf, has_large_offsets, kind_of
from lance_format.file.columns.leaves import (
    bitmap,
    build_array,
    is_empty_struct,
    validity_of,
)
from lance_format.list_items import offsets_of
from lance_format.structural.page import DecodedRows
from lance_format.structural.rep_def import (
    Layer,
    unravel,
    visible,
)


def build_leaf(rows: DecodedRows, leaf: Leaf) -> list[pa.Array]:
    """Build the array of rows that is nested as the column is and has this leaf only.

    Several arrays where the offsets of one would overflow.

    Raises
    ------
    CorruptFileError
        If the layers or values are not those of the column.
    NotSupportedError
        If the offsets of a single row overflow.
    """
    if is_empty_struct(leaf.arrow_type):
        return [_build_empty(rows, leaf)]
    if len(leaf.path) != len(rows.stack.layers) or leaf.lists != rows.stack.lists:
        raise CorruptFileError(f"a page has layers {rows.stack.layers}, which are not those of the column")
    layers = unravel(rows.levels, rows.stack, leaf.dimensions)
    if _overflows(rows.values, layers, leaf):
        return [array for half in _halve(rows, leaf) for array in build_leaf(half, leaf)]
    array = build_array(rows.values, layers[0].validity, layers[0].num_slots, leaf.arrow_type, leaf.shape)
    for field, layer in zip(leaf.path[-2::-1], layers[1:], strict=True):
        array = wrap(array, field, layer)
    return [array]


def _build_empty(rows: DecodedRows, leaf: Leaf) -> pa.Array:
    """Build valid structs without fields: their pages hold only the number of rows."""
    in_structs = all(kind_of(field) is Kind.STRUCT for field in leaf.path[:-1])
    if rows.values is not None or rows.stack.lists or not in_structs:
        raise CorruptFileError("a struct without fields has values or lists")
    num_rows = rows.levels.num_levels
    array = pa.Array.from_buffers(leaf.arrow_type, num_rows, [None])
    for field in reversed(leaf.path[:-1]):
        array = wrap(array, field, Layer(None, None, num_rows))
    return array


def wrap(array: pa.Array, field: Field, layer: Layer) -> pa.Array:
    """Wrap an array in the layer of a struct, list or map, as its only child.

    Parameters
    ----------
    array : pa.Array
    field : Field
        The struct, list or map.
    layer : Layer
        Its validity and offsets.
    """
    kind = kind_of(field)
    buffers = [bitmap(layer.validity)]
    inner = pa.field("", array.type)
    if kind is Kind.STRUCT:
        nested = pa.struct([inner])
    elif kind is Kind.FIXED_SIZE_LIST:
        nested = pa.list_(inner, field.to_arrow_type().list_size)
    else:
        large = has_large_offsets(field)
        nested = pa.large_list(inner) if large else pa.list_(inner)
        assert layer.offsets is not None
        buffers.append(pa.py_buffer(layer.offsets.astype(np.int64 if large else np.int32)))
    return pa.Array.from_buffers(nested, layer.num_slots, buffers, children=[array])


def _overflows(values: ValueBlock | None, layers: Sequence[Layer], leaf: Leaf) -> bool:
    """Return whether 32-bit offsets, of byte strings or of lists, do not suffice."""
    if leaf.shape.bits_per_offset != 64 and bytes_of_strings(values, leaf.arrow_type) > limits.MAX_OFFSET:
        return True
    return bool(leaf.lists) and any(
        layer.offsets is not None and int(layer.offsets[-1]) > limits.MAX_OFFSET and not has_large_offsets(field)
        for field, layer in zip(reversed(leaf.path), layers, strict=True)
    )


def bytes_of_strings(values: ValueBlock | None, arrow_type: pa.DataType) -> int:
    """Return the bytes of values if stored as separate byte strings; an upper bound if they share bytes."""
    if isinstance(values, DictionaryBlock):
        if pa.types.is_dictionary(arrow_type) or not isinstance(values.items, VariableWidthBlock):
            return 0
        most = values.num_values * values.items.longest
        if most <= limits.MAX_OFFSET:
            return most
        return int(np.diff(values.items.offsets)[values.words].sum(dtype=np.int64))
    if isinstance(values, PackedStructBlock):
        values = values.rows
    return values.size_bytes if isinstance(values, VariableWidthBlock) else 0


def _halve(rows: DecodedRows, leaf: Leaf) -> tuple[DecodedRows, DecodedRows]:
    """Cut decoded rows in two.

    Raises
    ------
    NotSupportedError
        If there is one only.
    """
    levels, stack = rows.levels, rows.stack
    starts = np.arange(levels.num_levels)
    if levels.repetition is not None:
        starts = np.flatnonzero(levels.repetition == stack.max_repetition)
    first = len(starts) // leaf.items_per_row // 2 * leaf.items_per_row
    if first == 0:
        raise NotSupportedError(f"a row has more than {limits.MAX_OFFSET} bytes or items, more than its type can hold")
    cut = int(starts[first])
    seen = visible(levels.definition, stack)
    value = cut if seen is None else int(np.count_nonzero(seen[:cut]))
    before = after = None
    if rows.values is not None:
        before, after = rows.values.slice(0, value), rows.values.slice(value, rows.values.num_values)
    return (
        DecodedRows(before, levels.select(0, cut), stack),
        DecodedRows(after, levels.select(cut, levels.num_levels), stack),
    )


def merge(field: Field, arrays: Sequence[pa.Array]) -> pa.Array:
    """Unite the arrays of a field's leaves, which have the same rows.

    Parameters
    ----------
    field : Field
    arrays : sequence of pyarrow.Array
        One a leaf, in the order of the schema, as `build_leaf` makes them.

    Raises
    ------
    CorruptFileError
        If the leaves contradict each other.
    """
    kind = kind_of(field)
    if kind is Kind.LEAF:
        return arrays[0]
    first = next((array for array in arrays if not _is_empty(array.type)), arrays[0])
    buffers: list[pa.Buffer | None] = [_bitmap_of(first)]
    inner: list[pa.Array] = []
    if kind is Kind.STRUCT:
        inner = [array.field(0) for array in arrays]
    elif kind is Kind.FIXED_SIZE_LIST:
        size = first.type.list_size
        inner = [array.values.slice(array.offset * size, len(array) * size) for array in arrays]
    else:
        offsets = offsets_of(first)
        for array in arrays:
            own = offsets if array is first else offsets_of(array)
            if array is not first and ((own - own[0]) != (offsets - offsets[0])).any():
                raise CorruptFileError("the columns of a list disagree about the lengths of its lists")
            inner.append(array.values.slice(int(own[0]), int(own[-1] - own[0])))
        buffers.append(pa.py_buffer(offsets - offsets[0]))
    children = []
    position = 0
    for child in field.children:
        count = _count_leaves(child)
        children.append(merge(child, inner[position : position + count]))
        position += count
    arrow_type = field.to_arrow_type()
    if kind is Kind.MAP and children[0].field(0).null_count:
        raise CorruptFileError("a map has a null key")
    return pa.Array.from_buffers(arrow_type, len(first), buffers, children=children)


def _is_empty(arrow_type: pa.DataType) -> bool:
    """Return whether the leaf of an array of a single leaf is a struct without fields, which knows of no nulls."""
    while pa.types.is_struct(arrow_type) and arrow_type.num_fields:
        arrow_type = arrow_type.field(0).type
    return is_empty_struct(arrow_type)


def _count_leaves(field: Field) -> int:
    return 1 if kind_of(field) is Kind.LEAF else sum(map(_count_leaves, field.children))


def _bitmap_of(array: pa.Array) -> pa.Buffer | None:
    if array.null_count == 0:
        return None
    return array.buffers()[0] if array.offset == 0 else bitmap(validity_of(array))
