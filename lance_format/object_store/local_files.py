"""Files of the local file system, read by ranges and written whole.

Reads use `pread`: a mapped file that another process truncates would kill this one. Files appear under their name
complete or not at all: they are written under an unpredictable temporary name in the same directory, synced, then
renamed, or linked where an existing file must not be replaced.
"""

# ruff: noqa: PTH103, PTH105, PTH108, PTH118, PTH119, PTH120
# Paths are strings here, as in every store; descriptors and their flags have no counterpart in pathlib.

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Generator, Sequence

from lance_format.byte_io import FILE_REQUESTS, PROBED_RANGES, ByteRange, RequestShape
from lance_format.errors import CorruptFileError, LanceError, StorageError
from lance_format.object_store.store import ObjectExistsError, ObjectNotFoundError, check_ranges
from lance_format.object_store.write_back import WriteBack

_READ = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)  # A pipe without a writer would block.
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_MODE = 0o666  # The umask restricts it.
_MAX_IO_BYTES = 1 << 30  # The kernel moves at most 2 GiB - 4 KiB a call.
_GATHERED_BYTES = 64 * 1024
"""A call of the system costs more than copying fewer bytes."""
_WAITING_SECONDS = 20e-6
"""A small range takes longer only if it is not in the memory of the system."""
_ANNOUNCED_BYTES = 256 * 1024
"""The system reads ahead by itself within larger ranges."""
_REMEDIES = {
    errno.EACCES: "grant this user access, or choose another path",
    errno.EPERM: "grant this user access, or choose another path",
    errno.EROFS: "the file system is read-only; choose another path",
    errno.ENOSPC: "free some space and try again",
    errno.EDQUOT: "free some of your quota and try again",
    errno.ENOTDIR: "a part of the path is a file; choose another path",
    errno.EISDIR: "it is a directory; give the path of a file",
    errno.ENXIO: "it is a pipe, a socket or a device; give the path of a file",
    errno.ENAMETOOLONG: "choose a shorter path",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
}


