"""Blocks of values: looking up some of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.data_block import FixedWidthBlock


@given(
    width=st.integers(1, 70),
    num_items=st.integers(1, 300),
    num_values=st.integers(0, 500),
    dtype=st.sampled_from(["u1", "u2", "u4", "i4", "i8"]),
    begin=st.sampled_from([0, 8, 3]),
    seed=st.integers(0, 2**32),
)
def test_values_by_their_numbers(
    width: int, num_items: int, num_values: int, dtype: str, begin: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, begin + num_items * width + 5, np.uint8)[begin:]
    numbers = rng.integers(0, min(num_items, 256 if dtype == "u1" else num_items), num_values).astype(dtype)
    found = FixedWidthBlock(data, width * 8, num_items).take(numbers)
    assert (found.num_values, found.bits_per_value) == (num_values, width * 8)
    expected = data[: num_items * width].reshape(num_items, width)[numbers]
    assert np.array_equal(found.data.reshape(num_values, width), expected)


@pytest.mark.parametrize("begin", [0, 8])
def test_bits_by_their_numbers(begin: int) -> None:
    bits = np.random.default_rng(0).integers(0, 2, 900).astype(np.uint8)
    numbers = np.random.default_rng(1).integers(begin, 900, 777)
    found = FixedWidthBlock(np.packbits(bits, bitorder="little"), 1, 900).take(numbers)
    assert np.array_equal(np.unpackbits(found.data, count=777, bitorder="little"), bits[numbers])
