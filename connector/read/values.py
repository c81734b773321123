"""Values that Spark computes from columns, as expressions of `lance_format`.

The planner bridge writes them in the form of predicates (`connector.read.predicates`), and in further forms. These have
the name of the resulting type after the operator.

| form                                                   |                                                           |
|--------------------------------------------------------|-----------------------------------------------------------|
| `["+", type, left, right]`, `-` `*` `/` `%` `&` `|` `^` | arithmetic, whose operands are of one type or decimals    |
| `["NEGATE", type, value]`, `ABS`                       |                                                           |
| `["CAST", type, value]`                                |                                                           |
| `["CASE_WHEN", type, predicate, value, …, value]`      | null where no predicate is true and no last value exists  |
| `["COALESCE", type, value, …]`, `GREATEST`, `LEAST`    |                                                           |
| `["CHAR_LENGTH", type, text]`                          |                                                           |
| `["SUBSTRING", type, text, start, length]`             | the first character is 1 or 0; the length may be missing  |
| `["YEAR", type, date]`, …                              | a part of a date or a timestamp                           |
| `["TRUNC", type, unit, date]`                          | the first day of a `year`, `quarter`, `month` or `week`   |

Columns have the types that Spark sees. As in Spark's ANSI mode, a result that its type cannot hold is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from connector.read.predicates import Form, arrow_type_of, to_expression
from lance_format.expressions import Expression, nodes

_ARITHMETIC: tuple[nodes.CheckedOperator, ...] = ("+", "-", "*", "/", "%", "&", "|", "^")
_PARTS = {
    "YEAR": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "WEEK": "week",
    "DAY": "day",
    "DAY_OF_YEAR": "doy",
    "HOUR": "hour",
    "MINUTE": "minute",
}


def to_value(form: Form) -> Expression:
    """Return the expression of a value.

    Parameters
    ----------
    form : list
        See above.
    """
    operator, *operands = form
    make = _FORMS.get(operator)
    # Predicates have operators of the same names, without a type.
    if make is None or not (operands and isinstance(operands[0], str)):
        return to_expression(form)
    return make(arrow_type_of(operands[0]), *operands[1:])


def _arithmetic(operator: nodes.CheckedOperator) -> Callable[..., Expression]:
    return lambda to, left, right: nodes.CheckedArithmetic(operator, to_value(left), to_value(right), to)


def _negate(to: pa.DataType, operand: Form) -> Expression:
    if pa.types.is_integer(to):
        return nodes.CheckedArithmetic("-", _constant(0, to), to_value(operand), to)
    return nodes.Negate(to_value(operand))


def _case(to: pa.DataType, *branches: Form) -> Expression:
    pairs = len(branches) // 2
    values = [nodes.Cast(to_value(form), to) for form in branches[1 : 2 * pairs : 2]]
    default = to_value(branches[-1]) if len(branches) % 2 else _constant(None, pa.null())
    conditions = [to_expression(form) for form in branches[0 : 2 * pairs : 2]]
    return nodes.Case(tuple(conditions), tuple(values), nodes.Cast(default, to))


def _call(name: str) -> Callable[..., Expression]:
    return lambda _, *operands: nodes.Call(name, tuple(map(to_value, operands)))


def _part(name: str) -> Callable[..., Expression]:
    return lambda _, date: nodes.Call("date_part", (_constant(name, pa.string()), to_value(date)))


def _substring(_: pa.DataType, text: Form, start: Form, *length: Form) -> Expression:
    first = nodes.Literal(pa.scalar(max(int(start[2]), 1), pa.int32()))
    return nodes.Call("substr", (to_value(text), first, *map(to_value, length)))


def _day_of_week(to: pa.DataType, date: Form) -> Expression:
    """Return the day of the week from Monday, 1, to Sunday, 7; the function counts from Sunday, 0."""
    before = nodes.CheckedArithmetic("+", _part("dow")(to, date), _constant(6, to), to)
    return nodes.CheckedArithmetic(
        "+", nodes.CheckedArithmetic("%", before, _constant(7, to), to), _constant(1, to), to
    )


def _truncate(to: pa.DataType, unit: str, date: Form) -> Expression:
    """Truncate dates as timestamps in seconds, which hold all dates."""
    seconds = nodes.Cast(to_value(date), pa.timestamp("s"))
    return nodes.Cast(nodes.Call("date_trunc", (_constant(unit, pa.string()), seconds)), to)


def _constant(value: Any, arrow_type: pa.DataType) -> Expression:
    return nodes.Literal(pa.scalar(value, arrow_type))


_FORMS: dict[str, Callable[..., Expression]] = {
    **{operator: _arithmetic(operator) for operator in _ARITHMETIC},
    **{part: _part(name) for part, name in _PARTS.items()},
    "DAY_OF_WEEK": _day_of_week,
    "NEGATE": _negate,
    "ABS": _call("abs"),
    "CAST": lambda to, operand: nodes.Cast(to_value(operand), to),
    "CASE_WHEN": _case,
    "COALESCE": _call("coalesce"),
    "GREATEST": _call("greatest"),
    "LEAST": _call("least"),
    # of large strings, the length has 64 bits
    "CHAR_LENGTH": lambda to, text: nodes.Cast(nodes.Call("length", (to_value(text),)), to),
    "SUBSTRING": _substring,
    "TRUNC": _truncate,
}
