"""Namespaces that a catalog of tables of any format keeps: its databases, some of whose entries are Lance tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from lance_format.arguments import checked_methods
from lance_format.errors import InvalidInputError, NotSupportedError, StorageError
from lance_format.lazy_dataclasses import dataclass
from lance_format.namespaces.contents import NamespaceListing, TablePlace
from lance_format.namespaces.namespace import Namespace, shown
from lance_format.object_store import absolute_uri, resolve
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.maintenance.drop_table import drop_table

SUFFIX = ".lance"
"""End of the places of tables that are chosen by their names."""

LANCE = "lance"


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a database.

    Parameters
    ----------
    name : str
    kind : str
        The format of the table, `lance` in any case.
    location : str or None
    stored : object
        The entry as the catalog has it.
    """

    name: str
    kind: str
    location: str | None
    stored: Any = field(repr=False)

    @property
    def is_ours(self) -> bool:
        """True for a Lance table."""
        return self.kind.lower() == LANCE


@checked_methods
class EntryNamespace(Namespace):
    """Databases and their entries; see `Namespace`. Names have two parts, which are kept in lower case.

    Parameters
    ----------
    keeper : str
        The catalog, for messages.
    storage_options : mapping of str to str, optional
        Options of the storage of the tables.
    """

    def __init__(self, keeper: str, storage_options: Mapping[str, str] | None) -> None:
        self._keeper = keeper
        self._storage = dict(storage_options or {})

    @abstractmethod
    def _databases(self) -> Iterable[str]:
        """Return the names of all databases."""

    @abstractmethod
    def _database(self, name: str) -> Any:
        """Return a database; None if there is none."""

    @abstractmethod
    def _entries(self, database: str) -> list[Entry] | None:
        """Return all entries of a database; None if there is no such database."""

    @abstractmethod
    def _entry(self, database: str, name: str) -> Entry | None:
        """Return an entry; None if there is none."""

    @abstractmethod
    def _delete_entry(self, database: str, name: str, action: str) -> bool:
        """Delete an entry, and leave files where they are; returns whether there was one."""

    @abstractmethod
    def _delete_database(self, name: str, action: str) -> None:
        """Delete a database without entries, and leave files where they are."""

    def listing(self, namespace: Sequence[str] = ()) -> NamespaceListing | None:
        """See `Namespace`. Tables of other formats are left out, and those that are only declared are not."""
        if not namespace:
            return NamespaceListing(tuple(sorted(self._databases())), ())
        entries = self._entries(folded(namespace)[0]) if len(namespace) == 1 else None
        if entries is None:
            return None
        return NamespaceListing((), tuple(sorted(entry.name for entry in entries if entry.is_ours)))

    def exists(self, namespace: Sequence[str]) -> bool:
        """See `Namespace`."""
        return not namespace or self._database_of(namespace) is not None

    def remove(self, namespace: Sequence[str], *, cascade: bool = False) -> bool:
        """See `Namespace`. The files of tables that go as well stay where they are.

        Raises
        ------
        InvalidInputError
            If there are tables of other formats, or views, which would be removed as well.
        """
        action = f"drop the namespace {shown(namespace)}"
        database = folded(namespace)[0] if len(namespace) == 1 else None
        entries = None if database is None else self._entries(database)
        if database is None or entries is None:
            raise StorageError(f"cannot {action}: {self._keeper} has none of this name")
        if entries and not cascade:
            return False
        others = sorted(entry.name for entry in entries if not entry.is_ours)
        if others:
            raise InvalidInputError(
                f"cannot {action}: it has entries that are no Lance tables, such as {others[0]!r}, which would be lost;"
                " nothing was removed"
            )
        for entry in entries:
            self.deregister([database, entry.name])
        self._delete_database(database, action)
        return True

    def find(self, table: Sequence[str]) -> TablePlace | None:
        """See `Namespace`. Tables of other formats cannot be used."""
        entry = self._entry_of(table)
        return None if entry is None else self._place(table, entry)

    def deregister(self, table: Sequence[str]) -> bool:
        """See `Namespace`."""
        return self._take_out(table, "forget") is not None

    def drop(self, table: Sequence[str]) -> bool:
        """See `Namespace`. The name goes first, so that no entry stays for a part of a table."""
        place = self._take_out(table, "drop")
        if place is None:
            return False
        store, path = resolve(place.uri, self._storage)
        drop_table(TableDirectory(store, path), ignore_not_found=True)
        return True

    def _database_of(self, namespace: Sequence[str]) -> Any:
        """Return the database of a name, which may have any number of parts."""
        return self._database(folded(namespace)[0]) if len(namespace) == 1 else None

    def _entry_of(self, table: Sequence[str]) -> Entry | None:
        """Return the entry of a name, which may have any number of parts."""
        return self._entry(*folded(table)) if len(table) == 2 else None

    def _place(self, table: Sequence[str], entry: Entry) -> TablePlace:
        if not entry.is_ours:
            raise NotSupportedError(
                f"{shown(table)} is no Lance table: {self._keeper} has an entry of this name of type {entry.kind}"
            )
        if not entry.location:
            raise StorageError(f"{self._keeper} does not say where the table {shown(table)} is")
        return TablePlace(absolute_uri(entry.location), self._storage)

    def _to_rename(self, table: Sequence[str], to: Sequence[str], action: str) -> Entry:
        """Return the entry of a table that gets another name."""
        self._check_table(to, action)
        entry = self._entry_of(table)
        if entry is None:
            raise StorageError(f"cannot {action}: {self._keeper} has no table of this name")
        self._place(table, entry)
        return entry

    def _take_out(self, table: Sequence[str], verb: str) -> TablePlace | None:
        """Delete the entry of a table, and return its place; None if there is none."""
        place = self.find(table)
        if place is None:
            return None
        database, name = folded(table)
        return place if self._delete_entry(database, name, f"{verb} the table {shown(table)}") else None

    def _check_table(self, name: Sequence[str], action: str) -> None:
        if len(name) != 2:
            raise InvalidInputError(f"cannot {action}: names of tables of {self._keeper} have two parts, as in db.t")


def folded(name: Sequence[str]) -> list[str]:
    """Return a name as such catalogs keep it."""
    return [part.lower() for part in name]
