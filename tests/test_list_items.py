"""Items of lists: those below null lists are left out."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.list_items import items_of


@pytest.mark.parametrize("type_of_lists", [pa.ListArray, pa.LargeListArray])
@given(
    rows=st.lists(st.tuples(st.lists(st.none() | st.integers(0, 9), max_size=3), st.booleans())),
    start=st.integers(0, 9),
)
def test_items_of_lists(type_of_lists: type[pa.Array], rows: list[tuple[list[int | None], bool]], start: int) -> None:
    offsets = [sum(len(items) for items, _ in rows[:end]) for end in range(len(rows) + 1)]
    offset_type = pa.int32() if type_of_lists is pa.ListArray else pa.int64()
    below = pa.array([item for items, _ in rows for item in items], pa.int64())
    mask = pa.array([is_null for _, is_null in rows], pa.bool_())
    lists = type_of_lists.from_arrays(pa.array(offsets, offset_type), below, mask=mask).slice(start)
    expected = [(item, row) for row, items in enumerate(lists.to_pylist()) for item in items or ()]
    items, numbers = items_of(lists)
    assert list(zip(items.to_pylist(), numbers.tolist(), strict=True)) == expected


def test_items_of_lists_of_fixed_size() -> None:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(range(6)), 2, mask=pa.array([False, True, False]))
    items, numbers = items_of(lists)
    assert (items.to_pylist(), numbers.tolist()) == ([0, 1, 4, 5], [0, 0, 2, 2])
