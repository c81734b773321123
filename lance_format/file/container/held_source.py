"""A source of bytes some of which were read before they are asked for."""

from __future__ import annotations

import bisect
from collections.abc import Generator, Sequence

from lance_format.byte_io import Buffer, ByteRange, RangeReader, stream_ranges
from lance_format.file.container.scheduler import coalesce


class HeldSource:
    """A `RangeReader` that answers from bytes in memory if it holds them.

    Parameters
    ----------
    source : RangeReader
        Closed with this one.
    """

    def __init__(self, source: RangeReader) -> None:
        self._source = source
        self._held: list[ByteRange] = []
        self._data: list[Buffer] = []
        self.path = source.path
        self.size_bytes = source.size_bytes
        self.request_shape = source.request_shape

    def hold(self, ranges: Sequence[ByteRange], most_bytes: int) -> None:
        """Read ranges and hold their bytes, in place of those held before; nothing is read if they have too many.

        Parameters
        ----------
        ranges : sequence of ByteRange
        most_bytes : int
            Maximum number of bytes to hold.

        Raises
        ------
        CorruptFileError, StorageError
            See `RangeReader.read_ranges`.
        """
        requests = coalesce([wanted for wanted in ranges if wanted.size], self.request_shape)
        if sum(request.size for request in requests) > most_bytes:
            return
        data = list(stream_ranges(self._source, requests))
        self._held, self._data = requests, data

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """See `RangeReader`."""
        return [bytes(found) for found in self.stream_ranges(ranges)]

    def stream_ranges(self, ranges: Sequence[ByteRange]) -> Generator[Buffer, None, None]:
        """See `StreamingReader`."""
        found = [self._find(wanted) for wanted in ranges]
        missing = [wanted for wanted, known in zip(ranges, found, strict=True) if known is None]
        stream = stream_ranges(self._source, missing)
        try:
            for known in found:
                yield next(stream) if known is None else known
        finally:
            stream.close()

    def close(self) -> None:
        """See `RangeReader`."""
        self._held, self._data = [], []
        self._source.close()

    def _find(self, wanted: ByteRange) -> Buffer | None:
        held, data = self._held, self._data
        index = bisect.bisect_right(held, wanted.offset, key=lambda known: known.offset) - 1
        if index < 0 or index >= len(data) or not held[index].contains(wanted):
            return None
        start = wanted.offset - held[index].offset
        return data[index][start : start + wanted.size]
