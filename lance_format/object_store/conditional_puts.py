"""Proof that an object store heeds the condition of a put; commits rely on it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from typing import Protocol

from lance_format.errors import NotSupportedError
from lance_format.object_store.store import ObjectExistsError


class ConditionalStore(Protocol):
    """A store, as the proof uses it."""

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Create or replace an object; see `ObjectStore.put`."""

    def create(self, path: str, data: bytes) -> None:
        """Create an object by a conditional put."""

    def delete_all(self, paths: Sequence[str]) -> list[str]:
        """Delete objects, and return the paths of those that could not be deleted."""


class ConditionalPuts:
    """Proof, once, that a store heeds the condition of a put.

    A store that ignores it would let two writers replace each other's versions. It is asked to create an object that
    exists, under a name that no other writer uses.

    Parameters
    ----------
    store : ConditionalStore
    is_known : bool
        Whether the store is known to heed it.
    """

    def __init__(self, store: ConditionalStore, *, is_known: bool) -> None:
        self._store = store
        self._is_known = is_known
        self._lock = threading.Lock()

    def check(self, directory: str) -> None:
        """Raise `NotSupportedError` if the store ignores the condition; leave no object in the directory."""
        if self._is_known:
            return
        with self._lock:
            if self._is_known:
                return
            path = f"{directory}/.tmp_probe_{uuid.uuid4().hex}"
            try:
                self._store.put(path, b"probe")
                self._probe(path)
            finally:
                self._store.delete_all([path])
            self._is_known = True

    def _probe(self, path: str) -> None:
        try:
            self._store.create(path, b"other")  # With the same content, a lost reply would look like success.
        except ObjectExistsError:
            return
        raise NotSupportedError(
            f"{self._store!r} ignores the condition If-None-Match of a put, so that two writers would replace each"
            " other's versions; nothing was written. Use a release of the store that supports conditional puts, or"
            " another store; reading works"
        )
