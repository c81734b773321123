"""A blob as a file-like object."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from lance_format.arguments import checked_methods
from lance_format.byte_io import ByteRange, RangeReader
from lance_format.errors import CorruptFileError, InvalidInputError
from lance_format.file.blobs.payloads import BlobLocation


@checked_methods
class BlobFile(io.RawIOBase):
    """A blob as a file, which reads only the requested bytes. `LanceDataset.take_blobs` makes it.

    The first read opens the underlying file, and `close` closes it. Wrap it in an `io.BufferedReader` for many small
    reads.

    Parameters
    ----------
    location : BlobLocation
    """

    def __init__(self, location: BlobLocation) -> None:
        super().__init__()
        self._location = location
        self._source: RangeReader | None = None
        self._position = 0

    def __repr__(self) -> str:
        return f"<BlobFile size={self.size()}>"

    def size(self) -> int:
        """Return the size of the blob in bytes."""
        return self._location.extent.size

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the offset of the next read."""
        self._check_open()
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an offset. Reads after the end return nothing.

        Parameters
        ----------
        offset : int
        whence : {0, 1, 2}
            From the start, the current offset or the end; see `io.IOBase.seek`.

        Raises
        ------
        InvalidInputError
            If `whence` is another number, or the offset is negative.
        """
        self._check_open()
        bases = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size()}
        if whence not in bases:
            raise InvalidInputError(f"whence is {whence!r}; use 0, 1 or 2")
        position = bases[whence] + offset
        if position < 0:
            raise InvalidInputError(f"byte {position} is before the start of the blob")
        self._position = position
        return position

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes; returns how many there were."""
        view = memoryview(buffer).cast("B")
        data = self._read(min(len(view), max(self.size() - self._position, 0)))
        view[: len(data)] = data
        return len(data)

    def read(self, size: int | None = -1) -> bytes:
        """Return the next `size` bytes, or all that are left if it is None or negative."""
        left = max(self.size() - self._position, 0)
        return self._read(left if size is None or size < 0 else min(size, left))

    def readall(self) -> bytes:
        """Return all bytes that are left."""
        return self.read()

    def read_range(self, offset: int, length: int) -> bytes:
        """Return a range of the blob, wherever the next read starts.

        Raises
        ------
        InvalidInputError
            If the range is not within the blob.
        """
        return self.read_ranges([(offset, length)])[0]

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return several ranges, each given by its offset and length; see `read_range`."""
        for offset, length in ranges:
            if offset < 0 or length < 0 or offset + length > self.size():
                raise InvalidInputError(f"{length} bytes at byte {offset} are not within a blob of {self.size()} bytes")
        base = self._location.extent.offset
        source = self._open()
        wanted = [ByteRange(base + offset, length) for offset, length in ranges if length]
        found = iter(source.read_ranges(wanted) if wanted else ())
        return [next(found) if length else b"" for _, length in ranges]

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        if self._source is not None:
            self._source.close()
            self._source = None
        super().close()

    def _read(self, size: int) -> bytes:
        self._check_open()
        if not size:
            return b""
        (data,) = self._open().read_ranges([ByteRange(self._location.extent.offset + self._position, size)])
        self._position += size
        return data

    def _open(self) -> RangeReader:
        self._check_open()
        if self._source is None:
            source = self._location.open()
            end = self._location.extent.end
            if self.size() and end > source.size_bytes:
                source.close()
                raise CorruptFileError(
                    f"a blob ends at byte {end}, after the file, which has {source.size_bytes} bytes", path=source.path
                )
            self._source = source
        return self._source

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("the blob is closed")
