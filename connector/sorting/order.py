"""Orders for sorting rows: columns with directions, or a z-order."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from connector.sorting.zorder import check_orderable
from connector.types.column_names import quoted
from lance_format import InvalidInputError, NotSupportedError
from lance_format.lazy_dataclasses import dataclass

_TERM = re.compile(
    r"\s*(?P<name>`(?:[^`]|``)+`|.+?)(?:\s+(?P<direction>ASC|DESC))?(?:\s+NULLS\s+(?P<nulls>FIRST|LAST))?\s*",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Term:
    """A column of an order.

    Parameters
    ----------
    place : int
        Position of the column in the table.
    is_descending : bool
    nulls_first : bool
    """

    place: int
    is_descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class RowOrder:
    """An order for sorting rows; exactly one of the two parameters is given.

    Parameters
    ----------
    terms : tuple of Term
    zorder : tuple of str
        The columns of a z-order.
    """

    terms: tuple[Term, ...] = ()
    zorder: tuple[str, ...] = ()


def parse_order(schema: pa.Schema, order_by: Sequence[str] | None, zorder_by: Sequence[str] | None) -> RowOrder:
    """Parse the arguments that name an order.

    Parameters
    ----------
    schema : pa.Schema
        The columns of the table.
    order_by : sequence of str, optional
        Columns, each as `name`, `name DESC` or `name ASC NULLS LAST`. Nulls come first in ascending order and last in
        descending order by default. The name of a column stands for itself, also if it looks like one of these.
    zorder_by : sequence of str, optional
        Columns.

    Raises
    ------
    InvalidInputError
        If both are given, one is empty or malformed, or there is no such column.
    NotSupportedError
        If the values of a column have no order.
    """
    if order_by is not None and zorder_by is not None:
        raise InvalidInputError("order_by and zorder_by contradict each other: rows have one order; keep one")
    given = order_by if zorder_by is None else zorder_by
    name = "order_by" if zorder_by is None else "zorder_by"
    if not given or not all(isinstance(term, str) and (term.strip() or term in schema.names) for term in given):
        raise InvalidInputError(f"{name} is {given!r}; an array of names of columns is needed")
    if zorder_by is not None:
        columns = tuple(dict.fromkeys(schema.names[_place(schema, _unquoted(schema, term))] for term in zorder_by))
        for column in columns:
            check_orderable(schema.field(column).type, column)
        return RowOrder(zorder=columns)
    return RowOrder(tuple(_parse_term(schema, term) for term in given))


def _parse_term(schema: pa.Schema, text: str) -> Term:
    found = _TERM.fullmatch(text if text not in schema.names else quoted(text))
    if found is None:
        raise InvalidInputError(f"order_by has {text!r}; 'name', 'name DESC' or 'name ASC NULLS LAST' is needed")
    place = _place(schema, _unquoted(schema, found["name"]))
    if _has_no_order(schema.field(place).type):
        raise NotSupportedError(
            f"rows cannot be sorted by column {schema.names[place]!r}, which is of the type {schema.field(place).type}"
        )
    is_descending = (found["direction"] or "").upper() == "DESC"
    nulls_first = not is_descending if found["nulls"] is None else found["nulls"].upper() == "FIRST"
    return Term(place, is_descending, nulls_first)


def _unquoted(schema: pa.Schema, name: str) -> str:
    if name in schema.names:
        return name
    name = name.strip()
    return name[1:-1].replace("``", "`") if name.startswith("`") and name.endswith("`") else name


def _place(schema: pa.Schema, name: str) -> int:
    """Return the position of a column by its name, ignoring case if the name is unambiguous."""
    places = [place for place, known in enumerate(schema.names) if known == name]
    places = places or [place for place, known in enumerate(schema.names) if known.lower() == name.lower()]
    if len(places) != 1:
        raise InvalidInputError(f"there is no column {name!r} to sort by; the columns are {', '.join(schema.names)}")
    return places[0]


def _has_no_order(column_type: pa.DataType) -> bool:
    if isinstance(column_type, pa.BaseExtensionType):
        return True
    if pa.types.is_struct(column_type):
        return any(_has_no_order(field.type) for field in column_type)
    if pa.types.is_list(column_type) or pa.types.is_large_list(column_type) or pa.types.is_fixed_size_list(column_type):
        return _has_no_order(column_type.value_type)
    return bool(pa.types.is_map(column_type))
