"""Choosing the columns that a write stores, and bringing batches into their shape."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

import pyarrow as pa

from lance_format.blob_fields import format_of, has_blobs, has_same_extension, holds_bytes
from lance_format.datatypes import Field, Schema
from lance_format.errors import SchemaMismatchError
from lance_format.extension_types import storage_of, with_item
from lance_format.file import as_given
from lance_format.file.columns.json_columns import to_jsonb
from lance_format.logical_types import JSON

_TEXT_NAMES = ("string", "large_string")


class Partial(enum.Enum):
    """Structs of data that may lack fields of the table's structs."""

    NONE = "none"
    NOT_IN_LISTS = "not in lists"
    ALL = "all"


def plan_append(table: Schema, data: pa.Schema, new: Sequence[Field] = (), *, partial: Partial = Partial.ALL) -> Schema:
    """Return the fields that data of some schema fills: the table's, in its order, then new ones.

    Columns and fields of structs match by name. Those of the table that the data lacks become null, where they may.

    Parameters
    ----------
    table : Schema
    data : pa.Schema
    new : sequence of Field
        Columns and fields of the data that the table is to gain; see `lance_format.table.transaction.appended_columns`.
    partial : Partial

    Raises
    ------
    SchemaMismatchError
        If the data does not fit, naming each column and how it differs.
    NotSupportedError
        If Lance cannot store a type.
    """
    required = [field.name for field in table.fields if not field.nullable and field.name not in data.names]
    problems = [f"column {name!r} is missing and cannot be null" for name in required]
    return _fit(table.with_fields(new), data, problems, partial)


def plan_update(table: Schema, data: pa.Schema, partial: Partial = Partial.NONE) -> Schema:
    """Return the table's fields whose values data of a schema replaces, in the table's order.

    Columns match by name; the others of the table keep their values.

    Raises
    ------
    SchemaMismatchError, NotSupportedError
        See `plan_append`.
    """
    return _fit(table, data, [], partial)


def _fit(table: Schema, data: pa.Schema, problems: list[str], partial: Partial) -> Schema:
    incoming = Schema.from_arrow(data).by_name()
    unknown = [f"the table has no column {name!r}" for name in incoming if name not in table.names]
    different = [
        difference
        for field in table.fields
        if field.name in incoming
        for difference in _differences(field, incoming[field.name], field.name, partial)
    ]
    if problems := [*unknown, *different, *problems]:
        raise SchemaMismatchError(f"the data does not fit the table: {'; '.join(problems)}")
    if not incoming:
        raise SchemaMismatchError(f"the data has no column; the table's are {', '.join(table.names)}")
    return Schema(tuple(field for field in table.fields if field.name in incoming), table.metadata)


def conform_table(table: pa.Table, schema: Schema) -> pa.Table:
    """Return a table with exactly the columns of a schema, in one piece each; see `conform`."""
    arrow = schema.to_storage()
    fitting, num_rows = [], 0
    for batch in table.to_batches():
        fitting.append(conform(batch, schema, arrow, num_rows))
        num_rows += batch.num_rows
    return pa.Table.from_batches(fitting, arrow).combine_chunks()


def conform(batch: pa.RecordBatch, schema: Schema, arrow_schema: pa.Schema, first_row: int = 0) -> pa.RecordBatch:
    """Return a batch with exactly the columns of a schema, in its order and of its types.

    Parameters
    ----------
    batch : pa.RecordBatch
    schema : Schema
    arrow_schema : pa.Schema
        The same, as Arrow, of storage types.
    first_row : int
        How many rows came before, for messages.

    Raises
    ------
    SchemaMismatchError
        If the batch lacks a column or has others, or has nulls or types that do not fit.
    InvalidInputError
        If a text that is to become JSON is none.
    """
    if batch.schema.names != arrow_schema.names:
        if sorted(batch.schema.names) != sorted(arrow_schema.names):
            raise SchemaMismatchError(
                f"a batch has the columns {', '.join(batch.schema.names)};"
                f" {', '.join(arrow_schema.names)} were announced"
            )
        batch = batch.select(arrow_schema.names)
    columns = [_conform_column(batch.column(index), field, first_row) for index, field in enumerate(schema.fields)]
    if not columns:
        return batch
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema)


