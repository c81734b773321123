"""Hash tables of byte strings: distinct ones numbered by their first occurrence, and byte strings looked up.

`slots` has a power of two of slots, more than twice as many as byte strings: their numbers, -1 where free. Collisions
go to the next free slot. The byte strings lie in `arena` one after the other, and `hashes` has the hash of each.

Large tables lie outside of the processor's caches, at random places, so slots and byte strings are fetched some rows
before the row that needs them. `integer_hashes.py` says what a filter of bits is.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.byte_strings import equal_bytes, first_bytes, hash_bytes, last_bytes
from lance_format.kernels.columns.integer_hashes import has_mark, mark
from lance_format.kernels.jit import allocating_kernel, kernel
from lance_format.kernels.prefetch import AHEAD, prefetch
from lance_format.kernels.words import load_word, store_word

Bool = npt.NDArray[np.bool_]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]

_NO_NULLS = np.empty(0, np.bool_)

SLACK = 8
"""Bytes after the last byte string, which are read and not used."""


@kernel
def _probe(
    data: U8,
    offsets: I64,
    rows: I64,
    wanted: U64,
    slots: I32,
    hashes: U64,
    ends: I64,
    arena: U8,
    count: int,
    adds: bool,
    out: I64,
) -> int:
    """Set `out` to the numbers of the byte strings of some rows, which have the wanted hashes.

    Those that are not in the table are added, or have the number -1. Returns the number of byte strings in the table.
    """
    mask = np.uint64(slots.size - 1)
    for index in range(rows.size):
        if index + 3 * AHEAD < rows.size:
            prefetch(slots, np.int64(wanted[index + 3 * AHEAD] & mask))
        if index + 2 * AHEAD < rows.size:
            number = slots[wanted[index + 2 * AHEAD] & mask]
            prefetch(hashes, np.int64(number))
            prefetch(ends, np.int64(number))
        if index + AHEAD < rows.size:
            number = slots[wanted[index + AHEAD] & mask]
            if number >= 0:
                prefetch(arena, ends[number])
        row = rows[index]
        start = np.int64(offsets[row])
        size = np.int64(offsets[row + 1]) - start
        value = wanted[index]
        slot = value & mask
        number = slots[slot]
        while number >= 0:
            begin = ends[number]
            alike = hashes[number] == value and ends[number + 1] - begin == size
            if alike and equal_bytes(data, start, arena, begin, size):
                break
            slot = (slot + np.uint64(1)) & mask
            number = slots[slot]
        if number < 0 and adds:
            number = np.int32(count)
            slots[slot] = number
            hashes[count] = value
            begin = ends[count]
            position = 0
            while position < size:
                store_word(arena, begin + position, load_word(data, start + position))
                position += 8
            count += 1
            ends[count] = begin + size
        out[row] = number
    return count


@kernel
def _hash_rows(data: U8, offsets: I64, valid: Bool, rows: I64, wanted: U64) -> int:
    """Set the indices of the rows that are not null, and the hashes of their byte strings; return how many they are."""
    count = 0
    for row in range(offsets.size - 1):
        if valid.size == 0 or valid[row]:
            start = np.int64(offsets[row])
            size = np.int64(offsets[row + 1]) - start
            first, last = first_bytes(data, start, size), last_bytes(data, start, size)
            rows[count] = row
            wanted[count] = hash_bytes(first, last, data, start, size)
            count += 1
    return count


@allocating_kernel
def number_texts(
    data: U8, offsets: I64, valid: Bool, slots: I32, hashes: U64, ends: I64, arena: U8, count: int, out: I64
) -> int:
    """Number byte strings, and add new ones to the table.

    Parameters
    ----------
    data : uint8[offsets[-1] + SLACK], read-only
    offsets : int64[num_values + 1], read-only
    valid : bool[num_values], read-only
        Empty if there is no null.
    slots : int32[2**n]
        Updated.
    hashes : uint64[count + num_values or more]
        The hashes of the known byte strings; those of new ones are added.
    ends : int64[count + num_values + 1 or more]
        The end of each known byte string in `arena`, after a 0; those of new ones are added.
    arena : uint8[…]
        The known byte strings; new ones are added. It has room for all values, and the slack.
    count : int
        The number of known byte strings.
    out : int64[num_values]
        Set to the numbers of the byte strings; 0 for nulls.

    Returns
    -------
    int
        The number of known byte strings now.
    """
    rows = np.empty(offsets.size - 1, np.int64)
    wanted = np.empty(offsets.size - 1, np.uint64)
    num_valid = _hash_rows(data, offsets, valid, rows, wanted)
    out[:] = 0
    return _probe(data, offsets, rows[:num_valid], wanted, slots, hashes, ends, arena, count, True, out)


@kernel
def _keep_marked(rows: I64, wanted: U64, count: int, shift: int, bits: U8) -> int:
    """Keep the rows whose hashes a filter may have, and return how many they are."""
    kept = 0
    for index in range(count):
        rows[kept] = rows[index]
        wanted[kept] = wanted[index]
        kept += has_mark(wanted[index], shift, bits)
    return kept


@kernel
def place_hashes(hashes: U64, count: int, slots: I32) -> int:
    """Fill an empty hash table with known byte strings.

    Parameters
    ----------
    hashes : uint64[count or more]
    count : int
    slots : int32[2**n]
        All -1. Set to the numbers of the byte strings.

    Returns
    -------
    int
        `count`.
    """
    mask = np.uint64(slots.size - 1)
    for number in range(count):
        slot = hashes[number] & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = number
    return count


@kernel
def mark_text_hashes(hashes: U64, shift: int, bits: U8) -> int:
    """Set the bits of byte strings in a filter.

    Parameters
    ----------
    hashes : uint64[num_values]
    shift : int
        64 minus the binary logarithm of the number of bits.
    bits : uint8[num_bits // 8]
        The least significant bit of each byte first.

    Returns
    -------
    int
        The number of byte strings.
    """
    for hashed in hashes:
        mark(hashed, shift, bits)
    return int(hashes.size)


@allocating_kernel
def find_texts(
    data: U8, offsets: I64, slots: I32, hashes: U64, ends: I64, arena: U8, shift: int, bits: U8, out: I64
) -> int:
    """Look up the numbers of byte strings.

    Parameters
    ----------
    data, offsets, slots, hashes, ends, arena
        See `number_texts`; nothing is added.
    shift, bits
        See `mark_text_hashes`.
    out : int64[num_values]
        Set to the numbers of the byte strings; -1 where one is not in the table.

    Returns
    -------
    int
        How many byte strings are in the table.
    """
    rows = np.empty(offsets.size - 1, np.int64)
    wanted = np.empty(offsets.size - 1, np.uint64)
    num_marked = _keep_marked(rows, wanted, _hash_rows(data, offsets, _NO_NULLS, rows, wanted), shift, bits)
    out[:] = -1
    _probe(data, offsets, rows[:num_marked], wanted, slots, hashes, ends, arena, 0, False, out)
    found = 0
    for row in rows[:num_marked]:
        found += out[row] >= 0
    return found
