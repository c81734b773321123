"""Central moments and co-moments per group, one value after the other, in double precision.

See `lance_format.aggregation.moments` for the formulas' source and the columns of the states.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

Bool = npt.NDArray[np.bool_]
F64 = npt.NDArray[np.float64]
I32 = npt.NDArray[np.int32]


@kernel
def add_moments(values: F64, valid: Bool, groups: I32, states: F64) -> int:
    """Add numbers to the central moments of their groups.

    Parameters
    ----------
    values : float64[num_rows], read-only
    valid : bool[num_rows], read-only
        Empty if there is no null.
    groups : int32[num_rows]
    states : float64[num_groups, 3 to 5]
        The number of values, their mean, and the sums of the second to fourth powers of the distances from it.

    Returns
    -------
    int
        The number of rows.
    """
    all_valid = valid.size == 0
    width = states.shape[1]
    for row in range(values.size):
        if all_valid or valid[row]:
            group = groups[row]
            number = states[group, 0] + 1.0
            delta = values[row] - states[group, 1]
            step = delta / number
            second = states[group, 2] + delta * (delta - step)
            states[group, 0] = number
            states[group, 1] += step
            states[group, 2] = second
            if width > 3:
                squared, step_squared = delta * delta, step * step
                third = states[group, 3] - 3.0 * step * second + delta * (squared - step_squared)
                states[group, 3] = third
                if width > 4:
                    rest = delta * (delta * squared - step * step_squared)
                    states[group, 4] += -4.0 * step * third - 6.0 * step_squared * second + rest
    return values.size


@kernel
def add_comoments(left: F64, right: F64, valid: Bool, groups: I32, states: F64) -> int:
    """Add pairs of numbers to the co-moments of their groups.

    Parameters
    ----------
    left, right : float64[num_rows], read-only
    valid, groups
        See `add_moments`.
    states : float64[num_groups, 4 or 6]
        The number of pairs, the two means, the sum of the products of the distances from them, and the sums of the
        squares of these distances.

    Returns
    -------
    int
        The number of rows.
    """
    all_valid = valid.size == 0
    width = states.shape[1]
    for row in range(left.size):
        if all_valid or valid[row]:
            group = groups[row]
            number = states[group, 0] + 1.0
            x, y = left[row], right[row]
            from_x, from_y = x - states[group, 1], y - states[group, 2]
            x_mean = states[group, 1] + from_x / number
            y_mean = states[group, 2] + from_y / number
            states[group, 0] = number
            states[group, 1] = x_mean
            states[group, 2] = y_mean
            states[group, 3] += from_x * (y - y_mean)
            if width > 4:
                states[group, 4] += from_x * (x - x_mean)
                states[group, 5] += from_y * (y - y_mean)
    return left.size
