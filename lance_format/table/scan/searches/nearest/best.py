"""The nearest rows that a search has found so far."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import read_only
from lance_format.kernels.vectors.nearest import select_nearest
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.scan.searches.nearest.query import Nearest
from lance_format.table.scan.searches.ranked import Addresses
from lance_format.vectors.metrics import Distances


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Rows and their distances, nearest first.

    Parameters
    ----------
    addresses : uint64[num_rows]
        Addresses in the version that was searched.
    distances : float32[num_rows]
    """

    addresses: Addresses
    distances: Distances

    @classmethod
    def none(cls) -> Hits:
        """Return no rows."""
        return cls(np.zeros(0, np.uint64), np.zeros(0, np.float32))

    def __len__(self) -> int:
        return self.addresses.size

    def first(self, num_rows: int) -> Hits:
        """Return the nearest rows."""
        return Hits(self.addresses[:num_rows], self.distances[:num_rows])


class NearestRows:
    """The nearest rows of all that were added.

    Parameters
    ----------
    count : int
        Their maximum number.
    lower, upper : float
        Half-open range of distances; NaN for no upper bound.
    """

    def __init__(self, count: int, lower: float, upper: float) -> None:
        self._count = count
        self._lower = np.float32(lower)
        self._upper = np.float32(upper)
        self._hits = Hits.none()

    @classmethod
    def of(cls, nearest: Nearest, count: int | None = None) -> NearestRows:
        """Return no rows yet, for one query of a search; by default for `k` rows."""
        return cls(nearest.k if count is None else count, nearest.lower, nearest.upper)

    @property
    def hits(self) -> Hits:
        """The nearest rows; equally distant ones by address."""
        return self._hits

    def nearest_of(self, distances: Distances, most: int) -> npt.NDArray[np.int64]:
        """Return the positions of the nearest rows whose distance is in the range, `int64[num_rows]`, in no order.

        Parameters
        ----------
        distances : float32[num_rows]
        most : int
            Maximum number of rows.
        """
        most = max(min(most, distances.size), 1)
        rows, nearest = np.empty(most, np.int64), np.empty(most, np.float32)
        return rows[: select_nearest(read_only(distances), self._lower, self._upper, nearest, rows)]

    def in_range(self, distances: Distances) -> npt.NDArray[np.bool_]:
        """Return for each distance whether it is in the range, `bool[num_rows]`; NaN is not."""
        found: npt.NDArray[np.bool_] = ~np.isnan(distances)
        if self._lower > -np.inf:
            found &= distances >= self._lower
        if not np.isnan(self._upper):
            found &= distances < self._upper
        return found

    def add(self, distances: Distances, locate: Callable[[npt.NDArray[np.int64]], Addresses]) -> None:
        """Add rows. Those whose distance is not in the range are ignored.

        Parameters
        ----------
        distances : float32[num_rows]
        locate : callable
            Returns the addresses of rows by their indices, `int64[…]`.
        """
        is_near = self.in_range(distances)
        if len(self._hits) == self._count:
            is_near &= distances <= self._hits.distances[-1]
        chosen = np.flatnonzero(is_near)
        if not chosen.size:
            return
        if chosen.size > self._count:
            nearest = np.partition(distances[chosen], self._count - 1)[self._count - 1]
            chosen = chosen[distances[chosen] <= nearest]
        addresses = np.concatenate([self._hits.addresses, locate(chosen)])
        found = np.concatenate([self._hits.distances, distances[chosen]])
        order = np.lexsort((addresses, found))[: self._count]
        self._hits = Hits(addresses[order], found[order])
