"""Where the parts of a column are: in one data file of a fragment, in several, or, for what was added later, in none.

Structs are columns by their fields, which may have been written at different times. What no file holds is null.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lance_format.datatypes import UNASSIGNED, Field
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.file import ColumnProjection, is_packed
from lance_format.table.fragment import DataFile


@dataclass(frozen=True, slots=True)
class ColumnPart:
    """What one data file holds of a column."""

    file: DataFile
    projection: ColumnProjection


def split_column(field: Field, files: Sequence[DataFile]) -> list[ColumnPart]:
    """Return which files hold which parts of a column; none if it is null throughout.

    Parameters
    ----------
    field : Field
        A top-level field, possibly without some of the fields below it.
    files : sequence of DataFile
        Of one fragment.
    """
    parts = []
    for file in files:
        ids = frozenset(file.fields) - {UNASSIGNED}
        held = _held(field, ids)
        if held is not None:
            columns = file.column_indices or (-1,) * len(file.fields)
            wanted = {node.id for node in held.walk()}
            indices = {node: column for node, column in zip(file.fields, columns, strict=True) if node in wanted}
            parts.append(ColumnPart(file, ColumnProjection(held, indices)))
    return parts


def combine_parts(field: Field, parts: Sequence[tuple[Field, pa.Array]], num_rows: int) -> pa.Array:
    """Return a column whose parts have been read.

    Parameters
    ----------
    field : Field
        The column as it is wanted.
    parts : sequence of (Field, pa.Array)
        See `split_column`; the arrays have `num_rows` rows each, and storage types.
    num_rows : int

    Raises
    ------
    CorruptFileError
        If no file holds something that cannot be null.
    NotSupportedError
        If the parts of a list's items are in different files.
    """
    if not parts:
        if not field.nullable:
            raise CorruptFileError(f"no data file holds column {field.name!r}, which cannot be null")
        return pa.nulls(num_rows, field.to_arrow_type())
    whole = next((array for held, array in parts if held == field), None)
    if whole is not None:
        return whole
    if field.logical_type != "struct":
        return _combine_items(field, parts)
    first = parts[0][1]  # All parts are null in the same rows, but for deleted ones, which may hold anything.
    children = []
    for child in field.children:
        held = [(_child(part, child), array) for part, array in parts if _child(part, child) is not None]
        pieces = [(node, array.field(node.name)) for node, array in held if node is not None]
        children.append(combine_parts(child, pieces, num_rows))
    arrow_fields = [child.to_storage() for child in field.children]
    mask = first.is_null() if first.null_count else None
    return pa.StructArray.from_arrays(children, fields=arrow_fields, mask=mask)


def remainder(field: Field, held: Field) -> Field | None:
    """Return what is left to read of a column, or a field below it, of which a part is there; None if nothing is.

    Both are parts of one column, which structs alone can be put together from: of anything else all is left.
    """
    if field == held:
        return None
    if field.logical_type != "struct" or is_packed(field) or any(child.id == UNASSIGNED for child in field.children):
        return field
    there = {child.name: child for child in held.children}
    rests = (remainder(child, there[child.name]) if child.name in there else child for child in field.children)
    children = tuple(rest for rest in rests if rest is not None)
    return dataclasses.replace(field, children=children) if children else None


def _held(field: Field, ids: frozenset[int]) -> Field | None:
    """Return a field without what is below it and not among the ids, or None if nothing is left."""
    children = tuple(held for child in field.children if (held := _held(child, ids)) is not None)
    if children:
        return field if children == field.children else dataclasses.replace(field, children=children)
    return field if field.id in ids else None


def _child(part: Field, wanted: Field) -> Field | None:
    return next((child for child in part.children if child.id == wanted.id), None)


def _combine_items(field: Field, parts: Sequence[tuple[Field, pa.Array]]) -> pa.Array:
    """Fill up the items of a list or a map whose fields no file holds."""
    if len(parts) > 1:
        raise NotSupportedError(
            f"the fields of the items of column {field.name!r} are in {len(parts)} data files, which cannot be read;"
            " rewrite the table"
        )
    held, array = parts[0]
    if field.logical_type not in ("list.struct", "large_list.struct"):
        raise NotSupportedError(f"a data file lacks a part of column {field.name!r} of type {field.logical_type}")
    (item,), (held_item,) = field.children, held.children
    items = combine_parts(item, [(held_item, array.values)], len(array.values))
    return type(array).from_arrays(array.offsets, items, type=field.to_arrow_type(), mask=_list_mask(array))


def _list_mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
