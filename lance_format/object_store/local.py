"""The local file system.

Reads use `pread`: a mapped file that another process truncates would kill this one. Objects appear under their name
complete or not at all: they are written under an unpredictable temporary name in the same directory, synced, then
renamed, or linked where an existing object must not be replaced.
"""

# ruff: noqa: PTH103, PTH104, PTH105, PTH106, PTH108, PTH116, PTH118, PTH119, PTH120
# Paths are strings here, as in every store; descriptors and their flags have no counterpart in pathlib.

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Iterable, Iterator, Sequence

from lance_format.byte_io import FILE_REQUESTS, ByteRange, RequestShape
from lance_format.errors import CorruptFileError, LanceError, StorageError
from lance_format.object_store.store import (
    FirstNames,
    ObjectExistsError,
    ObjectInfo,
    ObjectNotFoundError,
    check_ranges,
    find_size,
)

_READ = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)  # A pipe without a writer would block.
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_MODE = 0o666  # The umask restricts it.
_PARALLEL_SYNCS = 8
"""A file system writes the journal once for syncs that come together."""
_MAX_IO_BYTES = 1 << 30  # The kernel moves at most 2 GiB - 4 KiB a call.
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


class LocalStore:
    """Objects as files."""

    @property
    def atomic_put_if_absent(self) -> bool:
        """See `ObjectStore`."""
        return True

    @property
    def is_remote(self) -> bool:
        """See `ObjectStore`."""
        return False

    @property
    def parallel_requests(self) -> int:
        """See `ObjectStore`."""
        return _PARALLEL_SYNCS

    @property
    def needs_hint(self) -> bool:
        """See `ObjectStore`."""
        return True

    def open_reader(self, path: str, size_bytes: int | None = None) -> LocalReader:
        """See `ObjectStore`."""
        reader = LocalReader(path)
        if size_bytes is not None and size_bytes != reader.size_bytes:
            reader.close()
            raise CorruptFileError(f"the file has {reader.size_bytes} bytes instead of {size_bytes}", path=path)
        return reader

    def open_writer(self, path: str) -> LocalWriter:
        """See `ObjectStore`."""
        return LocalWriter(path)

    def read(self, path: str, max_bytes: int, tag: str | None = None) -> bytes:
        """See `ObjectStore`."""
        del tag
        reader = LocalReader(path)
        try:
            if reader.size_bytes > max_bytes:
                raise CorruptFileError(
                    f"the file has {reader.size_bytes} bytes; at most {max_bytes} are expected", path=path
                )
            return reader.read_ranges([ByteRange(0, reader.size_bytes)])[0]
        finally:
            reader.close()

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """See `ObjectStore`."""
        writer = LocalWriter(path, durable=durable)
        try:
            writer.write(data)
            writer.close()
        except LanceError:
            writer.abort()
            raise

    def put_if_absent(self, path: str, data: bytes) -> None:
        """See `ObjectStore`."""
        writer = LocalWriter(path, replace=False)
        try:
            writer.write(data)
            writer.close()
        except LanceError:
            writer.abort()
            raise

    def list_objects(self, prefix: str) -> list[ObjectInfo]:
        """See `ObjectStore`."""
        infos = []
        for entry in self._entries(prefix):
            # It may have been deleted since it was listed.
            with contextlib.suppress(ObjectNotFoundError), _StorageErrors("look up", entry.path):
                found = entry.stat()
                infos.append(ObjectInfo(entry.path, found.st_size, found.st_mtime))
        return sorted(infos, key=lambda info: info.path)

    def list_names(self, prefix: str) -> list[str]:
        """See `ObjectStore`."""
        with contextlib.suppress(ObjectNotFoundError), _StorageErrors("list", prefix), os.scandir(prefix) as found:
            return [entry.name for entry in found if not entry.is_dir()]
        return []

    def list_directories(self, prefix: str) -> list[str]:
        """See `ObjectStore`; symbolic links to directories are included."""
        missing = (ObjectNotFoundError, NotADirectoryError)
        with contextlib.suppress(*missing), _StorageErrors("list", prefix), os.scandir(prefix) as found:
            return [entry.name for entry in found if entry.is_dir()]
        return []

    def list_first(self, prefix: str) -> FirstNames:
        """See `ObjectStore`."""
        return FirstNames(self.list_names(prefix), True)

    def list_tree(self, prefix: str) -> Iterator[ObjectInfo]:
        """See `ObjectStore`."""
        pending = [prefix]
        while pending:
            for entry in self._tree_entries(pending.pop()):
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                    continue
                # It may have been deleted since it was listed.
                with contextlib.suppress(ObjectNotFoundError), _StorageErrors("look up", entry.path):
                    status = entry.stat(follow_symlinks=False)
                    yield ObjectInfo(entry.path, status.st_size, status.st_mtime)

    def size(self, path: str) -> int:
        """See `ObjectStore`."""
        with _StorageErrors("look up", path):
            return os.stat(path).st_size

    def sizes(self, paths: Sequence[str]) -> list[int | None]:
        """See `ObjectStore`."""
        return [find_size(self, path) for path in paths]

    def delete(self, path: str) -> None:
        """See `ObjectStore`."""
        with contextlib.suppress(ObjectNotFoundError), _StorageErrors("delete", path):
            os.unlink(path)

    def delete_all(self, paths: Sequence[str]) -> list[str]:
        """See `ObjectStore`."""
        failed = []
        for path in paths:
            try:
                self.delete(path)
            except StorageError:
                failed.append(path)
        return failed

    def delete_exact(self, path: str, data: bytes) -> bool:
        """See `ObjectStore`.

        The file is set aside before it is looked at for good: no other can take its place in between.
        """
        if not self._holds(path, data):
            return False
        aside = _temporary_name(path)
        try:
            with _StorageErrors("delete", path):
                os.rename(path, aside)
        except ObjectNotFoundError:
            return False
        try:
            is_exact = self._holds(aside, data)
            if is_exact:
                self.delete(aside)
        except StorageError:
            self._put_back(aside, path)
            raise
        if not is_exact:
            self._put_back(aside, path)
        return is_exact

    def check_writable(self, path: str) -> None:
        """See `ObjectStore`."""
        existing = path
        with _StorageErrors("write in", path):
            while not os.path.lexists(existing):
                existing = os.path.dirname(existing)
            if not stat.S_ISDIR(os.stat(existing).st_mode):
                raise NotADirectoryError(errno.ENOTDIR, "Not a directory", existing)
            if not os.access(existing, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, "Permission denied", existing)

    def absent_directories(self, path: str) -> tuple[str, ...]:
        """See `DirectoryStore`."""
        absent = []
        while not os.path.lexists(path):
            absent.append(path)
            path = os.path.dirname(path)
        return tuple(absent)

    def remove_if_empty(self, directories: Iterable[str]) -> None:
        """See `DirectoryStore`."""
        for directory in directories:
            with contextlib.suppress(OSError):  # Not empty or not there, which is as it should be.
                os.rmdir(directory)

    def remove_empty_tree(self, directory: str) -> None:
        """See `DirectoryStore`."""
        for path, _, _ in os.walk(directory, topdown=False):
            self.remove_if_empty([path])

    def make_directory(self, path: str) -> None:
        """See `DirectoryStore`."""
        with _StorageErrors("create", path):
            os.makedirs(path, exist_ok=True)

    def remove_directory(self, path: str) -> None:
        """See `DirectoryStore`."""
        with _StorageErrors("remove", path):
            os.rmdir(path)

    def rename_directory(self, path: str, to: str) -> None:
        """See `DirectoryStore`."""
        with _StorageErrors("rename", path):
            os.rename(path, to)

    def is_link(self, path: str) -> bool:
        """See `DirectoryStore`."""
        return os.path.islink(path)  # noqa: PTH114

    def _put_back(self, aside: str, path: str) -> None:
        with contextlib.suppress(ObjectExistsError), _StorageErrors("put back", path):
            os.link(aside, path, follow_symlinks=False)
        self.delete(aside)

    def _holds(self, path: str, data: bytes) -> bool:
        """Return whether there is a file of this content."""
        try:
            return self.size(path) == len(data) and self.read(path, len(data)) == data
        except (ObjectNotFoundError, CorruptFileError):  # It was deleted or replaced in between.
            return False

    def _tree_entries(self, directory: str) -> list[os.DirEntry[str]]:
        """Return files and directories; all at once, since a directory must not stay open while a caller works."""
        with (
            contextlib.suppress(ObjectNotFoundError),
            _StorageErrors("list", directory),
            os.scandir(directory) as found,
        ):
            return list(found)
        return []

    def _entries(self, directory: str) -> Iterator[os.DirEntry[str]]:
        with (
            contextlib.suppress(ObjectNotFoundError),
            _StorageErrors("list", directory),
            os.scandir(directory) as found,
        ):
            for entry in found:
                if not entry.is_dir():
                    yield entry


