"""Protocols between a file and its storage: for reading and for writing bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, order=True)
class ByteRange:
    """A half-open range of bytes of a file: `offset <= position < offset + size`."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        """The first byte after the range."""
        return self.offset + self.size


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


FILE_REQUESTS = RequestShape(gap_bytes=8 * 1024, max_bytes=64 * 1024 * 1024)
"""The shape for local files; a request costs a system call."""


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
