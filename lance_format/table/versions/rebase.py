"""Rebase of a delete, an update or a new index onto the concurrent changes of its fragments.

`lance_format.table.transaction.conflicts` has checked that the operation may follow: since it was planned, its
fragments have at most lost rows, by deletion files. The operation itself deletes the rows of its own deletion files
that were live when it was planned. If no other writer deleted one of them, both deletions are united. Otherwise both
changed the same row, and the operation must be planned again. So must an index whose values others changed in place,
which `conflicts` cannot tell where a file names another field of the column than the index does.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from lance_format.errors import RetryableCommitConflictError
from lance_format.object_store import run_together
from lance_format.row_numbers import distinct
from lance_format.table.format.base_paths import BasePath
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.fragments.deletion_file import RowOffsets, read_deleted_rows, write_deleted_rows
from lance_format.table.transaction.indexed_values import changed_in_place
from lance_format.table.transaction.operations import CreateIndex, Delete, Operation, Update

Rebasable: TypeAlias = CreateIndex | Delete | Update
"""Operations that may have to be planned again, or otherwise, where others changed the same fragments."""


def rebase(
    directory: TableDirectory,
    operation: Rebasable,
    planned_on: Manifest,
    latest: Manifest,
    files: list[str],
    since: Mapping[int, Operation],
) -> Rebasable:
    """Apply an operation to a version later than the one it was planned on.

    Parameters
    ----------
    directory : TableDirectory
    operation : Rebasable
    planned_on, latest : Manifest
    files : list of str
        The paths of new deletion files are added to it. They are garbage unless the operation is committed.
    since : mapping of int to Operation
        The operations that other writers committed after `planned_on`, by version.

    Raises
    ------
    RetryableCommitConflictError
        If another writer deleted one of the same rows, or changed indexed values.
    """
    if isinstance(operation, CreateIndex):
        _check_values(directory, operation, planned_on, latest, since)
        return operation
    bases = {**planned_on.bases, **latest.bases}

    def rebase_one(own: FragmentMetadata) -> FragmentMetadata | None:
        before, now = planned_on.fragment(own.id), latest.fragment(own.id)
        if before is None or now is None:
            raise RetryableCommitConflictError(
                f"fragment {own.id} of {directory} no longer exists{_blame(since, own.id)}; this {operation.name},"
                f" planned on version {planned_on.version}, changed rows in it; nothing was changed: run it again on"
                " the latest version"
            )
        if own.files != before.files:  # It replaced columns in place, which no other writer can have done since.
            return own
        counted = dataclasses.replace(now, physical_rows=own.physical_rows)
        if now.deletion_file == before.deletion_file:
            return dataclasses.replace(counted, deletion_file=own.deletion_file)
        rows, both = _unite(directory, (before, own, now), bases)
        if both.size:
            raise RetryableCommitConflictError(
                f"another writer deleted or replaced row {both[0]} of fragment {own.id} of {directory}"
                f"{f' and {both.size - 1} more' if both.size > 1 else ''}{_blame(since, own.id)}, as this"
                f" {operation.name}, planned on version {planned_on.version}, does; nothing was changed: run it again"
                " on the latest version"
            )
        if rows.size == own.physical_rows:
            return None
        deletion = write_deleted_rows(directory, own, rows, read_version=latest.version, paths=files)
        return dataclasses.replace(counted, deletion_file=deletion)

    owned = operation.updated_fragments
    rebased = run_together(directory.store, [functools.partial(rebase_one, own) for own in owned])
    emptied = {own.id for own, left in zip(owned, rebased, strict=True) if left is None}
    return _replace(operation, [left for left in rebased if left is not None], emptied)


def _check_values(
    directory: TableDirectory,
    operation: CreateIndex,
    planned_on: Manifest,
    latest: Manifest,
    since: Mapping[int, Operation],
) -> None:
    """Check that the fragments of new indices still have the values that were indexed."""
    after = {fragment.id: fragment for fragment in latest.fragments}
    for index in operation.new_indices:
        for changed in sorted(changed_in_place(index, planned_on, after)):
            raise RetryableCommitConflictError(
                f"another writer changed indexed values of fragment {changed} of {directory}{_blame(since, changed)};"
                f" the index {index.name!r}, planned on version {planned_on.version}, has the former ones; nothing was"
                " changed: run it again on the latest version"
            )


def _blame(since: Mapping[int, Operation], fragment_id: int) -> str:
    """Return which versions changed a fragment, and by what operations."""
    found = [
        f"version {version} ({operation.name})"
        for version, operation in since.items()
        if fragment_id in operation.changed_fragment_ids
    ]
    return f" in {' and '.join(found)}" if found else ""


def _unite(
    directory: TableDirectory, fragments: tuple[FragmentMetadata, ...], bases: Mapping[int, BasePath]
) -> tuple[RowOffsets, RowOffsets]:
    """Return the rows of a fragment that either of two deletions deletes, and those that both delete."""
    physical_rows = fragments[1].physical_rows  # Planning of deletions counts the rows if the table does not.
    before, own, now = (
        read_deleted_rows(directory.holding(x.deletion_file, bases), x, physical_rows) for x in fragments
    )
    affected = np.setdiff1d(own, before, assume_unique=True)
    both = np.intersect1d(affected, now, assume_unique=True)
    return distinct(np.concatenate([affected, now])), both


def _replace(operation: Delete | Update, updated: Sequence[FragmentMetadata], emptied: set[int]) -> Delete | Update:
    if isinstance(operation, Delete):
        gone = operation.deleted_fragment_ids | emptied
        return dataclasses.replace(operation, updated_fragments=tuple(updated), deleted_fragment_ids=gone)
    gone = operation.removed_fragment_ids | emptied
    return dataclasses.replace(operation, updated_fragments=tuple(updated), removed_fragment_ids=gone)
