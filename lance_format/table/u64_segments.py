"""Segments: sequences of unsigned 64-bit integers, each in the shape that takes the fewest bytes.

    Range               start, end                       all integers from start up to end
    RangeWithHoles      start, end, the absent ones      a few are absent
    RangeWithBitmap     start, end, a bit an integer     many are absent
    SortedArray         the integers, ascending          most are absent
    Array               the integers                     in any order

Arrays are stored as 16-bit or 32-bit offsets from a base where these suffice. Segments stay as they are stored: what
takes few bytes in a file takes few bytes in memory, and nothing expands before its size is checked. All of them can be
seen as runs of consecutive integers, which is how ranges are searched and cut without being expanded.

Source: `rowids.proto` of the specification.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from google.protobuf.message import Message

from lance_format.errors import CorruptFileError
from lance_format.proto import rowids_pb2

U64Array = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]

_MAX = 2**64 - 1
_ENCODED_WIDTHS = {"u16_array": 2, "u32_array": 4, "u64_array": 8}


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
        """Return the longest runs that make up an array, `uint64[n]`."""
        following = values[1:]
        breaks = (following != values[:-1] + np.uint64(1)) | (following == 0)
        bounds = np.concatenate(([0], np.flatnonzero(breaks) + 1, [values.size])).astype(np.int64)
        return cls(values[bounds[:-1]], np.diff(bounds)) if values.size else cls(values, bounds[:0])

    def values(self) -> U64Array:
        """Return all integers, `uint64[n]`."""
        values = np.arange(self.lengths.sum(), dtype=np.uint64)
        values += np.repeat(self.starts - self._first_positions().astype(np.uint64), self.lengths)
        return values

    def take(self, positions: Positions) -> U64Array:
        """Return the integers at some positions, all of which exist."""
        firsts = self._first_positions()
        run = np.searchsorted(firsts, positions, side="right") - 1
        return self.starts[run] + (positions - firsts[run]).astype(np.uint64)

    def slice(self, start: int, stop: int) -> Runs:
        """Return the runs of the positions from `start` up to `stop`."""
        firsts = self._first_positions()
        begins, ends = np.maximum(firsts, start), np.minimum(firsts + self.lengths, stop)
        some = begins < ends
        return Runs(self.take(begins[some]), (ends - begins)[some])

    def without(self, positions: Positions) -> Runs:
        """Return what is left without some positions, `int64[n]`, ascending and distinct."""
        begins, lengths = self.intervals_without(positions)
        return Runs(self.take(begins), lengths)

    def intervals_without(self, positions: Positions) -> tuple[Positions, Positions]:
        """Return where the runs of what is left without some positions begin, and how long they are."""
        # Every run and every removed position ends one interval of what is left, and starts the next one.
        firsts = self._first_positions()
        begins = np.sort(np.concatenate((firsts, positions + 1)))
        lengths = np.sort(np.concatenate((firsts + self.lengths, positions))) - begins
        return begins[lengths > 0], lengths[lengths > 0]

    def lasts(self) -> U64Array:
        """Return the last integer of every run."""
        return self.starts + (self.lengths - 1).astype(np.uint64)

    def _first_positions(self) -> Positions:
        return np.cumsum(self.lengths) - self.lengths


@dataclass(frozen=True, slots=True)
class EncodedArray:
    """Integers as little-endian offsets from a base.

    Parameters
    ----------
    base : int
    width : int
        Bytes an offset: 2, 4 or 8.
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
        return self.offsets() + np.uint64(self.base)

    def take(self, positions: Positions) -> U64Array:
        """Return the integers at some positions."""
        return self.offsets()[positions] + np.uint64(self.base)


