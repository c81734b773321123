"""Central moments of numbers, and co-moments of pairs of them: states from which variances and correlations follow.

A state is updated by each value without a loss of digits by cancellation, and states of parts of the rows can be
merged: see Pébay, "Formulas for Robust, One-Pass Parallel Computation of Covariances and Arbitrary-Order Statistical
Moments", Sandia report SAND2008-6212. States have the fields of Spark's own:

| function | of | the fields of its state, all float64 |
|---|---|---|
| `variance` | float64 | `n`, `avg`, `m2` |
| `skewness` | float64 | `n`, `avg`, `m2`, `m3` |
| `kurtosis` | float64 | `n`, `avg`, `m2`, `m3`, `m4` |
| `covariance` | structs of two float64 | `n`, `x_avg`, `y_avg`, `c` |
| `correlation` | structs of two float64 | `n`, `x_avg`, `y_avg`, `c`, `x_m2`, `y_m2` |

`n` is the number of values, `avg` their mean, `m2` the sum of the squares of their distances from it, and so on; `c` is
the sum of the products of the two distances. Nulls, and pairs with a null, are ignored.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.aggregation.state import State
from lance_format.aggregation.words import F64, I32, Bool, frozen, to_floats, validity
from lance_format.kernels.aggregation.moments import add_comoments, add_moments

MOMENTS = {
    "variance": ("n", "avg", "m2"),
    "skewness": ("n", "avg", "m2", "m3"),
    "kurtosis": ("n", "avg", "m2", "m3", "m4"),
}
"""The fields of the states of each function of numbers."""

COMOMENTS = {
    "covariance": ("n", "x_avg", "y_avg", "c"),
    "correlation": ("n", "x_avg", "y_avg", "c", "x_m2", "y_m2"),
}
"""The fields of the states of each function of pairs."""


class _States(State):
    def __init__(self, function: str) -> None:
        names = (MOMENTS | COMOMENTS)[function]
        self.type = pa.struct([pa.field(name, pa.float64(), nullable=False) for name in names])
        self._dtypes = (f"{len(names)}f8",)
        super().__init__()

    def results(self, num_groups: int) -> pa.Array:
        (states,) = self._used(num_groups)
        return self._array(states)

    def neutral(self, num_rows: int) -> pa.Array:
        return self._array(np.zeros((num_rows, self.type.num_fields)))

    def of_rows(self, values: pa.Array, num_rows: int) -> pa.Array:
        states = np.zeros((num_rows, self.type.num_fields))
        self._update(values, np.arange(num_rows, dtype=np.int32), states)
        return self._array(states)

    def add(self, values: pa.Array, groups: I32, num_groups: int) -> None:
        self._update(values, groups, self._reserve(num_groups)[0])

    def _update(self, values: pa.Array, groups: I32, states: F64) -> None:
        raise NotImplementedError

    def _array(self, states: npt.NDArray[np.float64]) -> pa.Array:
        columns = [pa.array(np.ascontiguousarray(states[:, index])) for index in range(states.shape[1])]
        return pa.StructArray.from_arrays(columns, fields=list(self.type))


class Moments(_States):
    """Central moments of float64: `variance`, `skewness` or `kurtosis`."""

    def _update(self, values: pa.Array, groups: I32, states: F64) -> None:
        add_moments(to_floats(values), validity(values), groups, states)


class Comoments(_States):
    """Co-moments of pairs of float64: `covariance` or `correlation`."""

    def _update(self, values: pa.Array, groups: I32, states: F64) -> None:
        left, right = values.flatten()
        add_comoments(to_floats(left), to_floats(right), _both(validity(left), validity(right)), groups, states)


def _both(left: Bool, right: Bool) -> Bool:
    """Return where both values are valid."""
    if left.size and right.size:
        return frozen(left & right)
    return left if left.size else right
