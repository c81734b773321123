"""Common types of operands, and the place of a constant among the values of a type.

A comparison of a column with a constant converts the column only if necessary: conversions cost time, lose digits, and
hide the column from pruning by statistics. Instead the constant is placed on the axis of the column's values. Types
whose values are whole multiples of a unit (integers, decimals, dates, times) have such an axis, with exact positions:
1.5 lies between the integers 1 and 2, so `x > 1.5` is `x > 1`; and 1000 lies beyond all 8-bit integers, so `x < 1000`
is true for all of them and `x = 1000` for none.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_format.expressions.nodes import Comparison, ComparisonOperator, Expression, Literal
from lance_format.expressions.values.casts import cast
from lance_format.lazy_dataclasses import dataclass

Position: TypeAlias = Fraction | float
"""A position on an axis; for floats only the infinities."""

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SECONDS_A_DAY = 86_400
_CLOCK = re.compile(r"[T ].*", re.DOTALL)
"""Text after the date in a timestamp."""
_NANOSECONDS = re.compile(r"\.\d{7}")
_ZONE = re.compile(r"[Zz+-]")


@dataclass(frozen=True, slots=True)
class Axis:
    """The values of a discrete type, as whole numbers.

    Parameters
    ----------
    type : pa.DataType
    lowest, highest : int
        The first and the last value, in units of the type.
    """

    type: pa.DataType
    lowest: int
    highest: int

    def scalar(self, position: int) -> pa.Scalar:
        """Return the value at a position between the lowest and the highest."""
        if pa.types.is_decimal(self.type):
            from decimal import Context

            return pa.scalar(Context(prec=80).scaleb(position, -self.type.scale), self.type)
        if pa.types.is_integer(self.type):
            return pa.scalar(position, self.type)
        return pa.scalar(position, pa.int32() if self.type.bit_width == 32 else pa.int64()).cast(self.type)

    def compare(self, operator: ComparisonOperator, operand: Expression, position: Position) -> Expression:
        """Return the comparison of an expression of this type with a position.

        Parameters
        ----------
        operator : ComparisonOperator
        operand : Expression
            The expression, on the left.
        position : Position
            The position of the constant.
        """
        if isinstance(position, float):
            whole, exact = (self.highest + 1 if position > 0 else self.lowest - 1), True
        else:
            whole = math.floor(position)
            exact = whole == position
        if not exact:
            if operator in ("=", "!="):
                return self._constant(operator == "!=", operand)
            operator = "<=" if operator in ("<", "<=") else ">"
        if whole > self.highest:
            return self._constant(operator in ("!=", "<", "<="), operand)
        if whole < self.lowest:
            return self._constant(operator in ("!=", ">", ">="), operand)
        return Comparison(operator, operand, Literal(self.scalar(whole)))

    def _constant(self, holds: bool, operand: Expression) -> Expression:
        """Return what holds for every value or for none, and is null for null."""
        return Comparison("<=" if holds else ">", operand, Literal(self.scalar(self.highest)))


def axis_of(arrow_type: pa.DataType) -> Axis | None:
    """Return the axis of a type, if it is a discrete one."""
    if pa.types.is_decimal(arrow_type):
        highest = 10**arrow_type.precision - 1
        return Axis(arrow_type, -highest, highest)
    if pa.types.is_unsigned_integer(arrow_type):
        return Axis(arrow_type, 0, 2**arrow_type.bit_width - 1)
    if pa.types.is_integer(arrow_type) or pa.types.is_temporal(arrow_type):
        if pa.types.is_interval(arrow_type):
            return None
        return Axis(arrow_type, -(2 ** (arrow_type.bit_width - 1)), 2 ** (arrow_type.bit_width - 1) - 1)
    return None


def position_of(value: pa.Scalar, arrow_type: pa.DataType) -> Position | None:
    """Return where a constant lies on the axis of a type, None if it is null or the types do not compare.

    Raises
    ------
    pa.ArrowInvalid
        If text is meant as a date or time, and is none.
    """
    if not value.is_valid:
        return None
    if pa.types.is_integer(arrow_type):
        return _number(value)
    if pa.types.is_decimal(arrow_type):
        number = _number(value, shortest=True)
        return number if number is None or isinstance(number, float) else number * Fraction(10) ** arrow_type.scale
    if pa.types.is_date(arrow_type) or pa.types.is_timestamp(arrow_type):
        seconds = _seconds(value, getattr(arrow_type, "tz", None))
        if seconds is None:
            return None
        if pa.types.is_date32(arrow_type):
            return seconds / _SECONDS_A_DAY
        return seconds * (10**3 if pa.types.is_date64(arrow_type) else _PER_SECOND[arrow_type.unit])
    if pa.types.is_time(arrow_type) and is_text(value.type):
        value = cast(value, pa.time64("ns"))
    for check in (pa.types.is_time, pa.types.is_duration):
        if check(arrow_type) and check(value.type):
            return Fraction(_ticks(value), _PER_SECOND[value.type.unit]) * _PER_SECOND[arrow_type.unit]
    return None


def _number(value: pa.Scalar, *, shortest: bool = False) -> Position | None:
    if pa.types.is_floating(value.type):
        number = float(value.as_py())
        if math.isnan(number):
            return math.inf  # it exceeds all numbers
        if math.isinf(number):
            return number
        return Fraction(repr(number)) if shortest else Fraction(number)
    if pa.types.is_integer(value.type) or pa.types.is_decimal(value.type):
        return Fraction(value.as_py())
    return None


def _seconds(value: pa.Scalar, zone: str | None) -> Fraction | None:
    """Return the seconds since 1970, of the clock in `zone` if that is given, else of the one on the wall."""
    if is_text(value.type):
        match = _CLOCK.search(value.as_py())
        clock = match[0] if match else ""
        unit = "ns" if _NANOSECONDS.search(clock) else "us"
        value = cast(value, pa.timestamp(unit, "UTC" if _ZONE.search(clock) else None))
    if pa.types.is_date32(value.type):
        value = cast(value, pa.timestamp("s"))
    elif pa.types.is_date64(value.type):
        value = cast(value, pa.timestamp("ms"))
    if not pa.types.is_timestamp(value.type):
        return None
    if zone and not value.type.tz:
        value = cast(value, pa.timestamp(value.type.unit, zone))
    elif value.type.tz and not zone:
        value = pc.local_timestamp(value)
    return Fraction(_ticks(value), _PER_SECOND[value.type.unit])


def _ticks(value: pa.Scalar) -> int:
    ticks: int = value.cast(pa.int32() if value.type.bit_width == 32 else pa.int64()).as_py()
    return ticks


def is_text(arrow_type: pa.DataType) -> bool:
    """Tell whether values of a type are strings."""
    return bool(
        pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type) or pa.types.is_string_view(arrow_type)
    )


def is_bytes(arrow_type: pa.DataType) -> bool:
    """Return whether values of a type are byte strings of fixed or variable length."""
    checks = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_binary_view,
    )
    return any(check(arrow_type) for check in checks)


def is_number(arrow_type: pa.DataType) -> bool:
    """Tell whether values of a type are numbers."""
    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(check(arrow_type) for check in checks)


def plain_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type for computing with values of a type: without dictionary, view and half floats."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        return plain_type(arrow_type.storage_type)
    if pa.types.is_dictionary(arrow_type):
        return plain_type(arrow_type.value_type)
    return {pa.float16(): pa.float32(), pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(
        arrow_type, arrow_type
    )


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the common type of two types, or None."""
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    if is_number(left) and is_number(right):
        return _common_number(left, right)
    if is_text(left) and is_text(right):
        return pa.large_string() if pa.large_string() in (left, right) else pa.string()
    if is_bytes(left) and is_bytes(right):
        return pa.large_binary() if pa.large_binary() in (left, right) else pa.binary()
    return _common_time(left, right)


