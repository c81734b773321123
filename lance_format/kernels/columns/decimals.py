"""Decimals of 128 bits whose digits fit 64."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel


@kernel
def are_within(words: npt.NDArray[np.int64], most: int) -> bool:
    """Return whether all numbers lie from `-most` to `most`.

    Parameters
    ----------
    words : int64[2 * num_values]
        The low and the high word of each number.
    most : int
        Less than 2^63.
    """
    within = True
    for index in range(np.uint64(words.size) >> np.uint64(1)):
        low = words[np.uint64(2) * index]
        within &= words[np.uint64(2) * index + np.uint64(1)] == low >> 63
        within &= low <= most
        within &= low >= -most
    return within
