"""Rows that a change writes: each column has the value of its assignment, or that of the old row.

Assignments are given as Delta takes them: by the names of columns, or of fields of structs (`p.a`), as SQL or as
columns of Spark. The fields of a struct that are not assigned to stay, and a null struct becomes one of nulls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

from pyspark.sql.types import DataType, StructField, StructType

from connector.table_api.store_assignment import fit, limit_length, null_of
from connector.table_api.target import DEFAULT_ALIAS
from connector.types.column_names import find_name, mentioned_names, parse_name, spelled
from connector.types.declared_types import with_lengths
from connector.types.field_metadata import CURRENT_DEFAULT
from lance_format import InvalidInputError
from lance_format.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Value: TypeAlias = "str | Column"
"""An expression, as SQL or as a column of Spark."""
Values: TypeAlias = "Mapping[str, Value]"
_TRY = re.compile(r"\btry", re.IGNORECASE)
"""Functions of which some make null of any error."""


@dataclass(frozen=True)
class Assignments:
    """Values by columns and fields of a table.

    Parameters
    ----------
    values : dict
        By the path of a column or field, in the table's own names.
    kept : frozenset of str
        The columns that are assigned to themselves.
    """

    values: dict[tuple[str, ...], Column]
    kept: frozenset[str] = frozenset()

    @property
    def changed(self) -> set[str]:
        """The columns whose values may change."""
        return {path[0] for path in self.values} - self.kept


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table, to which values are assigned.

    Parameters
    ----------
    fields : StructType
    alias : str, optional
        The only qualifier that names of columns may have, if the user has given one.
    case_sensitive, is_ansi, computes_times : bool
        Settings of the session; see `connector.table_api.store_assignment`.
    """

    fields: StructType
    alias: str | None = None
    case_sensitive: bool = False
    is_ansi: bool = True
    computes_times: bool = True

    def parse(self, given: Values, what: str) -> Assignments:
        """Find the columns to which values are assigned.

        Parameters
        ----------
        given : mapping
        what : str
            The argument, for messages.

        Raises
        ------
        InvalidInputError
            If nothing is assigned to, a name is not one of the table, or a column is assigned to twice.
        """
        if not isinstance(given, Mapping) or not given:
            raise InvalidInputError(f"{what} needs a mapping from columns to values, not {given!r}")
        values: dict[tuple[str, ...], Column] = {}
        kept = set()
        for name, value in given.items():
            path = self.find(name)
            for other in values:
                shorter = min(len(other), len(path))
                if other[:shorter] == path[:shorter]:
                    raise InvalidInputError(f"{what} assigns to {'.'.join(other[:shorter])!r} twice: do it once")
            values[path] = to_column(value, f"the value of {name!r} in {what}")
            if isinstance(value, str) and len(path) == 1 and self._is_itself(value, path):
                kept.add(path[0])
        return Assignments(values, frozenset(kept))

    def find(self, name: str) -> tuple[str, ...]:
        """Return the path of a column, or of a field of a struct, in the names of the table.

        Outer spaces belong to a name if the table has such a column, as they do for Spark, and are ignored otherwise.

        Raises
        ------
        InvalidInputError
            If there is none.
        """
        if not isinstance(name, str):
            raise InvalidInputError(f"columns are named by strings, not by {name!r}")
        path = self._find_qualified(parse_name(name, keeps_spaces=True)) or self._find_qualified(parse_name(name))
        if path is None:
            known = ", ".join(repr(spelled(known)) for known in self.fields.names)
            raise InvalidInputError(f"there is no column {name!r} in the table, which has {known}")
        return path

    def mentioned(self, values: Iterable[Value]) -> set[str]:
        """Return the columns that expressions may refer to.

        The text of a column of Spark need not name all columns, nor that of SQL if names are regular expressions. So
        snapshots raise an error for the others, see `Target.snapshot`, unless a function would hide it.

        Parameters
        ----------
        values : iterable of Value
        """
        names, owner = self.fields.names, self.alias or DEFAULT_ALIAS
        found = set[str]()
        for value in values:
            text = text_of(value)
            hides_errors = _TRY.search(text) and (not isinstance(value, str) or "`" in text)
            found.update(names if hides_errors else mentioned_names(text, names, owner))
        return found

    def read_by(self, given: Values | None, assignments: Assignments, changed: Collection[str]) -> set[str]:
        """Return the columns whose old values an update reads.

        Parameters
        ----------
        given : mapping, optional
            The values, unless none of them refers to the table.
        assignments : Assignments
            What `parse` has made of them.
        changed : collection of str
            The columns to which this update or others assign. The old values of the others are not needed.
        """
        values = [value for name, value in (given or {}).items() if self.find(name)[0] in changed]
        return {name for name in changed if (name,) not in assignments.values} | self.mentioned(values)

    def fit(self, frame: DataFrame, given: Sequence[Assignments]) -> list[Assignments]:
        """Cast the values of assignments to the types of the columns.

        Parameters
        ----------
        frame : DataFrame
            The values are expressions over its columns.
        given : sequence of Assignments

        Raises
        ------
        SchemaMismatchError
            If a value is of a type that its column does not take.
        """
        flat = [(path, value) for assignments in given for path, value in assignments.values.items()]
        if not flat:
            return list(given)
        found = frame.select([value.alias(f"_{number}") for number, (_, value) in enumerate(flat)]).schema
        fitted = iter(self._fit(value, found[number].dataType, path) for number, (path, value) in enumerate(flat))
        return [
            Assignments({path: next(fitted) for path in assignments.values}, assignments.kept) for assignments in given
        ]

    def row(
        self, assignments: Assignments, old: Callable[[str], Column], names: Collection[str] | None = None
    ) -> list[Column]:
        """Return the values of columns, in order, under their names.

        Parameters
        ----------
        assignments : Assignments
            Of `fit`.
        old : callable
            Returns the old value of a column that is not assigned to as a whole.
        names : collection of str, optional
            The columns. Default: all.
        """
        fields = [field for field in self.fields if names is None or field.name in names]
        return [_assigned(field, (), assignments.values, partial(old, field.name)) for field in fields]

    def unassigned(self, name: str) -> Column:
        """Return the value of a column in a new row that nothing is assigned to: its default value, or null."""
        from pyspark.sql import functions as f

        field = self.fields[name]
        text = field.metadata.get(CURRENT_DEFAULT)
        return self.null(name) if text is None else f.expr(text).cast(field.dataType)

    def null(self, name: str) -> Column:
        """Return the null of a column."""
        return null_of(self.fields[name].dataType, computes_times=self.computes_times)

    def _fit(self, value: Column, found: DataType, path: tuple[str, ...]) -> Column:
        wanted = self.fields[path[0]]
        declared = with_lengths(wanted)
        for part in path[1:]:
            wanted = wanted.dataType[part]  # type: ignore[index]
            declared = declared[part].dataType  # type: ignore[index]
        name = ".".join(path)
        fitted = fit(
            value,
            found,
            wanted.dataType,
            name,
            is_ansi=self.is_ansi,
            case_sensitive=self.case_sensitive,
            computes_times=self.computes_times,
        )
        return limit_length(fitted, declared, name)

    def _find_qualified(self, parts: Sequence[str]) -> tuple[str, ...] | None:
        path = self._find(parts)
        if path is None and self.alias is not None and len(parts) > 1 and self._same(parts[0], self.alias):
            path = self._find(parts[1:])
        return path

    def _find(self, parts: Sequence[str]) -> tuple[str, ...] | None:
        level: DataType = self.fields
        path = []
        for part in parts:
            if not isinstance(level, StructType):
                return None
            name = find_name(part, level.names, case_sensitive=self.case_sensitive)
            if name is None:
                return None
            path.append(name)
            level = level[name].dataType
        return tuple(path)

    def _is_itself(self, value: str, path: tuple[str, ...]) -> bool:
        """Return whether SQL is merely the name of a column; with an alias the name must be qualified."""
        try:
            parts = parse_name(value)
        except InvalidInputError:
            return False
        if self.alias is not None and len(parts) == 2 and parts[0] == self.alias:
            return self._find(parts[1:]) == path
        return False

    def _same(self, one: str, other: str) -> bool:
        return one == other if self.case_sensitive else one.lower() == other.lower()


