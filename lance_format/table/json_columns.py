"""Columns of JSON: stored as JSONB, handed out as text.

Lance stores what Arrow knows as `arrow.json`, text, under the name `lance.json`. Files hand out what they store; tables
hand out text again, of the extension type `arrow.json` where PyArrow has it.
"""

from __future__ import annotations

import dataclasses

import pyarrow as pa

from lance_format import jsonb
from lance_format.datatypes import Field, Schema
from lance_format.extension_types import map_leaf_types
from lance_format.file.leaf_arrays import bitmap, offsets_of, validity_of

_JSON = "json"
_NAME = b"ARROW:extension:name"


def with_text(schema: Schema) -> Schema:
    """Return a schema in which JSON is text."""
    return dataclasses.replace(schema, fields=tuple(map(_with_text, schema.fields)))


def _with_text(field: Field) -> Field:
    if field.logical_type == _JSON:
        metadata = {**field.metadata, _NAME: b"arrow.json"}
        return dataclasses.replace(field, logical_type="string", metadata=metadata, extension_name="arrow.json")
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
    if all(part.logical_type != _JSON for part in field.walk()):
        return array
    if field.logical_type == _JSON:
        return pa.array([None if value is None else jsonb.to_text(value) for value in array.to_pylist()], pa.string())
    target = map_leaf_types(_with_text(field).to_arrow_type(), lambda leaf: leaf)
    buffers = [bitmap(validity_of(array))]
    if field.logical_type == "struct":
        parts = [array.field(index) for index in range(array.type.num_fields)]
        children = [to_text(part, child) for part, child in zip(parts, field.children, strict=True)]
    elif pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        children = [to_text(array.values.slice(array.offset * size, len(array) * size), field.children[0])]
    else:
        offsets = offsets_of(array)
        buffers.append(pa.py_buffer(offsets - offsets[0]))
        children = [to_text(array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0])), field.children[0])]
    return pa.Array.from_buffers(target, len(array), buffers, children=children)