class LocalReader:
    """A `RangeReader` of a file."""

    def __init__(self, path: str) -> None:
        self._path = path
        with FileErrors("open", path):
            self._descriptor = os.open(path, _READ)
        try:
            with FileErrors("open", path):
                found = os.fstat(self._descriptor)
                if not stat.S_ISREG(found.st_mode):
                    kind = errno.EISDIR if stat.S_ISDIR(found.st_mode) else errno.ENXIO
                    raise OSError(kind, "Not a regular file", path)
        except StorageError:
            self.close()
            raise
        self._size_bytes = found.st_size

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
        return FILE_REQUESTS

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """See `RangeReader`."""
        return list(self.stream_ranges(ranges))

    def stream_ranges(self, ranges: Sequence[ByteRange]) -> Generator[bytes, None, None]:
        """See `StreamingReader`. Each range is read when it is taken, and used while the processor has it."""
        check_ranges(self, ranges)
        seconds = 0.0
        with FileErrors("read", self._path):
            for number, wanted in enumerate(ranges):
                if number == PROBED_RANGES:
                    self.announce(ranges[number:], seconds / number)
                start = time.perf_counter()
                data = self._read(wanted)
                seconds += time.perf_counter() - start
                yield data

    def lend(self) -> int:
        """See `LendingReader`."""
        return self._descriptor

    def give_back(self, num_requests: int, num_bytes: int) -> None:
        """See `LendingReader`."""

    def announce(self, ranges: Sequence[ByteRange], seconds: float) -> None:
        """See `LendingReader`. A disk serves many requests at once; without it, each read waits for the one before."""
        if seconds < _WAITING_SECONDS or not hasattr(os, "posix_fadvise"):
            return
        for wanted in ranges:
            if wanted.size <= _ANNOUNCED_BYTES:
                os.posix_fadvise(self._descriptor, wanted.offset, wanted.size, os.POSIX_FADV_WILLNEED)

    def close(self) -> None:
        """See `RangeReader`."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        if getattr(self, "_descriptor", -1) >= 0:
            self.close()

    def _read(self, wanted: ByteRange) -> bytes:
        first = os.pread(self._descriptor, min(wanted.size, _MAX_IO_BYTES), wanted.offset)
        if len(first) == wanted.size:
            return first
        pieces = [first]
        position = wanted.offset + len(first)
        while position < wanted.end:
            piece = os.pread(self._descriptor, min(wanted.end - position, _MAX_IO_BYTES), position)
            if not piece:
                raise CorruptFileError("the file became shorter while it was read", path=self._path, offset=position)
            pieces.append(piece)
            position += len(piece)
        return b"".join(pieces)


class LocalWriter:
    """A `RangeWriter` of a file.

    Parameters
    ----------
    path : str
    replace : bool
        Whether an existing file of that name may be replaced.
    durable : bool
        Whether it is synced to the disk. Otherwise there may be no file for a moment while one is replaced.
    """

    def __init__(self, path: str, *, replace: bool = True, durable: bool = True) -> None:
        self._path = path
        self._replace = replace
        self._durable = durable
        self._position = 0
        self._gathered = bytearray()
        self._descriptor = -1
        self._temporary = temporary_name(path)
        try:
            with FileErrors("create", path):
                self._descriptor = _create(self._temporary)
        except StorageError:
            self.abort()  # It may be there all the same.
            raise
        self._write_back = WriteBack(self._descriptor) if durable else None

    @property
    def path(self) -> str:
        """See `RangeWriter`."""
        return self._path

    @property
    def position(self) -> int:
        """See `RangeWriter`."""
        return self._position

    def write(self, data: bytes | memoryview) -> None:
        """See `RangeWriter`. Little data waits for more, or for `close`."""
        view = memoryview(data).cast("B")
        self._position += len(view)
        if len(self._gathered) + len(view) < _GATHERED_BYTES:
            self._gathered += view
            return
        self._write_gathered()
        self._write_now(view)
        if self._write_back is not None:
            self._write_back.advance(self._position)

    def _write_gathered(self) -> None:
        gathered, self._gathered = self._gathered, bytearray()
        self._write_now(memoryview(gathered))

    def _write_now(self, rest: memoryview) -> None:
        with FileErrors("write", self._path):
            while rest:
                rest = rest[os.write(self._descriptor, rest[:_MAX_IO_BYTES]) :]

    def close(self) -> None:
        """See `RangeWriter`."""
        if self._descriptor < 0:
            return
        self._write_gathered()
        with FileErrors("write", self._path):
            if self._durable:
                os.fsync(self._descriptor)
            self._close_descriptor()
            self._publish()
            if self._durable:
                _sync_directory(os.path.dirname(self._path))

    def abort(self) -> None:
        """See `RangeWriter`."""
        if self._descriptor >= 0:
            self._close_descriptor()
        with contextlib.suppress(OSError):  # Gone since it was published; else cleanup knows the name's pattern.
            os.unlink(self._temporary)

    def __del__(self) -> None:
        if getattr(self, "_descriptor", -1) >= 0:
            self.abort()

    def _publish(self) -> None:
        if self._replace:
            if not self._durable:  # Some file systems write a file to the disk before it replaces another.
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._path)
            os.replace(self._temporary, self._path)
            return
        os.link(self._temporary, self._path, follow_symlinks=False)
        os.unlink(self._temporary)

    def _close_descriptor(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)


class FileErrors:
    """Convert errors of the operating system to `StorageError`."""

    __slots__ = ("_action", "_path")

    def __init__(self, action: str, path: str) -> None:
        self._action = action
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError | ValueError) and not isinstance(error, LanceError):
            raise _as_ours(error, self._action, self._path) from error


def _as_ours(error: OSError | ValueError, action: str, path: str) -> StorageError:
    if isinstance(error, FileNotFoundError) and action == "write":
        return StorageError(
            f"cannot write {path}: its directory was removed concurrently, as by a drop of its table; check that the"
            " table still exists before running it again"
        )
    if isinstance(error, FileNotFoundError):
        return ObjectNotFoundError(f"cannot {action} {path}: there is no such file")
    if isinstance(error, FileExistsError):
        return ObjectExistsError(f"cannot {action} {path}: it exists already")
    if isinstance(error, ValueError):  # An embedded null character.
        return StorageError(f"cannot {action} {path!r}: {error}")
    remedy = _REMEDIES.get(error.errno or 0)
    what = error.strerror or str(error)
    return StorageError(f"cannot {action} {path}: {what}{f'; {remedy}' if remedy else ''}")


def temporary_name(path: str) -> str:
    """Return an unpredictable name in the same directory, whose pattern a cleanup recognises."""
    return os.path.join(os.path.dirname(path), f".tmp_{os.path.basename(path)}_{os.urandom(16).hex()}")


def _create(path: str) -> int:
    """Create a file and its parents; another writer may remove them, while empty, in between."""
    for _ in range(3):
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, _CREATE, _MODE)
        with contextlib.suppress(FileNotFoundError):
            os.makedirs(os.path.dirname(path), exist_ok=True)
    raise StorageError(f"cannot create {os.path.dirname(path)}: the file system does not let it appear")


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
