"""Selection of the nearest of many rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]


@kernel
def select_nearest(distances: F32, lower: np.float32, upper: np.float32, nearest: F32, rows: I64) -> int:
    """Find the nearest rows whose distance is in a half-open range; of equally distant ones any.

    They are kept in a heap whose first row is the farthest, so that most rows cost one comparison.

    Parameters
    ----------
    distances : float32[num_rows]
        NaN is in no range.
    lower, upper : float32
        NaN as upper bound for none.
    nearest : float32[most]
        Room for their distances, at least one.
    rows : int64[most]
        Set to their positions, in no order.

    Returns
    -------
    int
        Their number.
    """
    most, size = nearest.size, 0
    for row in range(distances.size):
        distance = distances[row]
        if size == most and not distance < nearest[0]:
            continue
        if not (distance >= lower and not distance >= upper):
            continue
        if size < most:
            place = size
            size += 1
            while place > 0 and nearest[(place - 1) // 2] < distance:
                nearest[place], rows[place] = nearest[(place - 1) // 2], rows[(place - 1) // 2]
                place = (place - 1) // 2
        else:
            place = 0
            while 2 * place + 1 < size:
                below = 2 * place + 1
                if below + 1 < size and nearest[below + 1] > nearest[below]:
                    below += 1
                if nearest[below] <= distance:
                    break
                nearest[place], rows[place] = nearest[below], rows[below]
                place = below
        nearest[place], rows[place] = distance, row
    return size
