"""Taking leaves out of Arrow arrays for writing.

The levels of a leaf encode all layers above it, so that each leaf is written without the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_format.arrow_rows import take_rows
from lance_format.data_block import (
    PackedStructBlock,
    ValueBlock,
)
from lance_format.datatypes import Field
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.file.columns.leaf_columns import Kind, Leaf, kind_of
from lance_format.file.columns.leaves import (
    BLOB_SHAPE,
    is_empty_struct,
    plain,
    validity_of,
    values_of,
)
from lance_format.list_items import offsets_of
from lance_format.structural.blob import DescriptionCodec
from lance_format.structural.layers import LayerStack, item_layer
from lance_format.structural.rep_def import (
    LevelBuilder,
    LevelPair,
    Validity,
    visible_definition,
)
from lance_format.structural.row_index import expand_ranges


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
            array = array.field(_position_of(child, field.children))
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


def _position_of(child: Field, children: Sequence[Field]) -> int:
    """Return the position of a child, told by identity if possible: comparing the fields of wide structs takes long."""
    for position, other in enumerate(children):
        if other is child:
            return position
    return children.index(child)


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
    return take_rows(entries, pa.array(expand_ranges(offsets[:-1], offsets[:-1] + kept)))
