"""Casts that Arrow computes in another way."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
