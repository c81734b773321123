"""The constants and types of SQL text; a part of `sql`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from lance_format.expressions.nodes import Expression, Literal

_WHOLE_NUMBER = re.compile(r"\d+")
_MOST_INT64, _MOST_UINT64 = 2**63 - 1, 2**64 - 1


class UnsupportedError(Exception):
    """A construct and where it is; becomes an `InvalidInputError`."""


def unsupported(what: str, node: exp.Expression) -> UnsupportedError:
    """Return the error for an unsupported form, such as "a subquery is", and its position."""
    return UnsupportedError(what, node)


def number_of(text: str) -> pa.Scalar:
    """Return a number in the first that holds it of int64, uint64, decimal and double."""
    digits = len(text.lstrip("-"))
    if not _WHOLE_NUMBER.fullmatch(text.lstrip("-")) or digits > 76:
        return pa.scalar(float(text))
    number = int(text)
    if -_MOST_INT64 - 1 <= number <= _MOST_INT64:
        return pa.scalar(number, pa.int64())
    if 0 <= number <= _MOST_UINT64:
        return pa.scalar(number, pa.uint64())
    return pa.scalar(Decimal(text), pa.decimal256(digits, 0))


_TYPES: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINT": pa.uint32(),
    "UBIGINT": pa.uint64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "TEXT": pa.string(),
    "VARCHAR": pa.string(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
}
_UNITS = {0: "s", 3: "ms", 6: "us", 9: "ns"}


def type_of(node: Any) -> pa.DataType:
    """Return the Arrow type of a SQL type.

    Raises
    ------
    UnsupportedError
        If the type is not supported.
    """
    name = node.this.name
    try:
        parameters = [int(parameter.name) for parameter in node.expressions]
    except ValueError:
        raise unsupported(f"the type {node.sql()} is", node) from None
    if name in ("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME") and (not parameters or parameters[0] in _UNITS):
        return pa.timestamp(_UNITS[parameters[0]] if parameters else "us")
    if name == "DECIMAL" and len(parameters) == 2 and 0 < parameters[0] <= 76 and parameters[1] <= parameters[0]:
        return (pa.decimal128 if parameters[0] <= 38 else pa.decimal256)(*parameters)
    if name not in _TYPES or parameters:
        raise unsupported(f"the type {node.sql()} is", node)
    return _TYPES[name]


_MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}


def interval_of(node: Any) -> Expression:
    """Return an interval as a duration.

    Raises
    ------
    UnsupportedError
        If it has other units than weeks and smaller ones, or is too long.
    """
    unit = str(node.args["unit"].name if node.args.get("unit") else "").upper().removesuffix("S")
    value = node.this.name if isinstance(node.this, exp.Literal) else ""
    if unit not in _MICROSECONDS or not re.fullmatch(r"[+-]?\d+(\.\d+)?", value):
        raise unsupported("an interval of anything but one number of weeks or smaller units is", node)
    microseconds = Decimal(value) * _MICROSECONDS[unit]
    if abs(microseconds) > _MOST_INT64:
        raise unsupported("an interval of more than 292,471 years is", node)
    return Literal(pa.scalar(int(microseconds), pa.duration("us")))


def now() -> Expression:
    """Return the moment of the call, in UTC."""
    return Literal(pa.scalar(time.time_ns(), pa.int64()).cast(pa.timestamp("ns")))


def today() -> Expression:
    """Return the day of the call, in UTC."""
    return Literal(pa.scalar(time.time_ns() // 86_400_000_000_000, pa.int32()).cast(pa.date32()))


NOW: dict[str, Callable[[], Expression]] = {
    "now": now,
    "current_timestamp": now,
    "current_date": today,
    "today": today,
}


def with_backslashes(pattern: str, escape: str) -> str:
    """Return a pattern with backslashes as escapes, in place of its own escape character."""
    if escape == "\\":
        return pattern
    parts, characters = [], iter(pattern)
    for character in characters:
        if character == escape:
            parts.append("\\" + next(characters, escape))
        else:
            parts.append("\\\\" if character == "\\" else character)
    return "".join(parts)
