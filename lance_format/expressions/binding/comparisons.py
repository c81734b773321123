"""Fitting the two sides of a comparison, and the constants of IN, to one type."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa

from lance_format.errors import InvalidInputError
from lance_format.expressions import nodes
from lance_format.expressions.binding.typed import Typed, cast_to, typed_node
from lance_format.expressions.nodes import Literal
from lance_format.expressions.rendering import to_sql
from lance_format.expressions.values.casts import cast
from lance_format.expressions.values.coercion import (
    axis_of,
    common_type,
    position_of,
)


def compare(operator: nodes.ComparisonOperator, left: Typed, right: Typed) -> Typed:
    """Bind a comparison; a constant is fitted to the type of the other side if it has one of its values.

    Parameters
    ----------
    operator : str
    left, right : Typed

    Raises
    ------
    InvalidInputError
        If the types cannot be compared.
    """
    if left.literal is not None and right.literal is None:
        return compare(nodes.MIRRORED[operator], right, left)
    if right.literal is not None:
        if not right.literal.is_valid:
            return Typed(Literal(pa.scalar(None, pa.bool_())), pa.bool_())
        fitted = _compare_with_literal(operator, left, right.literal)
        if fitted is not None:
            return fitted
    left, right = _meet(left, right, operator)
    return typed_node(nodes.Comparison(operator, left.expression, right.expression), [left, right])


def _compare_with_literal(operator: nodes.ComparisonOperator, left: Typed, value: pa.Scalar) -> Typed | None:
    axis = axis_of(left.type)
    if axis is None:
        return None
    position = position_of(value, left.type)
    if position is None:
        return None
    comparison = axis.compare(operator, left.expression, position)
    assert isinstance(comparison, nodes.Comparison)
    right = comparison.right
    assert isinstance(right, Literal)
    return typed_node(comparison, [left, Typed(right, right.value.type)])


def compare_null_safe(left: Typed, right: Typed) -> Typed:
    """Bind a comparison by IS NOT DISTINCT FROM.

    Raises
    ------
    InvalidInputError
        If the types cannot be compared.
    """
    if left.literal is not None and right.literal is None:
        left, right = right, left
    if right.literal is not None and not right.literal.is_valid:
        return typed_node(nodes.IsNull(left.expression), [left])
    if right.literal is not None and axis_of(left.type) is not None:
        equal = compare("=", left, right)
        constant = pa.scalar(False)
        return _coalesce_false(equal, constant)
    left, right = _meet(left, right, "=")
    return typed_node(nodes.NullSafeEqual(left.expression, right.expression), [left, right])


def _coalesce_false(typed: Typed, constant: pa.Scalar) -> Typed:
    return typed_node(
        nodes.Call("coalesce", (typed.expression, Literal(constant))), [typed, Typed(Literal(constant), pa.bool_())]
    )


def _meet(left: Typed, right: Typed, operator: str) -> tuple[Typed, Typed]:
    """Cast the sides of a comparison to their common type."""
    arrow_type = common_type(left.type, right.type)
    if arrow_type is not None and right.literal is not None and pa.types.is_floating(left.type):
        arrow_type = left.type if _fits_float(right.literal, left.type) else pa.float64()
    if arrow_type is None or pa.types.is_nested(arrow_type):
        raise InvalidInputError(
            f"{to_sql(left.expression)} {operator} {to_sql(right.expression)} compares {left.type} with {right.type}; "
            "cast one of them"
        )
    if pa.types.is_fixed_size_binary(arrow_type):
        arrow_type = pa.binary()
    return cast_to(left, arrow_type), cast_to(right, arrow_type)


def _fits_float(value: pa.Scalar, arrow_type: pa.DataType) -> bool:
    """Tell whether a constant stays finite as a float of the type."""
    number = float(value.as_py())
    return arrow_type == pa.float64() or not abs(number) > 3.4028235677973366e38 or abs(number) == float("inf")


def is_among(operand: Typed, values: pa.Array) -> Typed:
    """Bind a membership in constants.

    Raises
    ------
    InvalidInputError
        If the types cannot be compared.
    """
    if pa.types.is_null(values.type):
        values = pa.nulls(len(values), operand.type)
    elif axis_of(operand.type) is not None and operand.type != values.type:
        values = _index(values, operand)
    else:
        arrow_type = common_type(operand.type, values.type)
        if arrow_type is None or pa.types.is_nested(arrow_type):
            raise _not_comparable(operand, values)
        if pa.types.is_floating(operand.type):
            arrow_type = operand.type
        operand, values = cast_to(operand, arrow_type), cast(values, arrow_type)
    return typed_node(nodes.In(operand.expression, values), [operand])


def _index(values: pa.Array, operand: Typed) -> pa.Array:
    """Return the constants that are values of the type of an operand, and null if it is one of them."""
    axis = axis_of(operand.type)
    assert axis is not None
    if pa.types.is_integer(operand.type) and pa.types.is_integer(values.type):
        try:
            return cast(values, operand.type)
        except pa.ArrowInvalid:  # some are out of its range
            pass
    kept = [pa.scalar(None, operand.type)] if values.null_count else []
    for value in values.drop_null():
        position = position_of(value, operand.type)
        if position is None:
            raise _not_comparable(operand, values)
        if isinstance(position, Fraction) and position.denominator == 1 and axis.lowest <= position <= axis.highest:
            kept.append(axis.scalar(int(position)))
    return pa.array(kept, operand.type)


def _not_comparable(operand: Typed, values: pa.Array) -> InvalidInputError:
    return InvalidInputError(
        f"{to_sql(operand.expression)} is {operand.type} and cannot be among {values.type}; cast it"
    )
