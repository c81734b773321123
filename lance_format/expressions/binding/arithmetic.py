"""Fitting the operands of arithmetic to one type of number."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa

from lance_format.errors import InvalidInputError
from lance_format.expressions import nodes
from lance_format.expressions.binding.typed import Typed, cast_to, typed_node
from lance_format.expressions.nodes import Expression, Literal
from lance_format.expressions.rendering import to_sql
from lance_format.expressions.values.coercion import (
    as_decimal,
    axis_of,
    common_type,
    is_number,
    position_of,
)

_DECIMAL = as_decimal(pa.uint64())


def compute(operator: nodes.ArithmeticOperator, left: Typed, right: Typed) -> Typed:
    """Bind an arithmetic operation.

    Parameters
    ----------
    operator : str
    left, right : Typed

    Raises
    ------
    InvalidInputError
        If a type is no number, or the operation is not supported for it.
    """
    if operator == "%" and pa.types.is_uint64(left.type) and pa.types.is_signed_integer(right.type):
        divisor = right.expression
        if isinstance(divisor, Literal) and divisor.value.is_valid:
            return _remainder(left, abs(divisor.value.as_py()))
    wide = pa.types.is_decimal256(left.type) or pa.types.is_decimal256(right.type)
    if pa.types.is_date(left.type) and pa.types.is_date(right.type):
        left, right = _days(left), _days(right)
    elif not (pa.types.is_temporal(left.type) or pa.types.is_temporal(right.type)):
        left, right = _meet_in_number(operator, left, right)
    typed = typed_node(nodes.Arithmetic(operator, left.expression, right.expression), [left, right])
    if pa.types.is_decimal256(typed.type) and typed.type.scale <= 38 and not wide:
        return cast_to(typed, pa.decimal128(38, typed.type.scale))
    return typed


def _meet_in_number(operator: nodes.ArithmeticOperator, left: Typed, right: Typed) -> tuple[Typed, Typed]:
    for side in (left, right):
        if not (is_number(side.type) or pa.types.is_null(side.type)):
            raise InvalidInputError(
                f"{to_sql(left.expression)} {operator} {to_sql(right.expression)} computes with {side.type}; cast it"
            )
    arrow_type = common_type(left.type, right.type)
    assert arrow_type is not None
    if pa.types.is_null(arrow_type):
        arrow_type = pa.int64()
    if not pa.types.is_decimal(arrow_type):
        return cast_to(left, arrow_type), cast_to(right, arrow_type)
    if operator in ("/", "%"):
        raise InvalidInputError(
            f"{operator} of {left.type} and {right.type} is not supported; cast them to double or bigint"
        )
    types = [as_decimal(arrow_type if pa.types.is_null(side.type) else side.type) for side in (left, right)]
    if sum(decimal.precision for decimal in types) >= 38:  # the result may have more digits than 128 bits hold
        types = [pa.decimal256(decimal.precision, decimal.scale) for decimal in types]
    return cast_to(left, types[0]), cast_to(right, types[1])


def _remainder(left: Typed, divisor: int) -> Typed:
    """Divide unsigned numbers, such as row ids, which with signed ones are decimals: the remainder has their sign."""
    right = Typed(Literal(pa.scalar(divisor, pa.uint64())), pa.uint64())
    return cast_to(typed_node(nodes.Arithmetic("%", left.expression, right.expression), [left, right]), _DECIMAL)


def _days(typed: Typed) -> Typed:
    return cast_to(cast_to(cast_to(typed, pa.date32()), pa.int32()), pa.int64())


def adopt_type(typed: Typed, other: Typed, node: Expression) -> Typed:
    """Give a constant the type of the other operand, a column, if that type can hold it.

    Parameters
    ----------
    typed : Typed
    other : Typed
        The other operand.
    node : Expression
        The operand before it was bound.
    """
    columnar = isinstance(other.expression, (nodes.Column, nodes.Cast))
    if not isinstance(node, Literal) or not columnar or not is_number(typed.type) or not is_number(other.type):
        return typed
    if pa.types.is_floating(other.type):
        return cast_to(typed, other.type)
    axis, position = axis_of(other.type), position_of(node.value, other.type)
    if axis is None or not isinstance(position, Fraction) or position.denominator != 1:
        return typed
    if pa.types.is_floating(typed.type) or not axis.lowest <= position <= axis.highest:
        return typed
    return Typed(Literal(axis.scalar(int(position))), other.type)


def negate(operand: Typed) -> Typed:
    """Bind a change of sign.

    Raises
    ------
    InvalidInputError
        If the type is no signed number.
    """
    if not is_number(operand.type) or pa.types.is_unsigned_integer(operand.type):
        raise InvalidInputError(f"-{to_sql(operand.expression)} negates {operand.type}; cast it to a signed number")
    return typed_node(nodes.Negate(operand.expression), [operand])
