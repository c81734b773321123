"""`VersionWatch`: the latest version of a branch, looked up again and again at a cost that does not grow."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

from lance_format.object_store.store import find_size
from lance_format.table.format.layout import ManifestNaming
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.versions.history import History, load_history

_LISTED_FOR_SECONDS = 10.0


class VersionWatch:
    """Looks up the latest version of a branch.

    Object stores list the latest version first, in one request. Elsewhere, and for names of scheme V1, a look-up asks
    whether the version after the latest is there, and lists all names if it is. It also lists them every ten seconds.
    Only a listing notices versions after one that a cleanup has removed, or another table at the same path.

    Parameters
    ----------
    directory : TableDirectory
    clock : callable, optional
        Returns seconds that never go backwards.
    """

    def __init__(self, directory: TableDirectory, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._clock = clock
        self._known: History | None = None
        self._listed_at = 0.0

    def look_up(self) -> int:
        """Look up the latest version; 0 if there is no table."""
        now = self._clock()
        if self._known is None or not self._is_current(self._known, now):
            self._known, self._listed_at = load_history(self._directory), now
        return self._known.latest

    @property
    def latest(self) -> int:
        """The latest version at the last look-up, or at the first one, which is made now."""
        return self.look_up() if self._known is None else self._known.latest

    @property
    def evidence(self) -> Hashable:
        """A value that stays the same as long as no look-up may have found other versions, or another table."""
        if self._known is None:
            return None
        path = self._known.manifest_path(self._known.latest)
        return self._known.latest, self._known.tags.get(path.rpartition("/")[2], self._listed_at)

    def _is_current(self, known: History, now: float) -> bool:
        """Return whether a listing is young, and the next version is not there yet."""
        if not known.latest or now - self._listed_at >= _LISTED_FOR_SECONDS:
            return False
        store = self._directory.store
        if store.is_remote and known.names.naming is ManifestNaming.V2:
            return False
        return find_size(store, known.manifest_path(known.latest + 1)) is None
