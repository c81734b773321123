"""Delete and update: the rows for which a condition is true."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from connector.table_api.assigned_rows import Assignments, TableColumns, Value, Values, text_of, to_column
from connector.table_api.row_changes import DELETE, UPDATE, Delta, RowChangeResult, change_rows, gather, operation
from connector.table_api.target import ADDRESS, Snapshot, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_SET = "'set'"
_JOINED = re.compile(r"\bselect\b|subquery|\bexists\b", re.IGNORECASE)
"""Parts of expressions that Spark may plan as joins."""


def delete_rows(target: Target, condition: Value | None) -> RowChangeResult:
    """Delete the rows for which a condition is true.

    Without a condition this deletes all rows, which needs no job unless the options number the change.
    """
    if condition is None and target.parsed.sink.txn_app_id is None:
        dataset = target.open_latest("DELETE")
        deleted = dataset.delete("true").num_deleted_rows
        return RowChangeResult(dataset.version, num_deleted_rows=deleted)

    def plan(snapshot: Snapshot) -> Delta:
        rows = snapshot.rows if condition is None else _matching(snapshot, condition)
        return Delta(rows.select(operation(DELETE), ADDRESS))

    def reads(fields: StructType) -> set[str]:
        return table_columns(target, fields).mentioned([] if condition is None else [condition])

    return change_rows(target, "DELETE", plan, reads)


def update_rows(target: Target, condition: Value | None, assignments: Values) -> RowChangeResult:
    """Assign values to columns of the rows for which a condition is true; without a condition, of all rows.

    Tasks read the columns that replaced rows keep by the addresses of these. Without a condition they do not, since
    that takes longer than a scan of all columns.

    Parameters
    ----------
    target : Target
    condition : Value, optional
        By default all rows are updated.
    assignments : Values
        The new values by column.
    """

    if condition is None:
        return change_rows(target, "UPDATE", lambda snapshot: _update_all(snapshot, assignments))

    def plan(snapshot: Snapshot) -> Delta:
        columns, rows = table_columns(target, snapshot.columns), _matching(snapshot, condition)
        (assigned,) = columns.fit(rows, [columns.parse(assignments, _SET)])
        changed, partly = assigned.changed, _partly(columns, assignments, assigned)
        made = rows.select(operation(UPDATE), *columns.row(assigned, snapshot.column, changed), ADDRESS)
        kept = tuple(name for name in columns.fields.names if name not in changed)
        is_joined = any(_JOINED.search(text_of(value)) for value in (condition, *assignments.values()))
        return Delta(gather(made) if kept and is_joined else made, tuple(sorted(changed)), kept, partly)

    def reads(fields: StructType) -> set[str]:
        columns = table_columns(target, fields)
        parsed = columns.parse(assignments, _SET)
        return columns.read_by(assignments, parsed, parsed.changed) | columns.mentioned([condition])

    return change_rows(target, "UPDATE", plan, reads)


def _update_all(snapshot: Snapshot, assignments: Values) -> Delta:
    columns = table_columns(snapshot.target, snapshot.columns)
    (assigned,) = columns.fit(snapshot.rows, [columns.parse(assignments, _SET)])
    made = snapshot.rows.select(operation(UPDATE), *columns.row(assigned, snapshot.column), ADDRESS)
    return Delta(made, tuple(sorted(assigned.changed)), partly=_partly(columns, assignments, assigned))


def _partly(columns: TableColumns, given: Values, assigned: Assignments) -> tuple[str, ...]:
    """Return the columns whose new values are computed from the old ones."""
    return tuple(sorted(assigned.changed & columns.read_by(given, assigned, assigned.changed)))


def table_columns(target: Target, fields: StructType) -> TableColumns:
    """Return the columns of a table, to which values are assigned."""
    is_ansi = target.spark.conf.get("spark.sql.ansi.enabled", "true") == "true"
    return TableColumns(fields, target.alias, target.is_case_sensitive, is_ansi, target.computes_times)


def _matching(snapshot: Snapshot, condition: Value) -> DataFrame:
    return snapshot.rows.where(to_column(condition, "the condition"))
