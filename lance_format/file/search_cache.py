"""Cache of what random access needs repeatedly: ends of files, metadata of columns, chunk tables, dictionaries.

Encoding strategy document, "Search Cache". One cache serves all files of a table, and all readers of them; a file that
is opened by itself has one to itself. That lets a table that is asked for a few rows time and again find where they are
without reading a footer, however short-lived the readers of its files are, and it cannot show stale bytes: no writer
ever gives a data file of a table the name of another.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeAlias

from lance_format.errors import InvalidInputError

DEFAULT_CACHE_BYTES = 64 * 1024 * 1024
"""How much a cache holds by default: the chunk tables of some 8 GB of plain numbers."""

_ENTRY_BYTES = 512

Key: TypeAlias = tuple[Hashable, ...]


class SearchCache:
    """Keeps what was used last, up to a number of bytes. Safe to use from several threads.

    Parameters
    ----------
    capacity_bytes : int
        What all entries may take together; 0 keeps nothing. An entry that is larger is not kept.

    Raises
    ------
    InvalidInputError
        If it is no whole number from 0 on.
    """

    def __init__(self, capacity_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        if isinstance(capacity_bytes, bool) or not isinstance(capacity_bytes, int) or capacity_bytes < 0:
            raise InvalidInputError(
                f"metadata_cache_size_bytes is {capacity_bytes!r}; a whole number from 0 on is needed"
            )
        self.capacity_bytes = capacity_bytes
        self._entries: OrderedDict[Key, tuple[object, int]] = OrderedDict()
        self._size_bytes = 0
        self._lock = threading.Lock()
        _CACHES.add(self)

    def __reduce__(self) -> tuple[object, ...]:
        return SearchCache, (self.capacity_bytes,)  # What it holds stays behind.

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size_bytes(self) -> int:
        """Size of the entries."""
        return self._size_bytes

    def clear_after_fork(self) -> None:
        """Start anew in a child process: a thread that the child does not have may have been at work here."""
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
        """Keep an entry, which is never changed, in place of one of that key; those used longest ago make room."""
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


_CACHES: weakref.WeakSet[SearchCache] = weakref.WeakSet()


def _clear_after_fork() -> None:
    for cache in list(_CACHES):
        cache.clear_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_clear_after_fork)


@dataclass(frozen=True, slots=True)
class CacheSlot:
    """The place of one entry; a `PageCache`."""

    cache: SearchCache
    key: Key

    def get(self) -> object | None:
        """See `PageCache`."""
        return self.cache.get(self.key)

    def put(self, found: object, size_bytes: int) -> None:
        """See `PageCache`."""
        self.cache.put(self.key, found, size_bytes)