def to_column(value: object, what: str) -> Column:
    """Return an expression as a column of Spark.

    Parameters
    ----------
    value : str or Column
        SQL, or a column.
    what : str
        The argument, for the message.

    Raises
    ------
    InvalidInputError
        If it is neither.
    """
    from pyspark.sql import functions as f

    if isinstance(value, str):
        return f.expr(value)
    if not hasattr(value, "isNotNull"):
        raise InvalidInputError(f"{what} must be SQL in a string, or a column of Spark, not {value!r}; see lit()")
    return value  # type: ignore[return-value]


def text_of(value: Value) -> str:
    """Return the text of an expression: SQL, or similar to it."""
    return value if isinstance(value, str) else repr(value)


def _assigned(
    field: StructField, above: tuple[str, ...], values: Mapping[tuple[str, ...], Column], old: Callable[[], Column]
) -> Column:
    path = (*above, field.name)
    if path in values:
        return values[path].alias(field.name)
    if not any(other[: len(path)] == path for other in values):
        return old().alias(field.name)
    from pyspark.sql import functions as f

    struct = cast(StructType, field.dataType)
    return f.struct(*(_assigned(part, path, values, partial(_part, old, part.name)) for part in struct)).alias(
        field.name
    )


def _part(old: Callable[[], Column], name: str) -> Column:
    return old().getField(name)
