"""Directories of tables: subdirectories are namespaces, and `<name>.lance` is a table.

It is the layout of pylance's directory namespace (`lance.namespace`) without its table `__manifest`: each directory
can be the root of such a namespace. A table that was dropped without being purged stays where it is, with an empty
file `.lance-deregistered` in its directory. Neither library lists such a table.

An object store has no directories. A namespace is there if an object is below its prefix: an empty object
`.lance-namespace` of its own, or a file of a table. So it lists what pylance has put there, too.

Names that start with a dot or an underscore, or that contain `$`, belong to others, and are no namespaces.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from lance_format.arguments import checked_methods
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.namespaces.contents import NamespaceListing
from lance_format.object_store import DirectoryStore, ObjectStore, resolve
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.maintenance.drop_table import drop_table

SUFFIX = ".lance"
_DROPPED = ".lance-deregistered"
_MARK = ".lance-namespace"
_OTHERS = (".", "_")
_RESERVED = "$"


@checked_methods
class NamespaceDirectory:
    """A namespace of tables in a directory, or below a prefix of an object store.

    Parameters
    ----------
    uri : str or path
    storage_options : mapping of str to str, optional
        Options of the storage.
    """

    def __init__(self, uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> None:
        store, root = resolve(uri, storage_options)
        self._store: ObjectStore = store
        self._root: str = root.rstrip("/")

    @classmethod
    def _at(cls, store: ObjectStore, root: str) -> NamespaceDirectory:
        made = cls.__new__(cls)
        made._store, made._root = store, root
        return made

    def listing(self) -> NamespaceListing | None:
        """Return the namespaces and the tables; None if there is no such namespace.

        Raises
        ------
        StorageError
            If the directory cannot be listed.
        """
        names = sorted(self._store.list_directories(self._root))
        if not names and not self._is_there():
            return None
        tables = [name for name in names if name.endswith(SUFFIX) and name != SUFFIX]
        marks = self._store.sizes([f"{self._root}/{name}/{_DROPPED}" for name in tables])
        listed = [name.removesuffix(SUFFIX) for name, mark in zip(tables, marks, strict=True) if mark is None]
        return NamespaceListing(tuple(name for name in names if _is_namespace(name)), tuple(listed))

    def create(self) -> None:
        """Create the namespace. If another process has just done so, nothing happens.

        Raises
        ------
        StorageError
            If it cannot be created.
        """
        if isinstance(self._store, DirectoryStore):
            self._store.make_directory(self._root)
        else:
            self._store.put(f"{self._root}/{_MARK}", b"")

    def remove(self, *, cascade: bool = False) -> bool:
        """Remove the namespace.

        Parameters
        ----------
        cascade : bool
            Whether its tables and namespaces go as well. Tables are purged.

        Returns
        -------
        bool
            Whether it was removed. Without `cascade`, it is not removed unless it is empty.

        Raises
        ------
        InvalidInputError
            If something in it is neither a table nor a namespace. Entries before it in the order of names are removed.
        StorageError
            If the storage fails.
        """
        directories = set(self._store.list_directories(self._root))
        entries = sorted({*directories, *self._store.list_names(self._root)} - {_MARK})
        if entries and not cascade:
            return False
        for name in entries:
            self._remove_entry(name, is_directory=name in directories)
        if isinstance(self._store, DirectoryStore):
            self._store.remove_directory(self._root)
        else:
            self._store.delete(f"{self._root}/{_MARK}")
        return True

    def _remove_entry(self, name: str, *, is_directory: bool) -> None:
        path = f"{self._root}/{name}"
        if isinstance(self._store, DirectoryStore) and self._store.is_link(path):
            is_directory = False
        if is_directory and name.endswith(SUFFIX):
            drop_table(TableDirectory(self._store, path), ignore_not_found=False)
        elif is_directory and _is_namespace(name):
            self._at(self._store, path).remove(cascade=True)
        else:
            raise InvalidInputError(
                f"{path} is neither a table nor a namespace, and is not removed: move or delete it, and drop the"
                " namespace again"
            )

    def _is_there(self) -> bool:
        if isinstance(self._store, DirectoryStore):
            return not self._store.absent_directories(self._root)
        return bool(self._store.list_names(self._root))

    @staticmethod
    def is_dropped(uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> bool:
        """Return whether the table in a directory was dropped without being purged.

        Parameters
        ----------
        uri : str or path
        storage_options : mapping of str to str, optional
        """
        store, path = resolve(uri, storage_options)
        return store.sizes([f"{path}/{_DROPPED}"]) != [None]

    @staticmethod
    def mark_dropped(uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> None:
        """Take a table out of the listings, and leave its files where they are.

        Parameters
        ----------
        uri : str or path
        storage_options : mapping of str to str, optional

        Raises
        ------
        StorageError
            If the mark cannot be written.
        """
        store, path = resolve(uri, storage_options)
        store.put(f"{path}/{_DROPPED}", b"")

    @staticmethod
    def rename_table(
        uri: str | os.PathLike[str], to: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None
    ) -> None:
        """Give a table another name, or another namespace.

        Parameters
        ----------
        uri, to : str or path
            Both in one storage.
        storage_options : mapping of str to str, optional

        Raises
        ------
        NotSupportedError
            If the storage has no directories. Copying the objects and deleting them is no rename: a writer that commits
            to the table during it would lose its version.
        StorageError
            If the directory cannot be moved.
        """
        (store, path), (_, target) = resolve(uri, storage_options), resolve(to, storage_options)
        if not isinstance(store, DirectoryStore):
            raise NotSupportedError(
                f"{path} cannot be renamed: an object store cannot move objects at once; nothing was changed: CREATE"
                " TABLE … AS SELECT copies the rows, and DROP TABLE … PURGE deletes the old table once nobody writes it"
            )
        store.rename_directory(path, target)


def _is_namespace(name: str) -> bool:
    return not name.startswith(_OTHERS) and not name.endswith(SUFFIX) and _RESERVED not in name
