"""Reads that are counted where they leave for the storage."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import cast

from lance_format.byte_io import Buffer, ByteRange, LendingReader, RangeReader, stream_ranges
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store.store import ReadableStore


@dataclass(slots=True)
class ReadCounter:
    """Counter of reads.

    Parameters
    ----------
    num_files : int
        Files that were opened.
    num_requests : int
        Ranges that were read.
    num_bytes : int
    """

    num_files: int = 0
    num_requests: int = 0
    num_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CountedStore:
    """A `ReadableStore` whose reads are counted.

    Parameters
    ----------
    store : ReadableStore
    counter : ReadCounter
    """

    store: ReadableStore
    counter: ReadCounter

    def open_reader(self, path: str, size_bytes: int | None = None) -> RangeReader:
        """See `ObjectStore`."""
        reader = self.store.open_reader(path, size_bytes)
        self.counter.num_files += 1
        return _CountedReader(reader, self.counter)


class _CountedReader:
    def __init__(self, reader: RangeReader, counter: ReadCounter) -> None:
        self._reader = reader
        self._counter = counter
        self.path = reader.path
        self.size_bytes = reader.size_bytes
        self.request_shape = reader.request_shape

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        found = self._reader.read_ranges(ranges)
        self._counter.num_requests += len(ranges)
        self._counter.num_bytes += sum(map(len, found))
        return found

    def stream_ranges(self, ranges: Sequence[ByteRange]) -> Generator[Buffer, None, None]:
        for found in stream_ranges(self._reader, ranges):
            self._counter.num_requests += 1
            self._counter.num_bytes += len(found)
            yield found

    def lend(self) -> int:
        lend = getattr(self._reader, "lend", None)
        return -1 if lend is None else lend()

    def give_back(self, num_requests: int, num_bytes: int) -> None:
        self._counter.num_requests += num_requests
        self._counter.num_bytes += num_bytes

    def announce(self, ranges: Sequence[ByteRange], seconds: float) -> None:
        cast("LendingReader", self._reader).announce(ranges, seconds)

    def close(self) -> None:
        self._reader.close()
