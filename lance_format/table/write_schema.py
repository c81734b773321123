"""Which columns a write stores, and how batches are brought into their shape."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lance_format.blob_fields import format_of, has_blobs, has_same_extension, holds_bytes
from lance_format.datatypes import Field, Schema
from lance_format.errors import SchemaMismatchError
from lance_format.extension_types import storage_of
from lance_format.file import as_given


def plan_append(table: Schema, data: pa.Schema, new: Sequence[Field] = ()) -> Schema:
    """Return the fields that data of some schema fills: the table's, in its order, then new ones.

    Columns match by name. Columns of the table that the data lacks become null, where they may.

    Parameters
    ----------
    table : Schema
    data : pa.Schema
    new : sequence of Field
        Columns of the data that the table is to gain; see `lance_format.table.new_columns`.

    Raises
    ------
    SchemaMismatchError
        If the data does not fit, naming each column and how it differs.
    NotSupportedError
        If Lance cannot store a type.
    """
    required = [field.name for field in table.fields if not field.nullable and field.name not in data.names]
    return _fit(table, data, [f"column {name!r} is missing and cannot be null" for name in required], new)


def plan_update(table: Schema, data: pa.Schema) -> Schema:
    """Return the table's fields whose values data of some schema replaces, in the table's order.

    Columns match by name; the others of the table keep their values.

    Raises
    ------
    SchemaMismatchError, NotSupportedError
        See `plan_append`.
    """
    return _fit(table, data, [])


def _fit(table: Schema, data: pa.Schema, problems: list[str], new: Sequence[Field] = ()) -> Schema:
    incoming = {field.name: field for field in Schema.from_arrow(data).fields}
    known = {*table.names, *(field.name for field in new)}
    unknown = [f"the table has no column {name!r}" for name in incoming if name not in known]
    different = [
        difference
        for field in table.fields
        if field.name in incoming
        for difference in _differences(field, incoming[field.name], field.name)
    ]
    if problems := [*unknown, *different, *problems]:
        raise SchemaMismatchError(f"the data does not fit the table: {'; '.join(problems)}")
    if not incoming:
        raise SchemaMismatchError(f"the data has no column; the table's are {', '.join(table.names)}")
    return Schema((*(field for field in table.fields if field.name in incoming), *new), table.metadata)


def conform(batch: pa.RecordBatch, schema: Schema, arrow_schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with exactly the columns of a schema, in its order and of its types.

    Parameters
    ----------
    batch : pa.RecordBatch
    schema : Schema
    arrow_schema : pa.Schema
        The same, as Arrow, of storage types.

    Raises
    ------
    SchemaMismatchError
        If the batch lacks a column or has others, or has nulls or types that do not fit.
    """
    if batch.schema.names != arrow_schema.names:
        if sorted(batch.schema.names) != sorted(arrow_schema.names):
            raise SchemaMismatchError(
                f"a batch has the columns {', '.join(batch.schema.names)};"
                f" {', '.join(arrow_schema.names)} were announced"
            )
        batch = batch.select(arrow_schema.names)
    columns = [_conform_column(batch.column(index), field) for index, field in enumerate(schema.fields)]
    if not columns:
        return batch
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema)


def _conform_column(column: pa.Array, field: Field) -> pa.Array:
    if not field.nullable and column.null_count:
        raise SchemaMismatchError(f"column {field.name!r} has {column.null_count} nulls, and cannot be null")
    expected = field.to_arrow_type()
    given = Field.from_arrow(pa.field(field.name, column.type))
    column = storage_of(column)
    if column.type == expected:
        return column
    if has_blobs(field) and not _differences(field, given, field.name):
        return as_given(column, field)
    differences = _differences(field, given, field.name)
    if differences:
        raise SchemaMismatchError("; ".join(differences))
    try:
        return column.cast(expected)
    except pa.ArrowException as error:
        raise SchemaMismatchError(f"column {field.name!r} is {column.type}; {expected} is needed: {error}") from error


def _differences(expected: Field, found: Field, path: str) -> list[str]:
    """Say how two fields differ in what they can store; that data may hold nulls is seen when it is written."""
    if expected.logical_type == "json":
        return [f"column {path!r} is JSON, which cannot be written yet"]
    if format_of(expected) is not None and (holds_bytes(found) or has_same_extension(expected, found)):
        return []
    # Lists of structs have a name of their own, which lists of blobs have only as tables store them.
    names_differ = expected.logical_type != found.logical_type
    if names_differ and not (has_blobs(expected) and expected.logical_type == f"{found.logical_type}.struct"):
        return [f"column {path!r} is {_describe(found)}, the table's is {_describe(expected)}"]
    if expected.logical_type == "struct":
        names, found_names = [[child.name for child in node.children] for node in (expected, found)]
        if names != found_names:
            return [f"column {path!r} has the fields {', '.join(found_names)}, the table's {', '.join(names)}"]
    return [
        difference
        for child, found_child in zip(expected.children, found.children, strict=True)
        for difference in _differences(child, found_child, f"{path}.{child.name}")
    ]


def _describe(field: Field) -> str:
    return str(field.to_arrow_type())
