"""Casts that Arrow computes in another way."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.expressions import Expression, bind, nodes
from lance_format.expressions.rendering import to_sql
from lance_format.expressions.values.casts import cast


@given(st.lists(st.none() | st.integers(-(10**15) + 1, 10**15 - 1), max_size=20), st.integers(0, 15), st.integers(0, 3))
def test_decimals_become_the_nearest_doubles(digits: list[int | None], scale: int, start: int) -> None:
    values = [None if number is None else Decimal(number).scaleb(-scale) for number in digits]
    decimals = pa.array(values, pa.decimal128(15, scale))
    expected = [None if value is None else float(value) for value in values]
    assert cast(decimals, pa.float64()).to_pylist() == expected
    assert cast(decimals[start:], pa.float64()).to_pylist() == expected[start:]


@pytest.mark.parametrize("value", [Decimal("0.07"), None])
def test_a_decimal_becomes_a_double(value: Decimal | None) -> None:
    assert cast(pa.scalar(value, pa.decimal128(9, 2)), pa.float64()).as_py() == (None if value is None else 0.07)


@pytest.mark.parametrize(
    ("value", "arrow_type", "text"),
    [
        (1e10, pa.float64(), "10000000000.0"),
        (-9.007199254740992e15, pa.float64(), "-9007199254740992.0"),
        (1e16, pa.float64(), "1e16"),
        (1.5e-5, pa.float64(), "0.000015"),
        (-2.25e-6, pa.float64(), "-2.25e-6"),
        (9.98402e12, pa.float32(), "9984020000000.0"),
        (1e13, pa.float32(), "1e13"),
        (0.0000015, pa.float32(), "0.0000015"),
        (1.25e-7, pa.float32(), "1.25e-7"),
        (-0.0, pa.float32(), "-0.0"),
        (float("nan"), pa.float64(), "NaN"),
        (float("-inf"), pa.float64(), "-inf"),
        (None, pa.float64(), None),
    ],
)
def test_numbers_have_exponents_where_those_of_the_reference_have(
    value: float | None, arrow_type: pa.DataType, text: str | None
) -> None:
    assert cast(pa.array([value, 1], arrow_type), pa.string()).to_pylist() == [text, "1.0"]


def test_casts_within_casts_are_bound_once_each() -> None:
    """Were each bound twice, forty of them would take for ever."""
    expression: Expression = nodes.Column(("x",))
    for depth in range(40):
        expression = nodes.Cast(expression, pa.int64() if depth % 2 else pa.int32())
    assert to_sql(bind(expression, pa.schema([("x", pa.int32())])).expression).count("CAST") == 39
