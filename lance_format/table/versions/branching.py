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

from lance_format.errors import CommitStateUnknownError, InvalidInputError, LanceError, StorageError
from lance_format.object_store import ObjectExistsError, delete_objects, remove_empty_tree, remove_if_empty
from lance_format.table.format.layout import branch_location, main_location
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.manifest_file import serialize_manifest
from lance_format.table.format.ref_names import check_new_branch_name
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.versions.checkout import Reference, load_branch_history, main_of, resolve_reference
from lance_format.table.versions.first_version import create_first_version, sharing_manifest
from lance_format.table.versions.history import load_history
from lance_format.table.versions.named_files import branch_roots, owner_of
from lance_format.table.versions.refs import (
    Branch,
    create_ref,
    delete_ref,
    load_branch,
    removing_new_directories,
    replace_ref,
)
from lance_format.table.versions.table_version import TableVersion


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
    started = _describe_start(main, parent, source.version, main.store.size(history.manifest_path(source.version)))
    main_uri = main_location(table.uri, table.manifest.branch)
    with removing_new_directories(main, Branch):
        # The writer that named a branch without a version has died, or will find that the name is no longer its own.
        (create_ref if exists or left_over is None else replace_ref)(main, name, started)
        try:
            load_branch_history(table, parent).load(source.version)
            first = sharing_manifest(source, name, branch_location(main_uri, parent), history.root)
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
