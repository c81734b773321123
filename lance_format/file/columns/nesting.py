"""Nested columns and their leaves: taking arrays apart for writing, joining them on reading.

Every leaf of a struct, list or map is a separate column, whose levels encode all layers above it. Reading builds, for
each leaf, an array that is nested like the column but has only this leaf; `merge` unites the arrays of a column. The
intermediate form is therefore an ordinary Arrow array, which can be sliced and concatenated independent of the leaf's
pages.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lance_format.blob_fields import BlobFormat, format_of
from lance_format.data_block import (
    DictionaryBlock,
    PackedStructBlock,
    ValueBlock,
    ValueShape,
    VariableWidthBlock,
)
from lance_format.datatypes import Field
from lance_format.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_format.file.columns import limits
from lance_format.file.columns.indices import check_packing, is_packed
from lance_format.file.columns.leaves import (
    BLOB_SHAPE,
    bitmap,
    build_array,
    bytes_per_slot,
    innermost,
    is_empty_struct,
    offsets_of,
    plain,
    shape_of,
    validity_of,
    values_of,
)
from lance_format.structural.blob import DescriptionCodec
from lance_format.structural.layers import LayerStack, item_layer
from lance_format.structural.page import DecodedRows
from lance_format.structural.rep_def import (
    Layer,
    LevelBuilder,
    LevelPair,
    Validity,
    unravel,
    visible,
    visible_definition,
)
from lance_format.structural.row_index import expand_ranges
from lance_format.version import FileVersion

_MAX_ITEMS_PER_ROW = 2**24


class Kind(enum.Enum):
    """Kind of a field, as it matters to the fields below it."""

    STRUCT = enum.auto()
    LIST = enum.auto()
    MAP = enum.auto()
    FIXED_SIZE_LIST = enum.auto()
    LEAF = enum.auto()


def kind_of(field: Field) -> Kind:
    """Return the kind of a field; packed structs are leaves."""
    if not field.children or is_packed(field):
        return Kind.LEAF
    if field.logical_type == "struct":
        return Kind.STRUCT
    if field.logical_type == "map":
        return Kind.MAP
    return Kind.FIXED_SIZE_LIST if field.logical_type.startswith("fixed_size_list:") else Kind.LIST


@dataclass(frozen=True)
class Leaf:
    """A leaf column.

    Parameters
    ----------
    path : tuple of Field
        From the top-level field to the leaf.
    arrow_type : pyarrow.DataType
        Of the leaf itself.
    shape : ValueShape
    """

    path: tuple[Field, ...]
    arrow_type: pa.DataType
    shape: ValueShape

    @property
    def field(self) -> Field:
        """The leaf."""
        return self.path[-1]

    @cached_property
    def name(self) -> str:
        """The names along the path, for messages."""
        return ".".join(field.name for field in self.path)

    @cached_property
    def lists(self) -> tuple[int, ...]:
        """Layers that are lists, counted from the innermost."""
        kinds = [kind_of(field) for field in reversed(self.path)]
        return tuple(index for index, kind in enumerate(kinds) if kind in (Kind.LIST, Kind.MAP))

    @cached_property
    def dimensions(self) -> tuple[int, ...]:
        """For each layer, innermost first, the size of a fixed-size list of structs, 1 for all others."""
        return tuple(
            field.to_arrow_type().list_size if kind_of(field) is Kind.FIXED_SIZE_LIST else 1
            for field in reversed(self.path)
        )

    @cached_property
    def items_per_row(self) -> int:
        """Items of a page per row: fixed-size lists of structs outside of all lists multiply them."""
        items = 1
        for field in self.path:
            if kind_of(field) in (Kind.LIST, Kind.MAP):
                break
            if kind_of(field) is Kind.FIXED_SIZE_LIST:
                items *= field.to_arrow_type().list_size
        return items

    @cached_property
    def slot_bytes(self) -> float:
        """Size of a row of the leaf's array, null or not; of byte strings, the size of the offset."""
        return self.items_per_row * bytes_per_slot(self.arrow_type)


def leaves_of(field: Field) -> list[Leaf]:
    """Return the leaf columns of a field, in the order of the schema.

    Raises
    ------
    NotSupportedError
        If the field can be neither read nor written yet.
    CorruptFileError
        If the fields below it are not those of its type.
    """
    found: list[Leaf] = []
    field.to_arrow_type()  # refuses fields that do not fit the type above them

    def visit(path: tuple[Field, ...]) -> None:
        last = path[-1]
        if last.children and not is_packed(last):
            for child in last.children:
                visit((*path, child))
            return
        arrow_type = last.to_arrow_type()
        shape = BLOB_SHAPE if format_of(last) is BlobFormat.V1 else shape_of(arrow_type, field.name)
        leaf = Leaf(path, arrow_type, shape)
        if leaf.items_per_row > _MAX_ITEMS_PER_ROW:
            raise NotSupportedError(f"column {leaf.name!r} has {leaf.items_per_row} structs in every row, too many")
        found.append(leaf)

    visit((field,))
    return found


