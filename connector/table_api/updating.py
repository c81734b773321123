"""Delete and update: the rows for which a condition is true."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connector.table_api.assigned_rows import TableColumns, Value, Values, to_column
from connector.table_api.row_changes import DELETE, UPDATE, Delta, RowChangeResult, change_rows, operation
from connector.table_api.target import ADDRESS, Snapshot, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def delete_rows(target: Target, condition: Value | None) -> RowChangeResult:
    """Delete the rows for which a condition is true; without a condition all rows, which needs no job."""
    if condition is None:
        dataset = target.open_latest("DELETE")
        deleted = dataset.delete("true").num_deleted_rows
        return RowChangeResult(dataset.version, num_deleted_rows=deleted)

    def plan(snapshot: Snapshot) -> Delta:
        return Delta(_matching(snapshot, condition).select(operation(DELETE), ADDRESS))

    return change_rows(target, "DELETE", plan, condition if isinstance(condition, str) else None)


def update_rows(target: Target, condition: Value | None, assignments: Values) -> RowChangeResult:
    """Assign values to columns of the rows for which a condition is true; without a condition, of all rows.

    Parameters
    ----------
    target : Target
    condition : Value, optional
        By default all rows are updated.
    assignments : Values
        The new values by column.
    """

    def plan(snapshot: Snapshot) -> Delta:
        columns = table_columns(snapshot)
        rows = snapshot.rows if condition is None else _matching(snapshot, condition)
        (assigned,) = columns.fit(rows, [columns.parse(assignments, "'set'")])
        made = rows.select(operation(UPDATE), *columns.row(assigned, snapshot.column), ADDRESS)
        return Delta(made, tuple(sorted(assigned.changed)))

    return change_rows(target, "UPDATE", plan)


def table_columns(snapshot: Snapshot) -> TableColumns:
    """Return the columns of a snapshot, to which values are assigned."""
    target = snapshot.target
    is_ansi = target.spark.conf.get("spark.sql.ansi.enabled", "true") == "true"
    return TableColumns(snapshot.columns, target.alias, target.is_case_sensitive, is_ansi)


def _matching(snapshot: Snapshot, condition: Value) -> DataFrame:
    return snapshot.rows.where(to_column(condition, "the condition"))
