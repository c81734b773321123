"""Expressions of Spark, as expressions of `lance_format`: predicates and the values that they compare.

Spark describes them to sources by an own tree, which the planner bridge writes as JSON: lists of an operator and its
operands.

| predicate                                         |                                                               |
|---------------------------------------------------|---------------------------------------------------------------|
| `["=", left, right]`, `<>` `<` `<=` `>` `>=` `<=>` | comparisons                                                   |
| `["IN", operand, type, [value, …]]`               | constants of one type                                         |
| `["SET", operand, type, bytes]`                   | many whole numbers or days, as int64 of little endian in base64 |
| `["AND", …]`, `["OR", …]`, `["NOT", operand]`     |                                                               |
| `["IS_NULL", operand]`, `["IS_NOT_NULL", …]`      |                                                               |
| `["STARTS_WITH", operand, text]`, `ENDS_WITH`, `CONTAINS` | the text is taken as it is                            |
| `["LIKE", operand, pattern]`                      | the pattern is text                                           |
| `["ALWAYS_TRUE"]`, `["ALWAYS_FALSE"]`             |                                                               |
| `["SAMPLE", lower, upper, seed, run]`             | a share of the rows, or of their runs; see `hash_fraction`    |
| `["MATCH", kind, parameters, path, …]`            | words of texts; see `connector.read.text_matches`             |

Most values have the name of their type after the operator.

| value                                                  |                                                           |
|--------------------------------------------------------|-----------------------------------------------------------|
| `["COLUMN", "s", "x"]`                                 | a column, or a field below it                             |
| `["LITERAL", type, value]`                             | a constant; null is `null`                                |
| `["CAST", type, value]`                                |                                                           |
| `["+", type, left, right]`, `-` `*` `/` `%` `&` `|` `^` | arithmetic, whose operands are of one type or decimals    |
| `["NEGATE", type, value]`, `ABS`                       |                                                           |
| `["CASE_WHEN", type, predicate, value, …, value]`      | null where no predicate is true and no last value exists  |
| `["COALESCE", type, value, …]`, `GREATEST`, `LEAST`    |                                                           |
| `["CHAR_LENGTH", type, text]`                          |                                                           |
| `["SUBSTRING", type, text, start, length]`             | the first character is 1 or 0; the length may be missing  |
| `["YEAR", type, date]`, …                              | a part of a date or a timestamp                           |
| `["TRUNC", type, unit, date]`                          | the first day of a `year`, `quarter`, `month` or `week`   |

Types have Spark's names. A constant is text, as JavaScript's numbers could not hold all of them, or a boolean: whole
numbers in digits, also days of dates, microseconds of timestamps and nanoseconds of times; binaries in base64. As in
Spark's ANSI mode, a result that its type cannot hold is an error.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from lance_format.expressions import Expression, nodes

Form = list[Any]

_COMPARISONS: dict[str, nodes.ComparisonOperator] = {"=": "=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TEXT_FUNCTIONS = {"STARTS_WITH": "starts_with", "ENDS_WITH": "ends_with", "CONTAINS": "contains"}
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

_TYPES = {
    "void": pa.null(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_TIME = re.compile(r"time\(\d\)")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def to_expression(form: Form) -> Expression:
    """Return the expression of one of these forms.

    Parameters
    ----------
    form : list
        See above.

    Raises
    ------
    ValueError, TypeError, KeyError, ArithmeticError, pyarrow.ArrowException
        If it is none of them.
    RecursionError
        If it is nested too deeply.
    """
    operator, *operands = form
    return _FORMS[operator](*operands)


def arrow_type_of(spark_type: str) -> pa.DataType:
    """Return the Arrow type of a type by its name in Spark."""
    decimal = _DECIMAL.fullmatch(spark_type)
    if decimal:
        return pa.decimal128(*map(int, decimal.groups()))
    return pa.time64("ns") if _TIME.fullmatch(spark_type) else _TYPES[spark_type]


def _comparison(operator: nodes.ComparisonOperator) -> Callable[..., Expression]:
    return lambda left, right: nodes.Comparison(operator, to_expression(left), to_expression(right))


def _text_function(name: str) -> Callable[..., Expression]:
    return lambda value, text: nodes.Call(name, (to_expression(value), to_expression(text)))


def _in(operand: Form, spark_type: str, values: list[Any]) -> Expression:
    arrow_type = arrow_type_of(spark_type)
    constants = pa.array([_value(arrow_type, value) for value in values], arrow_type)
    return nodes.In(to_expression(operand), constants)


def _set(operand: Form, spark_type: str, packed: str) -> Expression:
    numbers = np.frombuffer(base64.b64decode(packed, validate=True), "<i8")
    arrow_type = arrow_type_of(spark_type)
    stored = pa.int32() if pa.types.is_date32(arrow_type) else arrow_type
    return nodes.In(to_expression(operand), pa.array(np.sort(numbers), pa.int64()).cast(stored).view(arrow_type))


def _literal(spark_type: str, value: Any) -> Expression:
    arrow_type = arrow_type_of(spark_type)
    return nodes.Literal(pa.scalar(_value(arrow_type, value), arrow_type))


def _sample(lower: float, upper: float, seed: str, run: int) -> Expression:
    constants = _literal("bigint", seed), _literal("bigint", run)
    drawn = nodes.Call("hash_fraction", (nodes.Column(("_rowaddr",)), *constants))
    terms = [nodes.Comparison("<", drawn, _literal("double", upper))]
    if lower > 0:  # Numbers are drawn once more for it.
        terms.append(nodes.Comparison(">=", drawn, _literal("double", lower)))
    return nodes.conjunction(tuple(terms))


def _typed(make: Callable[..., Expression]) -> Callable[..., Expression]:
    return lambda spark_type, *operands: make(arrow_type_of(spark_type), *operands)


def _arithmetic(operator: nodes.CheckedOperator) -> Callable[..., Expression]:
    return lambda to, left, right: nodes.CheckedArithmetic(operator, to_expression(left), to_expression(right), to)


def _negate(to: pa.DataType, operand: Form) -> Expression:
    if pa.types.is_integer(to):
        return nodes.CheckedArithmetic("-", _constant(0, to), to_expression(operand), to)
    return nodes.Negate(to_expression(operand))


def _case(to: pa.DataType, *branches: Form) -> Expression:
    pairs = len(branches) // 2
    values = [nodes.Cast(to_expression(form), to) for form in branches[1 : 2 * pairs : 2]]
    default = to_expression(branches[-1]) if len(branches) % 2 else _constant(None, pa.null())
    conditions = [to_expression(form) for form in branches[0 : 2 * pairs : 2]]
    return nodes.Case(tuple(conditions), tuple(values), nodes.Cast(default, to))


def _call(name: str) -> Callable[..., Expression]:
    return lambda _, *operands: nodes.Call(name, tuple(map(to_expression, operands)))


def _part(name: str) -> Callable[..., Expression]:
    return lambda _, date: nodes.Call("date_part", (_constant(name, pa.string()), to_expression(date)))


def _substring(_: pa.DataType, text: Form, start: Form, *length: Form) -> Expression:
    first = nodes.Literal(pa.scalar(max(int(start[2]), 1), pa.int32()))
    return nodes.Call("substr", (to_expression(text), first, *map(to_expression, length)))


def _day_of_week(to: pa.DataType, date: Form) -> Expression:
    """Return the day of the week from Monday, 1, to Sunday, 7; the function counts from Sunday, 0."""
    before = nodes.CheckedArithmetic("+", _part("dow")(to, date), _constant(6, to), to)
    return nodes.CheckedArithmetic(
        "+", nodes.CheckedArithmetic("%", before, _constant(7, to), to), _constant(1, to), to
    )


def _truncate(to: pa.DataType, unit: str, date: Form) -> Expression:
    """Truncate dates as timestamps in seconds, which hold all dates."""
    seconds = nodes.Cast(to_expression(date), pa.timestamp("s"))
    return nodes.Cast(nodes.Call("date_trunc", (_constant(unit, pa.string()), seconds)), to)


def _constant(value: Any, arrow_type: pa.DataType) -> Expression:
    return nodes.Literal(pa.scalar(value, arrow_type))


_PREDICATES: dict[str, Callable[..., Expression]] = {
    **{operator: _comparison(compared) for operator, compared in _COMPARISONS.items()},
    **{operator: _text_function(name) for operator, name in _TEXT_FUNCTIONS.items()},
    "<=>": lambda left, right: nodes.NullSafeEqual(to_expression(left), to_expression(right)),
    "IN": _in,
    "SET": _set,
    "AND": lambda *terms: nodes.conjunction(tuple(map(to_expression, terms))),
    "OR": lambda *terms: nodes.disjunction(tuple(map(to_expression, terms))),
    "NOT": lambda operand: nodes.Not(to_expression(operand)),
    "IS_NULL": lambda operand: nodes.IsNull(to_expression(operand)),
    "IS_NOT_NULL": lambda operand: nodes.Not(nodes.IsNull(to_expression(operand))),
    "LIKE": lambda operand, pattern: nodes.Like(to_expression(operand), str(pattern)),
    "ALWAYS_TRUE": lambda: nodes.Literal(pa.scalar(True)),
    "ALWAYS_FALSE": lambda: nodes.Literal(pa.scalar(False)),
    "SAMPLE": _sample,
}
_TYPED_VALUES: dict[str, Callable[..., Expression]] = {
    **{operator: _arithmetic(operator) for operator in _ARITHMETIC},
    **{part: _part(name) for part, name in _PARTS.items()},
    "DAY_OF_WEEK": _day_of_week,
    "NEGATE": _negate,
    "ABS": _call("abs"),
    "CAST": lambda to, operand: nodes.Cast(to_expression(operand), to),
    "CASE_WHEN": _case,
    "COALESCE": _call("coalesce"),
    "GREATEST": _call("greatest"),
    "LEAST": _call("least"),
    # of large strings, the length has 64 bits
    "CHAR_LENGTH": lambda to, text: nodes.Cast(nodes.Call("length", (to_expression(text),)), to),
    "SUBSTRING": _substring,
    "TRUNC": _truncate,
}
_FORMS: dict[str, Callable[..., Expression]] = {
    **_PREDICATES,
    **{operator: _typed(make) for operator, make in _TYPED_VALUES.items()},
    "COLUMN": lambda *path: nodes.Column(path),
    "LITERAL": _literal,
}


def _value(arrow_type: pa.DataType, value: Any) -> Any:
    """Return the Python value of a constant for Arrow; days and fractions of seconds are numbers."""
    if value is None or isinstance(value, bool) or pa.types.is_string(arrow_type):
        return value
    if pa.types.is_binary(arrow_type):
        return base64.b64decode(value, validate=True)
    if pa.types.is_decimal(arrow_type):
        return Decimal(value)
    return float(value) if pa.types.is_floating(arrow_type) else int(value)
