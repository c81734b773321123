"""Several buckets as one store, for tables that have files in other buckets than their own.

A path in a store of a cloud begins with its bucket, which so decides where an object is read. Nothing is written or
deleted outside of the table's own bucket.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Sequence

from lance_format.byte_io import RangeReader, RangeWriter
from lance_format.object_store.store import FirstNames, ObjectInfo, ObjectStore


class Buckets:
    """An `ObjectStore` of one bucket, in which objects of others can be read.

    Parameters
    ----------
    own : ObjectStore
    others : collection of str
        The beginnings of their paths, without a final slash.
    open_other : callable
        Returns the store of such a beginning. It is called when an object is first read there.
    """

    def __init__(self, own: ObjectStore, others: Collection[str], open_other: Callable[[str], ObjectStore]) -> None:
        self._own = own
        self._others = others
        self._open_other = functools.cache(open_other)
        self.atomic_put_if_absent = own.atomic_put_if_absent
        self.is_remote = own.is_remote
        self.parallel_requests = own.parallel_requests
        self.needs_hint = own.needs_hint

    def _of(self, path: str) -> ObjectStore:
        found = next((prefix for prefix in self._others if path == prefix or path.startswith(f"{prefix}/")), None)
        return self._own if found is None else self._open_other(found)

    def open_reader(self, path: str, size_bytes: int | None = None) -> RangeReader:
        """See `ObjectStore`."""
        return self._of(path).open_reader(path, size_bytes)

    def read(self, path: str, max_bytes: int, tag: str | None = None) -> bytes:
        """See `ObjectStore`."""
        return self._of(path).read(path, max_bytes, tag)

    def list_objects(self, prefix: str) -> list[ObjectInfo]:
        """See `ObjectStore`."""
        return self._of(prefix).list_objects(prefix)

    def list_names(self, prefix: str) -> list[str]:
        """See `ObjectStore`."""
        return self._of(prefix).list_names(prefix)

    def list_directories(self, prefix: str) -> list[str]:
        """See `ObjectStore`."""
        return self._of(prefix).list_directories(prefix)

    def list_first(self, prefix: str) -> FirstNames:
        """See `ObjectStore`."""
        return self._of(prefix).list_first(prefix)

    def list_tree(self, prefix: str) -> Iterator[ObjectInfo]:
        """See `ObjectStore`."""
        return self._of(prefix).list_tree(prefix)

    def size(self, path: str) -> int:
        """See `ObjectStore`."""
        return self._of(path).size(path)

    def sizes(self, paths: Sequence[str]) -> list[int | None]:
        """See `ObjectStore`; each bucket is asked once."""
        by_store: dict[int, tuple[ObjectStore, list[int]]] = {}
        for position, path in enumerate(paths):
            store = self._of(path)
            by_store.setdefault(id(store), (store, []))[1].append(position)
        found: list[int | None] = [None] * len(paths)
        for store, positions in by_store.values():
            for position, size in zip(positions, store.sizes([paths[each] for each in positions]), strict=True):
                found[position] = size
        return found

    def open_writer(self, path: str) -> RangeWriter:
        """See `ObjectStore`."""
        return self._own.open_writer(path)

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """See `ObjectStore`."""
        self._own.put(path, data, durable=durable)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """See `ObjectStore`."""
        self._own.put_if_absent(path, data)

    def delete(self, path: str) -> None:
        """See `ObjectStore`."""
        self._own.delete(path)

    def delete_all(self, paths: Sequence[str]) -> list[str]:
        """See `ObjectStore`."""
        return self._own.delete_all(paths)

    def delete_exact(self, path: str, data: bytes) -> bool:
        """See `ObjectStore`."""
        return self._own.delete_exact(path, data)

    def check_writable(self, path: str) -> None:
        """See `ObjectStore`."""
        self._own.check_writable(path)
