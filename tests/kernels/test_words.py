"""Copies of bytes between arrays."""

from __future__ import annotations

import numpy as np
import pytest

from lance_format.kernels.words import copy_bytes


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 100])
def test_bytes_arrive_where_they_should(size: int) -> None:
    source, out = np.arange(128, dtype=np.uint8), np.zeros(128, np.uint8)
    copy_bytes(source, 3, size, out, 5)
    assert out.tolist() == [0] * 5 + source[3 : 3 + size].tolist() + [0] * (123 - size)


@pytest.mark.parametrize(("start", "size", "position"), [(-1, 4, 0), (0, -1, 0), (0, 4, -1), (5, 4, 0), (0, 4, 13)])
def test_bytes_outside_of_the_arrays_are_refused(start: int, size: int, position: int) -> None:
    out = np.zeros(16, np.uint8)
    with pytest.raises(ValueError, match="do not lie within"):
        copy_bytes(np.ones(8, np.uint8), start, size, out, position)
    assert not out.any()
