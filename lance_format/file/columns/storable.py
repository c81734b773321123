"""Checks that a version of the file format can hold a field, and that pylance can read it back."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pyarrow as pa

from lance_format.datatypes import Field
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.file.columns.indices import check_packing, is_packed
from lance_format.file.columns.leaf_columns import Kind, Leaf, kind_of, leaves_of
from lance_format.file.columns.leaves import (
    innermost,
    is_empty_struct,
    shape_of,
)
from lance_format.version import FileVersion


def writable_leaves(field: Field, version: FileVersion) -> list[Leaf]:
    """Return the leaf columns of a field; refuse nesting that a file cannot hold, or that pylance could not read back.

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
    return leaves


def check_order(leaves: Iterable[Leaf], version: FileVersion) -> None:
    """Refuse structs without fields before other columns: pylance would read the others from the wrong place.

    In 2.0 they have a column like all structs, and may come anywhere.

    Raises
    ------
    NotSupportedError
    """
    if version.has_array_encodings:
        return
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
