"""Updating rows: those that match are written anew with other values, and marked as deleted where they were."""

from __future__ import annotations

import difflib
import uuid
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from lance_format.blob_fields import BlobHandling, read_schema
from lance_format.datatypes import JSON, Field, Schema
from lance_format.errors import InvalidInputError, SchemaMismatchError
from lance_format.expressions import BoundExpression, as_expression, bind, evaluate
from lance_format.expressions.nodes import Cast, Column, Path
from lance_format.table.changes.rows.replaced_rows import MovedRows, RowSet, mark_deleted
from lance_format.table.scan.projection import Filter
from lance_format.table.scan.scanner import LanceScanner
from lance_format.table.transaction.operations import Update
from lance_format.table.versions.table_version import Draft, TableVersion
from lance_format.version import FileVersion


def update_rows(
    table: TableVersion,
    updates: Mapping[str, str],
    predicate: Filter | None = None,
    file_version: FileVersion | None = None,
) -> tuple[TableVersion, int]:
    """Change values of the rows for which a predicate is true, and commit that.

    Parameters
    ----------
    table : TableVersion
    updates : mapping of str to str
        SQL expressions over the old values of a row, by the columns that they replace.
    predicate : str, pyarrow.compute.Expression or Expression, optional
        Which rows; all if not given.
    file_version : FileVersion, optional
        Of the files that are written; that of the table if not given.

    Returns
    -------
    TableVersion
        The version that it made.
    int
        How many rows were changed.

    Raises
    ------
    RetryableCommitConflictError
        If another writer changed the same rows meanwhile.
    SchemaMismatchError
        If a value does not fit its column.
    InvalidInputError
        If an expression does not fit the table.
    """
    schema = read_schema(table.manifest.schema, BlobHandling.ALL_BINARY)
    values = {name: _bind_value(schema, name, text) for name, text in updates.items()}
    if not values:
        raise InvalidInputError("there is nothing to update: give an expression for one column at least")
    scanner = LanceScanner(table, filter=predicate, blob_handling=BlobHandling.ALL_BINARY.value)
    replaced, moved = RowSet(), MovedRows()

    def changed() -> Iterator[pa.RecordBatch]:
        for batch, rows in scanner.matching():
            replaced.add(rows)
            moved.add(rows)
            yield pa.RecordBatch.from_arrays(
                [evaluate(values[name], batch) if name in values else batch.column(name) for name in schema.names],
                names=schema.names,
            )

    with Draft(table, str(uuid.uuid4())) as draft:
        written = moved.name(
            table.write_fragments(changed(), table.manifest.schema, uuid=draft.uuid, file_version=file_version)
        )
        marked = mark_deleted(draft, replaced)
        fields = frozenset(node.id for name in values for node in table.manifest.schema.field(name).walk())
        operation = Update(marked.emptied, marked.updated, tuple(written), fields_rewritten=fields)
        return table.commit(operation, uuid=draft.uuid), len(replaced)


def _bind_value(schema: Schema, name: str, text: str) -> BoundExpression:
    """Fit an expression to the column that it is to replace."""
    if name not in schema.names:
        close = difflib.get_close_matches(name, schema.names, 1)
        raise InvalidInputError(
            f"there is no column {name!r} to update{f'; did you mean {close[0]!r}?' if close else ''}"
        )
    if not isinstance(text, str):
        raise InvalidInputError(f"the new value of column {name!r} is {text!r}; a SQL expression is needed")
    arrow = schema.to_storage()
    value = as_expression(text, arrow)
    if schema.field(name).logical_type == JSON:
        return _bind_json(schema, name, value)
    wanted = schema.field(name).to_arrow_type()
    return value if value.type == wanted else bind(Cast(value.expression, wanted), arrow)


def _bind_json(schema: Schema, name: str, value: BoundExpression) -> BoundExpression:
    """Let a column of JSON take texts, which become JSON as they are written, and other columns of JSON."""
    if value.type in (pa.string(), pa.large_string()):
        return value
    if pa.types.is_null(value.type):
        return bind(Cast(value.expression, pa.string()), schema.to_storage())
    if isinstance(value.expression, Column) and _is_json(schema.fields, value.expression.path):
        return value
    raise SchemaMismatchError(
        f"the new value of column {name!r}, which is JSON, is {value.type}; a text or a column of JSON is needed"
    )


def _is_json(fields: Sequence[Field], path: Path) -> bool:
    found = next((field for field in fields if field.name == path[0]), None)
    if found is None or len(path) == 1:
        return found is not None and found.logical_type == JSON
    return _is_json(found.children, path[1:])
