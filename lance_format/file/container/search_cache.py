"""Cache for random access: ends of files, metadata of columns, chunk tables, dictionaries.

Encoding strategy document, "Search Cache". One cache serves all files of a table and all their readers; a file opened
alone has its own. Repeated reads of a few rows locate them without reading a footer, even with short-lived readers. The
cache cannot return stale bytes: no writer ever reuses the name of a data file of a table.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeAlias

from lance_format.errors import InvalidInputError
from lance_format.lazy_dataclasses import dataclass

DEFAULT_CACHE_BYTES = 64 * 1024 * 1024
"""Default size of a cache: it holds the chunk tables of some 8 GB of plain numbers."""

INDEX_SHARE = 4
"""Default size of a cache for indices, as a multiple of the other: it holds the codes of some 3,000,000 vectors."""

_ENTRY_BYTES = 512

Key: TypeAlias = tuple[Hashable, ...]


class SearchCache:
    """A least-recently-used cache with a limit in bytes. It is thread-safe.

    Parameters
    ----------
    capacity_bytes : int
        Total size of all entries; 0 disables the cache. Larger entries are not kept.
    index_bytes : int, optional
        Capacity of a cache for what is read of indices; by default that is kept in this one.

    Attributes
    ----------
    of_indices : SearchCache
        The cache for what is read of indices.

    Raises
    ------
    InvalidInputError
        If a capacity is not a whole number from 0 on.
    """

    def __init__(self, capacity_bytes: int = DEFAULT_CACHE_BYTES, index_bytes: int | None = None) -> None:
        _check_size("metadata_cache_size_bytes", capacity_bytes)
        if index_bytes is not None:
            _check_size("index_cache_size_bytes", index_bytes)
        self.capacity_bytes = capacity_bytes
        self.of_indices = self if index_bytes is None else SearchCache(index_bytes)
        self._entries: OrderedDict[Key, tuple[object, int]] = OrderedDict()
        self._size_bytes = 0
        self._lock = threading.Lock()
        _CACHES.add(self)

    def __reduce__(self) -> tuple[object, ...]:
        sizes = [cache.capacity_bytes for cache in dict.fromkeys((self, self.of_indices))]
        return SearchCache, tuple(sizes)  # Its content is not pickled.

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size_bytes(self) -> int:
        """Size of the entries."""
        return self._size_bytes

    def clear_after_fork(self) -> None:
        """Reset the cache in a child process: a thread that the child lacks may have been changing it."""
        self._lock = threading.Lock()
        self._entries = OrderedDict()
        self._size_bytes = 0

    def get(self, key: Key) -> object | None:
        """Return an entry, which becomes the last used, or None."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def put(self, key: Key, entry: object, size_bytes: int) -> None:
        """Store an entry, replacing one of the same key; the least recently used entries are evicted.

        Parameters
        ----------
        key : Key
        entry : object
            Never modified.
        size_bytes : int
        """
        size_bytes += _ENTRY_BYTES
        with self._lock:
            _, freed = self._entries.pop(key, (None, 0))
            self._size_bytes -= freed
            if size_bytes > self.capacity_bytes:
                return
            self._entries[key] = entry, size_bytes
            self._size_bytes += size_bytes
            while self._size_bytes > self.capacity_bytes:
                _, (_, freed) = self._entries.popitem(last=False)
                self._size_bytes -= freed


def _check_size(name: str, size: int) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise InvalidInputError(f"{name} is {size!r}; a whole number from 0 on is needed")


_CACHES: weakref.WeakSet[SearchCache] = weakref.WeakSet()


def _clear_after_fork() -> None:
    for cache in list(_CACHES):
        cache.clear_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_clear_after_fork)


@dataclass(frozen=True, slots=True)
class CacheSlot:
    """The slot of one entry; a `PageCache`."""

    cache: SearchCache
    key: Key

    def get(self) -> object | None:
        """See `PageCache`."""
        return self.cache.get(self.key)

    def put(self, found: object, size_bytes: int) -> None:
        """See `PageCache`."""
        self.cache.put(self.key, found, size_bytes)
