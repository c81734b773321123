"""Delete and update: the rows for which a condition is true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from connector.table_api.assigned_rows import TableColumns, Value, Values, to_column
from connector.table_api.row_changes import DELETE, UPDATE, Delta, RowChangeResult, change_rows, operation
from connector.table_api.target import ADDRESS, Snapshot, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
        names = None if read is None else {path[0] for path in assigned.values}
        made = rows.select(operation(UPDATE), *columns.row(assigned, snapshot.column, names), ADDRESS)
        return Delta(made, tuple(sorted(assigned.changed)))

    read = _columns_read(condition, assignments)
    return change_rows(target, "UPDATE", plan, read)


def _columns_read(condition: Value | None, assignments: Values) -> str | None:
    """Return SQL that names all columns that an update of some rows reads; None if that is not known, or it is of all.

    Tasks read the other columns of the rows that they replace by the addresses of these. To read all rows of a table
    so takes longer than a scan.
    """
    given = [condition, *(assignments.values() if isinstance(assignments, Mapping) else [None])]
    if not all(isinstance(value, str) for value in given):
        return None
    return " ; ".join([*map(str, given), *map(str, assignments)])


def table_columns(snapshot: Snapshot) -> TableColumns:
    """Return the columns of a snapshot, to which values are assigned."""
    target = snapshot.target
    is_ansi = target.spark.conf.get("spark.sql.ansi.enabled", "true") == "true"
    return TableColumns(snapshot.columns, target.alias, target.is_case_sensitive, is_ansi)


def _matching(snapshot: Snapshot, condition: Value) -> DataFrame:
    return snapshot.rows.where(to_column(condition, "the condition"))
