"""Ends of lists and byte strings to offsets and validity.

Each end is that of its value among the items of a page; an amount is added to the ends of nulls:

    [A, B], null, [], [C, D, E]      ends of items: 2, 2 + amount, 2, 5
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

I64 = npt.NDArray[np.int64]
Words = npt.NDArray[Any]


@kernel
def read_ends(
    ends: Words,
    counts: I64,
    has_previous: npt.NDArray[np.bool_],
    amount: int,
    most: int,
    offsets: Words,
    valid: npt.NDArray[np.bool_],
    firsts: I64,
    lasts: I64,
) -> int:
    """Turn the ends of several ranges of values into common offsets.

    Parameters
    ----------
    ends : uint8, uint16, uint32 or uint64[…]
        The ends of each range, one after the other. The end of the preceding value comes before those of a range that
        does not start the page.
    counts : int64[num_ranges]
        The values of each range.
    has_previous : bool[num_ranges]
        Whether an end precedes those of the range.
    amount : int
        At least 1.
    most : int
        The highest offset that `offsets` can hold.
    offsets : int32 or int64[num_values + 1]
        Set; the first is 0.
    valid : bool[num_values]
        Set.
    firsts, lasts : int64[num_ranges]
        Set to where the items of each range start and end in the page.

    Returns
    -------
    int
        The number of nulls, -1 if ends decrease, or -2 if `offsets` are too narrow.
    """
    adjustment = np.uint64(amount)
    nulls = 0
    position = 0
    written = 0
    total = np.int64(0)
    offsets[0] = 0
    for index in range(counts.size):
        previous = np.uint64(0)
        if has_previous[index]:
            previous = np.uint64(ends[position])
            if previous >= adjustment:
                previous %= adjustment
            position += 1
        firsts[index] = np.int64(previous)
        base = total - np.int64(previous)
        for _ in range(counts[index]):
            end = np.uint64(ends[position])
            there = end < adjustment
            if not there:
                end %= adjustment
                nulls += 1
            if end < previous:
                return -1
            previous = end
            total = base + np.int64(end)
            if total > most:
                return -2
            written += 1
            position += 1
            offsets[written] = total
            valid[written - 1] = there
        lasts[index] = np.int64(previous)
    return nulls
