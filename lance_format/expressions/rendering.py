"""Expressions as SQL text, for plans, logs and messages."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from lance_format.expressions import nodes
from lance_format.expressions.constants import as_array
from lance_format.expressions.nodes import Expression, FieldPath

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN_VALUES = 20
_LONG_YEAR = re.compile(r"^(?=\d{5,}-)")
_OUT_OF_RANGE = "out of range"
"""Arrow's text for times that it cannot print."""
_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}

_TYPE_NAMES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.uint8(): "tinyint unsigned",
    pa.uint16(): "smallint unsigned",
    pa.uint32(): "int unsigned",
    pa.uint64(): "bigint unsigned",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("s"): "timestamp(0)",
    pa.timestamp("ms"): "timestamp(3)",
    pa.timestamp("us"): "timestamp(6)",
    pa.timestamp("ns"): "timestamp(9)",
}


def to_sql(expression: Expression, *, full: bool = False) -> str:
    """Return an expression as SQL.

    Parameters
    ----------
    expression : Expression
    full : bool
        Whether to write out long lists of constants, which are cut otherwise.

    Returns
    -------
    str
        Text that `parse` accepts, unless the expression has types without a name in SQL, or a list was cut.

    Raises
    ------
    TypeError
        If the expression has an unknown kind of node.
    """
    match expression:
        case nodes.Column(path):
            return name_to_sql(path)
        case nodes.Literal(value):
            return _literal(value)
        case nodes.And(operands):
            return " AND ".join(_operand(operand, full) for operand in operands)
        case nodes.Or(operands):
            return " OR ".join(_operand(operand, full) for operand in operands)
        case nodes.Not(nodes.IsNull(operand)):
            return f"{_operand(operand, full)} IS NOT NULL"
        case nodes.Not(nodes.NullSafeEqual(left, right)):
            return f"{_operand(left, full)} IS DISTINCT FROM {_operand(right, full)}"
        case nodes.Not(operand):
            return f"NOT {_operand(operand, full)}"
        case nodes.IsNull(operand):
            return f"{_operand(operand, full)} IS NULL"
        case nodes.Negate(operand):
            return f"-{_operand(operand, full)}"
        case nodes.Comparison(operator, left, right) | nodes.Arithmetic(operator, left, right):
            return f"{_operand(left, full)} {operator} {_operand(right, full)}"
        case nodes.CheckedArithmetic(operator, left, right, _):
            return f"{_operand(left, full)} {operator} {_operand(right, full)}"
        case nodes.NullSafeEqual(left, right):
            return f"{_operand(left, full)} IS NOT DISTINCT FROM {_operand(right, full)}"
        case nodes.In(operand, values):
            shown = values if full else values[:_SHOWN_VALUES]
            texts = [_literal(value) for value in shown]
            if len(shown) < len(values):
                texts.append(f"… {len(values) - len(shown)} more")
            return f"{_operand(operand, full)} IN ({', '.join(texts)})"
        case nodes.Like(operand, pattern, ignore_case):
            return f"{_operand(operand, full)} {'ILIKE' if ignore_case else 'LIKE'} {_quoted(pattern)}"
        case nodes.Cast(operand, arrow_type, null_on_failure):
            verb = "TRY_CAST" if null_on_failure else "CAST"
            return f"{verb}({to_sql(operand, full=full)} AS {_type_name(arrow_type)})"
        case nodes.Case(conditions, values, default):
            branches = " ".join(
                f"WHEN {to_sql(condition, full=full)} THEN {to_sql(value, full=full)}"
                for condition, value in zip(conditions, values, strict=True)
            )
            return f"CASE {branches} ELSE {to_sql(default, full=full)} END"
        case nodes.Call("||", (left, right)):
            return f"({_operand(left, full)} || {_operand(right, full)})"
        case nodes.Call(name, arguments):
            return f"{name}({', '.join(to_sql(argument, full=full) for argument in arguments)})"
        case nodes.GetField(operand, name):
            return f"get_field({to_sql(operand, full=full)}, {_quoted(name)})"
    raise TypeError(f"{type(expression).__name__} is no expression")


def name_to_sql(path: FieldPath) -> str:
    """Return the path of a column as SQL, quoted by backticks where it must be."""
    return ".".join(part if _PLAIN_NAME.fullmatch(part) else "`" + part.replace("`", "``") + "`" for part in path)


_ATOMS = (nodes.Column, nodes.Literal, nodes.Call, nodes.Cast, nodes.Case, nodes.GetField)


def _operand(expression: Expression, full: bool) -> str:
    text = to_sql(expression, full=full)
    return text if isinstance(expression, _ATOMS) else f"({text})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _type_name(arrow_type: pa.DataType) -> str:
    if pa.types.is_decimal(arrow_type):
        return f"decimal({arrow_type.precision}, {arrow_type.scale})"
    return _TYPE_NAMES.get(arrow_type, str(arrow_type))


def _literal(scalar: pa.Scalar) -> str:
    if not scalar.is_valid:
        return "NULL"
    arrow_type = scalar.type
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type) or pa.types.is_fixed_size_list(arrow_type):
        return f"[{', '.join(_literal(value) for value in scalar.values)}]"
    if pa.types.is_boolean(arrow_type):
        return str(scalar.as_py())
    if pa.types.is_integer(arrow_type):
        return str(scalar.as_py())
    if pa.types.is_floating(arrow_type):
        value = float(scalar.as_py())
        plain = value == value and value not in (float("inf"), float("-inf"))
        return repr(value) if plain else f"CAST('{value}' AS double)"
    if pa.types.is_decimal(arrow_type):
        return f"{_type_name(arrow_type)} '{scalar.as_py()}'"
    if pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type):
        return _quoted(scalar.as_py())
    if _is_binary(arrow_type):
        return f"X'{scalar.as_py().hex()}'"
    if pa.types.is_temporal(arrow_type):
        return _temporal(scalar)
    return str(as_array(scalar))


def _temporal(scalar: pa.Scalar) -> str:
    """Return a date or timestamp as text where that has all of its digits, else as the number that it is stored as."""
    arrow_type = scalar.type
    is_timestamp = pa.types.is_timestamp(arrow_type)
    if is_timestamp and arrow_type.tz:
        return _temporal(pc.local_timestamp(scalar))
    if is_timestamp or pa.types.is_date(arrow_type):
        text = _LONG_YEAR.sub("+", scalar.cast(pa.string()).as_py())
        if _OUT_OF_RANGE not in text:
            return f"{_type_name(arrow_type) if is_timestamp else 'date'} '{text}'"
    if pa.types.is_interval(arrow_type):
        return str(as_array(scalar))
    ticks = scalar.cast(pa.int32() if arrow_type.bit_width == 32 else pa.int64()).as_py()
    return f"arrow_cast({ticks}, '{_arrow_name(arrow_type)}')"


def _arrow_name(arrow_type: pa.DataType) -> str:
    """Return the name of a type of dates or times in the reference."""
    kinds = ((pa.types.is_timestamp, "Timestamp"), (pa.types.is_duration, "Duration"), (pa.types.is_time, "Time"))
    for is_kind, name in kinds:
        if is_kind(arrow_type):
            width = str(arrow_type.bit_width) if name == "Time" else ""
            zone = ", None" if name == "Timestamp" else ""
            return f"{name}{width}({_UNITS[arrow_type.unit]}{zone})"
    return f"Date{arrow_type.bit_width}"


def _is_binary(arrow_type: pa.DataType) -> bool:
    checks = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(check(arrow_type) for check in checks)
