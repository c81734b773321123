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
    """Copy words, and for those that are null (`definition` is not 0) the last one before them that is not.

    `first` is the first word that is not null; it stands in for those before it. Returns the number of words.
    """
    value = words[first]
    for index in range(np.uint64(words.size)):
        if definition[index] == 0:
            value = words[index]
        out[index] = value
    return words.size
