"""State of an aggregate function: what all accumulators have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.aggregation.words import I32, I64

Surplus: TypeAlias = Iterator[tuple[I64, pa.Array]]
"""Numbers of groups, and further partial values of these."""


class Accumulator(Protocol):
    """Partial values of one function, per group."""

    type: pa.DataType
    """Type of the partial values."""
    group_bytes: int
    """Approximate size of the value of a group."""

    def add(self, values: pa.Array | None, groups: I32, num_groups: int) -> None:
        """Add rows to their groups.

        Parameters
        ----------
        values : pa.Array, optional
            The argument of the function.
        groups : int32[num_rows]
        num_groups : int
        """

    def results(self, num_groups: int) -> pa.Array:
        """Return a partial value per group."""

    def surplus(self, num_groups: int) -> Surplus:
        """Return the partial values beyond the first of each group."""

    def of_rows(self, values: pa.Array | None, num_rows: int) -> pa.Array:
        """Return the partial values of groups that have one row each."""

    def neutral(self, num_rows: int) -> pa.Array:
        """Return partial values that add nothing."""

    @property
    def size_bytes(self) -> int:
        """Bytes beyond those of `group_bytes`."""

    def clear(self) -> None:
        """Forget all groups."""


class State:
    """Arrays with an item per group, which grow with the number of groups."""

    group_bytes = 0
    size_bytes = 0
    type: pa.DataType
    _dtypes: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.group_bytes = sum(np.dtype(name).itemsize for name in self._dtypes)
        self.clear()

    def clear(self) -> None:
        """Forget all groups."""
        self._arrays: list[npt.NDArray[Any]] = [np.zeros(0, name) for name in self._dtypes]

    def _reserve(self, num_groups: int) -> list[npt.NDArray[Any]]:
        for index, array in enumerate(self._arrays):
            if len(array) < num_groups:
                larger = np.zeros((max(num_groups, 2 * len(array)), *array.shape[1:]), array.dtype)
                larger[: len(array)] = array
                self._arrays[index] = larger
        return self._arrays

    def _used(self, num_groups: int) -> list[npt.NDArray[Any]]:
        return [array[:num_groups] for array in self._reserve(num_groups)]

    def surplus(self, num_groups: int) -> Surplus:  # noqa: ARG002
        """Yield nothing."""
        return iter(())

    def neutral(self, num_rows: int) -> pa.Array:
        """Return nulls."""
        return pa.nulls(num_rows, self.type)