class U64Segment(ABC):
    """A sequence of integers."""

    __slots__ = ()

    @property
    @abstractmethod
    def num_values(self) -> int:
        """How many integers there are."""

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
        """Return the segment of the positions from `start` up to `stop`, encoded anew."""
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
class RangeWithHoles(U64Segment):
    """All integers from `start` up to `stop` but for some, which are listed in ascending order."""

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
        bits = np.unpackbits(np.frombuffer(self.bitmap, np.uint8), bitorder="little", count=self.stop - self.start)
        edges = np.flatnonzero(np.diff(bits, prepend=0, append=0))
        return Runs(edges[::2].astype(np.uint64) + np.uint64(self.start), edges[1::2] - edges[::2])


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
    """Encode integers in the fewest bytes, as the reference reckons them: 2 an integer, 4 a hole, 1 for 8 bits."""
    if not runs.starts.size:
        return Range(0, 0)
    lasts = runs.lasts()
    if (runs.starts[1:] <= lasts[:-1]).any():
        return Array(EncodedArray.of(runs.values()))
    start, last, count = int(runs.starts[0]), int(lasts[-1]), int(runs.lengths.sum())
    slots = last - start + 1
    holes_bytes, bitmap_bytes, array_bytes = 4 * (slots - count), -(-slots // 8), 2 * count
    if last == _MAX:  # The end of a range that has it does not fit 64 bits.
        return SortedArray(EncodedArray.of(runs.values()))
    if slots == count:
        return Range(start, last + 1)
    if holes_bytes <= min(bitmap_bytes, array_bytes):
        return RangeWithHoles(start, last + 1, EncodedArray.of(_gaps(runs).values()))
    if bitmap_bytes <= array_bytes:
        return RangeWithBitmap(start, last + 1, _bitmap(runs))
    return SortedArray(EncodedArray.of(runs.values()))


def parse_segment(message: rowids_pb2.U64Segment, max_values: int, what: str) -> U64Segment:
    """Build a segment from its protobuf.

    Parameters
    ----------
    message : rowids_pb2.U64Segment
    max_values : int
        A segment with more is refused, before it takes any memory.
    what : str
        What error messages call it.

    Raises
    ------
    CorruptFileError
        If it contradicts itself, or has too many integers.
    """
    kind = message.WhichOneof("segment")
    if kind is None:
        raise CorruptFileError(f"{what} has a segment of no known kind")
    segment = _PARSERS[kind](getattr(message, kind), what)
    if segment.num_values > max_values:
        raise CorruptFileError(f"{what} has a segment of {segment.num_values} values; at most {max_values} are left")
    return segment


def serialize_segment(segment: U64Segment) -> rowids_pb2.U64Segment:
    """Return the protobuf of a segment."""
    return _SERIALIZERS[type(segment)](segment)


def refuse_unknown_fields(message: Message, what: str) -> None:
    """Raise `CorruptFileError` if a message has fields that are not known, or of another wire type than they should be.

    Without them the rest would still parse, to other integers.
    """
    size = message.ByteSize()
    message.DiscardUnknownFields()
    if message.ByteSize() != size:
        raise CorruptFileError(f"{what} has fields that are not known; it is damaged, or of a newer format")


def _gaps(runs: Runs) -> Runs:
    """Return the runs between ascending runs."""
    lasts = runs.lasts()[:-1]
    lengths = (runs.starts[1:] - lasts).astype(np.int64) - 1
    return Runs((lasts + np.uint64(1))[lengths > 0], lengths[lengths > 0])


def _bitmap(runs: Runs) -> bytes:
    first = runs.starts[0]
    begins = (runs.starts - first).astype(np.int64)
    bounds = np.stack((begins, begins + runs.lengths), axis=1).reshape(-1)
    bits = np.repeat(np.arange(bounds.size - 1, dtype=np.uint8) % 2 == 0, np.diff(bounds))
    return np.packbits(bits, bitorder="little").tobytes()


def _parse_range(message: rowids_pb2.U64Segment.Range, what: str) -> Range:
    _check_bounds(message.start, message.end, what)
    return Range(message.start, message.end)


def _parse_range_with_holes(message: rowids_pb2.U64Segment.RangeWithHoles, what: str) -> RangeWithHoles:
    start, stop = message.start, message.end
    _check_bounds(start, stop, what)
    holes = _parse_ascending(message.holes, what)
    if len(holes) and not start <= int(holes.take(np.array([0]))[0]) <= int(holes.take(np.array([-1]))[0]) < stop:
        raise CorruptFileError(f"{what} has a hole outside of its range [{start}, {stop})")
    return RangeWithHoles(start, stop, holes)


def _parse_range_with_bitmap(message: rowids_pb2.U64Segment.RangeWithBitmap, what: str) -> RangeWithBitmap:
    start, stop, bitmap = message.start, message.end, message.bitmap
    _check_bounds(start, stop, what)
    slots = stop - start
    if len(bitmap) != -(-slots // 8):
        raise CorruptFileError(f"{what} has a bitmap of {len(bitmap)} bytes for the {slots} values of its range")
    if slots % 8 and bitmap[-1] >> slots % 8:
        raise CorruptFileError(f"{what} has a bitmap with bits past the end of its range of {slots} values")
    return RangeWithBitmap(start, stop, bitmap)


def _parse_sorted_array(message: rowids_pb2.EncodedU64Array, what: str) -> SortedArray:
    return SortedArray(_parse_ascending(message, what))


def _parse_any_array(message: rowids_pb2.EncodedU64Array, what: str) -> Array:
    return Array(_parse_array(message, what))


def _check_bounds(start: int, stop: int, what: str) -> None:
    if start > stop:
        raise CorruptFileError(f"{what} has a range that starts at {start} and ends at {stop}")


def _parse_ascending(message: rowids_pb2.EncodedU64Array, what: str) -> EncodedArray:
    array = _parse_array(message, what)
    offsets = array.offsets()
    if (offsets[1:] <= offsets[:-1]).any():
        raise CorruptFileError(f"{what} has an array that does not ascend, where one is expected")
    return array


def _parse_array(message: rowids_pb2.EncodedU64Array, what: str) -> EncodedArray:
    kind = message.WhichOneof("array")
    if kind is None:
        raise CorruptFileError(f"{what} has an array of no known kind")
    width = _ENCODED_WIDTHS[kind]
    if width == 8:
        base, data = 0, message.u64_array.values
    else:
        encoded = getattr(message, kind)
        base, data = encoded.base, encoded.offsets
    if len(data) % width:
        raise CorruptFileError(f"{what} has an array of {len(data)} bytes, {width} a value")
    array = EncodedArray(base, width, data)
    if len(array) and base + int(array.offsets().max()) > _MAX:
        raise CorruptFileError(f"{what} has an array from {base} on, whose values do not fit 64 bits")
    return array


def _serialize_array(array: EncodedArray) -> rowids_pb2.EncodedU64Array:
    encoded = rowids_pb2.EncodedU64Array
    if array.width == 8:
        return encoded(u64_array=encoded.U64Array(values=array.values().astype("<u8").tobytes()))
    if array.width == 4:
        return encoded(u32_array=encoded.U32Array(base=array.base, offsets=array.data))
    return encoded(u16_array=encoded.U16Array(base=array.base, offsets=array.data))


_PARSERS: dict[str, Callable[..., U64Segment]] = {
    "range": _parse_range,
    "range_with_holes": _parse_range_with_holes,
    "range_with_bitmap": _parse_range_with_bitmap,
    "sorted_array": _parse_sorted_array,
    "array": _parse_any_array,
}
_MESSAGE = rowids_pb2.U64Segment
_SERIALIZERS: dict[type[U64Segment], Callable[..., rowids_pb2.U64Segment]] = {
    Range: lambda segment: _MESSAGE(range=_MESSAGE.Range(start=segment.start, end=segment.stop)),
    RangeWithHoles: lambda segment: _MESSAGE(
        range_with_holes=_MESSAGE.RangeWithHoles(
            start=segment.start, end=segment.stop, holes=_serialize_array(segment.holes)
        )
    ),
    RangeWithBitmap: lambda segment: _MESSAGE(
        range_with_bitmap=_MESSAGE.RangeWithBitmap(start=segment.start, end=segment.stop, bitmap=segment.bitmap)
    ),
    SortedArray: lambda segment: _MESSAGE(sorted_array=_serialize_array(segment.array)),
    Array: lambda segment: _MESSAGE(array=_serialize_array(segment.array)),
}
