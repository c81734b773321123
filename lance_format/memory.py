"""Memory of arrays: values seen in place, and large buffers, which the memory pool of Arrow keeps for the next ones.

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


def fixed_width(array: pa.Array, dtype: str, items: int = 1) -> npt.NDArray[Any]:
    """Return the values of an array as NumPy sees them.

    Parameters
    ----------
    array : pa.Array
        Of a type of fixed width, not booleans.
    dtype : str
        The type of the items.
    items : int
        Number of items per value of the array.
    """
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array) * items, dtype)
    return np.frombuffer(data, dtype, len(array) * items, array.offset * items * np.dtype(dtype).itemsize)
