"""Partial structs: data gives some fields, and a table keeps the others, as if each field were a separate column.

A row of the result is null if neither side has a struct. If only one side has one, the fields of the other are null.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from lance_format.datatypes import Schema
from lance_format.extension_types import map_leaf_types


def find_partial(stored: Schema, given: pa.Schema) -> dict[str, pa.StructType]:
    """Return the columns whose structs lack fields in data, and which fields they have there.

    Parameters
    ----------
    stored : Schema
        The columns of the table that the data has.
    given : pa.Schema
        Of the data.

    Returns
    -------
    dict of str to pa.StructType
        Storage types, by the names of columns.
    """
    found = {}
    for field in stored.fields:
        kind = map_leaf_types(given.field(field.name).type, lambda leaf: leaf)
        if _lacks_fields(field.to_arrow_type(), kind):
            found[field.name] = kind
    return found


def with_given_fields(schema: pa.Schema, partial: Mapping[str, pa.StructType]) -> pa.Schema:
    """Return a schema whose structs have the fields that were given, and no others; see `find_partial`."""
    return pa.schema([field.with_type(partial.get(field.name, field.type)) for field in schema])


def _lacks_fields(wanted: pa.DataType, given: pa.DataType) -> bool:
    if not (pa.types.is_struct(wanted) and pa.types.is_struct(given)):
        return False
    names = {field.name for field in given}
    return any(field.name not in names or _lacks_fields(field.type, given.field(field.name).type) for field in wanted)


def overlay(kept: pa.RecordBatch, values: pa.Table, partial: Mapping[str, pa.StructType]) -> pa.Table:
    """Fill the fields that were not given with the kept values.

    Parameters
    ----------
    kept : pa.RecordBatch
        The kept values of these columns, with as many rows.
    values : pa.Table
        New values with all fields, null where not given.
    partial : mapping of str to pa.StructType
        See `find_partial`; other columns are unchanged.
    """
    for name, given in partial.items():
        index = values.schema.get_field_index(name)
        column = _overlay(kept.column(name), values.column(name).combine_chunks(), given)
        values = values.set_column(index, values.schema.field(index), column)
    return values


def _overlay(kept: pa.StructArray, values: pa.StructArray, given: pa.StructType) -> pa.StructArray:
    columns = []
    for field, old, new in zip(values.type, kept.flatten(), values.flatten(), strict=True):
        if given.get_field_index(field.name) < 0:
            columns.append(old)
            continue
        kind = given.field(field.name).type
        columns.append(_overlay(old, new, kind) if _lacks_fields(field.type, kind) else new)
    is_null = pc.and_(kept.is_null(), values.is_null())
    return pa.StructArray.from_arrays(columns, fields=list(values.type), mask=is_null)
