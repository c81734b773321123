"""Columns of JSON: stored as JSONB, returned as text.

Lance stores Arrow's `arrow.json`, which is text, under the name `lance.json`. Files return the stored form; tables
return text, of the extension type `arrow.json` if PyArrow has it. Writers accept either.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pyarrow as pa

from lance_format import jsonb
from lance_format.datatypes import Field, Schema
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.extension_types import EXTENSION_KEYS, map_leaf_types, retype, storage_of, with_item
from lance_format.file.columns.leaves import bitmap, validity_of
from lance_format.list_items import offsets_of
from lance_format.logical_types import JSON

_NAME = EXTENSION_KEYS[0]
_TEXT_NAME = "arrow.json"
_TEXT_TYPES = (pa.string(), pa.large_string(), pa.string_view())


def has_json(field: Field) -> bool:
    """Return whether there is JSON in a field."""
    return any(part.logical_type == JSON for part in field.walk())


def with_text(schema: Schema) -> Schema:
    """Return a schema with JSON as text."""
    return dataclasses.replace(schema, fields=tuple(map(_with_text, schema.fields)))


def _with_text(field: Field) -> Field:
    if field.logical_type == JSON:
        metadata = {**field.metadata, _NAME: _TEXT_NAME.encode()}
        return dataclasses.replace(field, logical_type="string", metadata=metadata, extension_name=_TEXT_NAME)
    return dataclasses.replace(field, children=tuple(map(_with_text, field.children)))


def to_text(array: pa.Array, field: Field) -> pa.Array:
    """Return an array with the JSON in it as text; one without JSON as it is.

    Parameters
    ----------
    array : pyarrow.Array
        Of storage types.
    field : Field
        As it is stored.

    Returns
    -------
    pyarrow.Array
        Of storage types.

    Raises
    ------
    CorruptFileError
        If a value is no JSONB.
    NotSupportedError
        If a value is no JSON.
    """
    if not has_json(field):
        return array
    return retype(
        _replace(array, field, _leaf_to_text), map_leaf_types(_with_text(field).to_arrow_type(), lambda leaf: leaf)
    )


def to_jsonb(array: pa.Array, field: Field, first_row: int = 0) -> pa.Array:
    """Return an array with the texts of JSON fields as JSONB, and other values unchanged.

    Parameters
    ----------
    array : pyarrow.Array
        Nested as the field is; structs may have other fields, and texts may have any type of text.
    field : Field
    first_row : int
        Number of preceding rows, which messages count too.

    Raises
    ------
    InvalidInputError
        If a text is no JSON, naming the column and the row.
    NotSupportedError
        If a document is nested too deeply.
    """
    if not has_json(field):
        return array
    try:
        return _replace(array, field, _leaf_to_jsonb)
    except (InvalidInputError, NotSupportedError) as error:
        problem = error
    if len(array) > 1:
        middle = len(array) // 2  # The row is in the first half that fails as well.
        to_jsonb(array.slice(0, middle), field, first_row)
        to_jsonb(array.slice(middle), field, first_row + middle)
    raise type(problem)(f"column {field.name!r}, row {first_row}: {problem}") from problem


def _leaf_to_text(array: pa.Array) -> pa.Array:
    return pa.array([None if value is None else jsonb.to_text(value) for value in array.to_pylist()], pa.string())


def _leaf_to_jsonb(array: pa.Array) -> pa.Array:
    array = storage_of(array)
    if array.type not in _TEXT_TYPES:
        return array
    values = [None if text is None else jsonb.from_text(text) for text in array.to_pylist()]
    return pa.array(values, pa.large_binary())


def _replace(array: pa.Array, field: Field, replace: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Return an array with the JSON in it replaced; parts that do not match the field are unchanged."""
    if field.logical_type == JSON:
        return replace(array)
    kind = array.type
    if not has_json(field) or not pa.types.is_nested(kind):
        return array
    if pa.types.is_struct(kind):
        fields = {child.name: child for child in field.children}
        given = list(zip(kind, array.flatten(), strict=True))
        children = [_replace(part, fields[x.name], replace) if x.name in fields else part for x, part in given]
        parts = [_renamed(x, child, fields.get(x.name)) for x, child in zip(kind, children, strict=True)]
        if all(child.type == x.type for x, child in zip(kind, children, strict=True)):
            return array
        return pa.Array.from_buffers(pa.struct(parts), len(array), [bitmap(validity_of(array))], children=children)
    return _replace_items(array, field, replace)


def _replace_items(array: pa.Array, field: Field, replace: Callable[[pa.Array], pa.Array]) -> pa.Array:
    kind, buffers = array.type, [bitmap(validity_of(array))]
    if pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        items = array.values.slice(array.offset * size, len(array) * size)
    else:
        offsets = offsets_of(array)
        items = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
        buffers.append(pa.py_buffer(offsets - offsets[0]))
    children = _replace(items, field.children[0], replace)
    if children.type == items.type:
        return array
    item = _renamed(kind.field(0), children, field.children[0])
    if pa.types.is_map(kind):
        made = pa.map_(item.type.field(0), item.type.field(1), kind.keys_sorted)
    else:
        made = with_item(kind, item)
    return pa.Array.from_buffers(made, len(array), buffers, children=[children])


def _renamed(given: pa.Field, made: pa.Array, field: Field | None) -> pa.Field:
    """Return a field of a type with the type of the result, and marked as JSONB if it is."""
    if field is None or field.logical_type != JSON:
        return given.with_type(made.type)
    return given.with_type(made.type).with_metadata(dict(field.metadata))
