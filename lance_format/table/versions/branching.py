"""Creation and deletion of branches.

A branch is a separate table below `tree` in the directory of the main branch. Its first version has the number of the
version that it starts from, and refers to the files of that version where they are. New files go into its own
directory. The file that names the branch is written first: a cleanup of the parent keeps the files of named branches. A
name without a version is not a branch, yet or anymore: readers ignore it, and the next creation of the branch takes it
over.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
import uuid
from typing import TypeVar

from lance_format.errors import (
    CommitStateUnknownError,
    InvalidInputError,
    LanceError,
    NotSupportedError,
    StorageError,
)
from lance_format.object_store import ObjectExistsError, delete_objects, remove_empty_tree, remove_if_empty
from lance_format.table.format.file_entries import DataFile, DeletionFile, ExternalFile
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.layout import (
    branch_location,
    main_location,
    transaction_name,
)
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.manifest_file import serialize_manifest
from lance_format.table.format.ref_names import check_new_branch_name
from lance_format.table.format.successor import make_successor
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.transaction.transaction import serialize_clone
from lance_format.table.versions.checkout import Reference, load_branch_history, main_of, resolve_reference
from lance_format.table.versions.first_version import create_first_version
from lance_format.table.versions.history import load_history
from lance_format.table.versions.named_files import branch_roots, owner_of
from lance_format.table.versions.refs import (
    Branch,
    create_ref,
    delete_ref,
    load_branch,
    replace_ref,
)
from lance_format.table.versions.table_version import TableVersion

F = TypeVar("F", DataFile, DeletionFile)


def create_branch(table: TableVersion, name: str, reference: Reference | None = None) -> TableVersion:
    """Create a branch and return its first version.

    Parameters
    ----------
    table : TableVersion
    name : str
        Letters, digits and `. _ -`, in segments between slashes.
    reference : int, str, or tuple of (str or None) and (int or None), optional
        The version that the branch starts from; see `lance_format.table.versions.checkout`. By default that of `table`.

    Raises
    ------
    InvalidInputError
        If the branch exists, or the name is not allowed.
    VersionNotFoundError
        If there is no version to start from.
    NotSupportedError
        If the table needs a feature that is not supported.
    """
    check_new_branch_name(name)
    main = main_of(table)
    parent, version = resolve_reference(table, reference)
    history = load_branch_history(table, parent)
    source = history.load(history.latest if version is None else version)
    source.check_writable(f"the table {history.root}")
    directory = main.branch(name)
    left_over, exists = load_branch(main, name), bool(load_history(directory).names)
    if exists and left_over is None:
        raise InvalidInputError(
            f"{directory} holds the versions of another branch; delete it first, or choose another name"
        )
    identity = str(uuid.uuid4())
    started = _describe_start(main, parent, source.version, main.store.size(history.manifest_path(source.version)))
    # The writer that named a branch without a version has died, or will find that the name is no longer its own.
    (create_ref if exists or left_over is None else replace_ref)(main, name, started)
    try:
        load_branch_history(table, parent).load(source.version)
        main_uri = main_location(table.uri, table.manifest.branch)
        first = _first_manifest(source, name, parent, branch_location(main_uri, parent), history.root, identity)
        create_first_version(directory, first)
        _check_own(main, name, started, first)
    except CommitStateUnknownError:
        raise
    except LanceError as error:
        with contextlib.suppress(StorageError):
            delete_ref(main, name, started)
        _remove_directories(main, directory)
        if isinstance(error, ObjectExistsError):
            raise InvalidInputError(_taken(main, name)) from error
        raise
    return dataclasses.replace(table, uri=branch_location(main_uri, name), directory=directory, manifest=first)


def _check_own(main: TableDirectory, name: str, started: Branch, first: Manifest) -> None:
    """Check that a branch still has the name file from before its first version; remove that version otherwise."""
    found: Branch | None = started
    with contextlib.suppress(StorageError):
        found = load_branch(main, name)
    if found is None or found.identifier != started.identifier:
        directory = main.branch(name)
        main.store.delete_exact(load_history(directory).manifest_path(first.version), serialize_manifest(first))
        main.store.delete(directory.transaction(first.transaction_file))
        raise InvalidInputError(_taken(main, name))


def _taken(main: TableDirectory, name: str) -> str:
    return f"another writer makes the branch {name!r} of {main} at the same time; choose another name"


def _describe_start(main: TableDirectory, parent: str | None, version: int, manifest_size: int) -> Branch:
    grown_from = None if parent is None else load_branch(main, parent)
    ancestors = () if grown_from is None else grown_from.identifier
    return Branch(parent, version, (*ancestors, (version, uuid.uuid4().hex)), int(time.time()), manifest_size)


def _first_manifest(
    source: Manifest, name: str, parent: str | None, parent_uri: str, parent_root: str, identity: str
) -> Manifest:
    """Return the first version of a branch: the one that it starts from, with the parent's files."""
    base_id = max(source.bases, default=-1) + 1
    message = type(source.message)()
    message.CopyFrom(source.message)
    message.branch = name
    base = message.base_paths.add(id=base_id, is_dataset_root=True, path=parent_uri)
    if parent is not None:
        base.name = parent
    state = dataclasses.replace(
        source,
        fragments=FragmentList(_with_base(fragment, base_id) for fragment in source.fragments),
        indices=tuple(index.with_base(base_id) for index in source.indices),
        branch=name,
        bases={**source.bases, base_id: parent_root},
        message=message,
    )
    # The numbers continue from the version where it starts; earlier versions are not its history.
    before = dataclasses.replace(source, version=source.version - 1, transaction_file="", ancestors=b"")
    return make_successor(
        before,
        state,
        transaction_file=transaction_name(source.version, identity),
        inline_transaction=serialize_clone(source.version, identity, parent, parent_uri, name),
        now_ns=time.time_ns(),
    )


