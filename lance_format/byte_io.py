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


class RangeReader(Protocol):
    """Reads ranges of one immutable file. Safe to use from several threads."""

    @property
    def path(self) -> str:
        """Name of the file in error messages."""

    @property
    def size_bytes(self) -> int:
        """The size of the file."""

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
        """Release what the reader holds; closing twice is harmless."""


class RangeWriter(Protocol):
    """Writes one file from its start to its end. The file exists for others only after `close`."""

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
        """Leave nothing behind; harmless after `close`, which it does not undo."""
