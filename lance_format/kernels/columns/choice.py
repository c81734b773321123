"""Words that replace others where a flag is set, without a branch per word."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

Bool = npt.NDArray[np.bool_]
Words = npt.NDArray[Any]


@kernel
def replace_words(flags: Bool, values: Words, out: Words) -> int:
    """Set the words whose flags are set.

    Parameters
    ----------
    flags : bool[num_words], read-only
    values : unsigned integer[num_words or 1], read-only
        The words, or the only one.
    out : unsigned integer[num_words]
        Updated.

    Returns
    -------
    int
        The number of words.
    """
    if values.size < out.size:
        value = values[0]
        for index in range(np.uint64(flags.size)):
            out[index] = value if flags[index] else out[index]
    else:
        for index in range(np.uint64(flags.size)):
            out[index] = values[index] if flags[index] else out[index]
    return flags.size
