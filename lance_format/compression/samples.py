"""Places of samples of a page."""

from __future__ import annotations

import functools

import numpy as np

from lance_format.data_block import Counts

_KEPT = 32
"""Number of samples kept: the pages of a table have few different sizes."""


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


@functools.lru_cache(_KEPT)
def scatter(size: int, count: int) -> Counts:
    """Return about `count` positions at random, always the same ones.

    Values that are equal to one of their neighbours are found in such a sample as often as if they were shuffled. In
    one that is spread evenly they are not: of runs of ten values each, every tenth value is another one.

    Parameters
    ----------
    size : int
        Number of values, at least 1.
    count : int
        Number of positions, at least 1.

    Returns
    -------
    int64[…]
        Ascending, and different. Shared: it cannot be written.
    """
    positions = np.sort(np.random.default_rng(count).integers(0, size, count))
    distinct: Counts = positions[np.append(True, positions[1:] != positions[:-1])]
    distinct.flags.writeable = False
    return distinct
