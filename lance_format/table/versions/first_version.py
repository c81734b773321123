"""Creating a table that begins with a version of another one: a branch, or a copy."""

from __future__ import annotations

from lance_format.errors import StorageError
from lance_format.object_store import ObjectStore
from lance_format.table.format.layout import TRANSACTIONS_DIRECTORY
from lance_format.table.format.manifest import MAX_MANIFEST_BYTES, Manifest, serialize_manifest
from lance_format.table.versions.history import load_history, write_hint


def create_first_version(store: ObjectStore, root: str, first: Manifest) -> None:
    """Create the first version of a table, whose files are there.

    Parameters
    ----------
    store : ObjectStore
    root : str
        The path of the table in the store.
    first : Manifest
        Made by `make_successor`, with a transaction.

    Raises
    ------
    ObjectExistsError
        If another writer was faster.
    """
    path = load_history(store, root).manifest_path(first.version)
    store.put(f"{root}/{TRANSACTIONS_DIRECTORY}/{first.transaction_file}", first.inline_transaction or b"")
    _create_manifest(store, path, serialize_manifest(first))
    write_hint(store, root, first.version)


def _create_manifest(store: ObjectStore, path: str, content: bytes) -> None:
    try:
        store.put_if_absent(path, content)
    except StorageError:  # Its reply may have been lost.
        if store.read(path, MAX_MANIFEST_BYTES) != content:
            raise
