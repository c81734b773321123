"""Objects of a bucket that are open: read by ranges in parallel, and written in parts."""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lance_format.byte_io import Buffer, ByteRange, RequestShape
from lance_format.errors import CorruptFileError, StorageError
from lance_format.memory import empty
from lance_format.object_store.cloud_errors import CloudErrors
from lance_format.object_store.store import check_ranges

REQUEST_SHAPE = RequestShape(gap_bytes=128 * 1024, max_bytes=4 * 1024 * 1024, reads_ahead=True)
"""Requests of a round run in parallel, so that a request saved saves money rather than time: 128 KiB, which take a
millisecond, are worth it. Requests of more than 4 MiB are divided: a connection has some 90 MB/s of the bandwidth only,
so that the 20 MiB that a scan reads ahead come by five connections.
"""

PARALLEL_REQUESTS = 16
CHUNK_BYTES = 256 * 1024
"""Bodies of more bytes are copied into their place in pieces of about this size."""
_MAX_KEPT_TAIL_BYTES = 256 * 1024
"""Small files are whole in what is read of their end."""


class NoSuchRangeError(StorageError):
    """An object is too short for a range."""


class Bucket(Protocol):
    """A store, as open objects use it."""

    def fetch(self, path: str, wanted: Any) -> tuple[Buffer, int]:
        """Read a range of an object, as obstore describes it; return its bytes and the size of the object."""

    def fetch_into(self, path: str, wanted: Any, out: npt.NDArray[np.uint8]) -> tuple[int, int]:
        """Read a range of an object into an array; return the number of its bytes and the size of the object.

        Parameters
        ----------
        path : str
        wanted : object
            The range, as obstore describes it.
        out : uint8[…]
            What does not fit is counted only.
        """

    def size(self, path: str) -> int:
        """Return the size of an object in bytes."""

    def errors(self, action: str, path: str) -> CloudErrors:
        """Return what converts the errors of a request."""

    def upload(self, path: str) -> Any:
        """Start an object of unknown size."""


class CloudReader:
    """A `RangeReader` of an object.

    Parameters
    ----------
    store : Bucket
    path : str
    size_bytes : int
    tail : bytes
        The last bytes of the object, if already read.
    """

    def __init__(self, store: Bucket, path: str, size_bytes: int, tail: bytes = b"") -> None:
        self._store = store
        self._path = path
        self._size_bytes = size_bytes
        self._tail = tail

    @property
    def path(self) -> str:
        """See `RangeReader`."""
        return self._path

    @property
    def size_bytes(self) -> int:
        """See `RangeReader`."""
        return self._size_bytes

    @property
    def request_shape(self) -> RequestShape:
        """See `RangeReader`."""
        return REQUEST_SHAPE

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """See `RangeReader`; ranges are read in parallel, and large ones in parts."""
        return [bytes(found) for found in self.stream_ranges(ranges)]

    def stream_ranges(self, ranges: Sequence[ByteRange]) -> Generator[Buffer, None, None]:
        """See `StreamingReader`; ranges are read in parallel, and large ones in parts. Nothing is copied but parts."""
        check_ranges(self, ranges)
        divided = [_divide(wanted) for wanted in ranges]
        if sum(map(len, divided)) <= 1:
            yield from map(self._read, ranges)
            return
        running = deque(self._begin(parts) for parts in divided)
        try:
            while running:
                yield _take_first(running)  # Nothing here keeps what has been handed out.
        finally:
            for futures in running:
                for future in futures:
                    future.cancel()

    def _begin(self, parts: Sequence[ByteRange]) -> list[Future[Buffer]]:
        """Start to read a range in parts."""
        if len(parts) == 1:
            return [fetch_pool().submit(self._read, parts[0])]
        whole = empty(parts[-1].end - parts[0].offset, np.uint8)

        def read_part(part: ByteRange) -> Buffer:
            start = part.offset - parts[0].offset
            self._read_into(part, whole[start : start + part.size])
            return whole

        return [fetch_pool().submit(read_part, part) for part in parts]

    def close(self) -> None:
        """See `RangeReader`."""
        self._tail = b""

    def _read(self, wanted: ByteRange) -> Buffer:
        if not wanted.size:
            return b""
        if wanted.size > CHUNK_BYTES:
            out = empty(wanted.size, np.uint8)
            self._read_into(wanted, out)
            return out
        tail = self._tail
        tail_start = self._size_bytes - len(tail)
        if wanted.offset >= tail_start:
            return tail[wanted.offset - tail_start : wanted.end - tail_start]
        data: Buffer
        try:
            data, size = self._store.fetch(self._path, (wanted.offset, wanted.end))
        except NoSuchRangeError:
            data, size = b"", self._store.size(self._path)
        self._check(wanted, len(data), size)
        if wanted.end == size and len(tail) < wanted.size <= _MAX_KEPT_TAIL_BYTES:
            self._tail = bytes(data)
        return data

    def _read_into(self, wanted: ByteRange, out: npt.NDArray[np.uint8]) -> None:
        try:
            num_bytes, size = self._store.fetch_into(self._path, (wanted.offset, wanted.end), out)
        except NoSuchRangeError:
            num_bytes, size = 0, self._store.size(self._path)
        self._check(wanted, num_bytes, size)

    def _check(self, wanted: ByteRange, num_bytes: int, size: int) -> None:
        if size != self._size_bytes or num_bytes != wanted.size:
            raise CorruptFileError(f"the object has {size} bytes instead of {self._size_bytes}", path=self._path)


