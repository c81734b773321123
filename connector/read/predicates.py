"""Predicates that Spark pushes to a scan, as expressions of `lance_format`.

Spark describes them by an own tree, which the planner bridge writes as JSON: lists of an operator and its operands.

| form                                              |                                                               |
|---------------------------------------------------|---------------------------------------------------------------|
| `["COLUMN", "s", "x"]`                            | a column, or a field below it                                 |
| `["LITERAL", type, value]`                        | a constant; null is `null`                                    |
| `["CAST", type, operand]`                         | to a type that holds all values of the operand's              |
| `["IN", operand, type, [value, …]]`               | constants of one type                                         |
| `["SET", operand, type, bytes]`                   | many whole numbers or days, as int64 of little endian in base64 |
| `["=", left, right]`, `<>` `<` `<=` `>` `>=` `<=>` | comparisons                                                   |
| `["AND", …]`, `["OR", …]`, `["NOT", operand]`     |                                                               |
| `["IS_NULL", operand]`, `["IS_NOT_NULL", …]`      |                                                               |
| `["STARTS_WITH", operand, text]`, `ENDS_WITH`, `CONTAINS` | the text is taken as it is                            |
| `["ALWAYS_TRUE"]`, `["ALWAYS_FALSE"]`             |                                                               |
| `["SAMPLE", lower, upper, seed, run]`             | a share of the rows, or of their runs; see `hash_fraction`    |
| `["MATCH", kind, parameters, path, …]`            | words of texts; see `connector.read.text_matches`             |

Types have Spark's names. A value is text, as JavaScript's numbers could not hold all of them, or a boolean: whole
numbers in digits, also days of dates, microseconds of timestamps and nanoseconds of times; binaries in base64.

Only this side evaluates these predicates, so they must mean exactly the same to `lance_format` and to Spark. They do
for the columns that `filterable_columns` returns; the bridge asks for those before it takes a predicate.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import DataType, StringType, StructType, UserDefinedType, VariantType

from connector.read.text_matches import with_rows
from connector.types.row_columns import ROW_FIELDS
from lance_format import InvalidInputError, LanceDataset, LanceError
from lance_format.expressions import Expression, nodes

Form = list[Any]

_COMPARISONS: dict[str, nodes.ComparisonOperator] = {"=": "=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TEXT_FUNCTIONS = {"STARTS_WITH": "starts_with", "ENDS_WITH": "ends_with", "CONTAINS": "contains"}
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

_EXACT: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_date32,
    pa.types.is_time,
    lambda arrow_type: pa.types.is_timestamp(arrow_type) and arrow_type.unit != "ns",
)
"""Stored types whose values Spark sees unchanged. It sees nanoseconds and milliseconds of dates rounded down."""


def parse_predicate(text: str, open_table: Callable[[], LanceDataset]) -> Expression:
    """Read a predicate from JSON.

    Parameters
    ----------
    text : str
        See above.
    open_table : callable
        Returns the version of the table that is read.

    Raises
    ------
    InvalidInputError
        If the text is none of these forms, or nested too deeply.
    LanceError
        If a search fails.
    """
    try:
        return to_expression(with_rows(json.loads(text), open_table))
    except RecursionError:
        raise InvalidInputError("the predicate is nested too deeply; filter in several steps") from None
    except LanceError:
        raise
    except (ValueError, TypeError, KeyError, ArithmeticError, pa.ArrowException) as error:
        raise InvalidInputError(f"the predicate {text[:200]!r} is not one that the planner bridge writes") from error


def filterable_columns(stored: pa.Schema, schema: StructType) -> list[list[str]]:
    """Return the columns, and fields below structs, for which predicates mean the same to Spark and to the library.

    Parameters
    ----------
    stored : pyarrow.Schema
        Of the table, as it is stored.
    schema : StructType
        The columns that Spark sees, and their types.

    Returns
    -------
    list of list of str
        Names that lead to a column.
    """
    names = set(stored.names)
    found = [[name] for name in ROW_FIELDS if name not in names]
    for field in schema:
        if field.name in names:
            found.extend(_filterable(stored.field(field.name).type, field.dataType, [field.name]))
    return found


def _filterable(arrow_type: pa.DataType, spark_type: DataType, path: list[str]) -> Iterator[list[str]]:
    if isinstance(arrow_type, pa.BaseExtensionType) or isinstance(spark_type, UserDefinedType | VariantType):
        return
    if pa.types.is_struct(arrow_type) and isinstance(spark_type, StructType):
        for field in spark_type:
            index = arrow_type.get_field_index(field.name)
            if index >= 0:
                yield from _filterable(arrow_type.field(index).type, field.dataType, [*path, field.name])
        return
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    if isinstance(spark_type, StringType) and not spark_type.isUTF8BinaryCollation():
        return
    if any(is_exact(arrow_type) for is_exact in _EXACT):
        yield path


def to_expression(form: Form) -> Expression:
    """Return the expression of one of these forms."""
    operator, *operands = form
    if operator in _COMPARISONS:
        left, right = map(to_expression, operands)
        return nodes.Comparison(_COMPARISONS[operator], left, right)
    if operator in _TEXT_FUNCTIONS:
        value, text = map(to_expression, operands)
        return nodes.Call(_TEXT_FUNCTIONS[operator], (value, text))
    return _FORMS[operator](*operands)


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


_FORMS: dict[str, Callable[..., Expression]] = {
    "COLUMN": lambda *path: nodes.Column(path),
    "LITERAL": _literal,
    "CAST": lambda spark_type, operand: nodes.Cast(to_expression(operand), arrow_type_of(spark_type)),
    "IN": _in,
    "SET": _set,
    "<=>": lambda left, right: nodes.NullSafeEqual(to_expression(left), to_expression(right)),
    "AND": lambda *terms: nodes.conjunction(tuple(map(to_expression, terms))),
    "OR": lambda *terms: nodes.disjunction(tuple(map(to_expression, terms))),
    "NOT": lambda operand: nodes.Not(to_expression(operand)),
    "IS_NULL": lambda operand: nodes.IsNull(to_expression(operand)),
    "IS_NOT_NULL": lambda operand: nodes.Not(nodes.IsNull(to_expression(operand))),
    "ALWAYS_TRUE": lambda: nodes.Literal(pa.scalar(True)),
    "ALWAYS_FALSE": lambda: nodes.Literal(pa.scalar(False)),
    "SAMPLE": _sample,
}


def arrow_type_of(spark_type: str) -> pa.DataType:
    """Return the Arrow type of a type by its name in Spark."""
    decimal = _DECIMAL.fullmatch(spark_type)
    if decimal:
        return pa.decimal128(*map(int, decimal.groups()))
    return pa.time64("ns") if _TIME.fullmatch(spark_type) else _TYPES[spark_type]


def _value(arrow_type: pa.DataType, value: Any) -> Any:
    """Return the Python value of a constant for Arrow; days and fractions of seconds are numbers."""
    if value is None or isinstance(value, bool) or pa.types.is_string(arrow_type):
        return value
    if pa.types.is_binary(arrow_type):
        return base64.b64decode(value, validate=True)
    if pa.types.is_decimal(arrow_type):
        return Decimal(value)
    return float(value) if pa.types.is_floating(arrow_type) else int(value)
