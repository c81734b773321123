"""Clauses of a merge, as values, and the rules that they keep."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lance_format import InvalidInputError
from lance_format.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from connector.table_api.assigned_rows import Value, Values


class Rows(enum.Enum):
    """The rows that a clause is about, by the names of the methods that add clauses."""

    MATCHED = "whenMatched"
    NOT_MATCHED = "whenNotMatched"
    NOT_MATCHED_BY_SOURCE = "whenNotMatchedBySource"


class Action(enum.Enum):
    """Action of a clause."""

    DELETE = "Delete"
    UPDATE = "Update"
    INSERT = "Insert"


@dataclass(frozen=True)
class Clause:
    """A clause of a merge.

    Parameters
    ----------
    rows : Rows
    action : Action
    condition : str or Column, optional
        Further condition on the rows.
    values : mapping of str to (str or Column), optional
        By columns of the table. None of an update or an insert stands for all columns, as the source has them.
    """

    rows: Rows
    action: Action
    condition: Value | None = None
    values: Values | None = None

    @property
    def name(self) -> str:
        """The method that adds the clause."""
        star = "All" if self.is_star else ""
        return f"{self.rows.value}{self.action.value}{star}"

    @property
    def is_star(self) -> bool:
        """True if all columns get the values that the source has."""
        return self.values is None and self.action is not Action.DELETE


def check_clauses(clauses: Sequence[Clause]) -> None:
    """Refuse clauses that do nothing.

    Raises
    ------
    InvalidInputError
        If there is no clause, or one that no row reaches.
    """
    if not clauses:
        raise InvalidInputError("a merge needs a clause, as whenMatchedUpdateAll() or whenNotMatchedInsertAll()")
    for rows in Rows:
        some = [clause for clause in clauses if clause.rows is rows]
        for clause in some[:-1]:
            if clause.condition is None:
                raise InvalidInputError(
                    f"no row reaches the clauses after {clause.name} without a condition; give it one, or make it the"
                    f" last of the clauses {rows.value}…"
                )


def of_rows(clauses: Sequence[Clause], rows: Rows) -> list[Clause]:
    """Return the clauses about some rows, in order."""
    return [clause for clause in clauses if clause.rows is rows]


def deletes_all_matches(clauses: Sequence[Clause]) -> bool:
    """Return whether matched rows are only deleted, so that several source rows may match one."""
    matched = of_rows(clauses, Rows.MATCHED)
    return len(matched) == 1 and matched[0].action is Action.DELETE and matched[0].condition is None
