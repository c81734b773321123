"""Update of rows: matching rows are rewritten with new values, and marked as deleted in their old fragments."""

from __future__ import annotations

import difflib
import uuid
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from lance_format.blob_fields import BlobHandling, read_schema
from lance_format.datatypes import Field, Schema
from lance_format.errors import InvalidInputError, SchemaMismatchError
from lance_format.expressions import BoundExpression, as_expression, bind, evaluate
from lance_format.expressions.nodes import Cast, Column, FieldPath
from lance_format.lazy_dataclasses import dataclass
from lance_format.logical_types import JSON
from lance_format.table.changes.rows.replaced_rows import MovedRows, RowSet, mark_deleted
from lance_format.table.changes.rows.row_changes import RowChanges, divide, rows_of, unite
from lance_format.table.scan.options import ScanOptions
from lance_format.table.scan.projection import Filter
from lance_format.table.scan.scanner import LanceScanner
from lance_format.table.scan.tasks import ScanTask
from lance_format.table.transaction.operations import Update
from lance_format.table.versions.change_result import ChangeResult
from lance_format.table.versions.planned_change import ChangePlan, ChangeTask
from lance_format.table.versions.table_version import Draft, TableVersion
from lance_format.version import FileVersion


@dataclass(frozen=True, eq=False)
class UpdateResult(ChangeResult):
    """Outcome of an update.

    Parameters
    ----------
    num_rows_updated : int
    """

    num_rows_updated: int


@dataclass(frozen=True, slots=True)
class UpdateTask(ChangeTask[RowChanges]):
    """Task that writes the new forms of the matching rows of a part of the table.

    Parameters
    ----------
    read_version : int
    number : int
        Number of the task within the plan.
    uuid : str
        The uuid of the plan, which the names of its data files carry.
    updates : mapping of str to str
        SQL expressions over the old values of a row, by column.
    predicate : str, pyarrow.compute.Expression or Expression, optional
        The rows to change, by default all.
    file_version : FileVersion, optional
        Version of the new files, by default that of the table.
    part : ScanTask, optional
        The rows to search, by default all.
    """

    read_version: int
    number: int
    uuid: str
    updates: Mapping[str, str]
    predicate: Filter | None = None
    file_version: FileVersion | None = None
    part: ScanTask | None = None

    def run(self, table: TableVersion) -> RowChanges:
        """Write the rows; see `execute`."""
        schema = read_schema(table.manifest.schema, BlobHandling.ALL_BINARY)
        values = _bind_values(schema, self.updates)
        scanner = _scan_changed(table, self.predicate)
        replaced, moved = RowSet(), MovedRows()

        def changed() -> Iterator[pa.RecordBatch]:
            for batch, rows in rows_of(scanner, self.part):
                replaced.add(rows)
                moved.add(rows)
                yield pa.RecordBatch.from_arrays(
                    [evaluate(values[name], batch) if name in values else batch.column(name) for name in schema.names],
                    names=schema.names,
                )

        written = table.write_fragments(
            changed(), table.manifest.schema, uuid=self.uuid, file_version=self.file_version
        )
        return RowChanges(self.number, self.uuid, replaced, tuple(moved.name(written)))


@dataclass(frozen=True, slots=True)
class UpdatePlan(ChangePlan[RowChanges, UpdateResult]):
    """A planned update. Made by `plan_update`.

    Parameters
    ----------
    read_version : int
    uuid : str
    columns : tuple of str
        The changed columns.
    tasks : tuple of UpdateTask
    """

    read_version: int
    uuid: str
    columns: tuple[str, ...]
    tasks: tuple[UpdateTask, ...]

    def operation(self, draft: Draft, results: Sequence[RowChanges]) -> Update:
        """Write deletion files for the old forms of the rows."""
        removed, written = unite(results)
        marked = mark_deleted(draft, removed)
        schema = draft.table.manifest.schema
        fields = frozenset(node.id for name in self.columns for node in schema.field(name).walk())
        return Update(marked.emptied, marked.updated, written, fields_rewritten=fields)

    def outcome(self, results: Sequence[RowChanges]) -> UpdateResult:
        """Count the rows."""
        return UpdateResult(sum(len(result.removed) for result in results))


