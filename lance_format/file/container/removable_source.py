"""A source of bytes of a file of a table, which a cleanup may remove while it is read."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from lance_format.byte_io import Buffer, ByteRange, RangeReader, stream_ranges
from lance_format.errors import DatasetNotFoundError
from lance_format.object_store import ObjectNotFoundError


class RemovableSource:
    """A `RangeReader` of an object in a bucket: each read opens it again, and may find that it is gone.

    Parameters
    ----------
    source : RangeReader
        Closed with this one.
    missing : str
        Error message for a missing object.
    """

    def __init__(self, source: RangeReader, missing: str) -> None:
        self._source = source
        self._missing = missing
        self.path = source.path
        self.size_bytes = source.size_bytes
        self.request_shape = source.request_shape

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """See `RangeReader`.

        Raises
        ------
        DatasetNotFoundError
            If the object is missing.
        """
        try:
            return self._source.read_ranges(ranges)
        except ObjectNotFoundError as error:
            raise DatasetNotFoundError(self._missing) from error

    def stream_ranges(self, ranges: Sequence[ByteRange]) -> Generator[Buffer, None, None]:
        """See `StreamingReader`, and `read_ranges`."""
        try:
            yield from stream_ranges(self._source, ranges)
        except ObjectNotFoundError as error:
            raise DatasetNotFoundError(self._missing) from error

    def close(self) -> None:
        """See `RangeReader`."""
        self._source.close()
