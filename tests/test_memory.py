"""Memory of large buffers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_format.memory import empty


@pytest.mark.parametrize("count", [0, 1, 1000, 1_000_000])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, "<u8"])
def test_arrays_can_be_written(count: int, dtype: str) -> None:
    found = empty(count, dtype)
    found[:] = np.arange(count) % 100
    assert (found.dtype, found.size) == (np.dtype(dtype), count)
    assert found.flags.c_contiguous
    assert found.flags.aligned
    assert (found == np.arange(count) % 100).all()


def test_large_ones_come_from_the_pool_of_arrow_and_return_to_it() -> None:
    before = pa.total_allocated_bytes()
    found = empty(1_000_000, np.int64)
    view = found[10:].view(np.uint8)
    del found
    assert pa.total_allocated_bytes() == before + 8_000_000
    del view
    assert pa.total_allocated_bytes() == before
