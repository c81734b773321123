"""Protocol that every object store implements for the table layer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Protocol, runtime_checkable

from lance_format.byte_io import ByteRange, RangeReader, RangeWriter
from lance_format.errors import CorruptFileError, StorageError
from lance_format.lazy_dataclasses import dataclass

ALLOWED_BASE_PATHS = "allowed_base_paths"
"""An option of tables among those of their storage, which stores ignore; see `lance_format.table.format.base_paths`."""


class ObjectNotFoundError(StorageError, FileNotFoundError):
    """The object does not exist. No other error means absence."""


class ObjectExistsError(StorageError, FileExistsError):
    """The object already exists, and must not be replaced."""


class RefusedError(StorageError):
    """The store has refused the request, and has not carried it out."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object of a listing.

    Parameters
    ----------
    path : str
    size_bytes : int
    modified : float
        Seconds since the epoch, UTC.
    """

    path: str
    size_bytes: int
    modified: float


@dataclass(frozen=True, slots=True)
class FirstNames:
    """The beginning of a listing.

    Parameters
    ----------
    names : sequence of str
        The lowest names of a directory, in any order.
    is_complete : bool
        Whether the directory has no others.
    tags : mapping of str to str
        The entity tags of some of them, for `ObjectStore.read`. Another content has another tag.
    """

    names: Sequence[str]
    is_complete: bool
    tags: Mapping[str, str] = field(default_factory=dict)


class ReadableStore(Protocol):
    """Storage that hands out objects for reading; see `ObjectStore`."""

    def open_reader(self, path: str, size_bytes: int | None = None) -> RangeReader:
        """Open an object for reading.

        Parameters
        ----------
        path : str
        size_bytes : int, optional
            The size the object is known to have; saves a request where asking costs one.

        Raises
        ------
        ObjectNotFoundError
        CorruptFileError
            If the object is found to have another size; by the first read at the latest, which also raises
            `ObjectNotFoundError` if the size is given.
        """


class ObjectStore(ReadableStore, Protocol):
    """A storage of immutable objects under `/`-separated paths. Safe to use from several threads.

    A directory is the common prefix of some paths. A storage with real directories implements `DirectoryStore` too.
    Every method raises `StorageError` if the storage refuses or fails, with a message that names the path.
    """

    @property
    def atomic_put_if_absent(self) -> bool:
        """True if exactly one of several concurrent `put_if_absent` of one path succeeds."""

    @property
    def is_remote(self) -> bool:
        """True if a request takes as long as reading some MiB, so that two of them are worth a thread."""

    @property
    def parallel_requests(self) -> int:
        """Maximum number of concurrent requests that gain time; see `run_together`."""

    @property
    def needs_hint(self) -> bool:
        """True if listings have no order, so that a file that names the latest version helps some readers."""

    def open_writer(self, path: str) -> RangeWriter:
        """Start an object, which exists from the writer's `close` on; parents are made as needed."""

    def read(self, path: str, max_bytes: int, tag: str | None = None) -> bytes:
        """Read a whole object.

        Parameters
        ----------
        path : str
        max_bytes : int
        tag : str, optional
            The entity tag that a listing has of it. A store may answer by what this process has read or written under
            the tag before.

        Raises
        ------
        ObjectNotFoundError
        CorruptFileError
            If it is larger than `max_bytes`.
        """

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Create or replace an object; readers see the old or the new one, never a mixture.

        Parameters
        ----------
        path : str
        data : bytes
        durable : bool
            Whether the object must survive a failure of the machine. Otherwise its content is undefined after one, and
            readers may find none while it is replaced.
        """

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create an object, durably.

        Raises
        ------
        ObjectExistsError
            If there is one, which may be this very call's: a lost reply is answered by trying again.
        """

    def list_objects(self, prefix: str) -> list[ObjectInfo]:
        """Return the objects directly in a directory, by name; none if there is no such directory."""

    def list_names(self, prefix: str) -> list[str]:
        """Return the names of what `list_objects` finds, in any order: cheaper where sizes cost a request each."""

    def list_directories(self, prefix: str) -> list[str]:
        """Return the names of the directories directly in a directory, in any order."""

    def list_first(self, prefix: str) -> FirstNames:
        """Return the lowest names of the objects that `list_objects` finds, at most those of one request."""

    def list_tree(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield all objects below a directory at any depth, in any order; none if there is no such directory.

        Objects that are created or deleted concurrently may or may not be included. Symbolic links are not followed.
        """

    def size(self, path: str) -> int:
        """Return the size of an object in bytes.

        Raises
        ------
        ObjectNotFoundError
        """

    def sizes(self, paths: Sequence[str]) -> list[int | None]:
        """Return the sizes of objects in bytes, None for those that are absent."""

    def delete(self, path: str) -> None:
        """Delete an object; harmless if there is none."""

    def delete_all(self, paths: Sequence[str]) -> list[str]:
        """Delete objects with as few requests as possible, and return the paths of those that could not be deleted.

        It raises no `StorageError`. A storage that does not answer is not asked for each of them.
        """

    def delete_exact(self, path: str, data: bytes) -> bool:
        """Delete an object if it has this content; return whether it had. Objects of other writers are kept."""

    def check_writable(self, path: str) -> None:
        """Raise `StorageError` if objects plainly cannot be created in this directory; leaves nothing.

        Raises
        ------
        NotSupportedError
            If the storage cannot create an object only if it is absent.
        """


@runtime_checkable
class DirectoryStore(Protocol):
    """A storage with directories: a file system, and no object store."""

    def absent_directories(self, path: str) -> tuple[str, ...]:
        """Return the missing directories among this one and its ancestors, innermost first."""

    def remove_if_empty(self, directories: Iterable[str]) -> None:
        """Remove those of the directories, in order, that exist and are empty."""

    def remove_empty_tree(self, directory: str) -> None:
        """Remove the empty directories among this one and those below it, innermost first."""

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents; harmless if it exists."""

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""

    def rename_directory(self, path: str, to: str) -> None:
        """Give a directory another path, at once."""

    def is_link(self, path: str) -> bool:
        """Return whether a path is a symbolic link."""


def check_ranges(reader: RangeReader, ranges: Sequence[ByteRange]) -> None:
    """Refuse ranges that are not within an object.

    Raises
    ------
    CorruptFileError
        If a range is outside: its reference is wrong.
    """
    for wanted in ranges:
        if wanted.offset < 0 or wanted.size < 0 or wanted.end > reader.size_bytes:
            raise CorruptFileError(
                f"bytes {wanted.offset} to {wanted.end} are named, but the file has {reader.size_bytes}",
                path=reader.path,
                offset=wanted.offset,
            )


def absent_directories(store: ObjectStore, path: str) -> tuple[str, ...]:
    """Return the missing directories among this one and its ancestors; empty if the storage has no directories."""
    return store.absent_directories(path) if isinstance(store, DirectoryStore) else ()


def remove_if_empty(store: ObjectStore, directories: Iterable[str]) -> None:
    """Remove those of the directories, in order, that exist and are empty."""
    if isinstance(store, DirectoryStore):
        store.remove_if_empty(directories)


def remove_empty_tree(store: ObjectStore, directory: str) -> None:
    """Remove the empty directories among this one and those below it, innermost first."""
    if isinstance(store, DirectoryStore):
        store.remove_empty_tree(directory)


def find_size(store: ObjectStore, path: str) -> int | None:
    """Return the size of an object in bytes; None if there is none."""
    try:
        return store.size(path)
    except ObjectNotFoundError:
        return None


def delete_objects(store: ObjectStore, paths: Sequence[str]) -> None:
    """Delete objects, all of them unless `StorageError` is raised; harmless where there is none."""
    for path in store.delete_all(paths):
        store.delete(path)  # Its error says why.
