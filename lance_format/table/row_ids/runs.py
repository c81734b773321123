"""Runs: stretches of consecutive integers, which are searched and cut without expanding them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lance_format.errors import InvalidInputError

U64Array = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]


class Runs(NamedTuple):
    """Runs of consecutive integers, in the order of the sequence.

    Parameters
    ----------
    starts : uint64[num_runs]
    lengths : int64[num_runs]
        At least 1. No run passes the highest integer.
    """

    starts: U64Array
    lengths: Positions

    @classmethod
    def of(cls, values: U64Array) -> Runs:
        """Divide an array, `uint64[n]`, into its longest runs."""
        following = values[1:]
        breaks = (following != values[:-1] + np.uint64(1)) | (following == 0)
        bounds = np.concatenate(([0], np.flatnonzero(breaks) + 1, [values.size])).astype(np.int64)
        return cls(values[bounds[:-1]], np.diff(bounds)) if values.size else cls(values, bounds[:0])

    @classmethod
    def concatenate(cls, parts: Iterable[Runs]) -> Runs:
        """Concatenate runs."""
        some = [cls(np.zeros(0, np.uint64), np.zeros(0, np.int64)), *parts]
        return cls(np.concatenate([starts for starts, _ in some]), np.concatenate([lengths for _, lengths in some]))

    def values(self) -> U64Array:
        """Return all integers, `uint64[n]`."""
        values = np.arange(self.lengths.sum(), dtype=np.uint64)
        values += np.repeat(self.starts - self.first_positions().astype(np.uint64), self.lengths)
        return values

    def take(self, positions: Positions) -> U64Array:
        """Return the integers at some positions, all of which exist."""
        firsts = self.first_positions()
        run = np.searchsorted(firsts, positions, side="right") - 1
        return self.starts[run] + (positions - firsts[run]).astype(np.uint64)

    def slice(self, start: int, stop: int) -> Runs:
        """Return the runs of the positions from `start` up to `stop`."""
        firsts = self.first_positions()
        begins, ends = np.maximum(firsts, start), np.minimum(firsts + self.lengths, stop)
        some = begins < ends
        return Runs(self.take(begins[some]), (ends - begins)[some])

    def without(self, positions: Positions) -> Runs:
        """Return the runs without some positions, `int64[n]`, ascending and distinct."""
        begins, lengths = self.intervals_without(positions)
        return Runs(self.take(begins), lengths)

    def intervals_without(self, positions: Positions) -> tuple[Positions, Positions]:
        """Return the starts and lengths of the intervals that remain without some positions."""
        # Every run and every removed position ends one remaining interval, and starts the next one.
        firsts = self.first_positions()
        begins = np.sort(np.concatenate((firsts, positions + 1)))
        lengths = np.sort(np.concatenate((firsts + self.lengths, positions))) - begins
        return begins[lengths > 0], lengths[lengths > 0]

    def lasts(self) -> U64Array:
        """Return the last integer of every run."""
        return self.starts + (self.lengths - 1).astype(np.uint64)

    def first_positions(self) -> Positions:
        """Return the position of the first integer of every run."""
        return np.cumsum(self.lengths) - self.lengths


def check_ascending(positions: Positions) -> None:
    """Raise `InvalidInputError` unless positions of deleted rows ascend."""
    if (positions[1:] <= positions[:-1]).any():
        raise InvalidInputError("the positions of deleted rows do not ascend")


def check_slice(start: int, stop: int, size: int, what: str) -> None:
    """Check that a range of rows lies within a sequence.

    Parameters
    ----------
    start, stop : int
        The range.
    size : int
        Length of the sequence.
    what : str
        Kind of its items, for the message.

    Raises
    ------
    InvalidInputError
        If it does not.
    """
    if not 0 <= start <= stop <= size:
        raise InvalidInputError(f"rows {start} to {stop} of a sequence of {size} {what} are requested")
