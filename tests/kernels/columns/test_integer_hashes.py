"""Hash tables of integers, against dictionaries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.kernels.columns.integer_hashes import find_hashed, find_numbers, mark_hashes, number_distinct

INTEGERS = st.integers(-(2**63), 2**63 - 1)
CLOSE = st.integers(-3, 3)
ALIKE = st.integers(-8, 7).map(lambda number: number << 60)


@given(st.lists(st.one_of(INTEGERS, CLOSE, ALIKE), max_size=60), st.lists(st.one_of(INTEGERS, CLOSE, ALIKE)))
def test_values_are_numbered_by_their_first_occurrence(given_values: list[int], others: list[int]) -> None:
    check(given_values, others, max(len(given_values).bit_length(), 1))


@pytest.mark.parametrize("num_bits", [7, 8, 20])
def test_tables_that_are_all_but_full(num_bits: int) -> None:
    check(list(range(127)), list(range(-1000, 1000)), num_bits)


def check(given_values: list[int], others: list[int], num_bits: int) -> None:
    """Check a table with a slot more than there are values at least."""
    values = np.array(given_values, np.int64)
    slot_values, slot_numbers = np.empty(1 << num_bits, np.int64), np.full(1 << num_bits, -1, np.int32)
    distinct = np.zeros(values.size, np.int64)
    count = number_distinct(values, 64 - num_bits, slot_values, slot_numbers, distinct)
    expected = {value: number for number, value in enumerate(dict.fromkeys(given_values))}
    assert distinct[:count].tolist() == list(expected)
    wanted = [*given_values, *others]
    out = np.zeros(len(wanted), np.int64)
    found = find_numbers(np.array(wanted, np.int64), 64 - num_bits, slot_values, slot_numbers, out)
    assert out.tolist() == [expected.get(value, -1) for value in wanted]
    assert found == sum(value in expected for value in wanted)
    for filter_bits in (3, 10):
        bits, packed = np.zeros(1 << (filter_bits - 3), np.uint8), np.zeros((len(wanted) + 7) // 8, np.uint8)
        mark_hashes(values, 64 - filter_bits, bits)
        find_hashed(
            np.array(wanted, np.int64), 64 - num_bits, slot_values, slot_numbers, 64 - filter_bits, bits, packed
        )
        there = np.unpackbits(packed, count=len(wanted), bitorder="little")
        assert there.tolist() == [value in expected for value in wanted]
