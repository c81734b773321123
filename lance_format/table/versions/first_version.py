"""Creating a table that begins with a version of another one: a branch, or a copy."""

from __future__ import annotations

import contextlib

from lance_format.errors import CommitStateUnknownError, LanceError, StorageError
from lance_format.object_store import ObjectNotFoundError, ObjectStore
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.manifest_file import MAX_MANIFEST_BYTES, serialize_manifest
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.versions.history import load_history, write_hint


def create_first_version(directory: TableDirectory, first: Manifest) -> None:
    """Create the first version of a table, whose files exist.

    Parameters
    ----------
    directory : TableDirectory
    first : Manifest
        Made by `make_successor`, with a transaction.

    Raises
    ------
    ObjectExistsError
        If another writer created the table first.
    CommitStateUnknownError
        If it is unclear whether the version exists. After any other error it does not, and no file of it is left.
    """
    create_version(directory, first, load_history(directory).manifest_path(first.version))
    write_hint(directory, first.version)


def create_version(directory: TableDirectory, made: Manifest, path: str) -> None:
    """Write the transaction of a version without retries, then its manifest, or neither.

    Parameters
    ----------
    directory : TableDirectory
    made : Manifest
    path : str

    Raises
    ------
    LanceError
        See `create_first_version`.
    """
    store, transaction = directory.store, directory.transaction(made.transaction_file)
    try:
        store.put(transaction, made.inline_transaction or b"", durable=not made.stores_transaction)
        _create_manifest(store, path, serialize_manifest(made))
    except CommitStateUnknownError:
        raise
    except LanceError:
        with contextlib.suppress(StorageError):
            store.delete(transaction)
        raise


def _create_manifest(store: ObjectStore, path: str, content: bytes) -> None:
    try:
        store.put_if_absent(path, content)
    except StorageError as error:  # Its reply may have been lost.
        try:
            found = store.read(path, MAX_MANIFEST_BYTES)
        except ObjectNotFoundError:
            raise error from None
        except LanceError as unreadable:
            raise CommitStateUnknownError(
                f"creating {path} failed ({error}), and reading it back failed too ({unreadable}): the version may"
                " exist; no file was deleted. Look for it before running this again"
            ) from error
        if found != content:
            raise
