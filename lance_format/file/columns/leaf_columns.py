"""The leaves of a field: each leaf of a struct, list or map is a separate column."""

from __future__ import annotations

import enum
from collections.abc import Hashable

import pyarrow as pa

from lance_format.blob_fields import BlobFormat, format_of
from lance_format.data_block import ValueShape
from lance_format.datatypes import Field
from lance_format.errors import NotSupportedError
from lance_format.file.columns.indices import is_packed
from lance_format.file.columns.leaves import (
    BLOB_SHAPE,
    bytes_per_slot,
    shape_of,
)
from lance_format.lazy_dataclasses import dataclass
from lance_format.lazy_properties import cached_property

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
        for field in self.path[:-1]:
            kind = kind_of(field)
            if kind in (Kind.LIST, Kind.MAP):
                break
            if kind is Kind.FIXED_SIZE_LIST:
                items *= field.to_arrow_type().list_size
        return items

    @cached_property
    def is_flat(self) -> bool:
        """True if each row is one value of fixed width, so that a part of a page costs little more than its share."""
        is_nested = pa.types.is_nested(self.arrow_type) or pa.types.is_dictionary(self.arrow_type)
        return self.shape.bits_per_value is not None and not is_nested and not self.lists and self.items_per_row == 1

    @cached_property
    def form(self) -> Hashable:
        """Properties of leaves whose pages may be decoded as those of one, and sliced; None if one is read alone."""
        if pa.types.is_dictionary(self.arrow_type) or self.items_per_row > 1:
            return None
        return self.arrow_type, self.shape, tuple([field.logical_type for field in self.path[:-1]])

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


def has_large_offsets(field: Field) -> bool:
    """Return whether the lists of a field have offsets of 64 bits."""
    return field.logical_type.startswith("large_list")
