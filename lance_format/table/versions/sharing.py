"""The first version of a table that shares the files of another one: of a branch, or of a shallow clone."""

from __future__ import annotations

import dataclasses
import time
from typing import TypeVar

from lance_format.errors import NotSupportedError
from lance_format.table.format.file_entries import DataFile, DeletionFile, ExternalFile
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.layout import transaction_name
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.successor import make_successor
from lance_format.table.transaction.transaction import serialize_clone

F = TypeVar("F", DataFile, DeletionFile)


def sharing_manifest(
    source: Manifest, identity: str, branch: str | None, parent: str | None, parent_uri: str, parent_root: str
) -> Manifest:
    """Return the first version: that of the parent, all of whose files stay where they are.

    Parameters
    ----------
    source : Manifest
        The version of the parent.
    identity : str
        The uuid of the transaction.
    branch : str, optional
        The branch that is made; None for a table of its own.
    parent : str, optional
        The branch of `source`; None for the main one.
    parent_uri, parent_root : str
        The location of that branch, and its path in the store.

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
    if parent is not None:
        base.name = parent
    state = dataclasses.replace(
        source,
        fragments=FragmentList(_with_base(fragment, base_id) for fragment in source.fragments),
        indices=tuple(index.with_base(base_id) for index in source.indices),
        branch=branch,
        bases={**source.bases, base_id: parent_root},
        message=message,
    )
    # The numbers continue from the version where it starts; earlier versions are not its history.
    before = dataclasses.replace(source, version=source.version - 1, transaction_file="", ancestors=b"")
    return make_successor(
        before,
        state,
        transaction_file=transaction_name(source.version, identity),
        inline_transaction=serialize_clone(source.version, identity, parent, parent_uri, branch),
        now_ns=time.time_ns(),
    )


def _with_base(fragment: FragmentMetadata, base_id: int) -> FragmentMetadata:
    for sequence in (fragment.row_id_meta, fragment.created_at_version_meta, fragment.last_updated_at_version_meta):
        if isinstance(sequence, ExternalFile):
            raise NotSupportedError(
                "a table that keeps its row ids in separate files cannot have branches or shallow clones"
            )
    deletion = fragment.deletion_file
    return dataclasses.replace(
        fragment,
        files=tuple(_lying_in(file, base_id) for file in fragment.files),
        deletion_file=None if deletion is None else _lying_in(deletion, base_id),
    )


def _lying_in(file: F, base_id: int) -> F:
    return dataclasses.replace(file, base_id=base_id) if file.base_id is None else file
