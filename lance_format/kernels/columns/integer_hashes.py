"""Hash tables of 64-bit integers: distinct values numbered by their first occurrence, and values looked up.

Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4) spreads values over a power of two of
slots; collisions go to the next free slot. A slot has a value and its number, or -1 if it is free.

A filter of bits excludes most values that are not in a table before its slots are read. A value's bit is that of its
hash in a larger power of two, as in a Bloom filter of one hash (Bloom, "Space/Time Trade-offs in Hash Coding with
Allowable Errors", CACM 1970).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel
from lance_format.kernels.prefetch import AHEAD, prefetch

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@kernel
def _first_slot(value: int, shift: int) -> int:
    """Return the first slot that a value may be in."""
    return np.int64((np.uint64(value) * _FACTOR) >> np.uint64(shift))


@kernel
def _find_slot(values: I64, index: np.uint64, shift: int, slot_values: I64, slot_numbers: I32) -> int:
    """Return the slot of a value, or the free one that it would have, and fetch that of a later value."""
    later = index + np.uint64(AHEAD)
    if later < np.uint64(values.size):
        start = _first_slot(values[later], shift)
        prefetch(slot_numbers, start)
        prefetch(slot_values, start)
    last = np.int64(slot_numbers.size - 1)
    value = values[index]
    slot = _first_slot(value, shift)
    while slot_numbers[slot] >= 0 and slot_values[slot] != value:
        slot = (slot + 1) & last
    return slot


@kernel
def number_distinct(values: I64, shift: int, slot_values: I64, slot_numbers: I32, distinct: I64) -> int:
    """Fill an empty hash table with the distinct values.

    Parameters
    ----------
    values : int64[num_values], read-only
        Fewer than the slots.
    shift : int
        64 minus the binary logarithm of the number of slots.
    slot_values : int64[num_slots]
        Set where a slot is taken.
    slot_numbers : int32[num_slots]
        All -1. Set where a slot is taken.
    distinct : int64[num_values]
        The first items are set to the distinct values, in the order of their first occurrence.

    Returns
    -------
    int
        The number of distinct values.
    """
    count = 0
    for index in range(np.uint64(values.size)):
        slot = _find_slot(values, index, shift, slot_values, slot_numbers)
        if slot_numbers[slot] < 0:
            slot_values[slot] = values[index]
            slot_numbers[slot] = count
            distinct[count] = values[index]
            count += 1
    return count


@kernel
def find_numbers(values: I64, shift: int, slot_values: I64, slot_numbers: I32, out: I64) -> int:
    """Look up the numbers of values.

    Parameters
    ----------
    values : int64[num_values], read-only
    shift, slot_values, slot_numbers
        See `number_distinct`. One slot is free at least.
    out : int64[num_values]
        Set to the numbers; -1 where a value is not in the table.

    Returns
    -------
    int
        How many values are in the table.
    """
    found = 0
    for index in range(np.uint64(values.size)):
        number = slot_numbers[_find_slot(values, index, shift, slot_values, slot_numbers)]
        out[index] = number
        found += number >= 0
    return found


@kernel
def mark(hashed: np.uint64, shift: int, bits: U8) -> None:
    """Set the bit of a hash in a filter; see `mark_hashes`."""
    place = hashed >> np.uint64(shift)
    bits[place >> np.uint64(3)] |= np.uint8(np.uint64(1) << (place & np.uint64(7)))


@kernel
def has_mark(hashed: np.uint64, shift: int, bits: U8) -> bool:
    """Return whether the bit of a hash is set in a filter; see `mark_hashes`."""
    place = hashed >> np.uint64(shift)
    return (bits[place >> np.uint64(3)] >> np.uint8(place & np.uint64(7))) & np.uint8(1) != 0


@kernel
def mark_hashes(values: I64, shift: int, bits: U8) -> int:
    """Set the bits of values in a filter.

    Parameters
    ----------
    values : int64[num_values], read-only
    shift : int
        64 minus the binary logarithm of the number of bits.
    bits : uint8[num_bits // 8]
        The least significant bit of each byte first.

    Returns
    -------
    int
        The number of values.
    """
    for value in values:
        mark(np.uint64(value) * _FACTOR, shift, bits)
    return int(values.size)


@kernel
def find_hashed(
    values: npt.NDArray[Any], shift: int, slot_values: I64, slot_numbers: I32, filter_shift: int, bits: U8, out: U8
) -> int:
    """Look up which values are in a table.

    Parameters
    ----------
    values : int32[num_values] or int64[num_values], read-only
    shift, slot_values, slot_numbers
        See `number_distinct`. One slot is free at least.
    filter_shift, bits
        See `mark_hashes`.
    out : uint8[(num_values + 7) // 8]
        Set to a bit per value: whether it is in the table.

    Returns
    -------
    int
        The number of values.
    """
    last = np.int64(slot_numbers.size - 1)
    for byte in range(out.size):
        word = np.uint8(0)
        start = byte << 3
        for index in range(start, min(start + 8, values.size)):
            value = np.int64(values[index])
            hashed = np.uint64(value) * _FACTOR
            if has_mark(hashed, filter_shift, bits):
                slot = np.int64(hashed >> np.uint64(shift))
                while slot_numbers[slot] >= 0 and slot_values[slot] != value:
                    slot = (slot + 1) & last
                if slot_numbers[slot] >= 0:
                    word |= np.uint8(1 << (index & 7))
        out[byte] = word
    return int(values.size)