def plan_update(
    table: TableVersion,
    updates: Mapping[str, str],
    predicate: Filter | None = None,
    file_version: FileVersion | None = None,
    split_size_bytes: int | None = None,
) -> UpdatePlan:
    """Plan to change values of the rows for which a predicate is true.

    Parameters
    ----------
    table : TableVersion
    updates : mapping of str to str
        SQL expressions over the old values of a row, by column.
    predicate : str, pyarrow.compute.Expression or Expression, optional
        The rows to change, by default all.
    file_version : FileVersion, optional
        Version of the new files, by default that of the table.
    split_size_bytes : int, optional
        Approximate number of bytes that a task reads. By default one task reads all.

    Raises
    ------
    SchemaMismatchError
        If a value does not fit its column.
    InvalidInputError
        If an expression does not fit the table.
    """
    _bind_values(read_schema(table.manifest.schema, BlobHandling.ALL_BINARY), updates)
    scanner = _scan_changed(table, predicate)
    version, identity = table.manifest.version, str(uuid.uuid4())
    tasks = tuple(
        UpdateTask(version, number, identity, dict(updates), predicate, file_version, part)
        for number, part in enumerate(divide(scanner, split_size_bytes))
    )
    return UpdatePlan(version, identity, tuple(updates), tasks)


def _scan_changed(table: TableVersion, predicate: Filter | None) -> LanceScanner:
    return LanceScanner(table, ScanOptions(filter=predicate, blob_handling=BlobHandling.ALL_BINARY.value))


def _bind_values(schema: Schema, updates: Mapping[str, str]) -> dict[str, BoundExpression]:
    """Fit the new values to the columns that they replace."""
    if not updates:
        raise InvalidInputError("there is nothing to update: give an expression for one column at least")
    arrow = schema.to_storage()
    return {name: _bind_value(schema, arrow, name, text) for name, text in updates.items()}


def _bind_value(schema: Schema, arrow: pa.Schema, name: str, text: str) -> BoundExpression:
    """Fit an expression to the column that it replaces."""
    if name not in schema.names:
        close = difflib.get_close_matches(name, schema.names, 1)
        raise InvalidInputError(
            f"there is no column {name!r} to update{f'; did you mean {close[0]!r}?' if close else ''}"
        )
    if not isinstance(text, str):
        raise InvalidInputError(f"the new value of column {name!r} is {text!r}; a SQL expression is needed")
    value = as_expression(text, arrow)
    if schema.field(name).logical_type == JSON:
        return _bind_json(schema, name, value)
    wanted = schema.field(name).to_arrow_type()
    return value if value.type == wanted else bind(Cast(value.expression, wanted), arrow)


def _bind_json(schema: Schema, name: str, value: BoundExpression) -> BoundExpression:
    """Check that the value of a JSON column is text, which becomes JSON on writing, or another JSON column."""
    if value.type in (pa.string(), pa.large_string()):
        return value
    if pa.types.is_null(value.type):
        return bind(Cast(value.expression, pa.string()), schema.to_storage())
    if isinstance(value.expression, Column) and _is_json(schema.fields, value.expression.path):
        return value
    raise SchemaMismatchError(
        f"the new value of column {name!r}, which is JSON, is {value.type}; a text or a column of JSON is needed"
    )


def _is_json(fields: Sequence[Field], path: FieldPath) -> bool:
    found = next((field for field in fields if field.name == path[0]), None)
    if found is None or len(path) == 1:
        return found is not None and found.logical_type == JSON
    return _is_json(found.children, path[1:])
