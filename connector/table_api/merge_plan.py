"""Merge: one join of the snapshot and the source, whose rows go through the clauses.

| clauses are about | join |
|---|---|
| matched rows | inner |
| matched rows, and source rows without a match | right outer |
| matched rows, and target rows without a match | left outer |
| all three | full outer |
| rows without a match only | left anti, from either side |

Clauses for matched rows see the columns of both sides. The others see those of one side only, so that names need no
qualifier there: the columns of the target have other names while the actions on source rows are computed, and those of
the source are dropped before the actions on target rows are.

The columns to which no update assigns are not read: the writers take what replaced rows keep, by address.

Several source rows that change one target row are found by the writers, which get its address twice. If all matched
rows are deleted, it makes no difference how many source rows match: then a semi join finds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from connector.table_api.assigned_rows import TableColumns, Value, to_column
from connector.table_api.merge_actions import ROW, Actions
from connector.table_api.merge_clauses import Clause, Rows, deletes_all_matches, of_rows
from connector.table_api.row_changes import OPERATION, Delta, gather
from connector.table_api.target import ADDRESS, DEFAULT_ALIAS, RESERVED, Snapshot
from connector.types.column_names import quoted
from lance_format import InvalidInputError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SOURCE = "__lance_source"
"""Not null in rows of the source."""
_HIDDEN = "__lance_target_"
_ACTIONS = {rows: f"__lance_{rows.value}" for rows in Rows}
_OUTER_JOINS = {
    (False, False): "inner",
    (True, False): "right_outer",
    (False, True): "left_outer",
    (True, True): "full_outer",
}
"""Joins by two flags: whether source rows, and target rows, without a match are wanted."""


class MergePlan:
    """A merge to be computed on a snapshot.

    Parameters
    ----------
    snapshot : Snapshot
    columns : TableColumns
    source : DataFrame
    condition : str or Column
        Says which rows of target and source match.
    clauses : sequence of Clause
    is_partial : bool
        Whether clauses for all columns leave out those that the source lacks.

    Raises
    ------
    InvalidInputError
        If a clause names columns that the table or the source lacks.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        columns: TableColumns,
        source: DataFrame,
        condition: Value,
        clauses: Sequence[Clause],
        *,
        is_partial: bool = False,
    ) -> None:
        _check_source(source)
        self._snapshot = snapshot
        self._columns = columns
        self._source = source
        self._condition = to_column(condition, "the condition of the merge")
        self._clauses = clauses
        self._actions = Actions(columns, clauses, source, is_partial=is_partial)

    def compute(self) -> Delta:
        """Return the rows that the merge deletes, replaces and inserts.

        Raises
        ------
        SchemaMismatchError
            If a value is of a type that its column does not take.
        """
        if self._has(Rows.MATCHED) and not deletes_all_matches(self._clauses):
            rows = self._join()
        else:
            parts = [part() for part in (self._found, self._missing, self._surplus)]
            rows = reduce(lambda one, other: one.unionAll(other), [part for part in parts if part is not None])
        kept = self._actions.kept
        return Delta(gather(rows) if kept else rows, self._actions.changed, kept, self._actions.partly)

    def _join(self) -> DataFrame:
        """Return the rows of all clauses, if some are about matched rows."""
        from pyspark.sql import functions as f

        target, source = self._snapshot.rows, self._source.withColumn(_SOURCE, f.lit(True))
        how = _OUTER_JOINS[self._has(Rows.NOT_MATCHED), self._has(Rows.NOT_MATCHED_BY_SOURCE)]
        joined = target.join(source, self._condition, how)
        action = self._actions.of(Rows.MATCHED, joined, self._snapshot.column)
        is_match = target[ADDRESS].isNotNull() & source[_SOURCE].isNotNull()
        action = f.when(is_match, action).alias(_ACTIONS[Rows.MATCHED])
        if how == "inner":
            return self._finish(joined.select(action, target[ADDRESS]))
        names = self._columns.fields.names
        hidden = [self._snapshot.column(name).alias(f"{_HIDDEN}{place}") for place, name in enumerate(names)]
        rows = joined.select(source["*"], *hidden, target[ADDRESS].alias(ADDRESS), action)
        if self._has(Rows.NOT_MATCHED):
            action = self._actions.of(Rows.NOT_MATCHED, rows, self._columns.unassigned)
            action = f.when(f.col(ADDRESS).isNull(), action).alias(_ACTIONS[Rows.NOT_MATCHED])
            rows = rows.select("*", action)
        if self._has(Rows.NOT_MATCHED_BY_SOURCE):
            rows = self._unhide(rows)
            action = self._actions.of(Rows.NOT_MATCHED_BY_SOURCE, rows, lambda name: rows[quoted(name)])
            action = f.when(f.col(_SOURCE).isNull(), action).alias(_ACTIONS[Rows.NOT_MATCHED_BY_SOURCE])
            rows = rows.select("*", action)
        return self._finish(rows)

    def _unhide(self, rows: DataFrame) -> DataFrame:
        """Return the columns of the target under their names, and the columns of this module."""
        from pyspark.sql import functions as f

        names = self._columns.fields.names
        shown = [f.col(f"{_HIDDEN}{place}").alias(name) for place, name in enumerate(names)]
        actions = [name for kind, name in _ACTIONS.items() if kind is Rows.MATCHED or self._has(kind)]
        actions = [name for name in actions if name in rows.columns]
        alias = self._snapshot.target.alias or DEFAULT_ALIAS
        return rows.select(*shown, _SOURCE, ADDRESS, *actions).alias(alias)

    def _found(self) -> DataFrame | None:
        """Return the target rows that the source matches, where all of them are deleted."""
        if not self._has(Rows.MATCHED):
            return None
        rows = self._snapshot.rows.join(self._source, self._condition, "left_semi")
        return self._of_target(rows, Rows.MATCHED)

    def _missing(self) -> DataFrame | None:
        """Return the source rows that have no match."""
        from pyspark.sql import functions as f

        if not self._has(Rows.NOT_MATCHED):
            return None
        rows = self._source.join(self._snapshot.rows, self._condition, "left_anti")
        action = self._actions.of(Rows.NOT_MATCHED, rows, self._columns.unassigned).alias(_ACTIONS[Rows.NOT_MATCHED])
        return self._finish(rows.select(action, f.lit(None).cast("bigint").alias(ADDRESS)))

    def _surplus(self) -> DataFrame | None:
        """Return the target rows that have no match."""
        if not self._has(Rows.NOT_MATCHED_BY_SOURCE):
            return None
        rows = self._snapshot.rows.join(self._source, self._condition, "left_anti")
        return self._of_target(rows, Rows.NOT_MATCHED_BY_SOURCE)

    def _of_target(self, rows: DataFrame, kind: Rows) -> DataFrame:
        action = self._actions.of(kind, rows, self._snapshot.column).alias(_ACTIONS[kind])
        return self._finish(rows.select(action, ADDRESS))

    def _finish(self, rows: DataFrame) -> DataFrame:
        """Return the rows for which there is an action, in the form of a delta."""
        from pyspark.sql import functions as f

        actions = [f.col(name) for name in _ACTIONS.values() if name in rows.columns]
        chosen = rows.select(f.coalesce(*actions).alias(ROW), f.col(ADDRESS)).where(f.col(ROW).isNotNull())
        cells: list[Column] = [f.col(ROW).getField(ROW).getField(name).alias(name) for name in self._actions.names]
        return chosen.select(f.col(ROW).getField(OPERATION).alias(OPERATION), *cells, ADDRESS)

    def _has(self, rows: Rows) -> bool:
        return bool(of_rows(self._clauses, rows))


def _check_source(source: DataFrame) -> None:
    reserved = [name for name in source.columns if name.lower().startswith(RESERVED)]
    if reserved:
        raise InvalidInputError(
            f"the source of the merge has the column {reserved[0]!r}, but names that start with {RESERVED!r} are those"
            " of columns that a merge adds: rename the column"
        )
