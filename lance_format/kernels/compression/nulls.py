"""Giving null slots values that compress well."""

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
