"""The least and the greatest value of each zone, a run of consecutive values.

`starts`, int64[num_zones + 1], holds the start of each zone and the end of the last. `valid` is empty if no value is
null. The bounds of zones without a value keep their initial values, or are -1 if they are indices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel
from lance_format.kernels.prefetch import LINE_BYTES, prefetch
from lance_format.kernels.words import load_word

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Integers = npt.NDArray[Any]

_AHEAD = 8


@kernel
def bound_integers(values: Integers, valid: Mask, starts: I64, lower: Integers, upper: Integers) -> int:
    """Find the bounds of integers.

    Parameters
    ----------
    values : integer[num_values]
        The values.
    valid : bool[num_values] or bool[0]
        Whether a value is not null.
    starts : int64[num_zones + 1]
        Zones of the values.
    lower, upper : integer[num_zones]
        Of the type of the values. Hold the greatest and the least number; set to the bounds.

    Returns
    -------
    int
        The number of zones.
    """
    for zone in range(starts.size - 1):
        highest = lower[zone]
        lowest = upper[zone]
        least = highest
        greatest = lowest
        # Unsigned positions: checks for negative ones would keep the loops from being vectorised.
        first, end = np.uint64(starts[zone]), np.uint64(starts[zone + 1])
        if valid.size:
            for index in range(first, end):
                low = values[index] if valid[index] else highest
                high = values[index] if valid[index] else lowest
                least = low if low < least else least
                greatest = high if high > greatest else greatest
        else:
            for index in range(first, end):
                value = values[index]
                least = value if value < least else least
                greatest = value if value > greatest else greatest
        lower[zone] = least
        upper[zone] = greatest
    return starts.size - 1


@kernel
def bound_booleans(data: U8, offset: int, valid: Mask, starts: I64, lower: Integers, upper: Integers) -> int:
    """Find the bounds of booleans. A zone is read until both values are found.

    Parameters
    ----------
    data : uint8[…]
        Bits, the least significant one of each byte first: 1 for true, 0 for false.
    offset : int
        Index of the first value within `data`.
    valid : bool[num_values] or bool[0]
        Whether a value is not null.
    starts : int64[num_zones + 1]
        Zones of the values.
    lower, upper : int8[num_zones]
        Hold the greatest and the least number; set to the bounds.

    Returns
    -------
    int
        The number of zones.
    """
    for zone in range(starts.size - 1):
        is_true = False
        is_false = False
        index = starts[zone]
        end = starts[zone + 1]
        while index < end and not (is_true and is_false):
            bit = offset + index
            byte = data[bit >> 3]
            if valid.size == 0 and (bit & 7) == 0 and end - index >= 8:
                is_true |= byte != 0
                is_false |= byte != 0xFF
                index += 8
                continue
            if valid.size == 0 or valid[index]:
                value = (byte >> np.uint8(bit & 7)) & np.uint8(1)
                is_true |= value != 0
                is_false |= value == 0
            index += 1
        if is_true or is_false:
            lower[zone] = 0 if is_false else 1
            upper[zone] = 1 if is_true else 0
    return starts.size - 1


@kernel
def bound_floats(
    values: Integers, valid: Mask, starts: I64, infinity: int, lower: Integers, upper: Integers, num_nan: I64
) -> int:
    """Find the bounds of floating-point numbers as integers that have the same order.

    Bits become such integers, and these become bits, by flipping all bits except the sign of negative numbers. NaN is
    counted and does not affect the bounds.

    Parameters
    ----------
    values : signed integer[num_values]
        The bits of the values.
    valid : bool[num_values] or bool[0]
        Whether a value is not null.
    starts : int64[num_zones + 1]
        Zones of the values.
    infinity : int
        The bits of infinity.
    lower, upper : signed integer[num_zones]
        Hold the greatest and the least number; set to the bounds.
    num_nan : int64[num_zones]
        Set to the number of NaN in each zone.

    Returns
    -------
    int
        The number of zones.
    """
    last_bit = np.uint64(upper.itemsize * 8 - 1)
    below_sign = np.int64((np.uint64(1) << last_bit) - np.uint64(1))
    for zone in range(starts.size - 1):
        highest = np.int64(lower[zone])
        lowest = np.int64(upper[zone])
        least = highest
        greatest = lowest
        counted = np.int64(0)
        for index in range(np.uint64(starts[zone]), np.uint64(starts[zone + 1])):
            bits = np.int64(values[index])
            is_nan = (bits & below_sign) > infinity
            value = bits ^ ((bits >> np.int64(63)) & below_sign)
            there = not is_nan
            if valid.size:
                there = there & valid[index]
                is_nan = is_nan & valid[index]
            counted += np.int64(is_nan)
            least = min(least, value if there else highest)
            greatest = max(greatest, value if there else lowest)
        lower[zone] = least
        upper[zone] = greatest
        num_nan[zone] = counted
    return starts.size - 1


@kernel
def is_less(words: U64, width: int, one: int, other: int) -> bool:
    """Compare two signed integers of several words.

    Parameters
    ----------
    words : uint64[num_values * width]
        The words of the integers, little-endian.
    width : int
        Words per integer.
    one, other : int
        Indices of two integers.

    Returns
    -------
    bool
        Whether the first is less than the second.
    """
    position = width - 1
    top = np.int64(words[one * width + position])
    other_top = np.int64(words[other * width + position])
    if top != other_top:
        return top < other_top
    while position > 0:
        position -= 1
        if words[one * width + position] != words[other * width + position]:
            return words[one * width + position] < words[other * width + position]
    return False


@kernel
def find_wide_bounds(words: U64, width: int, valid: Mask, starts: I64, lower: I64, upper: I64) -> int:
    """Find the indices of the bounds of signed integers of several words.

    Parameters
    ----------
    words : uint64[num_values * width]
        The words of the integers, little-endian.
    width : int
        Words per integer.
    valid : bool[num_values] or bool[0]
        Whether a value is not null.
    starts : int64[num_zones + 1]
        Zones of the values.
    lower, upper : int64[num_zones]
        Set to the indices of the bounds, -1 for zones without a value.

    Returns
    -------
    int
        The number of zones.
    """
    for zone in range(starts.size - 1):
        least = np.int64(-1)
        greatest = np.int64(-1)
        for index in range(starts[zone], starts[zone + 1]):
            if valid.size and not valid[index]:
                continue
            if least < 0:
                least = index
                greatest = index
            elif is_less(words, width, index, least):
                least = index
            elif is_less(words, width, greatest, index):
                greatest = index
        lower[zone] = least
        upper[zone] = greatest
    return starts.size - 1


@kernel
def first_word(data: U8, start: int, size: int) -> np.uint64:
    """Return the first 8 bytes of a byte string as a big-endian number, padded with zeros.

    Parameters
    ----------
    data : uint8[…]
        Holds the byte string.
    start, size : int
        Byte range of the byte string within `data`.

    Returns
    -------
    uint64
        A number that orders like the byte strings.
    """
    if size == 0:
        return np.uint64(0)
    if start + 8 <= data.size:
        word = load_word(data, start)
        word = ((word & np.uint64(0x00FF00FF00FF00FF)) << np.uint64(8)) | (
            (word >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
        )
        word = ((word & np.uint64(0x0000FFFF0000FFFF)) << np.uint64(16)) | (
            (word >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
        )
        word = (word << np.uint64(32)) | (word >> np.uint64(32))
        if size >= 8:
            return word
        return word & (~np.uint64(0) << np.uint64(64 - 8 * size))
    word = np.uint64(0)
    for index in range(8):
        byte = np.uint64(data[start + index]) if index < size else np.uint64(0)
        word = (word << np.uint64(8)) | byte
    return word


@kernel
def is_before(data: U8, start: int, size: int, other: int, other_size: int) -> bool:
    """Compare two byte strings.

    Parameters
    ----------
    data : uint8[…]
        Holds the byte strings.
    start, size : int
        Byte range of the first.
    other, other_size : int
        Byte range of the second.

    Returns
    -------
    bool
        Whether the first is less than the second.
    """
    common = min(size, other_size)
    position = np.int64(0)
    while position + 8 <= common and load_word(data, start + position) == load_word(data, other + position):
        position += 8
    while position < common and data[start + position] == data[other + position]:
        position += 1
    if position < common:
        return data[start + position] < data[other + position]
    return size < other_size


@kernel
def find_string_bounds(offsets: Integers, data: U8, valid: Mask, starts: I64, lower: I64, upper: I64) -> int:
    """Find the indices of the bounds of byte strings.

    The bounds of a zone often share a prefix. A value that shares its whole words is mostly decided by its next word; a
    value that does not share them lies outside the bounds.

    Parameters
    ----------
    offsets : integer[num_values + 1]
        Byte offsets of the byte strings within `data`.
    data : uint8[…]
        The bytes of the byte strings.
    valid : bool[num_values] or bool[0]
        Whether a value is not null.
    starts : int64[num_zones + 1]
        Zones of the values.
    lower, upper : int64[num_zones]
        Set to the indices of the bounds, -1 for zones without a value.

    Returns
    -------
    int
        The number of zones.
    """
    for zone in range(starts.size - 1):
        least = np.int64(-1)
        greatest = np.int64(-1)
        base = np.int64(0)
        depth = np.int64(0)
        least_word = np.uint64(0)
        greatest_word = np.uint64(0)
        num_bytes = np.int64(offsets[starts[zone + 1]]) - np.int64(offsets[starts[zone]])
        is_long = num_bytes > LINE_BYTES * (starts[zone + 1] - starts[zone])
        for index in range(starts[zone], starts[zone + 1]):
            if valid.size and not valid[index]:
                continue
            start = np.int64(offsets[index])
            size = np.int64(offsets[index + 1]) - start
            if is_long:  # Most are decided by their first word alone, which the processor does not foresee.
                prefetch(data, np.int64(offsets[min(index + _AHEAD, starts[zone + 1])]))
            if least < 0:
                below = True
                above = True
            else:
                agrees = size >= depth
                position = np.int64(0)
                while agrees and position < depth:
                    agrees = load_word(data, start + position) == load_word(data, base + position)
                    position += 8
                if agrees:
                    word = first_word(data, start + depth, size - depth)
                    if word > least_word and word < greatest_word:
                        continue
                    below = word < least_word
                    above = word > greatest_word
                    if word == least_word:
                        other = np.int64(offsets[least])
                        below = is_before(data, start, size, other, np.int64(offsets[least + 1]) - other)
                    if word == greatest_word:
                        other = np.int64(offsets[greatest])
                        above = is_before(data, other, np.int64(offsets[greatest + 1]) - other, start, size)
                    if not (below or above):
                        continue
                else:
                    other = np.int64(offsets[least])
                    below = is_before(data, start, size, other, np.int64(offsets[least + 1]) - other)
                    above = not below
            least = index if below else least
            greatest = index if above else greatest
            base = np.int64(offsets[least])
            other = np.int64(offsets[greatest])
            shorter = min(np.int64(offsets[least + 1]) - base, np.int64(offsets[greatest + 1]) - other)
            depth = np.int64(0)
            while depth + 8 <= shorter and load_word(data, base + depth) == load_word(data, other + depth):
                depth += 8
            least_word = first_word(data, base + depth, np.int64(offsets[least + 1]) - base - depth)
            greatest_word = first_word(data, other + depth, np.int64(offsets[greatest + 1]) - other - depth)
        lower[zone] = least
        upper[zone] = greatest
    return starts.size - 1
