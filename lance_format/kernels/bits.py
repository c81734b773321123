"""Values of any number of bits, one after the other without gaps, the least significant bit of each first."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]


@kernel
def gather_bits(data: U8, starts: I64, counts: I64, out: U8) -> int:
    """Copy slices of single bits, one after the other; returns their number.

    `starts` counts bits of `data`, within which the slices lie; `out` holds zeros.
    """
    written = 0
    for index in range(starts.size):
        start = starts[index]
        for bit in range(start, start + counts[index]):
            if data[bit >> 3] & np.uint8(1 << (bit & 7)):
                out[written >> 3] |= np.uint8(1 << (written & 7))
            written += 1
    return written


@kernel
def unpack_values(data: U8, starts: I64, counts: I64, width: int, signed: bool, out: npt.NDArray[Any]) -> int:
    """Widen slices of values of `width` bits, 1 to 64, to those of `out`, one slice after the other.

    `starts` counts bits of `data`, within which the slices lie. The highest bit of a value is repeated if they are
    signed. Returns the number of values.
    """
    written = 0
    for index in range(starts.size):
        position = starts[index]
        for _ in range(counts[index]):
            value = np.uint64(0)
            taken = 0
            while taken < width:
                bit = position + taken
                room = min(8 - (bit & 7), width - taken)
                piece = (np.uint64(data[bit >> 3]) >> np.uint64(bit & 7)) & np.uint64((1 << room) - 1)
                value |= piece << np.uint64(taken)
                taken += room
            if signed and width < 64 and (value >> np.uint64(width - 1)) & np.uint64(1):
                value |= np.uint64(0xFFFFFFFFFFFFFFFF) << np.uint64(width)
            out[written] = value
            written += 1
            position += width
    return written
