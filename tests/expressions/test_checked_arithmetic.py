"""Arithmetic of ANSI SQL against Python's numbers."""

from __future__ import annotations

import decimal
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format import InvalidInputError
from lance_format.expressions import bind, evaluate, nodes, to_sql

EXACT = decimal.Context(prec=300, rounding=decimal.ROUND_HALF_UP)
ROUNDED = decimal.Context(prec=38, rounding=decimal.ROUND_HALF_UP)


def compute(operator: Any, left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar, to: pa.DataType) -> list[Any]:
    """Compute an operation on columns and constants."""
    sides = {"left": left, "right": right}
    columns = {name: side for name, side in sides.items() if isinstance(side, pa.Array)}
    operands = [nodes.Column((name,)) if name in columns else nodes.Literal(side) for name, side in sides.items()]
    batch = pa.record_batch(columns)
    bound = bind(nodes.CheckedArithmetic(operator, *operands, to), batch.schema)
    assert bound.type == to
    assert to_sql(bound.expression)
    found = evaluate(bound, batch)
    found.validate(full=True)
    return found.to_pylist()


def result_type(operator: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type that databases give results: as many digits as needed, and 6 of a fraction at least."""
    if operator == "*":
        precision, scale = left.precision + right.precision + 1, left.scale + right.scale
    else:
        scale = max(left.scale, right.scale)
        precision = max(left.precision - left.scale, right.precision - right.scale) + scale + 1
    if precision <= 38:
        return pa.decimal128(precision, scale)
    return pa.decimal128(38, max(38 - (precision - scale), min(scale, 6)))


@st.composite
def decimals(draw: st.DrawFn) -> pa.Array:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    most = 10 ** draw(st.integers(0, precision)) - 1
    numbers = draw(st.lists(st.none() | st.integers(-most, most), min_size=3, max_size=3))
    values = [None if number is None else EXACT.scaleb(decimal.Decimal(number), -scale) for number in numbers]
    return pa.array(values, pa.decimal128(precision, scale))


@given(st.sampled_from("+-*"), decimals(), decimals(), st.booleans())
def test_decimals_are_rounded_to_their_type(operator: str, left: pa.Array, right: pa.Array, is_constant: bool) -> None:
    to = result_type(operator, left.type, right.type)
    others = [right[0].as_py()] * 3 if is_constant else right.to_pylist()
    expected, fails = [], False
    exact = {"+": EXACT.add, "-": EXACT.subtract, "*": ROUNDED.multiply}[operator]
    for one, other in zip(left.to_pylist(), others, strict=True):
        value = (
            None
            if one is None or other is None
            else EXACT.quantize(exact(one, other), decimal.Decimal(1).scaleb(-to.scale))
        )
        expected.append(value)
        fails |= value is not None and abs(EXACT.scaleb(value, to.scale)) >= 10**to.precision
    operand = right[0] if is_constant else right
    if fails:
        with pytest.raises(InvalidInputError, match="has no value for some row"):
            compute(operator, left, operand, to)
    else:
        assert compute(operator, left, operand, to) == expected


@given(st.sampled_from("+-*%&|^"), st.sampled_from([pa.int8(), pa.int32(), pa.int64()]), st.data())
def test_integers_do_not_wrap_around(operator: str, arrow_type: pa.DataType, data: st.DataObject) -> None:
    most = 2 ** (arrow_type.bit_width - 1)
    number = st.none() | st.sampled_from([-most, -most + 1, -7, -1, 0, 1, 3, most - 1])
    pairs = data.draw(st.lists(st.tuples(number, number), min_size=1, max_size=5))
    exact = {
        "+": int.__add__,
        "-": int.__sub__,
        "*": int.__mul__,
        "%": lambda one, other: int(math.copysign(abs(one) % abs(other), one)) if abs(one) < 2**50 else None,
        "&": int.__and__,
        "|": int.__or__,
        "^": int.__xor__,
    }[operator]
    arrays = [pa.array(list(side), arrow_type) for side in zip(*pairs, strict=True)]
    present = [pair for pair in pairs if None not in pair]
    if operator == "%" and any(other == 0 for _, other in present):
        fails = True
    else:
        values = [exact(*pair) for pair in present]
        fails = any(value is not None and not -most <= value < most for value in values)
    if fails:
        with pytest.raises(InvalidInputError, match="has no value for some row"):
            compute(operator, *arrays, arrow_type)
        return
    found = compute(operator, *arrays, arrow_type)
    for pair, value in zip(pairs, found, strict=True):
        if None in pair:
            assert value is None
        elif exact(*pair) is not None:
            assert value == exact(*pair)


def test_remainders_of_the_least_integers() -> None:
    least = pa.array([-(2**63), -(2**63), None], pa.int64())
    assert compute("%", least, pa.array([-1, 10, 0], pa.int64()), pa.int64()) == [0, -8, None]


def test_floats_are_not_divided_by_zero() -> None:
    floats = pa.array([1.0, -5.5, None, math.inf])
    assert compute("/", floats, pa.array([2.0, 2.0, 0.0, 4.0]), pa.float64()) == [0.5, -2.75, None, math.inf]
    assert compute("%", floats, pa.scalar(2.0), pa.float64())[:3] == [1.0, -1.5, None]
    for operator in "/%":
        for zero in (0.0, -0.0):
            with pytest.raises(InvalidInputError, match="divide by zero"):
                compute(operator, floats, pa.scalar(zero), pa.float64())
            assert compute(operator, pa.array([None], pa.float64()), pa.scalar(zero), pa.float64()) == [None]
    assert compute("*", floats, pa.array([math.inf, 0.0, 1.0, 0.0]), pa.float64())[:3] == [math.inf, -0.0, None]


def test_operands_of_null_may_fail() -> None:
    arrow_type = pa.int32()
    batch = pa.record_batch(
        {"n": pa.array([None, 3, 5], arrow_type), "most": pa.array([2**31 - 1, 2, None], arrow_type)}
    )
    number, twice = nodes.Column(("n",)), _twice("most", arrow_type)

    def evaluated(expression: nodes.Expression) -> list[Any]:
        return list(evaluate(bind(expression, batch.schema), batch).to_pylist())

    assert evaluated(nodes.CheckedArithmetic("+", number, twice, arrow_type)) == [None, 7, None]
    assert evaluated(nodes.CheckedArithmetic("%", twice, number, arrow_type)) == [None, 1, None]
    chosen = nodes.CheckedArithmetic("-", number, twice, arrow_type)
    case = nodes.Case((nodes.IsNull(number),), (chosen,), nodes.Literal(pa.scalar(1, arrow_type)))
    assert evaluated(nodes.CheckedArithmetic("*", number, case, arrow_type)) == [None, 3, 5]
    for first in (
        nodes.CheckedArithmetic("+", twice, number, arrow_type),
        nodes.CheckedArithmetic("%", number, twice, arrow_type),
    ):
        with pytest.raises(InvalidInputError, match="overflow"):
            evaluated(first)


def _twice(name: str, arrow_type: pa.DataType) -> nodes.Expression:
    two = nodes.Literal(pa.scalar(2, arrow_type))
    return nodes.CheckedArithmetic("*", nodes.Column((name,)), two, arrow_type)
