"""Places of the parts of a column: one data file of a fragment, several, or none if the column was added later.

Structs are columns by their fields, which may have been written at different times. Missing parts are null.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from lance_format.blob_fields import format_of
from lance_format.datatypes import UNASSIGNED, Field, Schema
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.extension_types import map_leaf_types, retype
from lance_format.file import ColumnProjection, is_packed
from lance_format.identity import Itself
from lance_format.table.format.file_entries import DataFile
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.version import FileVersion

_REMEMBERED_FIELDS = 1024
_NO_COLUMN = -1
_Piece = tuple[int, int, Field, pa.DataType]


class ColumnParts:
    """Data files of a fragment that hold the parts of some columns; see `column_parts`.

    Parameters
    ----------
    schema : Schema
        The columns, possibly without some of their fields.
    held : mapping of int to sequence of ColumnProjection
        The held parts by position of the data file in the fragment, without files that hold none.
    """

    def __init__(self, schema: Schema, held: Mapping[int, Sequence[ColumnProjection]]) -> None:
        self.held = held
        self._schema = schema.to_storage()
        found: dict[int, list[_Piece]] = {field.id: [] for field in schema.fields}
        for file, projections in enumerate(held.values()):
            for column, part in enumerate(projections):
                storage = map_leaf_types(part.arrow_field.type, lambda leaf: leaf)
                found[part.field.id].append((file, column, part.field, storage))
        self._pieces = [(field, found[field.id]) for field in schema.fields]

    def assemble(self, pieces: Sequence[pa.RecordBatch], num_rows: int) -> pa.RecordBatch:
        """Put the columns of several files, and those that no file has, in order.

        Parameters
        ----------
        pieces : sequence of pa.RecordBatch
            The batch read from each file.
        num_rows : int
            Number of rows of each.

        Raises
        ------
        CorruptFileError, NotSupportedError
            See `combine_parts`.
        """
        arrays = []
        for field, found in self._pieces:
            parts = [(part, retype(pieces[file].column(column), storage)) for file, column, part, storage in found]
            arrays.append(combine_parts(field, parts, num_rows))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def column_parts(schema: Schema, files: Sequence[DataFile], table: Schema) -> ColumnParts:
    """Return the parts of some columns that each data file of a fragment holds.

    If no file holds any wanted field of a struct, or of the items of a list, another field is among the parts, which
    tells the nulls of the struct and the lengths of the lists.

    For one schema object the result is computed once for all fragments with the same fields in the same columns of
    files. Very wide schemas are not cached, since that would take too much memory.

    Parameters
    ----------
    schema : Schema
        The columns, possibly without some of their fields.
    files : sequence of DataFile
    table : Schema
        All columns of the table.
    """
    find = _find_known_parts if len(schema.fields) <= _REMEMBERED_FIELDS else _find_parts
    places = tuple([(file.fields, file.column_indices, _may_lack_columns(file)) for file in files])
    return find(Itself(schema), places, Itself(table))


def _may_lack_columns(file: DataFile) -> bool:
    """Return whether fields of a file may lack a column and be null, as in format 2.0."""
    version = FileVersion.from_manifest(file.file_major_version, file.file_minor_version)
    return _NO_COLUMN in file.column_indices and version is not None and version.has_array_encodings


def _find_parts(
    same: Itself[Schema], files: Sequence[tuple[tuple[int, ...], tuple[int, ...], bool]], table: Itself[Schema]
) -> ColumnParts:
    own: list[frozenset[int]] = []
    known = frozenset({UNASSIGNED})
    for fields, columns, may_lack in files:
        ids = frozenset(fields) - known  # Early releases reused ids; the reference reads the first file that has one.
        if may_lack:
            leaves = {one for field in table.value.fields for one in _leaves_outside_of_lists(field)}
            ids -= {one for one, column in zip(fields, columns, strict=True) if column == _NO_COLUMN and one in leaves}
        known |= ids
        own.append(ids)
    whole = {field.id: field for field in table.value.fields}
    wanted = [_with_witness(field, whole.get(field.id), known) for field in same.value.fields]
    held = {}
    for position, ((fields, columns, _), ids) in enumerate(zip(files, own, strict=True)):
        numbers = dict(zip(fields, columns or (-1,) * len(fields), strict=True))
        found = [part for field in wanted if (part := _held(field, ids)) is not None]
        if found:
            held[position] = [
                ColumnProjection(part, {node.id: numbers[node.id] for node in part.walk() if node.id in numbers})
                for part in found
            ]
    return ColumnParts(same.value, held)


def holds_any(field: Field, ids: frozenset[int]) -> bool:
    """Return whether some of the fields of these ids are below a field."""
    return _held(field, ids) is not None


def held_columns(schema: Schema, fragments: Iterable[FragmentMetadata]) -> Schema:
    """Return the columns, and the fields of these, that some fragment has values of; all if there are none.

    Others are null in all rows, and need no files: format 2.0 has no null structs.
    """
    ids = frozenset[int]().union(*(fragment.field_ids for fragment in fragments))
    found = tuple(part for field in schema.fields if (part := _held(field, ids)) is not None)
    return dataclasses.replace(schema, fields=found or schema.fields)


def _with_witness(field: Field, whole: Field | None, held: frozenset[int]) -> Field:
    """Return a field with one more field below each struct or list of which no file holds a wanted field."""
    if not field.children or whole is None or is_packed(field) or format_of(field) is not None:
        return field
    there = {child.id: child for child in whole.children}
    children = tuple(_with_witness(child, there.get(child.id), held) for child in field.children)
    found = field if children == field.children else dataclasses.replace(field, children=children)
    return found if _held(found, held) is not None else _witness(whole, held) or found


def _witness(field: Field, held: frozenset[int]) -> Field | None:
    """Return a field with the first field below it that files hold, of one value per row if there is any."""
    if not field.children or is_packed(field) or format_of(field) is not None:
        return field if field.id in held else None
    found = [witness for child in field.children if (witness := _witness(child, held)) is not None]
    plain = next((witness for witness in found if witness.logical_type == "struct" or not witness.children), None)
    chosen = plain or next(iter(found), None)
    return None if chosen is None else dataclasses.replace(field, children=(chosen,))


def _leaves_outside_of_lists(field: Field) -> Iterator[int]:
    if not field.children:
        yield field.id
    elif field.logical_type == "struct":
        for child in field.children:
            yield from _leaves_outside_of_lists(child)


_find_known_parts = functools.lru_cache(maxsize=16)(_find_parts)


def combine_parts(field: Field, parts: Sequence[tuple[Field, pa.Array]], num_rows: int) -> pa.Array:
    """Return a column whose parts have been read.

    Parameters
    ----------
    field : Field
        The requested column.
    parts : sequence of (Field, pa.Array)
        See `ColumnParts`; the arrays have `num_rows` rows each, and storage types.
    num_rows : int

    Raises
    ------
    CorruptFileError
        If no file has a non-nullable part.
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
    first = parts[0][1]  # All parts are null in the same rows, except in deleted ones, which are arbitrary.
    children = []
    for child in field.children:
        held = [(_child(part, child), array) for part, array in parts if _child(part, child) is not None]
        pieces = [(node, array.field(node.name)) for node, array in held if node is not None]
        children.append(combine_parts(child, pieces, num_rows))
    arrow_fields = [child.to_storage() for child in field.children]
    mask = first.is_null() if first.null_count else None
    return pa.StructArray.from_arrays(children, fields=arrow_fields, mask=mask)


def remainder(field: Field, held: Field) -> Field | None:
    """Return the part of a column, or of a field below it, that is still missing; None if complete.

    Both are parts of one column. Only structs can be combined from parts; of other types the whole column is missing.
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
    """Return a field with only the fields of some ids below it, or None if none is left."""
    children = tuple(held for child in field.children if (held := _held(child, ids)) is not None)
    if children:
        return field if children == field.children else dataclasses.replace(field, children=children)
    # In 2.0 and 0.1 structs and lists have own column ids without values; those of blobs have values, and so have
    # fixed-size lists of structs that pylance writes in 2.0 as one column.
    has_values = is_packed(field) or format_of(field) is not None or field.logical_type.startswith("fixed_size_list:")
    if field.children and not has_values:
        return None
    return field if field.id in ids else None


def _child(part: Field, wanted: Field) -> Field | None:
    return next((child for child in part.children if child.id == wanted.id), None)


def _combine_items(field: Field, parts: Sequence[tuple[Field, pa.Array]]) -> pa.Array:
    """Add the item fields of a list or a map that no file has."""
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
