"""Selection of the nearest rows, against sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.kernels.vectors.nearest import select_nearest

_DISTANCES = st.lists(st.floats(width=32) | st.integers(0, 5).map(float), max_size=200)
_BOUNDS = st.sampled_from([-np.inf, -1.0, 0.0, 2.0, 4.0, np.inf])


@given(_DISTANCES, _BOUNDS, _BOUNDS | st.just(np.nan), st.integers(1, 30))
def test_nearest_rows_in_a_range(given: list[float], lower: float, upper: float, most: int) -> None:
    distances = np.array(given, np.float32)
    nearest, rows = np.empty(most, np.float32), np.empty(most, np.int64)
    count = select_nearest(distances, np.float32(lower), np.float32(upper), nearest, rows)
    is_in = distances >= lower
    if not np.isnan(upper):
        is_in &= distances < upper
    assert np.array_equal(np.sort(nearest[:count]), np.sort(distances[is_in])[:most])
    assert np.array_equal(distances[rows[:count]], nearest[:count])
    assert np.unique(rows[:count]).size == count


@pytest.mark.parametrize("order", [1, -1])
def test_many_rows(order: int) -> None:
    distances = np.arange(10_000, dtype=np.float32)[::order]
    nearest, rows = np.empty(500, np.float32), np.empty(500, np.int64)
    assert select_nearest(distances, np.float32(-np.inf), np.float32(np.nan), nearest, rows) == 500
    assert sorted(nearest.tolist()) == list(range(500))
