"""Making a branch.

A branch is a table of its own below `tree` in the directory of the main branch. Its first version has the number of the
version that it starts from, and refers to that version's files where they are; all that it writes goes into its own
directory. The file that names it is written first: a cleanup of the parent keeps what it sees named.
"""

from __future__ import annotations

import dataclasses
import time
import uuid
from typing import TypeVar

from lance_format.errors import InvalidInputError, LanceError, NotSupportedError
from lance_format.object_store import ObjectStore
from lance_format.table.format.file_entries import DataFile, DeletionFile, ExternalFile
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.layout import VERSIONS_DIRECTORY, branch_location, main_location, transaction_name
from lance_format.table.format.manifest import Manifest, make_successor
from lance_format.table.format.ref_names import check_new_branch_name
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
)
from lance_format.table.versions.table_version import TableVersion

F = TypeVar("F", DataFile, DeletionFile)


def create_branch(table: TableVersion, name: str, reference: Reference | None = None) -> TableVersion:
    """Make a branch, and return its first version.

    Parameters
    ----------
    table : TableVersion
    name : str
        Letters, digits and `. _ -`, in segments between slashes.
    reference : int, str, or tuple of (str or None) and (int or None), optional
        What it starts from; see `lance_format.table.versions.checkout`. The version of `table` if not given.

    Raises
    ------
    InvalidInputError
        If there is such a branch, or the name is not allowed.
    VersionNotFoundError
        If there is no version to start from.
    NotSupportedError
        If the table needs a feature that is not supported.
    """
    check_new_branch_name(name)
    store, main = table.store, main_of(table)
    parent, version = resolve_reference(table, reference)
    history = load_branch_history(table, parent)
    source = history.load(history.latest if version is None else version)
    source.check_writable(f"the table {history.root}")
    root = branch_location(main, name)
    if load_branch(store, main, name) is None and load_history(store, root).names:
        raise InvalidInputError(f"{root} holds the versions of another branch; choose another name")
    identity = str(uuid.uuid4())
    started = _describe_start(store, main, parent, source.version, store.size(history.manifest_path(source.version)))
    create_ref(store, main, name, started)
    try:
        load_branch_history(table, parent).load(source.version)
        main_uri = main_location(table.uri, table.manifest.branch)
        first = _first_manifest(source, name, parent, branch_location(main_uri, parent), history.root, identity)
        create_first_version(store, root, first)
    except LanceError:
        delete_ref(store, main, name, started)
        raise
    return dataclasses.replace(table, uri=branch_location(main_uri, name), root=root, manifest=first)


def _describe_start(store: ObjectStore, main: str, parent: str | None, version: int, manifest_size: int) -> Branch:
    grown_from = None if parent is None else load_branch(store, main, parent)
    ancestors = () if grown_from is None else grown_from.identifier
    return Branch(parent, version, (*ancestors, (version, uuid.uuid4().hex)), int(time.time()), manifest_size)


def _first_manifest(
    source: Manifest, name: str, parent: str | None, parent_uri: str, parent_root: str, identity: str
) -> Manifest:
    """Return the first version of a branch: the one that it starts from, whose files lie with the parent."""
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
    # The numbers go on where it starts; what was before is not its history.
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
            raise NotSupportedError("a table that keeps its row ids in files of their own cannot have branches")
    deletion = fragment.deletion_file
    return dataclasses.replace(
        fragment,
        files=tuple(_lying_in(file, base_id) for file in fragment.files),
        deletion_file=None if deletion is None else _lying_in(deletion, base_id),
    )


def _lying_in(file: F, base_id: int) -> F:
    return dataclasses.replace(file, base_id=base_id) if file.base_id is None else file


def _delete_files(store: ObjectStore, main: str, branch: str) -> None:
    """Delete all files of a branch, but not those of a branch within its directory; manifests first."""
    root = branch_location(main, branch)
    roots = branch_roots(store, main) | {root}
    paths = [info.path for info in store.list_tree(root) if owner_of(info.path, roots) == root]
    manifests = f"{root}/{VERSIONS_DIRECTORY}/"
    for path in sorted(paths, key=lambda path: not path.startswith(manifests)):
        store.delete(path)
    directories = {root}
    for path in paths:
        while len(path) > len(root):
            path = path.rpartition("/")[0]
            directories.add(path)
    above = root.rpartition("/")[0]
    while len(above) > len(main):
        directories.add(above)
        above = above.rpartition("/")[0]
    store.remove_if_empty(sorted(directories, key=len, reverse=True))
