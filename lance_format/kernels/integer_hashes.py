"""Hash tables of 64-bit integers: distinct values numbered by their first occurrence, and values looked up.

Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4) spreads values over a power of two of
slots; collisions go to the next free slot. A slot has a value and its number, or -1 if it is free.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel
from lance_format.kernels.prefetch import prefetch

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

AHEAD = np.uint64(16)
"""Values from which a slot is fetched to when it is needed."""


@kernel
def _slot(value: int, shift: int) -> int:
    """Return the first slot that a value may be in."""
    return np.int64((np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(shift))


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
    last = np.int64(slot_numbers.size - 1)
    size = np.uint64(values.size)
    for index in range(size):
        if index + AHEAD < size:
            later = _slot(values[index + AHEAD], shift)
            prefetch(slot_numbers, later)
            prefetch(slot_values, later)
        value = np.int64(values[index])
        slot = _slot(value, shift)
        while slot_numbers[slot] >= 0 and slot_values[slot] != value:
            slot = (slot + 1) & last
        if slot_numbers[slot] < 0:
            slot_values[slot] = value
            slot_numbers[slot] = count
            distinct[count] = value
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
    last = np.int64(slot_numbers.size - 1)
    size = np.uint64(values.size)
    for index in range(size):
        if index + AHEAD < size:
            later = _slot(values[index + AHEAD], shift)
            prefetch(slot_numbers, later)
            prefetch(slot_values, later)
        value = np.int64(values[index])
        slot = _slot(value, shift)
        while slot_numbers[slot] >= 0 and slot_values[slot] != value:
            slot = (slot + 1) & last
        number = slot_numbers[slot]
        out[index] = number
        found += number >= 0
    return found