def _conform_column(column: pa.Array, field: Field, first_row: int) -> pa.Array:
    if not field.nullable and column.null_count:
        raise SchemaMismatchError(f"column {field.name!r} has {column.null_count} nulls, and cannot be null")
    expected = field.to_arrow_type()
    column = to_jsonb(column, field, first_row)
    given_type = column.type
    column = storage_of(column)
    if column.type == expected:
        return column
    metadata = dict(field.metadata) if field.logical_type == JSON else None  # else JSONB looks like bytes
    given = Field.from_arrow(pa.field(field.name, given_type, metadata=metadata))
    differences = _differences(field, given, field.name, Partial.ALL)
    if has_blobs(field) and not differences:
        return as_given(column, field)
    if differences:
        raise SchemaMismatchError("; ".join(differences))
    try:
        return unsliced(arrange(column, expected)).cast(expected)
    except pa.ArrowException as error:
        raise SchemaMismatchError(f"column {field.name!r} is {column.type}; {expected} is needed: {error}") from error


def unsliced(array: pa.Array) -> pa.Array:
    """Return an array to be cast: one with items of type null from its start on, since Arrow's casts lose them else.

    Parameters
    ----------
    array : pa.Array
    """
    return pa.concat_arrays([array, array[:0]]) if _has_nulls_only(array.type) else array


def _has_nulls_only(arrow_type: pa.DataType) -> bool:
    children = (arrow_type.field(number).type for number in range(arrow_type.num_fields))
    return pa.types.is_null(arrow_type) or any(map(_has_nulls_only, children))


def arrange(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Give the structs of an array the fields of a type, in its order; missing ones are null.

    Values keep their types, and are not copied. Releases of pyarrow differ in what a cast does here.

    Parameters
    ----------
    array : pa.Array
        An array of storage types, nested like `wanted`.
    wanted : pa.DataType
    """
    kind = array.type
    if kind == wanted or not pa.types.is_nested(kind):
        return array
    if pa.types.is_struct(kind):
        columns = [_arrange_field(array, field) for field in wanted]
        fields = [field.with_type(column.type) for field, column in zip(wanted, columns, strict=True)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)
    if pa.types.is_map(kind):
        items = arrange(array.items, wanted.item_type)
        kind = pa.map_(kind.key_field, kind.item_field.with_type(items.type))
        children = pa.StructArray.from_arrays([array.keys, items], fields=[kind.key_field, kind.item_field])
    else:
        children = arrange(array.values, wanted.value_type)
        kind = with_item(kind, kind.value_field.with_type(children.type))
    own = array.buffers()[: 1 if pa.types.is_fixed_size_list(kind) else 2]
    return pa.Array.from_buffers(kind, len(array), own, array.null_count, array.offset, [children])


def _arrange_field(structs: pa.StructArray, field: pa.Field) -> pa.Array:
    if structs.type.get_field_index(field.name) < 0:
        return pa.nulls(len(structs), field.type)
    return arrange(structs.field(field.name), field.type)


def _differences(expected: Field, found: Field, path: str, partial: Partial) -> list[str]:
    """Describe the differences between two fields, except in nullability, which is checked on writing."""
    if JSON in (expected.logical_type, found.logical_type):
        takes = (JSON, *_TEXT_NAMES) if expected.logical_type == JSON else ()
        problem = f"column {path!r} is {_describe(found)}, the table's is {_describe(expected)}"
        return [] if found.logical_type in takes else [problem]
    if format_of(expected) is not None and (holds_bytes(found) or has_same_extension(expected, found)):
        return []
    # Lists of structs have a separate type name, which lists of blobs have only in their stored form.
    names_differ = expected.stored_type != found.stored_type
    if names_differ and not (has_blobs(expected) and expected.logical_type == f"{found.logical_type}.struct"):
        return [f"column {path!r} is {_describe(found)}, the table's is {_describe(expected)}"]
    pairs = list(zip(expected.children, found.children, strict=False))
    if expected.logical_type == "struct":
        given = {child.name: child for child in found.children}
        if not _has_fields(expected, given, partial is Partial.NONE):
            names = ", ".join(child.name for child in expected.children)
            return [f"column {path!r} has the fields {', '.join(given)}, the table's {names}"]
        pairs = [(child, given[child.name]) for child in expected.children if child.name in given]
    elif partial is Partial.NOT_IN_LISTS:
        partial = Partial.NONE
    return [
        difference
        for child, found_child in pairs
        for difference in _differences(child, found_child, f"{path}.{child.name}", partial)
    ]


def _has_fields(struct: Field, given: Mapping[str, Field], whole: bool) -> bool:
    """Return whether data has fields of a struct, in any order; unless `whole`, missing ones become null."""
    names = [child.name for child in struct.children]
    if has_blobs(struct):
        return list(given) == names  # Their forms are found by position.
    missing = [child for child in struct.children if child.name not in given]
    return given.keys() <= set(names) and (
        not missing or bool(given and not whole and all(x.nullable for x in missing))
    )


def _describe(field: Field) -> str:
    return "JSON" if field.logical_type == JSON else str(field.to_arrow_type())
