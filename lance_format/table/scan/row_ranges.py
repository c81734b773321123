"""Ranges of the physical rows of a fragment that a scan may read."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from lance_format.lazy_dataclasses import dataclass
from lance_format.row_numbers import distinct
from lance_format.structural.row_index import expand_ranges

Bounds = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RowRanges:
    """Half-open ranges, ascending, disjoint and not empty.

    Parameters
    ----------
    starts, stops : int64[num_ranges]
    certain : bool[num_ranges]
        Whether the filter is known to be true for all of their rows.
    """

    starts: Bounds
    stops: Bounds
    certain: Flags

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> RowRanges:
        """Return uncertain ranges, without empty ones."""
        found = np.array([pair for pair in ranges if pair[0] < pair[1]], np.int64).reshape(-1, 2)
        return cls(found[:, 0], found[:, 1], np.zeros(len(found), np.bool_))

    @classmethod
    def whole(cls, num_rows: int) -> RowRanges:
        """Return all of the rows from 0 to `num_rows`."""
        some = (0, num_rows) if num_rows else ()
        return cls(np.array(some[:1], np.int64), np.array(some[1:], np.int64), np.zeros(len(some) // 2, np.bool_))

    @classmethod
    def of_rows(cls, rows: Bounds) -> RowRanges:
        """Return the ranges of single rows, `int64[num_rows]`, in any order. They may repeat."""
        once = distinct(rows)
        breaks = np.flatnonzero(np.diff(once) != 1) + 1
        firsts, lasts = np.append(0, breaks)[: once.size], np.append(breaks, once.size)[: once.size] - 1
        return cls(once[firsts], once[lasts] + 1, np.zeros(min(firsts.size, lasts.size), np.bool_))

    def __len__(self) -> int:
        return self.starts.size

    def as_certain(self) -> RowRanges:
        """Return the same ranges, for all rows of which the filter is known to be true."""
        return RowRanges(self.starts, self.stops, np.ones(self.starts.size, np.bool_))

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        if self.starts.size == 1:  # Of most fragments, and a sum of one takes ten times as long.
            return int(self.stops[0]) - int(self.starts[0])
        return int(np.add.reduce(self.stops - self.starts))

    def pairs(self) -> list[tuple[int, int]]:
        """Return start and stop of each range."""
        return list(zip(self.starts.tolist(), self.stops.tolist(), strict=True))

    def rows(self) -> Bounds:
        """Return all rows."""
        return expand_ranges(self.starts, self.stops)

    def is_all_of(self, num_rows: int) -> bool:
        """Return whether these are all of the rows from 0 to `num_rows`."""
        return self.starts.size == 1 and int(self.starts[0]) == 0 and int(self.stops[0]) == num_rows

    def cut(self, num_rows: int) -> tuple[RowRanges, RowRanges]:
        """Split off the first rows, `num_rows` at most; return both parts."""
        ends = np.cumsum(self.stops - self.starts)
        index = int(np.searchsorted(ends, num_rows, side="right"))
        if index == self.starts.size:
            return self, self._slice(index, index)
        left = num_rows - (int(ends[index - 1]) if index else 0)
        if not left:
            return self._slice(0, index), self._slice(index, self.starts.size)
        head, tail = self._slice(0, index + 1), self._slice(index, self.starts.size)
        border = int(self.starts[index]) + left
        stops, starts = head.stops.copy(), tail.starts.copy()
        stops[-1] = starts[0] = border
        return RowRanges(head.starts, stops, head.certain), RowRanges(starts, tail.stops, tail.certain)

    def split_by_certainty(self) -> list[RowRanges]:
        """Group adjacent ranges of the same certainty, in order."""
        borders = [0, *(np.flatnonzero(self.certain[1:] != self.certain[:-1]) + 1).tolist(), self.starts.size]
        return [self._slice(begin, end) for begin, end in itertools.pairwise(borders) if begin < end]

    def with_certainty_of(self, num_rows: int) -> RowRanges:
        """Return the ranges with short runs of certain rows made uncertain, unless all rows are certain."""
        if self.certain.all() or not self.certain.any():
            return self
        firsts = np.flatnonzero(np.diff(self.certain, prepend=not self.certain[0]))
        lengths = np.add.reduceat(self.stops - self.starts, firsts)
        enough = np.repeat(lengths >= num_rows, np.diff(np.append(firsts, len(self))))
        return RowRanges(self.starts, self.stops, self.certain & enough)._joined()

    def intersect(self, other: RowRanges) -> RowRanges:
        """Return the rows that are in both; certain if they are certain in one. Adjacent ranges are joined."""
        if not len(self) or not len(other):
            return self._slice(0, 0)
        for one, rest in ((self, other), (other, self)):
            if one._surrounds(rest):
                return rest._joined()
        bounds = distinct(np.concatenate([self.starts, self.stops, other.starts, other.stops]))
        starts, stops = bounds[:-1], bounds[1:]
        mine, theirs = self._covering(starts), other._covering(starts)
        both = (mine >= 0) & (theirs >= 0)
        starts, stops, mine, theirs = starts[both], stops[both], mine[both], theirs[both]
        return RowRanges(starts, stops, self.certain[mine] | other.certain[theirs])._joined()

    def bridged(self, most_rows: int) -> RowRanges:
        """Join ranges of one certainty with at most so many rows between them, and these rows."""
        if self.starts.size < 2:
            return self
        begins = np.ones(self.starts.size, np.bool_)
        begins[1:] = self.starts[1:] - self.stops[:-1] > most_rows
        return self._joined_at(begins)

    def touched(self, borders: Bounds) -> Flags:
        """Return for each interval between borders whether one of the rows is in it."""
        first = np.searchsorted(self.stops, borders[:-1], side="right")
        begins = np.append(self.starts, np.iinfo(np.int64).max)[first]
        return np.asarray((begins < borders[1:]) & (borders[:-1] < borders[1:]))

    def _surrounds(self, other: RowRanges) -> bool:
        """Return whether this is one uncertain range with all rows of another's."""
        is_one = self.starts.size == 1 and not self.certain[0]
        return bool(is_one and self.starts[0] <= other.starts[0] and other.stops[-1] <= self.stops[0])

    def _covering(self, rows: Bounds) -> Bounds:
        """Return the range of each row, -1 for none."""
        index = np.searchsorted(self.starts, rows, side="right") - 1
        inside = index >= 0
        inside[inside] = rows[inside] < self.stops[index[inside]]
        return np.where(inside, index, -1)

    def _joined(self) -> RowRanges:
        """Join adjacent ranges of the same certainty."""
        if self.starts.size < 2:
            return self
        begins = np.ones(self.starts.size, np.bool_)
        begins[1:] = (self.starts[1:] != self.stops[:-1]) | (self.certain[1:] != self.certain[:-1])
        return self._joined_at(begins)

    def _joined_at(self, begins: Flags) -> RowRanges:
        """Join ranges, given which of them begin a new one."""
        firsts = np.flatnonzero(begins)
        lasts = np.append(firsts[1:], self.starts.size) - 1
        return RowRanges(self.starts[firsts], self.stops[lasts], self.certain[firsts])

    def _slice(self, begin: int, end: int) -> RowRanges:
        return RowRanges(self.starts[begin:end], self.stops[begin:end], self.certain[begin:end])
