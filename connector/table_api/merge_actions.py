"""Actions of a merge: each row of a join gets the action of the first clause whose condition is true."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from connector.table_api.assigned_rows import Assignments, TableColumns, Value, to_column
from connector.table_api.merge_clauses import Action, Clause, Rows, of_rows
from connector.table_api.row_changes import DELETE, INSERT, UPDATE, operation
from connector.types.column_names import find_name, quoted
from lance_format import InvalidInputError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ROW = "__lance_row"
_OPERATIONS = {Action.DELETE: DELETE, Action.UPDATE: UPDATE, Action.INSERT: INSERT}


class Actions:
    """The clauses of a merge, over the columns of a table.

    Parameters
    ----------
    columns : TableColumns
    clauses : sequence of Clause
    source : DataFrame
    is_partial : bool
        Whether clauses for all columns leave out those that the source lacks.

    Attributes
    ----------
    changed : tuple of str
        The columns that updates assign to.
    partly : tuple of str
        Those of them that an update computes from their old values, or does not assign to.
    kept : tuple of str
        The columns that no update assigns to, if there are updates. Rows have them for inserts only.
    names : list of str
        The columns of the rows: all if rows are inserted, otherwise `changed`.

    Raises
    ------
    InvalidInputError
        If a clause names columns that the table or the source lacks.
    """

    def __init__(
        self, columns: TableColumns, clauses: Sequence[Clause], source: DataFrame, *, is_partial: bool
    ) -> None:
        self._columns = columns
        self._clauses = clauses
        self._source = source
        self._is_partial = is_partial
        self._assignments = {id(clause): self._parse(clause) for clause in clauses}
        self._updates = [clause for clause in clauses if clause.action is Action.UPDATE]
        changed = set[str]().union(*(self._assignments[id(clause)].changed for clause in self._updates))
        every = columns.fields.names
        self.changed = tuple(sorted(changed))
        self.partly = tuple(sorted(changed & self._read_by_updates()))
        self.kept = tuple(name for name in every if name not in changed) if self._updates else ()
        inserts = any(clause.action is Action.INSERT for clause in clauses)
        self.names = every if inserts else [name for name in every if name in changed]

    def read(self, condition: Value) -> set[str]:
        """Return the columns of the table that the merge reads.

        Parameters
        ----------
        condition : str or Column
            Of the merge.
        """
        seeing = [clause for clause in self._clauses if clause.rows is not Rows.NOT_MATCHED]
        conditions = [clause.condition for clause in seeing if clause.condition is not None]
        return self._columns.mentioned([condition, *conditions]) | self._read_by_updates()

    def _read_by_updates(self) -> set[str]:
        """Return the columns whose old values updates read."""
        parsed = [(clause.values, self._assignments[id(clause)]) for clause in self._updates]
        return set[str]().union(*(self._columns.read_by(*values, self.changed) for values in parsed))

    def of(self, rows: Rows, frame: DataFrame, old: Callable[[str], Column]) -> Column:
        """Return the action on some rows: a struct of an operation (`OPERATION`) and a row (`ROW`), or null.

        Parameters
        ----------
        rows : Rows
        frame : DataFrame
            Conditions and values are expressions over its columns.
        old : callable
            Returns the value of a column of the table that a clause does not assign to.

        Raises
        ------
        SchemaMismatchError
            If a value is of a type that its column does not take.
        """
        from pyspark.sql import functions as f

        clauses = of_rows(self._clauses, rows)
        fitted = self._columns.fit(frame, [self._assignments[id(clause)] for clause in clauses])
        cases: Column | None = None
        for clause, assignments in zip(clauses, fitted, strict=True):
            made = f.struct(operation(_OPERATIONS[clause.action]), *self._row(clause, assignments, old))
            condition = f.lit(True)
            if clause.condition is not None:
                condition = to_column(clause.condition, f"the condition of {clause.name}")
            cases = f.when(condition, made) if cases is None else cases.when(condition, made)
        assert cases is not None
        return cases

    def _row(self, clause: Clause, assignments: Assignments, old: Callable[[str], Column]) -> list[Column]:
        from pyspark.sql import functions as f

        if not self.names:
            return []
        cells = f.struct(*self._cells(clause, assignments, old))
        row = f.when(f.lit(False), cells) if clause.action is Action.DELETE else cells
        return [row.alias(ROW)]

    def _cells(self, clause: Clause, assignments: Assignments, old: Callable[[str], Column]) -> list[Column]:
        """Return the values of the columns of a row; those that the writer does not need are null."""
        if clause.action is Action.INSERT:
            return self._columns.row(assignments, old, self.names)
        wanted = set(self.changed if clause.action is Action.UPDATE else ())
        values = {path: value for path, value in assignments.values.items() if path[0] in wanted}

        def value(name: str) -> Column:
            return old(name) if name in wanted else self._columns.null(name)

        return self._columns.row(Assignments(values), value, self.names)

    def _parse(self, clause: Clause) -> Assignments:
        if clause.action is Action.DELETE:
            return Assignments({})
        given = self._star(clause) if clause.values is None else clause.values
        return self._columns.parse(given, clause.name)

    def _star(self, clause: Clause) -> Mapping[str, Column]:
        values = {}
        for name in self._columns.fields.names:
            found = find_name(name, self._source.columns, case_sensitive=self._columns.case_sensitive)
            if found is not None:
                values[quoted(name)] = self._source[quoted(found)]
            elif not self._is_partial:
                raise InvalidInputError(
                    f"{clause.name}() takes all columns of the table from the source, which has no column {name!r}:"
                    f" name the columns, in {clause.name.removesuffix('All')}(…), or call withSchemaEvolution()"
                )
        return values
