"""Hash aggregation: groups of rows, numbered by their first row, and sums, least and greatest values per group.

A key is one or more words of 64 bits. `slots` is a hash table with open addressing: numbers of keys, -1 where free. It
has a power of two of slots, more than twice as many as keys. Byte strings become words first: their numbers in a table
of distinct ones (`columns/text_hashes.py`).

Large tables lie outside of the processor's caches, at random places, so slots and keys are fetched some rows before the
row that needs them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import allocating_kernel, kernel
from lance_format.kernels.prefetch import AHEAD, prefetch
from lance_format.kernels.words import mix

Bool = npt.NDArray[np.bool_]
F64 = npt.NDArray[np.float64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]


@allocating_kernel
def number_rows(words: I64, slots: I32, keys: I64, count: int, out: I32) -> int:
    """Number the keys of rows, and add new keys to the table.

    Parameters
    ----------
    words : int64[num_rows, width]
        The keys of the rows.
    slots : int32[2**n]
        Updated.
    keys : int64[count + num_rows or more, width]
        The known keys; new ones are added.
    count : int
        The number of known keys.
    out : int32[num_rows]
        Set to the numbers of the keys.

    Returns
    -------
    int
        The number of known keys now.
    """
    mask = np.uint64(slots.size - 1)
    num_rows, width = words.shape
    hashes = np.empty(num_rows, np.uint64)
    for row in range(num_rows):
        value = np.uint64(0)
        for part in range(width):
            value = mix(value ^ np.uint64(words[row, part]))
        hashes[row] = value
    for row in range(num_rows):
        if row + 2 * AHEAD < num_rows:
            prefetch(slots, np.int64(hashes[row + 2 * AHEAD] & mask))
        if row + AHEAD < num_rows:
            prefetch(keys, np.int64(slots[hashes[row + AHEAD] & mask]) * width)
        slot = hashes[row] & mask
        number = slots[slot]
        while number >= 0:
            part = 0
            while part < width and keys[number, part] == words[row, part]:
                part += 1
            if part == width:
                break
            slot = (slot + np.uint64(1)) & mask
            number = slots[slot]
        if number < 0:
            number = np.int32(count)
            slots[slot] = number
            for part in range(width):
                keys[count, part] = words[row, part]
            count += 1
        out[row] = number
    return count


@kernel
def place_keys(keys: I64, count: int, slots: I32) -> int:
    """Fill an empty hash table with known keys.

    Parameters
    ----------
    keys : int64[count or more, width]
    count : int
    slots : int32[2**n]
        All -1. Set to the numbers of the keys.

    Returns
    -------
    int
        `count`.
    """
    mask = np.uint64(slots.size - 1)
    for number in range(count):
        value = np.uint64(0)
        for part in range(keys.shape[1]):
            value = mix(value ^ np.uint64(keys[number, part]))
        slot = value & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = number
    return count


@kernel
def add_integers(values: I64, valid: Bool, groups: I32, low: U64, high: I64, counts: I64) -> int:
    """Add integers to the sums of their groups, which have 128 bits.

    Parameters
    ----------
    values : int64[num_rows], read-only
    valid : bool[num_rows], read-only
        Empty if there is no null.
    groups : int32[num_rows]
    low : uint64[num_groups]
        The lower halves of the sums.
    high : int64[num_groups]
        The upper halves of the sums.
    counts : int64[num_groups]
        The numbers of added values.

    Returns
    -------
    int
        The number of rows.
    """
    all_valid = valid.size == 0
    if all_valid and counts.size == 1:  # Its sum stays in registers.
        lower, upper = low[0], high[0]
        for row in range(values.size):
            value = np.int64(values[row])
            after = lower + np.uint64(value)
            upper += (value >> np.int64(63)) + np.int64(after < lower)
            lower = after
        low[0], high[0] = lower, upper
        counts[0] += values.size
        return values.size
    for row in range(values.size):
        if all_valid or valid[row]:
            group = groups[row]
            value = np.int64(values[row])
            before = low[group]
            after = before + np.uint64(value)
            low[group] = after
            high[group] += (value >> np.int64(63)) + np.int64(after < before)
            counts[group] += 1
    return values.size


@kernel
def add_floats(values: F64, valid: Bool, groups: I32, sums: F64, counts: I64) -> int:
    """Add floating-point numbers to the sums of their groups.

    Parameters
    ----------
    values : float64[num_rows], read-only
    valid, groups, counts
        See `add_integers`.
    sums : float64[num_groups]

    Returns
    -------
    int
        The number of rows.
    """
    all_valid = valid.size == 0
    for row in range(values.size):
        if all_valid or valid[row]:
            group = groups[row]
            sums[group] += values[row]
            counts[group] += 1
    return values.size


@kernel
def keep_extremes(values: Numbers, valid: Bool, groups: I32, kept: Numbers, counts: I64, greatest: bool) -> int:
    """Keep the least or the greatest number of each group; NaN exceeds all others.

    Parameters
    ----------
    values : int64[num_rows] or float64[num_rows], read-only
    valid, groups, counts
        See `add_integers`.
    kept : array of the same dtype [num_groups]
        Set where `counts` is not 0.
    greatest : bool

    Returns
    -------
    int
        The number of rows.
    """
    all_valid = valid.size == 0
    for row in range(values.size):
        if all_valid or valid[row]:
            group = groups[row]
            value, best = values[row], kept[group]
            if counts[group] == 0:
                kept[group] = value
            elif greatest:
                if value > best or value != value:
                    kept[group] = value
            elif value < best or best != best:
                kept[group] = value
            counts[group] += 1
    return values.size