def check_writable(field: Field, version: FileVersion) -> None:
    """Refuse nesting that a file cannot hold, or that pylance could not read back.

    Raises
    ------
    NotSupportedError
    InvalidInputError
        If a field asks for what its type cannot be.
    """
    check_packing(field)
    leaves = leaves_of(field)
    for leaf in leaves:
        kinds = {kind_of(part) for part in leaf.path}
        named = f"column {leaf.name!r}"
        if is_packed(leaf.field) and not version.has_maps and not has_fixed_width(leaf.arrow_type):
            raise NotSupportedError(f"{named} is a packed struct with strings, which needs file format 2.2")
        if is_packed(leaf.field) and not version.has_array_encodings and _has_lists(leaf.arrow_type):
            raise NotSupportedError(
                f"{named} is a packed struct with a fixed-size list, which only file format 2.0 has"
            )
        if leaf.shape.bits_per_value == 0 and not version.has_constant_values:
            raise InvalidInputError(
                f"{named} is a {leaf.arrow_type}, whose values have no bytes, which file format {version} cannot hold;"
                " write 2.2, or leave it out"
            )
        in_lists = bool(kinds - {Kind.STRUCT, Kind.LEAF})
        if is_empty_struct(leaf.arrow_type) and in_lists and not version.has_array_encodings:
            raise NotSupportedError(f"{named} is a struct without fields in a list or map, which Lance cannot store")
        if kinds & {Kind.MAP, Kind.FIXED_SIZE_LIST} and not version.has_maps:
            what = "a map" if Kind.MAP in kinds else "a fixed-size list of structs"
            raise NotSupportedError(f"{named} is in {what}, which file format {version} cannot hold; write 2.2")
        if Kind.FIXED_SIZE_LIST in kinds and kinds & {Kind.LIST, Kind.MAP}:
            raise NotSupportedError(f"{named} nests lists and fixed-size lists of structs, which is not supported")
    if len({leaf.items_per_row for leaf in leaves}) > 1:
        raise NotSupportedError(
            f"column {field.name!r} has a fixed-size list of structs beside other fields, which is not supported"
        )


def check_order(fields: Sequence[Field], version: FileVersion) -> None:
    """Refuse structs without fields before other columns: pylance would read the others from the wrong place.

    In 2.0 they have a column like all structs, and may come anywhere.

    Raises
    ------
    NotSupportedError
    """
    if version.has_array_encodings:
        return
    leaves = [leaf for field in fields for leaf in leaves_of(field)]
    for empty, following in pairwise(leaves):
        if is_empty_struct(empty.arrow_type) and not is_empty_struct(following.arrow_type):
            raise NotSupportedError(
                f"column {empty.name!r} is a struct without fields before column {following.name!r}, which pylance"
                " could not read then; put it last"
            )


def has_fixed_width(arrow_type: pa.StructType) -> bool:
    """Return whether all fields of a packed struct have a fixed width."""
    return all(shape_of(innermost(field.type), field.name).bits_per_value is not None for field in arrow_type)


def _has_lists(arrow_type: pa.StructType) -> bool:
    return any(pa.types.is_fixed_size_list(field.type) for field in arrow_type)


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


def has_large_offsets(field: Field) -> bool:
    """Return whether the lists of a field have offsets of 64 bits."""
    return field.logical_type.startswith("large_list")


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


def shred(array: pa.Array, leaf: Leaf) -> tuple[ValueBlock | None, LevelPair, LayerStack]:
    """Take a leaf out of an array, which may be a slice and hold anything beneath its nulls.

    Returns
    -------
    values : ValueBlock or None
        One for each visible entry; None for the null type.
    levels : LevelPair
    stack : LayerStack

    Raises
    ------
    InvalidInputError
        If a value is not of its type.
    """
    num_lists = sum(kind_of(field) in (Kind.LIST, Kind.MAP) for field in leaf.path)
    builder = LevelBuilder(len(array), num_lists)
    for field, child in zip(leaf.path, leaf.path[1:], strict=False):
        kind = kind_of(field)
        array = plain(array)
        validity = validity_of(array)
        if kind is Kind.STRUCT:
            builder.add_items(validity)
            array = array.field(field.children.index(child))
        elif kind is Kind.FIXED_SIZE_LIST:
            size = array.type.list_size
            builder.add_fixed_size_lists(validity, size)
            array = array.values.slice(array.offset * size, len(array) * size)
        else:
            array = _shred_lists(array, validity, builder)
    array = plain(array)
    builder.add_items(validity_of(array))
    levels, stack = builder.finish()
    if is_empty_struct(array.type):
        if levels.definition is not None:
            raise NotSupportedError(
                f"column {leaf.name!r} is a struct without fields, and null or in a null struct: Lance cannot store it"
            )
        return None, levels, LayerStack((item_layer(nullable=True),))
    definition = visible_definition(levels, stack)
    try:
        values = values_of(array, None if definition is None else definition == 0)
    except InvalidInputError as error:
        raise InvalidInputError(f"column {leaf.name!r}: {error}") from error
    if leaf.shape is BLOB_SHAPE and isinstance(values, PackedStructBlock):
        values = PackedStructBlock(values.rows, DescriptionCodec())
    return values, levels, stack


def _shred_lists(array: pa.Array, validity: Validity | None, builder: LevelBuilder) -> pa.Array:
    """Add a layer of lists or maps; returns the items that are entries now."""
    offsets = offsets_of(array).astype(np.int64)
    sizes = np.diff(offsets)
    kept = builder.add_lists(validity, sizes)
    if pa.types.is_map(array.type):
        entries = pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
    else:
        entries = array.values
    if (kept == sizes).all():
        return entries.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    return entries.take(pa.array(expand_ranges(offsets[:-1], offsets[:-1] + kept)))