def _common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        floats = [t for t in (left, right) if pa.types.is_floating(t)]
        decimal = pa.types.is_decimal(left) or pa.types.is_decimal(right)
        return pa.float64() if decimal or pa.float64() in floats else pa.float32()
    if pa.types.is_decimal(left) or pa.types.is_decimal(right):
        return _common_decimal(as_decimal(left), as_decimal(right))
    signed = pa.types.is_signed_integer(left)
    if signed == pa.types.is_signed_integer(right):
        return max(left, right, key=lambda t: t.bit_width)
    unsigned_bits = (right if signed else left).bit_width
    signed_bits = (left if signed else right).bit_width
    for bits, arrow_type in ((16, pa.int16()), (32, pa.int32()), (64, pa.int64())):
        if unsigned_bits < bits and signed_bits <= bits:
            return arrow_type
    return pa.decimal128(20, 0)


def as_decimal(arrow_type: Any) -> Any:
    """Return the decimal type that holds all values of an integer type; a decimal type itself."""
    if pa.types.is_decimal(arrow_type):
        return arrow_type
    return pa.decimal128({8: 3, 16: 5, 32: 10}.get(arrow_type.bit_width, 20), 0)


def _common_decimal(left: Any, right: Any) -> pa.DataType:
    scale = max(left.scale, right.scale)
    precision = max(left.precision - left.scale, right.precision - right.scale) + scale
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(min(precision, 76), scale)


def _common_time(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if pa.types.is_date(left) and pa.types.is_date(right):
        return pa.date64()
    if pa.types.is_date(left) and pa.types.is_timestamp(right):
        return right
    if pa.types.is_timestamp(left) and pa.types.is_date(right):
        return left
    finer = max(left, right, key=lambda t: _PER_SECOND.get(getattr(t, "unit", ""), 0))
    if pa.types.is_timestamp(left) and pa.types.is_timestamp(right):
        return pa.timestamp(finer.unit, left.tz or right.tz)
    if pa.types.is_duration(left) and pa.types.is_duration(right):
        return finer
    if pa.types.is_time(left) and pa.types.is_time(right):
        return finer
    return None
