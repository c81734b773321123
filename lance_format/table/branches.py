"""What `LanceDataset.branches` offers, and how a branch is made.

A branch is a table of its own below `tree` in the directory of the main branch. Its first version has the number of the
version that it starts from, and refers to that one's files where they are; all it writes itself goes into its own
directory. The file that names it is there first: a cleanup of the parent keeps what it sees named.
"""

from __future__ import annotations

import dataclasses
import time
import uuid
from collections.abc import Mapping
from typing import Any, TypeVar

from lance_format.errors import InvalidInputError, LanceError, NotSupportedError, VersionNotFoundError
from lance_format.object_store import ObjectStore
from lance_format.table.checkout import Reference, load_branch_history, main_of, resolve_reference
from lance_format.table.first_version import create_first_version
from lance_format.table.fragment import FragmentMetadata
from lance_format.table.fragment_list import FragmentList
from lance_format.table.history import load_history
from lance_format.table.manifest import Manifest, make_successor
from lance_format.table.naming import (
    VERSIONS_DIRECTORY,
    branch_location,
    main_location,
    transaction_name,
)
from lance_format.table.open_table import OpenTable
from lance_format.table.refs import (
    Branch,
    check_branch_name,
    check_metadata,
    check_new_branch_name,
    create_ref,
    delete_ref,
    list_branches,
    list_tags,
    load_branch,
    replace_ref,
)
from lance_format.table.stored_files import DataFile, DeletionFile, ExternalFile
from lance_format.table.table_files import branch_roots, owner_of
from lance_format.table.table_version import TableVersion
from lance_format.table.tags import OrderedRefs, order_refs
from lance_format.table.transaction import serialize_clone

F = TypeVar("F", DataFile, DeletionFile)


class Branches:
    """The branches of a table but the main one. Made by `LanceDataset.branches`."""

    def __init__(self, dataset: OpenTable) -> None:
        self._dataset = dataset

    def list(self) -> dict[str, dict[str, Any]]:
        """Describe all branches by name.

        Each has `parent_branch`, `parent_version`, `branch_identifier`, `create_at`, `manifest_size` and `metadata`.
        """
        table = self._table
        return {name: branch.describe() for name, branch in list_branches(table.store, main_of(table)).items()}

    def list_ordered(self, order: str | None = None) -> OrderedRefs:
        """Describe all branches by the version they start from, the latest first, or last if `order` is "asc"."""
        return order_refs(self.list(), "parent_version", order)

    def replace_metadata(self, branch: str, metadata: Mapping[str, str]) -> None:
        """Replace all that is noted about a branch."""
        main = main_of(self._table)
        kept = dataclasses.replace(self._load(branch), metadata=check_metadata(metadata))
        replace_ref(self._table.store, main, branch, kept)

    def delete(self, branch: str) -> None:
        """Delete a branch with all its versions and files.

        Raises
        ------
        VersionNotFoundError
            If there is no such branch.
        InvalidInputError
            If another branch starts from it, or a tag names one of its versions.
        """
        store, main = self._table.store, main_of(self._table)
        found = self._load(branch)
        for name, other in list_branches(store, main).items():
            own = len(found.identifier)
            descends = bool(own) and len(other.identifier) > own and other.identifier[:own] == found.identifier
            if name != branch and (descends or other.parent_branch == branch):
                raise InvalidInputError(f"the branch {name!r} starts from {branch!r}; delete it first")
        for name, tag in list_tags(store, main).items():
            if tag.branch == branch:
                raise InvalidInputError(f"the tag {name!r} names a version of the branch {branch!r}; delete it first")
        delete_ref(store, main, branch, found)
        _delete_files(store, main, branch)

    @property
    def _table(self) -> TableVersion:
        return self._dataset._table

    def _load(self, branch: str) -> Branch:
        load_branch_history(self._table, check_branch_name(branch))  # Says which branches there are instead.
        found = load_branch(self._table.store, main_of(self._table), branch)
        if found is None:
            raise VersionNotFoundError(f"the branch {branch!r} was deleted by someone else")
        return found


def create_branch(table: TableVersion, name: str, reference: Reference | None = None) -> TableVersion:
    """Make a branch, and return its first version.

    Parameters
    ----------
    table : TableVersion
    name : str
        Letters, digits and `. _ -`, in segments between slashes.
    reference : int, str, or tuple of (str or None) and (int or None), optional
        What it starts from; see `lance_format.table.checkout`. The version of `table` if not given.

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
    before = dataclasses.replace(source, version=source.version - 1)  # The numbers go on where the branch starts.
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
