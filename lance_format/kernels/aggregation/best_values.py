"""The best values of groups: rows that are worse than enough others of their group are marked."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

Bool = npt.NDArray[np.bool_]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

LEAST = -(1 << 63)
"""The score of a place that no row has taken."""
GREATEST = (1 << 63) - 1


@kernel
def keep_best(scores: I64, groups: I32, best: I64, distinct: bool, drops_ties: bool, kept: Bool) -> int:
    """Keep the greatest scores of each group, and mark the rows that may have them.

    Parameters
    ----------
    scores : int64[num_rows], read-only
    groups : int32[num_rows]
    best : int64[num_groups, limit]
        The greatest scores of each group in descending order, `LEAST` where there are fewer. Updated.
    distinct : bool
        Whether equal scores take one place.
    drops_ties : bool
        Whether a row is dropped if its score equals the last of the greatest. Rows with the least or the greatest
        number are kept nevertheless: different values may have these scores.
    kept : bool[num_rows]
        Set to whether a row is kept.

    Returns
    -------
    int
        The number of rows that are kept.
    """
    last = best.shape[1] - 1
    count = 0
    for row in range(scores.size):
        group = groups[row]
        score = scores[row]
        worst = best[group, last]
        if score > worst:
            kept[row] = True
            count += 1
            place = last
            while place > 0 and best[group, place - 1] < score:
                place -= 1
            if distinct and place > 0 and best[group, place - 1] == score:
                continue
            for position in range(last, place, -1):
                best[group, position] = best[group, position - 1]
            best[group, place] = score
        else:
            keeps = score == worst and not (drops_ties and score != LEAST and score != GREATEST)
            kept[row] = keeps
            count += keeps
    return count


@kernel
def mark_best(scores: I64, groups: I32, best: I64, kept: Bool) -> int:
    """Mark the rows whose scores are not less than the last of the greatest of their groups.

    Parameters
    ----------
    scores, groups, best
        See `keep_best`; nothing is updated.
    kept : bool[num_rows]
        Set to whether a row is kept.

    Returns
    -------
    int
        The number of rows that are kept.
    """
    last = best.shape[1] - 1
    count = 0
    for row in range(scores.size):
        keeps = scores[row] >= best[groups[row], last]
        kept[row] = keeps
        count += keeps
    return count


@kernel
def score_texts(data: U8, offsets: I64, out: I64) -> int:
    """Score byte strings by their first eight bytes: a string has no greater score than those after it.

    Parameters
    ----------
    data : uint8[offsets[-1]], read-only
    offsets : int64[num_values + 1], read-only
    out : int64[num_values]
        Set to the scores.

    Returns
    -------
    int
        The number of values.
    """
    for row in range(offsets.size - 1):
        start, stop = offsets[row], offsets[row + 1]
        word = np.uint64(0)
        for position in range(start, start + 8):
            word <<= np.uint64(8)
            if position < stop:
                word |= np.uint64(data[position])
        out[row] = np.int64(word ^ np.uint64(1 << 63))
    return offsets.size - 1
