"""Searches of lists against Python's `in`."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.expressions.functions import lists

ROWS = st.lists(st.none() | st.lists(st.none() | st.integers(0, 5), max_size=4), max_size=40)
TYPES = st.sampled_from([pa.list_(pa.int32()), pa.large_list(pa.int64()), pa.list_(pa.float64())])


@given(ROWS, TYPES, st.none() | st.integers(0, 6), st.integers(0, 20))
def test_an_item_that_is_the_same_for_all_rows(
    rows: list[list[int | None] | None], arrow_type: pa.DataType, item: int | None, start: int
) -> None:
    array = pa.array(rows, arrow_type).slice(start)
    expected = [None if row is None or item is None else item in row for row in rows[start:]]
    found = lists.contains_constant(array, pa.scalar(item, pa.int64()))
    found.validate(full=True)
    assert found.type == pa.bool_()
    assert found.to_pylist() == expected
    assert lists.contains(array, pa.array([item] * len(array), pa.int64())).to_pylist() == expected


@given(ROWS, TYPES, st.lists(st.integers(0, 5), max_size=3), st.integers(0, 20))
def test_some_and_all_of_some_items(
    rows: list[list[int | None] | None], arrow_type: pa.DataType, items: list[int], start: int
) -> None:
    array, wanted = pa.array(rows, arrow_type).slice(start), pa.scalar(items, pa.list_(pa.int64()))
    rows = rows[start:]
    some = [None if row is None else any(item in row for item in items) for row in rows]
    every = [None if row is None else all(item in row for item in items) for row in rows]
    if items:
        assert lists.contains_any(array, wanted).to_pylist() == some
        assert lists.contains_all(array, wanted).to_pylist() == every


@pytest.mark.parametrize("size", [0, 1, 3])
def test_lists_of_one_size(size: int) -> None:
    rows = [[number % 7] * size if number % 5 else None for number in range(50)]
    found = lists.contains_constant(pa.array(rows, pa.list_(pa.int32(), size)).slice(3), pa.scalar(4))
    assert found.to_pylist() == [None if row is None else 4 in row for row in rows[3:]]
