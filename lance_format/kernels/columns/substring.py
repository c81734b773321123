"""Search for literals in strings and binaries, all rows at once.

The bytes of all rows are searched for two bytes of one literal at their distance, a block at a time. Only rows with
such a pair are looked at: they match if the literals follow each other, in order and without overlap.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
Words = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]

_BLOCK = np.int64(64)


@kernel
def match_literals(
    data: U8, offsets: Words, literals: U8, borders: I64, anchor: int, one: int, other: int, out: Flags
) -> int:
    """Mark the rows that begin with the first literal, end with the last, and have the others in between.

    Parameters
    ----------
    data : uint8[…]
        The bytes of the rows.
    offsets : integer[num_rows + 1]
        Ascending byte offsets of the rows within `data`.
    literals : uint8[…]
        The literals, one after another. The first and the last may be empty.
    borders : int64[num_literals + 1]
        Byte offsets of the literals, at least two, within `literals`.
    anchor : int
        Index of a literal that is not empty.
    one, other : int
        Offsets of two bytes within it, preferably rare ones.
    out : bool[num_rows]
        False; set to True for the rows that match.

    Returns
    -------
    int
        The number of rows that match.
    """
    num_rows = offsets.size - 1
    size = borders[anchor + 1] - borders[anchor]
    begin = np.int64(offsets[0])
    last = np.int64(offsets[num_rows]) - size  # where the literal can begin at most
    is_alone = borders.size == 4 and size == literals.size
    byte = literals[borders[anchor] + one]
    other_byte = literals[borders[anchor] + other]
    row = 0
    count = 0
    position = begin
    while position <= last:
        if position + _BLOCK <= last + 1:
            found = np.uint8(0)
            base = np.uint64(position + one)
            other_base = np.uint64(position + other)
            for index in range(np.uint64(64)):
                found |= np.uint8(data[base + index] == byte) & np.uint8(data[other_base + index] == other_byte)
            if not found:
                position += _BLOCK
                continue
        stop = min(position + _BLOCK, last + 1)
        while position < stop:
            if data[position + one] != byte or data[position + other] != other_byte:
                position += 1
                continue
            while np.int64(offsets[row + 1]) <= position:
                row += 1
            end = np.int64(offsets[row + 1])
            if position + size > end or not _has(data, position, literals, borders[anchor], size):
                position += 1
                continue
            if is_alone or _matches(data, np.int64(offsets[row]), end, literals, borders):
                out[row] = True
                count += 1
            position = end
    return count


@kernel
def _has(data: U8, position: int, literals: U8, first: int, size: int) -> bool:
    """Return whether a literal is at a position."""
    index = 0
    while index < size and data[position + index] == literals[first + index]:
        index += 1
    return index == size


@kernel
def _matches(data: U8, begin: int, end: int, literals: U8, borders: I64) -> bool:
    """Return whether the bytes of a row match; each literal is taken where it is found first."""
    final = borders.size - 2
    prefix = borders[1] - borders[0]
    suffix = borders[final + 1] - borders[final]
    if begin + prefix > end or not _has(data, begin, literals, borders[0], prefix):
        return False
    begin += prefix
    end -= suffix
    if begin > end or not _has(data, end, literals, borders[final], suffix):
        return False
    for literal in range(1, final):
        size = borders[literal + 1] - borders[literal]
        while begin + size <= end and not _has(data, begin, literals, borders[literal], size):
            begin += 1
        if begin + size > end:
            return False
        begin += size
    return True
