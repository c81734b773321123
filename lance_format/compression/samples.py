"""Places of samples of a page, spread evenly over it."""

from __future__ import annotations

import numpy as np

from lance_format.data_block import Counts


def spread(size: int, count: int) -> Counts:
    """Return positions at even distances, the first and the last among them.

    Parameters
    ----------
    size : int
        Number of values, at least 1.
    count : int
        Number of positions, at least 1.

    Returns
    -------
    int64[count]
    """
    return np.arange(count, dtype=np.int64) * (size - 1) // max(count - 1, 1)
