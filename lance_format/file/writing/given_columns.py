"""Columns of given batches: found by name, checked against the schema of a file, in the form that files store."""

from __future__ import annotations

import pyarrow as pa

from lance_format.datatypes import Field, Schema
from lance_format.errors import SchemaMismatchError
from lance_format.file.columns.json_columns import to_jsonb
from lance_format.file.columns.leaves import as_stored


def stored_columns(batch: pa.RecordBatch, schema: Schema, first_row: int) -> list[pa.Array]:
    """Return the columns of a batch in the order of a schema, as they are stored.

    Parameters
    ----------
    batch : pa.RecordBatch
    schema : Schema
    first_row : int
        Number of rows written before, for messages.

    Raises
    ------
    SchemaMismatchError
        If the batch's columns are not those of the schema, or a column that must not be null is.
    InvalidInputError
        If a text that is to become JSON is none.
    """
    arrays = [_stored_column(batch, field, first_row) for field in schema.fields]
    if batch.num_columns != len(arrays):
        extra = sorted(set(batch.schema.names) - set(schema.names))
        raise SchemaMismatchError(f"the batch has columns that the schema has not: {', '.join(extra)}")
    return arrays


def _stored_column(batch: pa.RecordBatch, field: Field, first_row: int) -> pa.Array:
    index = batch.schema.get_field_index(field.name)
    if index < 0:
        raise SchemaMismatchError(f"the batch lacks column {field.name!r}")
    array = to_jsonb(as_stored(batch.column(index)), field, first_row)
    if not _same_type(Field.from_arrow(pa.field(field.name, array.type)), field):
        raise SchemaMismatchError(f"column {field.name!r} is {array.type}; the schema has {field.to_arrow_type()}")
    if not field.nullable and array.null_count:
        raise SchemaMismatchError(f"column {field.name!r} must not be null; the batch has {array.null_count} nulls")
    return array


def _same_type(found: Field, wanted: Field) -> bool:
    """Return whether values of two fields are stored alike, names of struct fields included."""
    return (
        found.stored_type == wanted.stored_type
        and len(found.children) == len(wanted.children)
        and all(
            _same_type(one, other) and (one.name == other.name or wanted.logical_type != "struct")
            for one, other in zip(found.children, wanted.children, strict=True)
        )
    )
