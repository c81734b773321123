"""Lists that have an item for which a bit is set."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

Bool = npt.NDArray[np.bool_]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

_ONE = np.uint64(1)
_THREE = np.uint64(3)
_SEVEN = np.uint64(7)


@kernel
def mark_lists(bits: U8, first: int, ends: I64, out: Bool) -> int:
    """Find the lists that have an item whose bit is set.

    Parameters
    ----------
    bits : uint8[…], read-only
        The least significant bit of each byte first.
    first : int
        Index of the bit of the first item.
    ends : int64[num_lists]
        Number of items up to the end of each list.
    out : bool[num_lists]
        Set to whether a list has such an item.

    Returns
    -------
    int
        The number of such lists.
    """
    start = np.uint64(first)
    position = start
    count = 0
    for row in range(ends.size):
        end = start + np.uint64(ends[row])
        hit = np.uint8(0)
        while position < end:
            hit |= (bits[position >> _THREE] >> np.uint8(position & _SEVEN)) & np.uint8(1)
            position += _ONE
        out[row] = hit != 0
        count += np.int64(hit)
    return count
