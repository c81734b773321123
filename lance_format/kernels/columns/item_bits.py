"""Truth values of the items of dictionaries, looked up for rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

U8 = npt.NDArray[np.uint8]
Keys = npt.NDArray[Any]

_EIGHT = np.uint64(8)
_THREE = np.uint64(3)


@kernel
def look_up_bits(keys: Keys, truths: U8, out: U8) -> int:
    """Set bits to the truth values of keys, the least significant bit of each byte first.

    Parameters
    ----------
    keys : unsigned integer[num_rows], read-only
        Less than the number of items.
    truths : uint8[num_items], read-only
        0 or 1 for each item.
    out : uint8[ceil(num_rows / 8)]

    Returns
    -------
    int
        The number of rows.
    """
    size = np.uint64(keys.size)
    index = np.uint64(0)
    while index + _EIGHT <= size:
        byte = np.uint8(0)
        for bit in range(_EIGHT):
            byte |= truths[keys[index + bit]] << np.uint8(bit)
        out[index >> _THREE] = byte
        index += _EIGHT
    if index < size:
        byte = np.uint8(0)
        for bit in range(size - index):
            byte |= truths[keys[index + bit]] << np.uint8(bit)
        out[index >> _THREE] = byte
    return np.int64(size)