class CloudWriter:
    """A `RangeWriter` of an object. Memory is bounded by the parts in flight.

    Parameters
    ----------
    store : Bucket
    path : str
    """

    def __init__(self, store: Bucket, path: str) -> None:
        self._store = store
        self._path = path
        self._position = 0
        self._upload = store.upload(path)

    @property
    def path(self) -> str:
        """See `RangeWriter`."""
        return self._path

    @property
    def position(self) -> int:
        """See `RangeWriter`."""
        return self._position

    def write(self, data: bytes | memoryview) -> None:
        """See `RangeWriter`."""
        piece = bytes(data)
        with self._store.errors("write", self._path):
            self._upload.write(piece)
        self._position += len(piece)

    def close(self) -> None:
        """See `RangeWriter`."""
        if self._upload is None:
            return
        with self._store.errors("write", self._path):
            self._upload.close()
        self._upload = None

    def abort(self) -> None:
        """See `RangeWriter`; parts that were uploaded are deleted."""
        upload, self._upload = getattr(self, "_upload", None), None
        if upload is None:
            return
        try:
            with self._store.errors("delete", self._path):
                upload.__exit__(StorageError, StorageError("aborted"), None)
        except StorageError:  # The error that led here says more; a rule of the bucket removes the parts.
            return

    def __del__(self) -> None:
        self.abort()


def _divide(wanted: ByteRange) -> list[ByteRange]:
    """Divide a range into equal parts of about the maximum size."""
    num_parts = max(1, round(wanted.size / REQUEST_SHAPE.max_bytes))
    bounds = [wanted.offset + wanted.size * number // num_parts for number in range(num_parts + 1)]
    return [ByteRange(start, stop - start) for start, stop in itertools.pairwise(bounds)]


def _take_first(running: deque[list[Future[Buffer]]]) -> Buffer:
    """Wait for the parts of the first range, and return it."""
    for future in running[0]:
        future.result()
    return running.popleft()[-1].result()


_pools: dict[int, ThreadPoolExecutor] = {}
_pools_lock = threading.Lock()


def fetch_pool() -> ThreadPoolExecutor:
    """Return the threads of this process that wait for replies."""
    with _pools_lock:
        pool = _pools.get(os.getpid())
        if pool is None:
            pool = _pools[os.getpid()] = ThreadPoolExecutor(PARALLEL_REQUESTS, "lance-fetch")
        return pool