def _with_base(fragment: FragmentMetadata, base_id: int) -> FragmentMetadata:
    for sequence in (fragment.row_id_meta, fragment.created_at_version_meta, fragment.last_updated_at_version_meta):
        if isinstance(sequence, ExternalFile):
            raise NotSupportedError("a table that keeps its row ids in separate files cannot have branches")
    deletion = fragment.deletion_file
    return dataclasses.replace(
        fragment,
        files=tuple(_lying_in(file, base_id) for file in fragment.files),
        deletion_file=None if deletion is None else _lying_in(deletion, base_id),
    )


def _lying_in(file: F, base_id: int) -> F:
    return dataclasses.replace(file, base_id=base_id) if file.base_id is None else file


def delete_branch(main: TableDirectory, name: str) -> None:
    """Delete all files of a branch, except those of branches within its directory.

    Manifests are deleted first, oldest first, so that no visible version lacks files. The file that names the branch is
    deleted last: until then the deletion can be run again.

    Parameters
    ----------
    main : TableDirectory
        The directory of the main branch.
    name : str
    """
    directory = main.branch(name)
    found, history = load_branch(main, name), load_history(directory)
    manifests = [history.manifest_path(version) for version in sorted(history.names)]
    store, root = directory.store, directory.root
    roots = branch_roots(main) | {root}
    paths = [info.path for info in store.list_tree(root) if owner_of(info.path, roots) == root]
    delete_objects(store, manifests)
    delete_objects(store, sorted(set(paths) - set(manifests)))
    _remove_directories(main, directory)
    if found is not None:
        delete_ref(main, name, found)


def _remove_directories(main: TableDirectory, directory: TableDirectory) -> None:
    """Remove the empty directories from that of a branch up to that of the main branch."""
    store, root = directory.store, directory.root
    remove_empty_tree(store, root)
    while len(root := root.rpartition("/")[0]) > len(main.root):
        remove_if_empty(store, [root])
