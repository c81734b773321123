"""Protocols between a file and its storage: for reading and for writing bytes."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from lance_format.lazy_dataclasses import dataclass

Buffer: TypeAlias = bytes | memoryview | npt.NDArray[np.uint8]
"""Bytes that may belong to others, and are not changed. Arrays start at a multiple of 8 bytes in memory."""


class ByteRange(NamedTuple):
    """A half-open range of bytes of a file: `offset <= position < offset + size`.

    It is a tuple because reads of many rows make thousands of them.
    """

    offset: int
    size: int

    @property
    def end(self) -> int:
        """The first byte after the range."""
        return self.offset + self.size

    def contains(self, other: ByteRange) -> bool:
        """Return whether another range lies within this one."""
        return self.offset <= other.offset and other.end <= self.end


class ByteRanges(Sequence[ByteRange]):
    """Many ranges, as arrays.

    Parameters
    ----------
    offsets, sizes : int64[num_ranges]
    """

    __slots__ = ("offsets", "sizes")

    def __init__(self, offsets: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> None:
        self.offsets = offsets
        self.sizes = sizes

    @classmethod
    def of(cls, ranges: Sequence[ByteRange]) -> ByteRanges:
        """Return any ranges as arrays."""
        if isinstance(ranges, cls):
            return ranges
        offsets, sizes = np.array(ranges, np.int64).reshape(-1, 2).T.copy()
        return cls(offsets, sizes)

    def __len__(self) -> int:
        return self.offsets.size

    @overload
    def __getitem__(self, index: int) -> ByteRange: ...

    @overload
    def __getitem__(self, index: slice) -> ByteRanges: ...

    def __getitem__(self, index: int | slice) -> ByteRange | ByteRanges:
        if isinstance(index, slice):
            return ByteRanges(self.offsets[index], self.sizes[index])
        return ByteRange(int(self.offsets[index]), int(self.sizes[index]))

    def __iter__(self) -> Iterator[ByteRange]:
        return map(ByteRange, self.offsets.tolist(), self.sizes.tolist())

    @property
    def num_bytes(self) -> int:
        """The number of bytes of all ranges."""
        return int(self.sizes.sum())

    def moved(self, base: int) -> ByteRanges:
        """Return the ranges with a number added to their offsets."""
        return ByteRanges(self.offsets + base, self.sizes)


def moved(ranges: Sequence[ByteRange], base: int) -> Sequence[ByteRange]:
    """Return ranges with a number added to their offsets."""
    if isinstance(ranges, ByteRanges):
        return ranges.moved(base)
    return [ByteRange(base + int(wanted.offset), wanted.size) for wanted in ranges]


@dataclass(frozen=True, slots=True)
class RequestShape:
    """Shape of requests that a storage serves best.

    Parameters
    ----------
    gap_bytes : int
        Ranges with at most this gap between them are one request: another one would cost more.
    max_bytes : int
        Ranges are not merged beyond this size.
    reads_ahead : bool
        Whether the next rows of a scan are read while the current ones are used.
    """

    gap_bytes: int
    max_bytes: int
    reads_ahead: bool = False


FILE_REQUESTS = RequestShape(gap_bytes=8 * 1024, max_bytes=8 * 1024 * 1024)
"""The shape for local files; a request costs a system call. Large pages are not merged, so that one is decoded while
the next is read."""


class RangeReader(Protocol):
    """Reads ranges of one immutable file. Safe to use from several threads."""

    @property
    def path(self) -> str:
        """Name of the file in error messages."""

    @property
    def size_bytes(self) -> int:
        """The size of the file."""

    @property
    def request_shape(self) -> RequestShape:
        """The requests that suit the storage."""

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Read each range, in order.

        Raises
        ------
        CorruptFileError
            If a range ends after the file does.
        StorageError
            If the storage fails.
        """

    def close(self) -> None:
        """Release the resources of the reader; closing twice is harmless."""


class StreamingReader(Protocol):
    """A `RangeReader` that hands out each range as soon as it has arrived, while others are on their way."""

    def stream_ranges(self, ranges: Sequence[ByteRange]) -> Generator[Buffer, None, None]:
        """Read ranges, and yield each in order; see `RangeReader.read_ranges`. Closing the stream ends the reading."""


PROBED_RANGES = 16
"""Ranges that are read before `LendingReader.announce` is told how long one takes."""


class LendingReader(Protocol):
    """A `RangeReader` of a file that this process has open, so that kernels read it."""

    def lend(self) -> int:
        """Return the descriptor of the file; -1 if there is none."""

    def give_back(self, num_requests: int, num_bytes: int) -> None:
        """End a use of the descriptor, which has made so many requests and read so many bytes."""

    def announce(self, ranges: Sequence[ByteRange], seconds: float) -> None:
        """Let the system fetch ranges while others are read, if reading a range before them took so long as to wait."""


def stream_ranges(reader: RangeReader, ranges: Sequence[ByteRange]) -> Generator[Buffer, None, None]:
    """Yield ranges of a file in order, each as soon as it is there if the storage permits.

    Raises
    ------
    CorruptFileError, StorageError
        See `RangeReader.read_ranges`.
    """
    stream = getattr(reader, "stream_ranges", None)  # Looking at a protocol takes as long as a small request.
    if stream is not None:
        yield from stream(ranges)
    elif ranges:
        yield from reader.read_ranges(ranges)


class RangeWriter(Protocol):
    """Writes one file from its start to its end. Others see the file only after `close`."""

    @property
    def path(self) -> str:
        """Name of the file in error messages."""

    @property
    def position(self) -> int:
        """Number of bytes that have been written."""

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes.

        Raises
        ------
        StorageError
            If the storage fails.
        """

    def close(self) -> None:
        """Make the file durable and visible."""

    def abort(self) -> None:
        """Discard the file; has no effect after `close`."""
