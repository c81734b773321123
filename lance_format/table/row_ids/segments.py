"""Segments: sequences of unsigned 64-bit integers, each in the shape that takes the fewest bytes.

    Range               start, end                       all integers from start up to end
    RangeWithHoles      start, end, the absent ones      a few are absent
    RangeWithBitmap     start, end, a bit per integer    many are absent
    SortedArray         the integers, ascending          most are absent
    Array               the integers                     in any order

Arrays are stored as 16-bit or 32-bit offsets from a base if these suffice. Segments keep their stored form, so their
size in memory is that in the file; only adjacent ranges become one object, `Ranges`. Each segment can be converted to
runs of consecutive integers, and ranges are searched and cut as runs.

Source: `rowids.proto` of the specification.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lance_format.lazy_dataclasses import dataclass
from lance_format.table.row_ids.runs import Positions, Runs, U64Array

_MAX = 2**64 - 1


@dataclass(frozen=True, slots=True)
class EncodedArray:
    """Integers as little-endian offsets from a base.

    Parameters
    ----------
    base : int
    width : int
        Bytes per offset: 2, 4 or 8.
    data : bytes
    """

    base: int
    width: int
    data: bytes

    @classmethod
    def of(cls, values: U64Array) -> EncodedArray:
        """Encode integers, `uint64[n]`, in the fewest bytes."""
        if values.size:
            base, highest = values.min(), values.max()
            for width in (2, 4):
                if highest - base < 1 << 8 * width:
                    return cls(int(base), width, (values - base).astype(f"<u{width}").tobytes())
        return cls(0, 8, values.astype("<u8").tobytes())

    def __len__(self) -> int:
        return len(self.data) // self.width

    def offsets(self) -> npt.NDArray[np.unsignedinteger]:
        """Return the offsets as stored, without a copy."""
        return np.frombuffer(self.data, f"<u{self.width}")

    def values(self) -> U64Array:
        """Return all integers, `uint64[n]`."""
        return self.offsets().astype(np.uint64) + np.uint64(self.base)

    def take(self, positions: Positions) -> U64Array:
        """Return the integers at some positions."""
        return self.offsets()[positions].astype(np.uint64) + np.uint64(self.base)


class U64Segment(ABC):
    """A sequence of integers."""

    __slots__ = ()

    @property
    @abstractmethod
    def num_values(self) -> int:
        """Number of integers."""

    @abstractmethod
    def runs(self) -> Runs:
        """Return the segment as runs."""

    def values(self) -> U64Array:
        """Return all integers, `uint64[num_values]`."""
        return self.runs().values()

    def take(self, positions: Positions) -> U64Array:
        """Return the integers at some positions, `int64[n]`, all of which exist."""
        return self.runs().take(positions)

    def slice(self, start: int, stop: int) -> U64Segment:
        """Return the segment of the positions `start <= position < stop`, re-encoded."""
        return choose_segment(self.runs().slice(start, stop))

    def without(self, positions: Positions) -> U64Segment:
        """Return the segment without some positions, `int64[n]`, ascending and distinct."""
        return choose_segment(self.runs().without(positions))


@dataclass(frozen=True, slots=True)
class Range(U64Segment):
    """All integers from `start` up to `stop`."""

    start: int
    stop: int

    @property
    def num_values(self) -> int:  # noqa: D102
        return self.stop - self.start

    def runs(self) -> Runs:  # noqa: D102
        if self.start == self.stop:
            return Runs(np.zeros(0, np.uint64), np.zeros(0, np.int64))
        return Runs(np.array([self.start], np.uint64), np.array([self.num_values], np.int64))


@dataclass(frozen=True, slots=True)
class Ranges(U64Segment):
    """Several ranges, one after the other; each is stored as a separate segment.

    Merging a few rows leaves a range for almost every row; this class holds them in one object.

    Parameters
    ----------
    starts, lengths : bytes
        See `Runs`.
    """

    starts: bytes
    lengths: bytes

    @classmethod
    def join(cls, ranges: Sequence[U64Segment]) -> U64Segment:
        """Unite `Range` and `Ranges` segments, at least one and none empty, into one segment.

        A range that continues another becomes part of it.
        """
        if len(ranges) == 1:
            return ranges[0]
        if all(type(segment) is Range for segment in ranges):
            bounds = np.array([(segment.start, segment.stop) for segment in ranges], np.uint64)  # type: ignore[attr-defined]
            runs = Runs(bounds[:, 0], (bounds[:, 1] - bounds[:, 0]).astype(np.int64))
        else:
            runs = Runs.concatenate([segment.runs() for segment in ranges])
        (begins,) = np.nonzero(np.append(True, runs.starts[1:] != runs.lasts()[:-1] + np.uint64(1)))
        return cls._of(Runs(runs.starts[begins], np.add.reduceat(runs.lengths, begins)))

    @classmethod
    def _of(cls, runs: Runs) -> U64Segment:
        if runs.starts.size == 1:
            return Range(int(runs.starts[0]), int(runs.starts[0]) + int(runs.lengths[0]))
        return cls(runs.starts.tobytes(), runs.lengths.tobytes())

    @property
    def num_values(self) -> int:  # noqa: D102
        return int(np.frombuffer(self.lengths, np.int64).sum())

    def runs(self) -> Runs:  # noqa: D102
        return Runs(np.frombuffer(self.starts, np.uint64), np.frombuffer(self.lengths, np.int64))

    def slice(self, start: int, stop: int) -> U64Segment:  # noqa: D102
        return self._encode(self.runs().slice(start, stop))

    def without(self, positions: Positions) -> U64Segment:  # noqa: D102
        return self._encode(self.runs().without(positions))

    def _encode(self, runs: Runs) -> U64Segment:
        """Re-encode ranges if that saves memory."""
        if not runs.starts.size:
            return Range(0, 0)
        size = min(_sizes(runs)) if _ascending(runs) else 8 * int(runs.lengths.sum())
        return choose_segment(runs) if size <= 16 * runs.starts.size else self._of(runs)


@dataclass(frozen=True, slots=True)
class RangeWithHoles(U64Segment):
    """All integers `start <= value < stop`, except holes, which are listed in ascending order."""

    start: int
    stop: int
    holes: EncodedArray

    @property
    def num_values(self) -> int:  # noqa: D102
        return self.stop - self.start - len(self.holes)

    def runs(self) -> Runs:  # noqa: D102
        positions = (self.holes.values() - np.uint64(self.start)).astype(np.int64)
        return Range(self.start, self.stop).runs().without(positions)


@dataclass(frozen=True, slots=True)
class RangeWithBitmap(U64Segment):
    """The integers from `start` up to `stop` whose bit is set: bit `i % 8` of byte `i // 8` for `start + i`."""

    start: int
    stop: int
    bitmap: bytes

    @property
    def num_values(self) -> int:  # noqa: D102
        return int.from_bytes(self.bitmap, "little").bit_count()

    def runs(self) -> Runs:  # noqa: D102
        edges = np.flatnonzero(np.diff(self._bits(), prepend=0, append=0))
        return Runs(edges[::2].astype(np.uint64) + np.uint64(self.start), edges[1::2] - edges[::2])

    def values(self) -> U64Array:  # noqa: D102
        return np.flatnonzero(self._bits()).astype(np.uint64) + np.uint64(self.start)

    def _bits(self) -> npt.NDArray[np.uint8]:
        return np.unpackbits(np.frombuffer(self.bitmap, np.uint8), bitorder="little", count=self.stop - self.start)


@dataclass(frozen=True, slots=True)
class Array(U64Segment):
    """Integers in any order."""

    array: EncodedArray

    @property
    def num_values(self) -> int:  # noqa: D102
        return len(self.array)

    def runs(self) -> Runs:  # noqa: D102
        return Runs.of(self.values())

    def values(self) -> U64Array:  # noqa: D102
        return self.array.values()

    def take(self, positions: Positions) -> U64Array:  # noqa: D102
        return self.array.take(positions)

    def without(self, positions: Positions) -> U64Segment:  # noqa: D102
        return Array(EncodedArray.of(np.delete(self.values(), positions)))


@dataclass(frozen=True, slots=True)
class SortedArray(Array):
    """Integers in ascending order."""

    def without(self, positions: Positions) -> U64Segment:  # noqa: D102
        return U64Segment.without(self, positions)


def choose_segment(runs: Runs) -> U64Segment:
    """Encode integers in the fewest bytes, as the reference reckons them."""
    if not runs.starts.size:
        return Range(0, 0)
    if not _ascending(runs):
        return Array(EncodedArray.of(runs.values()))
    start, last = int(runs.starts[0]), int(runs.lasts()[-1])
    if last == _MAX:  # The end of a range that has it does not fit 64 bits.
        return SortedArray(EncodedArray.of(runs.values()))
    with_holes, with_bitmap, as_array = _sizes(runs)
    if with_holes == 0:
        return Range(start, last + 1)
    if with_holes <= min(with_bitmap, as_array):
        return RangeWithHoles(start, last + 1, EncodedArray.of(_gaps(runs).values()))
    if with_bitmap <= as_array:
        return RangeWithBitmap(start, last + 1, _bitmap(runs))
    return SortedArray(EncodedArray.of(runs.values()))


def _ascending(runs: Runs) -> bool:
    return bool((runs.starts[1:] > runs.lasts()[:-1]).all())


def _sizes(runs: Runs) -> tuple[int, int, int]:
    """Estimate the bytes of ascending integers as a range with holes, with a bitmap, and as an array.

    The estimate counts 4 bytes per hole, one per 8 bits, and 2 per integer, independent of the final encoding.
    """
    slots, count = int(runs.lasts()[-1]) - int(runs.starts[0]) + 1, int(runs.lengths.sum())
    return 4 * (slots - count), -(-slots // 8), 2 * count


def _gaps(runs: Runs) -> Runs:
    """Return the runs between ascending runs."""
    lasts = runs.lasts()[:-1]
    lengths = (runs.starts[1:] - lasts).astype(np.int64) - 1
    return Runs((lasts + np.uint64(1))[lengths > 0], lengths[lengths > 0])


def _bitmap(runs: Runs) -> bytes:
    first = runs.starts[0]
    begins = (runs.starts - first).astype(np.int64)
    bounds = np.stack((begins, begins + runs.lengths), axis=1).reshape(-1)
    bits = np.repeat(np.arange(bounds.size - 1) % 2 == 0, np.diff(bounds))
    return np.packbits(bits, bitorder="little").tobytes()
