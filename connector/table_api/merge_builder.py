"""`LanceTable.merge`: a builder that takes the clauses, and runs the merge."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from connector.table_api.assigned_rows import Value, Values
from connector.table_api.merge_actions import Actions
from connector.table_api.merge_clauses import Action, Clause, Rows, check_clauses
from connector.table_api.merge_plan import MergePlan
from connector.table_api.row_changes import Delta, RowChangeResult, change_rows
from connector.table_api.store_assignment import null_of
from connector.table_api.target import ADDRESS, DEFAULT_ALIAS, Snapshot, Target
from connector.table_api.updating import table_columns
from connector.types.column_names import find_name
from lance_format import InvalidInputError, RepeatedRowError
from lance_format.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField, StructType


@dataclass(frozen=True)
class LanceMergeBuilder:
    """A definition of a merge. `LanceTable.merge` makes it.

    Each method returns another builder. Clauses of one kind (`whenMatched…`, `whenNotMatched…`,
    `whenNotMatchedBySource…`) apply in the order of their addition: for each row the first one whose condition is
    true. A row without such a clause stays unchanged, or is not inserted.

    Conditions and values are SQL in strings, or columns of Spark. Clauses for matched rows see the columns of both
    sides; give these aliases where names repeat. `whenNotMatched…` sees the columns of the source only, and
    `whenNotMatchedBySource…` those of the table.

    >>> table.alias("t").merge(arrivals.alias("s"), "t.id = s.id") \\
    ...     .whenMatchedDelete("s.left") \\
    ...     .whenMatchedUpdate(set={"name": "s.name"}) \\
    ...     .whenNotMatchedInsertAll() \\
    ...     .execute()  # doctest: +SKIP
    RowChangeResult(version=4, num_updated_rows=7, num_inserted_rows=2, num_deleted_rows=1)
    """

    _target: Target
    _source: DataFrame
    _condition: Value
    _clauses: tuple[Clause, ...] = ()
    _evolves: bool = False

    def whenMatchedUpdate(self, condition: Value | None = None, set: Values | None = None) -> LanceMergeBuilder:
        """Update target rows that a source row matches.

        Parameters
        ----------
        condition : str or Column, optional
            Further condition on the rows.
        set : mapping of str to (str or Column)
            Values by columns of the table, or fields of structs (`p.a`). The other columns stay.
        """
        return self._add(Rows.MATCHED, Action.UPDATE, condition, _given(set, "set", "whenMatchedUpdate"))

    def whenMatchedUpdateAll(self, condition: Value | None = None) -> LanceMergeBuilder:
        """Update all columns of target rows that a source row matches, to its columns of the same names."""
        return self._add(Rows.MATCHED, Action.UPDATE, condition)

    def whenMatchedDelete(self, condition: Value | None = None) -> LanceMergeBuilder:
        """Delete target rows that a source row matches."""
        return self._add(Rows.MATCHED, Action.DELETE, condition)

    def whenNotMatchedInsert(self, condition: Value | None = None, values: Values | None = None) -> LanceMergeBuilder:
        """Insert source rows that match no target row.

        Parameters
        ----------
        condition : str or Column, optional
            Further condition on the rows.
        values : mapping of str to (str or Column)
            Values by columns of the table. The other columns become null.
        """
        return self._add(Rows.NOT_MATCHED, Action.INSERT, condition, _given(values, "values", "whenNotMatchedInsert"))

    def whenNotMatchedInsertAll(self, condition: Value | None = None) -> LanceMergeBuilder:
        """Insert source rows that match no target row, with their columns of the same names."""
        return self._add(Rows.NOT_MATCHED, Action.INSERT, condition)

    def whenNotMatchedBySourceUpdate(
        self, condition: Value | None = None, set: Values | None = None
    ) -> LanceMergeBuilder:
        """Update target rows that no source row matches; see `whenMatchedUpdate`."""
        given = _given(set, "set", "whenNotMatchedBySourceUpdate")
        return self._add(Rows.NOT_MATCHED_BY_SOURCE, Action.UPDATE, condition, given)

    def whenNotMatchedBySourceDelete(self, condition: Value | None = None) -> LanceMergeBuilder:
        """Delete target rows that no source row matches."""
        return self._add(Rows.NOT_MATCHED_BY_SOURCE, Action.DELETE, condition)

    def withSchemaEvolution(self) -> LanceMergeBuilder:
        """Add the columns that only the source has, if a clause is about all columns.

        The version of the merge adds them. Clauses about all columns may then lack columns of the table: an update
        leaves them, and an insert makes them null.
        """
        return dataclasses.replace(self, _evolves=True)

    def execute(self) -> RowChangeResult:
        """Run the merge, and commit it as one version.

        Returns
        -------
        RowChangeResult

        Raises
        ------
        InvalidInputError
            If there is no clause, a clause names columns that are not there, or several source rows change one target
            row.
        SchemaMismatchError
            If a value is of a type that its column does not take, or null where the column allows none.
        NotSupportedError
            If the table, as its options show it, cannot be changed.
        RetryableCommitConflictError
            If other writers kept changing the same rows.
        """
        check_clauses(self._clauses)
        try:
            return change_rows(self._target, "MERGE", self._plan, self._reads)
        except RepeatedRowError as error:
            raise InvalidInputError(
                f"several rows of the source match one row of the table {self._target.path} and change it, so its"
                " result is ambiguous; nothing was changed: keep one of them, for example by dropDuplicates, or"
                " make the condition stricter"
            ) from error

    def _plan(self, snapshot: Snapshot) -> Delta:
        new = self._new_fields(snapshot.columns)
        target = _with_null_columns(snapshot, new)
        plan = MergePlan(
            target,
            table_columns(self._target, target.columns),
            self._source,
            self._condition,
            self._clauses,
            is_partial=self._evolves,
        )
        return dataclasses.replace(plan.compute(), new_columns=tuple(new))

    def _reads(self, fields: StructType) -> set[str]:
        known = type(fields)([*fields, *self._new_fields(fields)])
        columns = table_columns(self._target, known)
        return Actions(columns, self._clauses, self._source, is_partial=self._evolves).read(self._condition)

    def _new_fields(self, fields: StructType) -> list[StructField]:
        if not self._evolves or not any(clause.is_star for clause in self._clauses):
            return []
        case_sensitive = self._target.is_case_sensitive
        return [
            field
            for field in self._source.schema
            if find_name(field.name, fields.names, case_sensitive=case_sensitive) is None
        ]

    def _add(
        self, rows: Rows, action: Action, condition: Value | None, values: Values | None = None
    ) -> LanceMergeBuilder:
        clause = Clause(rows, action, condition, values)
        return dataclasses.replace(self, _clauses=(*self._clauses, clause))


def _with_null_columns(snapshot: Snapshot, new: list[StructField]) -> Snapshot:
    """Return a table as it would be with further columns."""
    if not new:
        return snapshot
    computes_times = snapshot.target.computes_times
    nulls = [null_of(field.dataType, computes_times=computes_times).alias(field.name) for field in new]
    known = [snapshot.column(name) for name in snapshot.columns.names]
    rows = snapshot.rows.select(*known, *nulls, ADDRESS).alias(snapshot.target.alias or DEFAULT_ALIAS)
    return dataclasses.replace(snapshot, rows=rows, columns=type(snapshot.columns)([*snapshot.columns, *new]))


def _given(values: Values | None, argument: str, method: str) -> Values:
    if values is None:
        raise InvalidInputError(f"{method} needs the argument {argument!r}: values by columns; {method}All takes all")
    return values