class LocalReader:
    """A `RangeReader` of a file."""

    def __init__(self, path: str) -> None:
        self._path = path
        with _StorageErrors("open", path):
            self._descriptor = os.open(path, _READ)
        try:
            with _StorageErrors("open", path):
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
        check_ranges(self, ranges)
        with _StorageErrors("read", self._path):
            return [self._read(wanted) for wanted in ranges]

    def close(self) -> None:
        """See `RangeReader`."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        if getattr(self, "_descriptor", -1) >= 0:
            self.close()

    def _read(self, wanted: ByteRange) -> bytes:
        pieces = []
        position = wanted.offset
        while position < wanted.end:
            piece = os.pread(self._descriptor, min(wanted.end - position, _MAX_IO_BYTES), position)
            if not piece:
                raise CorruptFileError("the file became shorter while it was read", path=self._path, offset=position)
            pieces.append(piece)
            position += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class LocalWriter:
    """A `RangeWriter` of a file.

    Parameters
    ----------
    path : str
    replace : bool
        Whether an existing file of that name may be replaced.
    durable : bool
        Whether it is synced to the disk.
    """

    def __init__(self, path: str, *, replace: bool = True, durable: bool = True) -> None:
        self._path = path
        self._replace = replace
        self._durable = durable
        self._position = 0
        self._descriptor = -1
        self._temporary = _temporary_name(path)
        try:
            with _StorageErrors("create", path):
                self._descriptor = _create(self._temporary)
        except StorageError:
            self.abort()  # It may be there all the same.
            raise

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
        rest = memoryview(data).cast("B")
        with _StorageErrors("write", self._path):
            while rest:
                written = os.write(self._descriptor, rest[:_MAX_IO_BYTES])
                self._position += written
                rest = rest[written:]

    def close(self) -> None:
        """See `RangeWriter`."""
        if self._descriptor < 0:
            return
        with _StorageErrors("write", self._path):
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
            os.replace(self._temporary, self._path)
            return
        os.link(self._temporary, self._path, follow_symlinks=False)
        os.unlink(self._temporary)

    def _close_descriptor(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)


def _temporary_name(path: str) -> str:
    """Return an unpredictable name in the same directory, whose pattern a cleanup recognises."""
    return os.path.join(os.path.dirname(path), f".tmp_{os.path.basename(path)}_{uuid.uuid4().hex}")


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


class _StorageErrors:
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
    if isinstance(error, FileNotFoundError):
        return ObjectNotFoundError(f"cannot {action} {path}: there is no such file")
    if isinstance(error, FileExistsError):
        return ObjectExistsError(f"cannot {action} {path}: it exists already")
    if isinstance(error, ValueError):  # An embedded null character.
        return StorageError(f"cannot {action} {path!r}: {error}")
    remedy = _REMEDIES.get(error.errno or 0)
    what = error.strerror or str(error)
    return StorageError(f"cannot {action} {path}: {what}{f'; {remedy}' if remedy else ''}")
