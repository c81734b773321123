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
    """Copy slices of single bits, one after the other.

    Parameters
    ----------
    data : uint8[…]
        Bits, the least significant one of each byte first.
    starts, counts : int64[num_slices]
        Bit ranges of the slices within `data`.
    out : uint8[(counts.sum() + 7) // 8]
        Holds zeros, set to the bits.

    Returns
    -------
    int
        The number of bits.
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
    """Widen slices of packed values, one slice after the other.

    Parameters
    ----------
    data : uint8[…]
        Values of `width` bits, the least significant bit first.
    starts : int64[num_slices]
        Offset of each slice within `data`, in bits.
    counts : int64[num_slices]
        Number of values of each slice.
    width : int
        Bits per value, 1 to 64.
    signed : bool
        Whether the highest bit of a value is its sign.
    out : integer[counts.sum()]
        Set to the values.

    Returns
    -------
    int
        The number of values.
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


@kernel
def find_bits(values: npt.NDArray[Any], least: int, bits: U8, out: U8) -> int:
    """Look up integers in a set of bits.

    Parameters
    ----------
    values : int32[num_values] or int64[num_values], read-only
    least : int
        The integer of the first bit.
    bits : uint8[…]
        The bits of the integers from `least` on, the least significant one of each byte first. Other integers are not
        in the set.
    out : uint8[(num_values + 7) // 8]
        Set to a bit per value: whether it is in the set.

    Returns
    -------
    int
        The number of values.
    """
    size = np.uint64(bits.size) << np.uint64(3)
    for byte in range(out.size):
        word = np.uint8(0)
        start = byte << 3
        for index in range(start, min(start + 8, values.size)):
            # The difference of integers of 64 bits that are far apart wraps around, to what is no place of a set.
            place = np.uint64(np.int64(values[index])) - np.uint64(np.int64(least))
            if place < size:
                word |= np.uint8(((bits[place >> np.uint64(3)] >> np.uint8(place & np.uint64(7))) & 1) << (index & 7))
        out[byte] = word
    return int(values.size)
