"""Arrays of hash tables that grow; `kernels/grouping.py` fills them."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from lance_format.aggregation.words import I32

_Item = TypeVar("_Item", bound=np.generic)

FEWEST_SLOTS = 1 << 10
"""Slots of an empty table, which has arrays for half as many keys."""


def empty_slots(num_keys: int) -> I32:
    """Return free slots for a number of keys and as many more."""
    return np.full(1 << (4 * num_keys).bit_length(), -1, np.int32)


def grown(values: npt.NDArray[_Item], used: int, needed: int) -> npt.NDArray[_Item]:
    """Return a larger array with the used items.

    Parameters
    ----------
    values : [size, …]
    used : int
        Number of items that are kept.
    needed : int
        Number of items that the array has to have; it has twice as many as before at least.
    """
    larger = np.empty((max(needed, 2 * values.shape[0]), *values.shape[1:]), values.dtype)
    larger[:used] = values[:used]
    return larger
