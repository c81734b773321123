"""A cache of what was used last, for the driver, whose threads plan queries at the same time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Entry = TypeVar("Entry")

_OWN_BYTES = 4096
"""Assumed size of what is around an entry."""


class LruCache(Generic[Key, Entry]):
    """Entries by keys, of which those that were used least recently go first. It is thread-safe.

    Parameters
    ----------
    capacity_bytes : int
        Total size of all entries.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity_bytes = capacity_bytes
        self._lock = Lock()
        self._held: OrderedDict[Key, tuple[Entry, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Key) -> tuple[Entry] | None:
        """Return an entry, which may be None itself, in a tuple; None if there is none."""
        with self._lock:
            if key not in self._held:
                return None
            self._held.move_to_end(key)
            return self._held[key][:1]

    def put(self, key: Key, entry: Entry, size_bytes: int) -> None:
        """Keep an entry that is never modified, instead of one of the same key.

        Parameters
        ----------
        key : Key
        entry : Entry
        size_bytes : int
            Of the key and the entry. Those larger than the cache are not kept.
        """
        size_bytes += _OWN_BYTES
        with self._lock:
            _, freed = self._held.pop(key, (None, 0))
            self._bytes -= freed
            if size_bytes > self._capacity_bytes:
                return
            self._held[key] = entry, size_bytes
            self._bytes += size_bytes
            while self._bytes > self._capacity_bytes:
                _, (_, freed) = self._held.popitem(last=False)
                self._bytes -= freed
