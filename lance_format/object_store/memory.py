"""Objects in the memory of this process, under `memory://`: for tests, and for temporary tables.

An object exists until it is deleted, for instance by `LanceDataset.drop`, or the process ends. Other processes, child
processes included, have separate memories.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import field

from lance_format.byte_io import FILE_REQUESTS, ByteRange, RequestShape
from lance_format.errors import CorruptFileError
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store.store import (
    FirstNames,
    ObjectExistsError,
    ObjectInfo,
    ObjectNotFoundError,
    check_ranges,
    find_size,
)

SCHEME = "memory"


@dataclass(frozen=True, slots=True)
class _Object:
    data: bytes
    modified: float = field(default_factory=time.time)


class MemoryStore:
    """Objects in a dictionary. There are no directories: a prefix of paths is all that makes one."""

    def __init__(self) -> None:
        self._objects: dict[str, _Object] = {}
        self._lock = threading.Lock()

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
        return 1

    @property
    def needs_hint(self) -> bool:
        """See `ObjectStore`."""
        return True

    def open_reader(self, path: str, size_bytes: int | None = None) -> MemoryReader:
        """See `ObjectStore`."""
        reader = MemoryReader(path, self._find("open", path).data)
        if size_bytes is not None and size_bytes != reader.size_bytes:
            raise CorruptFileError(f"the object has {reader.size_bytes} bytes instead of {size_bytes}", path=path)
        return reader

    def open_writer(self, path: str) -> MemoryWriter:
        """See `ObjectStore`."""
        return MemoryWriter(self, path)

    def read(self, path: str, max_bytes: int, tag: str | None = None) -> bytes:
        """See `ObjectStore`."""
        del tag
        data = self._find("read", path).data
        if len(data) > max_bytes:
            raise CorruptFileError(f"the object has {len(data)} bytes; at most {max_bytes} are expected", path=path)
        return data

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """See `ObjectStore`; nothing here outlives the process."""
        del durable
        with self._lock:
            self._objects[path] = _Object(bytes(data))

    def put_if_absent(self, path: str, data: bytes) -> None:
        """See `ObjectStore`."""
        with self._lock:
            if path in self._objects:
                raise ObjectExistsError(f"cannot create {path}: it exists already")
            self._objects[path] = _Object(bytes(data))

    def list_objects(self, prefix: str) -> list[ObjectInfo]:
        """See `ObjectStore`."""
        start = len(prefix) + 1
        return sorted((info for info in self.list_tree(prefix) if "/" not in info.path[start:]), key=lambda x: x.path)

    def list_names(self, prefix: str) -> list[str]:
        """See `ObjectStore`."""
        return [info.path[len(prefix) + 1 :] for info in self.list_objects(prefix)]

    def list_directories(self, prefix: str) -> list[str]:
        """See `ObjectStore`."""
        below = (info.path[len(prefix) + 1 :] for info in self.list_tree(prefix))
        return list({path.partition("/")[0] for path in below if "/" in path})

    def list_first(self, prefix: str) -> FirstNames:
        """See `ObjectStore`."""
        return FirstNames(self.list_names(prefix), True)

    def list_tree(self, prefix: str) -> Iterator[ObjectInfo]:
        """See `ObjectStore`."""
        with self._lock:
            found = [(path, content) for path, content in self._objects.items() if path.startswith(f"{prefix}/")]
        return (ObjectInfo(path, len(content.data), content.modified) for path, content in found)

    def size(self, path: str) -> int:
        """See `ObjectStore`."""
        return len(self._find("look up", path).data)

    def sizes(self, paths: Sequence[str]) -> list[int | None]:
        """See `ObjectStore`."""
        return [find_size(self, path) for path in paths]

    def delete(self, path: str) -> None:
        """See `ObjectStore`."""
        with self._lock:
            self._objects.pop(path, None)

    def delete_all(self, paths: Sequence[str]) -> list[str]:
        """See `ObjectStore`."""
        for path in paths:
            self.delete(path)
        return []

    def delete_exact(self, path: str, data: bytes) -> bool:
        """See `ObjectStore`."""
        with self._lock:
            found = self._objects.get(path)
            if found is None or found.data != data:
                return False
            del self._objects[path]
            return True

    def check_writable(self, path: str) -> None:
        """See `ObjectStore`; memory is."""

    def _find(self, action: str, path: str) -> _Object:
        with self._lock:
            found = self._objects.get(path)
        if found is None:
            raise ObjectNotFoundError(f"cannot {action} {path}: there is no such object in the memory of this process")
        return found


class MemoryReader:
    """A `RangeReader` of bytes."""

    def __init__(self, path: str, data: bytes) -> None:
        self._path = path
        self._data = data

    @property
    def path(self) -> str:
        """See `RangeReader`."""
        return self._path

    @property
    def size_bytes(self) -> int:
        """See `RangeReader`."""
        return len(self._data)

    @property
    def request_shape(self) -> RequestShape:
        """See `RangeReader`."""
        return FILE_REQUESTS

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """See `RangeReader`."""
        check_ranges(self, ranges)
        return [self._data[wanted.offset : wanted.end] for wanted in ranges]

    def close(self) -> None:
        """See `RangeReader`."""


class MemoryWriter:
    """A `RangeWriter` of bytes, which become an object when it is closed."""

    def __init__(self, store: MemoryStore, path: str) -> None:
        self._store = store
        self._path = path
        self._pieces: list[bytes] = []
        self._position = 0
        self._open = True

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
        self._pieces.append(bytes(data))
        self._position += len(self._pieces[-1])

    def close(self) -> None:
        """See `RangeWriter`."""
        if self._open:
            self._open = False
            self._store.put(self._path, b"".join(self._pieces))
            self._pieces.clear()

    def abort(self) -> None:
        """See `RangeWriter`."""
        self._open = False
        self._pieces.clear()
