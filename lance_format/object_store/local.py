"""The local file system.

Paths are those of files; `local_files` reads and writes them.
"""

# ruff: noqa: PTH103, PTH104, PTH106, PTH108, PTH116, PTH120
# Paths are strings here, as in every store; descriptors and their flags have no counterpart in pathlib.

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import os
import stat
from collections.abc import Iterable, Iterator, Sequence

from lance_format.byte_io import ByteRange
from lance_format.errors import CorruptFileError, StorageError
from lance_format.object_store.local_files import FileErrors, LocalReader, LocalWriter, temporary_name
from lance_format.object_store.store import FirstNames, ObjectExistsError, ObjectInfo, ObjectNotFoundError, find_size
from lance_format.object_store.together import run_together

_PARALLEL_REQUESTS = 8
"""A file system writes the journal once for syncs that come together, and frees the room of several files at once."""


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
        return _PARALLEL_REQUESTS

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
        _write_whole(LocalWriter(path, durable=durable), data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """See `ObjectStore`."""
        _write_whole(LocalWriter(path, replace=False), data)

    def list_objects(self, prefix: str) -> list[ObjectInfo]:
        """See `ObjectStore`."""
        infos = []
        for entry in self._entries(prefix):
            # It may have been deleted since it was listed.
            with contextlib.suppress(ObjectNotFoundError), FileErrors("look up", entry.path):
                found = entry.stat()
                infos.append(ObjectInfo(entry.path, found.st_size, found.st_mtime))
        return sorted(infos, key=lambda info: info.path)

    def list_names(self, prefix: str) -> list[str]:
        """See `ObjectStore`."""
        with contextlib.suppress(ObjectNotFoundError), FileErrors("list", prefix), os.scandir(prefix) as found:
            return [entry.name for entry in found if not entry.is_dir()]
        return []

    def list_directories(self, prefix: str) -> list[str]:
        """See `ObjectStore`; symbolic links to directories are included."""
        missing = (ObjectNotFoundError, NotADirectoryError)
        with contextlib.suppress(*missing), FileErrors("list", prefix), os.scandir(prefix) as found:
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
                with contextlib.suppress(ObjectNotFoundError), FileErrors("look up", entry.path):
                    status = entry.stat(follow_symlinks=False)
                    yield ObjectInfo(entry.path, status.st_size, status.st_mtime)

    def size(self, path: str) -> int:
        """See `ObjectStore`."""
        with FileErrors("look up", path):
            return os.stat(path).st_size

    def sizes(self, paths: Sequence[str]) -> list[int | None]:
        """See `ObjectStore`."""
        return [find_size(self, path) for path in paths]

    def delete(self, path: str) -> None:
        """See `ObjectStore`."""
        with contextlib.suppress(ObjectNotFoundError), FileErrors("delete", path):
            os.unlink(path)

    def delete_all(self, paths: Sequence[str]) -> list[str]:
        """See `ObjectStore`."""

        def is_left(path: str) -> bool:
            try:
                self.delete(path)
            except StorageError:
                return True
            return False

        failed = run_together(self, [functools.partial(is_left, path) for path in paths])
        return list(itertools.compress(paths, failed))

    def delete_exact(self, path: str, data: bytes) -> bool:
        """See `ObjectStore`.

        The file is set aside before it is looked at for good: no other can take its place in between.
        """
        if not self._holds(path, data):
            return False
        aside = temporary_name(path)
        try:
            with FileErrors("delete", path):
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
        with FileErrors("write in", path):
            while not os.path.lexists(existing):
                existing = os.path.dirname(existing)
            if not stat.S_ISDIR(os.stat(existing).st_mode):
                raise NotADirectoryError(errno.ENOTDIR, "Not a directory", existing)
            if not os.access(existing, os.W_OK | os.X_OK):
                code = errno.EROFS if os.statvfs(existing).f_flag & os.ST_RDONLY else errno.EACCES
                raise OSError(code, os.strerror(code), existing)

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
        with FileErrors("create", path):
            os.makedirs(path, exist_ok=True)

    def remove_directory(self, path: str) -> None:
        """See `DirectoryStore`."""
        with FileErrors("remove", path):
            os.rmdir(path)

    def rename_directory(self, path: str, to: str) -> None:
        """See `DirectoryStore`."""
        with FileErrors("rename", path):
            os.rename(path, to)

    def is_link(self, path: str) -> bool:
        """See `DirectoryStore`."""
        return os.path.islink(path)  # noqa: PTH114

    def _put_back(self, aside: str, path: str) -> None:
        with contextlib.suppress(ObjectExistsError), FileErrors("put back", path):
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
            FileErrors("list", directory),
            os.scandir(directory) as found,
        ):
            return list(found)
        return []

    def _entries(self, directory: str) -> Iterator[os.DirEntry[str]]:
        with (
            contextlib.suppress(ObjectNotFoundError),
            FileErrors("list", directory),
            os.scandir(directory) as found,
        ):
            for entry in found:
                if not entry.is_dir():
                    yield entry


def _write_whole(writer: LocalWriter, data: bytes) -> None:
    try:
        writer.write(data)
        writer.close()
    except BaseException:  # Also an interrupt, between closing the file and giving it its name.
        writer.abort()
        raise
