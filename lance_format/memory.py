"""Memory of large buffers, which Arrow's memory pool keeps for the next ones when they are freed.

The allocator of the C library returns large blocks to the system, and the pages of the next ones are faulted in and
cleared again: that takes as long as decoding them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_LARGE_BYTES = 64 * 1024
"""The C library keeps smaller blocks itself, and numpy has them sooner."""


def empty(count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array whose items are arbitrary, as `numpy.empty` does.

    Parameters
    ----------
    count : int
        Number of items.
    dtype : numpy.dtype
    """
    dtype = np.dtype(dtype)
    if count * dtype.itemsize < _LARGE_BYTES:
        return np.empty(count, dtype)
    return np.frombuffer(pa.allocate_buffer(count * dtype.itemsize), dtype)
