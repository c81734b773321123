"""Rows that match a query, and their scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Rows that match a query.

    Parameters
    ----------
    addresses : uint64[num_rows]
        Ascending and distinct.
    scores : float32[num_rows]
    """

    addresses: npt.NDArray[np.uint64]
    scores: npt.NDArray[np.float32]

    @classmethod
    def none(cls) -> Hits:
        """Return no rows."""
        return cls(np.zeros(0, np.uint64), np.zeros(0, np.float32))

    @classmethod
    def of(cls, parts: Sequence[tuple[npt.NDArray[np.uint64], npt.NDArray[np.float32]]]) -> Hits:
        """Unite distinct rows in any order."""
        addresses = np.concatenate([np.zeros(0, np.uint64), *(part[0] for part in parts)])
        scores = np.concatenate([np.zeros(0, np.float32), *(part[1] for part in parts)])
        if (addresses[1:] > addresses[:-1]).all():
            return cls(addresses, scores)
        found, places = np.unique(addresses, return_index=True)
        return cls(found, scores[places])

    def times(self, factor: float) -> Hits:
        """Multiply the scores."""
        return self if factor == 1 else Hits(self.addresses, self.scores * np.float32(factor))

    def scores_of(self, addresses: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """Return the scores of some rows, 0 where they do not match, and whether they match."""
        if not self.addresses.size:
            return np.zeros(addresses.size, np.float32), np.zeros(addresses.size, np.bool_)
        places = np.minimum(np.searchsorted(self.addresses, addresses), self.addresses.size - 1)
        matches = self.addresses[places] == addresses
        return np.where(matches, self.scores[places], np.float32(0)), matches

    def select(self, mask: npt.NDArray[np.bool_]) -> Hits:
        """Return some of the rows."""
        return Hits(self.addresses[mask], self.scores[mask])

    def plus(self, others: Sequence[Hits]) -> Hits:
        """Return the same rows, with the scores that they have in others added."""
        scores = self.scores
        for other in others:
            scores = scores + other.scores_of(self.addresses)[0]
        return Hits(self.addresses, scores)

    def best(self, count: int | None) -> Hits:
        """Return the rows by descending score; those of equal scores by ascending address.

        Parameters
        ----------
        count : int, optional
            Maximum number of rows.
        """
        chosen = np.arange(self.scores.size)
        if count is not None and count < self.scores.size:
            if not count:
                return Hits.none()
            limit = -np.partition(-self.scores, count - 1)[count - 1]
            chosen = np.flatnonzero(self.scores >= limit)
        order = chosen[np.argsort(-self.scores[chosen], kind="stable")][:count]
        return Hits(self.addresses[order], self.scores[order])


def united(parts: Sequence[Hits]) -> npt.NDArray[np.uint64]:
    """Return the rows of any of several queries, ascending."""
    if len(parts) == 1:
        return parts[0].addresses
    found = np.sort(np.concatenate([np.zeros(0, np.uint64), *(part.addresses for part in parts)]), kind="stable")
    distinct: npt.NDArray[np.uint64] = found[np.append(True, found[1:] != found[:-1])[: found.size]]
    return distinct
