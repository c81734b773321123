"""Creating a table that begins with a version of another one: a branch, or a clone."""

from __future__ import annotations

import contextlib
import dataclasses
import time
import uuid
from typing import TypeVar

from lance_format.errors import CommitStateUnknownError, LanceError, NotSupportedError, StorageError
from lance_format.object_store import (
    ObjectNotFoundError,
    ObjectStore,
    RefusedError,
    absent_directories,
    remove_if_empty,
)
from lance_format.table.format.base_paths import BasePath
from lance_format.table.format.file_entries import DataFile, DeletionFile, ExternalFile
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.layout import transaction_name
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.manifest_file import MAX_MANIFEST_BYTES, serialize_manifest
from lance_format.table.format.successor import make_successor
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.transaction.transaction import serialize_clone
from lance_format.table.versions.history import load_history, write_hint

F = TypeVar("F", DataFile, DeletionFile)


def sharing_manifest(source: Manifest, branch: str | None, parent_uri: str, parent_root: str) -> Manifest:
    """Return a first version all of whose files stay where they are.

    Parameters
    ----------
    source : Manifest
        The version of the parent that it begins with.
    branch : str, optional
        The branch that is made; None for a table of its own.
    parent_uri, parent_root : str
        The location of the parent, and its path in the store.

    Raises
    ------
    NotSupportedError
        If the parent has files whose place no manifest can name.
    """
    base_id = max(source.bases, default=-1) + 1
    message = type(source.message)()
    message.CopyFrom(source.message)
    message.ClearField("branch")
    if branch is not None:
        message.branch = branch
    base = message.base_paths.add(id=base_id, is_dataset_root=True, path=parent_uri)
    if source.branch is not None:
        base.name = source.branch
    state = dataclasses.replace(
        source,
        fragments=FragmentList(_with_base(fragment, base_id) for fragment in source.fragments),
        indices=tuple(index.with_base(base_id) for index in source.indices),
        branch=branch,
        bases={**source.bases, base_id: BasePath(parent_root)},
        message=message,
    )
    return first_manifest(source, state, parent_uri, is_shallow=True)


def first_manifest(source: Manifest, state: Manifest, parent_uri: str, *, is_shallow: bool) -> Manifest:
    """Return the first version of a table, made by a transaction that says what it begins with.

    Its number is that of the version it begins with; earlier versions are not its history.

    Parameters
    ----------
    source : Manifest
        The version of the parent that it begins with.
    state : Manifest
        The same with the places of the files, the branch and the base paths of the new table.
    parent_uri : str
    is_shallow : bool
        Whether it shares the files of the parent.
    """
    identity = str(uuid.uuid4())
    return make_successor(
        dataclasses.replace(source, version=source.version - 1, transaction_file="", ancestors=b""),
        state,
        transaction_file=transaction_name(source.version, identity),
        inline_transaction=serialize_clone(
            source.version, identity, source.branch, parent_uri, state.branch, is_shallow=is_shallow
        ),
        now_ns=time.time_ns(),
    )


def check_row_ids(fragment: FragmentMetadata) -> None:
    """Raise `NotSupportedError` if a fragment keeps row ids in files, whose place no manifest can name."""
    for sequence in (fragment.row_id_meta, fragment.created_at_version_meta, fragment.last_updated_at_version_meta):
        if isinstance(sequence, ExternalFile):
            raise NotSupportedError(
                f"fragment {fragment.id} has its row ids in a separate file; compact the table, and start from that"
            )


def _with_base(fragment: FragmentMetadata, base_id: int) -> FragmentMetadata:
    check_row_ids(fragment)
    deletion = fragment.deletion_file
    return dataclasses.replace(
        fragment,
        files=tuple(_lying_in(file, base_id) for file in fragment.files),
        deletion_file=None if deletion is None else _lying_in(deletion, base_id),
    )


def _lying_in(file: F, base_id: int) -> F:
    return dataclasses.replace(file, base_id=base_id) if file.base_id is None else file


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
        If it is unclear whether the version exists. After any other error it does not, and neither a file of it nor an
        empty directory is left.
    """
    made = new_directories(directory)
    try:
        create_version(directory, first, load_history(directory).manifest_path(first.version))
    except CommitStateUnknownError:
        raise
    except LanceError:
        remove_if_empty(directory.store, made)
        raise
    write_hint(directory, first.version)


def new_directories(directory: TableDirectory) -> tuple[str, ...]:
    """Return the directories that a write would make, the innermost first."""
    found: dict[str, None] = {}
    for path in directory.written:
        found.update(dict.fromkeys(absent_directories(directory.store, path)))
    return tuple(sorted(found, key=len, reverse=True))


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
            if isinstance(error, RefusedError):
                raise StorageError(f"{error}; nothing was committed") from unreadable
            raise CommitStateUnknownError(
                f"creating {path} failed ({error}), and reading it back failed too ({unreadable}): the version may"
                " exist; no file was deleted. Look for it before running this again"
            ) from error
        if found != content:
            raise
