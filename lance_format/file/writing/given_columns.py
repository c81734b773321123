"""Columns of given batches: found by name, checked against the schema of a file, in the form that files store."""

from __future__ import annotations

import pyarrow as pa

from lance_format.datatypes import Field, Schema
from lance_format.errors import SchemaMismatchError
from lance_format.file.columns.json_columns import to_jsonb
from lance_format.file.columns.leaves import as_stored


class GivenColumns:
    """The columns of batches that are to be written.

    Types are checked when they are not those of the batch before.

    Parameters
    ----------
    schema : Schema
        Of the file.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._checked: pa.Schema | None = None

    def stored(self, batch: pa.RecordBatch, first_row: int) -> list[pa.Array]:
        """Return the columns of a batch in the order of the schema, as they are stored.

        Parameters
        ----------
        batch : pa.RecordBatch
        first_row : int
            Number of rows written before, for messages.

        Raises
        ------
        SchemaMismatchError
            If the batch's columns are not those of the schema, or a column that must not be null is.
        InvalidInputError
            If a text that is to become JSON is none.
        """
        is_checked = self._checked is not None and batch.schema.equals(self._checked, check_metadata=True)
        arrays = [_stored_column(batch, field, first_row, is_checked=is_checked) for field in self._schema.fields]
        if batch.num_columns != len(arrays):
            extra = sorted(set(batch.schema.names) - set(self._schema.names))
            raise SchemaMismatchError(f"the batch has columns that the schema has not: {', '.join(extra)}")
        self._checked = batch.schema
        return arrays


def _stored_column(batch: pa.RecordBatch, field: Field, first_row: int, *, is_checked: bool) -> pa.Array:
    index = batch.schema.get_field_index(field.name)
    if index < 0:
        raise SchemaMismatchError(f"the batch lacks column {field.name!r}")
    array = to_jsonb(as_stored(batch.column(index)), field, first_row)
    if not is_checked and not _is_stored_as(array.type, field):
        raise SchemaMismatchError(f"column {field.name!r} is {array.type}; the schema has {field.to_arrow_type()}")
    if not field.nullable and array.null_count:
        raise SchemaMismatchError(f"column {field.name!r} must not be null; the batch has {array.null_count} nulls")
    return array


def _is_stored_as(arrow_type: pa.DataType, field: Field) -> bool:
    if arrow_type == field.to_arrow_type():
        return True
    return _same_type(Field.from_arrow(pa.field(field.name, arrow_type)), field)


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
