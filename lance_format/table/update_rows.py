"""Updating rows: those that match are written anew with other values, and marked as deleted where they were."""

from __future__ import annotations

import difflib
import uuid
from collections.abc import Iterator, Mapping

import pyarrow as pa

from lance_format.blob_fields import BlobHandling, read_schema
from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError
from lance_format.expressions import BoundExpression, as_expression, bind, evaluate
from lance_format.expressions.nodes import Cast
from lance_format.table.operations import Update
from lance_format.table.projection import Filter
from lance_format.table.row_set import MovedRows, RowSet, mark_deleted
from lance_format.table.scanner import LanceScanner
from lance_format.table.table_version import Draft, TableVersion


def update_rows(
    table: TableVersion, updates: Mapping[str, str], predicate: Filter | None = None
) -> tuple[TableVersion, int]:
    """Change values of the rows for which a predicate is true, and commit that.

    Parameters
    ----------
    table : TableVersion
    updates : mapping of str to str
        SQL expressions over the old values of a row, by the columns that they replace.
    predicate : str, pyarrow.compute.Expression or Expression, optional
        Which rows; all if not given.

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
        written = moved.name(table.write_fragments(changed(), table.manifest.schema, uuid=draft.uuid))
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
    wanted = schema.field(name).to_arrow_type()
    return value if value.type == wanted else bind(Cast(value.expression, wanted), arrow)
