"""Values that a mask selects, copied without a branch per value, which processors mispredict if masks are random."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

U8 = npt.NDArray[np.uint8]
Words = npt.NDArray[Any]

SLACK = 1
"""Number of words that `select_words` may write beyond the selected ones."""

_ONE = np.uint64(1)
_THREE = np.uint64(3)
_SEVEN = np.uint64(7)
_EIGHT = np.uint64(8)
_BYTE = np.uint64(255)


@kernel
def select_words(words: Words, bits: U8, first: int, out: Words) -> int:
    """Copy the words whose bits are set.

    Parameters
    ----------
    words : unsigned integer[num_words]
    bits : uint8[…]
        The least significant bit of each byte first.
    first : int
        Index of the bit of the first word.
    out : unsigned integer[num_selected + SLACK]
        Set to the words.

    Returns
    -------
    int
        The number of selected words.
    """
    size = np.uint64(words.size)
    start = np.uint64(first)
    shift = start & _SEVEN
    count = np.uint64(0)
    index = np.uint64(0)
    while index + _EIGHT <= size:
        byte = (start + index) >> _THREE
        chosen = np.uint64(bits[byte]) >> shift
        if shift:
            chosen |= (np.uint64(bits[byte + _ONE]) << (_EIGHT - shift)) & _BYTE
        for bit in range(_EIGHT):
            out[count] = words[index + bit]
            count += (chosen >> bit) & _ONE
        index += _EIGHT
    while index < size:
        bit = start + index
        out[count] = words[index]
        count += np.uint64(bits[bit >> _THREE] >> np.uint8(bit & _SEVEN)) & _ONE
        index += _ONE
    return np.int64(count)
