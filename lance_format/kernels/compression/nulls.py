"""Values of slots that are not null: giving the others values that compress well, and leaving them out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

U16 = npt.NDArray[np.uint16]
Words = npt.NDArray[Any]


@kernel
def fill_forward(words: Words, definition: U16, first: int, out: Words) -> int:
    """Copy words, and replace each null by the last word before it that is not null.

    Parameters
    ----------
    words : integer[num_values]
        The words.
    definition : uint16[num_values]
        0 where a word is not null.
    first : int
        Index of the first word that is not null. It also replaces the nulls before it.
    out : integer[num_values]
        Set to the words.

    Returns
    -------
    int
        The number of words.
    """
    last = np.uint64(first)
    for index in range(np.uint64(words.size)):
        last = max(last, index * np.uint64(definition[index] == 0))  # No branch, which is predicted badly.
        out[index] = words[last]
    return words.size


@kernel
def spread_forward(words: Words, definition: U16, out: Words) -> int:
    """Give every slot its word, and each null the last word before it, or the first of all.

    Parameters
    ----------
    words : integer[…]
        The words of the slots that are not null; at least one.
    definition : uint16[num_values]
        0 where a slot is not null.
    out : integer[num_values]
        Set to the words.

    Returns
    -------
    int
        The number of words that are not null.
    """
    found = np.int64(0)
    for index in range(np.uint64(definition.size)):
        found += definition[index] == 0
        out[index] = words[np.uint64(max(found - 1, 0))]
    return found


@kernel
def keep_offsets(offsets: Words, definition: U16, out: Words) -> int:
    """Keep the offsets of byte strings that are not null, if the others have no bytes.

    Parameters
    ----------
    offsets : integer[num_values + 1]
    definition : uint16[num_values]
        0 where a byte string is not null.
    out : integer[num_values + 1]
        Set to the offsets of those, one more than their number.

    Returns
    -------
    int
        The number of byte strings that are not null, or -1 if a null has bytes.
    """
    kept, hidden = np.int64(0), np.int64(0)
    for index in range(np.uint64(definition.size)):
        is_kept = np.int64(definition[index] == 0)
        out[kept] = offsets[index]
        kept += is_kept
        hidden |= (np.int64(offsets[index + np.uint64(1)]) - np.int64(offsets[index])) * (1 - is_kept)
    out[kept] = offsets[np.uint64(definition.size)]
    return -1 if hidden else kept
