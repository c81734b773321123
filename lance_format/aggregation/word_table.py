"""Hash tables that grow; `kernels/aggregation/grouping.py` fills them."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from lance_format.aggregation.words import I32, I64
from lance_format.kernels.aggregation.grouping import number_rows, place_keys

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


class WordTable:
    """Numbers of distinct keys, in the order of their first rows.

    Parameters
    ----------
    width : int
        Number of 64-bit words of a key.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self.clear()

    def clear(self) -> None:
        """Forget all keys."""
        self.count = 0
        self._slots = np.full(FEWEST_SLOTS, -1, np.int32)
        self._keys: I64 = np.empty((FEWEST_SLOTS // 2, self._width), np.int64)

    @property
    def keys(self) -> I64:
        """The known keys, by number: int64[count, width]."""
        return self._keys[: self.count]

    def number(self, words: I64) -> I32:
        """Return the number of the key of each row.

        Parameters
        ----------
        words : int64[num_rows, width]
        """
        needed = self.count + len(words)
        if needed > len(self._keys):
            self._keys = grown(self._keys, self.count, needed)
        if 2 * needed >= len(self._slots):
            self._slots = empty_slots(needed)
            place_keys(self._keys, self.count, self._slots)
        out = np.empty(len(words), np.int32)
        self.count = number_rows(words, self._slots, self._keys, self.count, out)
        return out
