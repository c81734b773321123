"""Rules of conflict: can an operation that was planned on one version land after others committed since?

The matrix is data. Its rows are the operations that this library commits, its columns the operations that any writer
may have committed concurrently, under their names in the format. An entry is a rule if the answer depends on the
details of the two operations. A compatible operation may still need changes before it is applied:
`lance_format.table.versions.rebase` unites deletions in one fragment.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Set
from typing import Any

from lance_format.errors import CommitConflictError, RetryableCommitConflictError
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.index_metadata import FRAGMENT_REUSE_INDEX
from lance_format.table.transaction.operations import (
    Append,
    CreateIndex,
    DataReplacement,
    Delete,
    Merge,
    Overwrite,
    Project,
    Update,
    UpdateConfig,
)
from lance_format.table.transaction.operations.operation import fragment_ids
from lance_format.table.transaction.transaction import Transaction


class Verdict(enum.Enum):
    """Effect of a committed operation on one that is still to be committed."""

    COMPATIBLE = "may follow"
    RETRYABLE = "must be planned again"
    INCOMPATIBLE = "cannot follow"


# Each operation has a type; the position of a rule in the matrix decides the types of its arguments.
Rule = Verdict | Callable[[Any, Any], Verdict]

_YES, _RETRY, _NO = Verdict.COMPATIBLE, Verdict.RETRYABLE, Verdict.INCOMPATIBLE


def _retry_if(condition: bool) -> Verdict:
    return _RETRY if condition else _YES


def _same_fragments(own: Any, committed: Any) -> Verdict:
    """Both change or remove the same fragment."""
    return _retry_if(not own.changed_fragment_ids.isdisjoint(committed.changed_fragment_ids))


def _same_rows(own: Delete | Update, committed: Delete | Update) -> Verdict:
    """Deletions in one fragment can be united, other changes of it cannot. The rebase finds common rows."""
    gone = _removed(own) & committed.changed_fragment_ids | _removed(committed) & own.changed_fragment_ids
    theirs = {fragment.id: fragment for fragment in committed.updated_fragments}
    both = [(mine, theirs[mine.id]) for mine in own.updated_fragments if mine.id in theirs]
    return _retry_if(bool(gone) or any(_differ_in_files(mine, other) for mine, other in both))


def _removed(operation: Delete | Update) -> frozenset[int]:
    return operation.deleted_fragment_ids if isinstance(operation, Delete) else operation.removed_fragment_ids


def _differ_in_files(one: FragmentMetadata, other: FragmentMetadata) -> bool:
    return [file.path for file in one.files] != [file.path for file in other.files]


def _needs_nullability(_own: Any, committed: Any) -> Verdict:
    """Rows that are already written may hold nulls where the changed schema forbids them."""
    return _retry_if(not committed.preserves_nullability)


def _append_after_merge(own: Append, committed: Merge) -> Verdict:
    """A cast column has another field id: values written for the old one would be lost silently."""
    return _retry_if(not (committed.preserves_nullability and own.known_field_ids <= committed.field_ids))


def _same_config_key(own: Overwrite | UpdateConfig, committed: Overwrite | UpdateConfig) -> Verdict:
    """Both set the same key of the configuration, or one sets a key that the other removes."""
    (mine, mine_too), (theirs, theirs_too) = _config_keys(own), _config_keys(committed)
    return _NO if mine & (theirs | theirs_too) or theirs & (mine | mine_too) else _YES


def _config_keys(operation: Overwrite | UpdateConfig) -> tuple[frozenset[str], frozenset[str]]:
    """Return the keys that an operation sets, and those that it sets or removes."""
    if isinstance(operation, Overwrite):
        return frozenset(operation.config_upserts), frozenset(operation.config_upserts)
    if operation.config is None:
        return frozenset(), frozenset()
    return operation.config.upserted, frozenset(operation.config.entries)


def _overwrite_after_change(own: Overwrite, _committed: Any) -> Verdict:
    """An overwrite replaces any rows, unless its own are made from the rows that were there before the change."""
    return _retry_if(own.derives_rows)


def _overwrite_after_overwrite(own: Overwrite, committed: Overwrite) -> Verdict:
    return _NO if _same_config_key(own, committed) is _NO else _RETRY


def _config_after_overwrite(own: UpdateConfig, committed: Overwrite) -> Verdict:
    """An overwrite replaces the schema, and with it the metadata that the change was planned on."""
    if own.schema_metadata is not None or own.field_metadata:
        return _NO
    return _same_config_key(own, committed)


def _config_after_config(own: UpdateConfig, committed: UpdateConfig) -> Verdict:
    same_metadata = (own.schema_metadata is not None and committed.schema_metadata is not None) or not (
        own.field_metadata.keys().isdisjoint(committed.field_metadata)
    )
    return _NO if same_metadata else _same_config_key(own, committed)


def _index_on_fragments(index: CreateIndex, rewrite: Any) -> Verdict:
    """The rows of the index were moved. Too little is known about fragment reuse indices to unite them."""
    built = [new for new in index.new_indices if new.name != FRAGMENT_REUSE_INDEX]
    if len(built) < len(index.new_indices):
        return _RETRY
    return _retry_if(any(new.covers_any(rewrite.changed_fragment_ids) for new in built))


def _rewrite_after_index(own: Any, committed: CreateIndex) -> Verdict:
    return _index_on_fragments(committed, own)


def _index_after_index(own: CreateIndex, committed: CreateIndex) -> Verdict:
    """The later one would silently replace the other."""
    mine = {index.name for index in own.new_indices} | {index.name for index in own.removed_indices}
    return _retry_if(any(index.name in mine for index in (*committed.new_indices, *committed.removed_indices)))


def _index_on_update(index: CreateIndex, update: Update) -> Verdict:
    """Indexed values may have been replaced in place; an update may name only their struct."""
    changed = fragment_ids(update.updated_fragments)
    in_place = bool(update.fields_modified) or not update.rewrites_rows
    return _retry_if(in_place and any(new.covers_any(changed) for new in index.new_indices))


def _index_on_fields(index: CreateIndex, replacement: DataReplacement) -> Verdict:
    return _retry_if(any(not replacement.field_ids.isdisjoint(new.fields) for new in index.new_indices))


def _replacement_after_index(own: DataReplacement, committed: CreateIndex) -> Verdict:
    return _index_on_fields(committed, own)


def _same_cells(own: DataReplacement, committed: DataReplacement) -> Verdict:
    mine = {(fragment_id, field_id) for fragment_id, file in own.files for field_id in file.fields}
    theirs = {(fragment_id, field_id) for fragment_id, file in committed.files for field_id in file.fields}
    return _retry_if(not mine.isdisjoint(theirs))


def _replacement_after_delete(own: DataReplacement, committed: Delete) -> Verdict:
    """Deleted rows may get other values; a removed fragment cannot."""
    return _NO if own.changed_fragment_ids & _removed(committed) else _YES


def _replacement_after_update(own: DataReplacement, committed: Update) -> Verdict:
    if own.changed_fragment_ids & _removed(committed):
        return _NO
    return _same_fragments(own, committed)


# Operations of other libraries that no rule examines.
_UNKNOWN: dict[str, Rule] = {
    "update_bases": _YES,
    "clone": _YES,
    "update_mem_wal_state": _NO,
    "data_overlay": _NO,
    "append_fri_transitions": _NO,
    "unknown": _NO,
}

MATRIX: dict[str, dict[str, Rule]] = {
    "append": {
        "append": _YES,
        "delete": _YES,
        "update": _YES,
        "overwrite": _NO,
        "rewrite": _YES,
        "merge": _append_after_merge,
        "project": _needs_nullability,
        "create_index": _YES,
        "restore": _NO,
        "update_config": _YES,
        "data_replacement": _YES,
        "reserve_fragments": _YES,
        **_UNKNOWN,
    },
    "delete": {
        "append": _YES,
        "delete": _same_rows,
        "update": _same_rows,
        "overwrite": _NO,
        "rewrite": _same_fragments,
        "merge": _RETRY,
        "project": _YES,
        "create_index": _YES,
        "restore": _NO,
        "update_config": _YES,
        "data_replacement": _same_fragments,
        "reserve_fragments": _YES,
        **_UNKNOWN,
    },
    "update": {
        "append": _YES,
        "delete": _same_rows,
        "update": _same_rows,
        "overwrite": _NO,
        "rewrite": _same_fragments,
        "merge": _RETRY,
        "project": _needs_nullability,
        "create_index": _YES,
        "restore": _NO,
        "update_config": _YES,
        "data_replacement": _same_fragments,
        "reserve_fragments": _YES,
        **_UNKNOWN,
    },
    "overwrite": {
        "append": _overwrite_after_change,
        "delete": _overwrite_after_change,
        "update": _overwrite_after_change,
        "overwrite": _overwrite_after_overwrite,
        "rewrite": _YES,
        "merge": _overwrite_after_change,
        "project": _YES,
        "create_index": _YES,
        "restore": _overwrite_after_change,
        "update_config": _same_config_key,
        "data_replacement": _overwrite_after_change,
        "reserve_fragments": _YES,
        **_UNKNOWN,
    },
    "rewrite": {
        "append": _YES,
        "delete": _same_fragments,
        "update": _same_fragments,
        "overwrite": _NO,
        "rewrite": _same_fragments,
        "merge": _RETRY,
        "project": _YES,
        "create_index": _rewrite_after_index,
        "restore": _NO,
        "update_config": _YES,
        "data_replacement": _same_fragments,
        "reserve_fragments": _YES,
        **_UNKNOWN,
    },
    "merge": {
        "append": _RETRY,
        "delete": _RETRY,
        "update": _RETRY,
        "overwrite": _NO,
        "rewrite": _RETRY,
        "merge": _RETRY,
        "project": _NO,
        "create_index": _YES,
        "restore": _NO,
        "update_config": _YES,
        "data_replacement": _RETRY,
        "reserve_fragments": _YES,
        **_UNKNOWN,
    },
    "project": {
        "append": _YES,
        "delete": _YES,
        "update": _YES,
        "overwrite": _NO,
        "rewrite": _YES,
        "merge": _RETRY,
        "project": _RETRY,
        "create_index": _YES,
        "restore": _NO,
        "update_config": _YES,
        "data_replacement": _YES,
        "reserve_fragments": _YES,
        **_UNKNOWN,
    },
    "create_index": {
        "append": _YES,
        "delete": _YES,
        "update": _index_on_update,
        "overwrite": _NO,
        "rewrite": _index_on_fragments,
        "merge": _YES,
        "project": _YES,
        "create_index": _index_after_index,
        "restore": _NO,
        "update_config": _YES,
        "data_replacement": _index_on_fields,
        "reserve_fragments": _YES,
        **_UNKNOWN,
    },
    "restore": {
        "append": _YES,
        "delete": _YES,
        "update": _YES,
        "overwrite": _YES,
        "rewrite": _YES,
        "merge": _YES,
        "project": _YES,
        "create_index": _YES,
        "restore": _YES,
        "update_config": _YES,
        "data_replacement": _YES,
        "reserve_fragments": _YES,
        **_UNKNOWN,
    },
    "update_config": {
        "append": _YES,
        "delete": _YES,
        "update": _YES,
        "overwrite": _config_after_overwrite,
        "rewrite": _YES,
        "merge": _YES,
        "project": _YES,
        "create_index": _YES,
        "restore": _YES,
        "update_config": _config_after_config,
        "data_replacement": _YES,
        "reserve_fragments": _YES,
        **_UNKNOWN,
    },
    "data_replacement": {
        "append": _YES,
        "delete": _replacement_after_delete,
        "update": _replacement_after_update,
        "overwrite": _NO,
        "rewrite": _same_fragments,
        "merge": _RETRY,
        "project": _YES,
        "create_index": _replacement_after_index,
        "restore": _NO,
        "update_config": _YES,
        "data_replacement": _same_cells,
        "reserve_fragments": _YES,
        **_UNKNOWN,
    },
    "reserve_fragments": {
        "append": _YES,
        "delete": _YES,
        "update": _YES,
        "overwrite": _NO,
        "rewrite": _YES,
        "merge": _YES,
        "project": _YES,
        "create_index": _YES,
        "restore": _NO,
        "update_config": _YES,
        "data_replacement": _YES,
        "reserve_fragments": _YES,
        **_UNKNOWN,
    },
}


def dropped_fields(own: Transaction, committed: Transaction) -> frozenset[int]:
    """Return the fields that an append has written and another commit has dropped.

    The append may still land, since no reader sees their values. But a later commit may give one of the ids to a new
    column, which would then show these values.
    """
    if not isinstance(own.operation, Append) or not isinstance(committed.operation, Project):
        return frozenset()
    return own.operation.known_field_ids - {field.id for field in committed.operation.schema.walk()}


def check_reuse(own: Transaction, committed: Transaction, version: int, dropped: Set[int]) -> None:
    """Check that a commit has not reused the id of a dropped field.

    Parameters
    ----------
    own : Transaction
        The append.
    committed : Transaction
    version : int
        The version that `committed` made.
    dropped : set of int
        The ids of the fields that were dropped before; see `dropped_fields`.

    Raises
    ------
    RetryableCommitConflictError
        If it has.
    """
    if isinstance(committed.operation, Merge) and not committed.operation.field_ids.isdisjoint(dropped):
        raise RetryableCommitConflictError(
            f"this {own.operation.name}, planned on version {own.read_version}, has values of a column that was dropped"
            f" since, and whose id version {version} gave to another; nothing was changed: run it again on the latest"
            " version"
        )


def check_conflict(own: Transaction, committed: Transaction, version: int) -> None:
    """Check that a transaction may land after another one.

    Parameters
    ----------
    own : Transaction
        Planned before `version`.
    committed : Transaction
    version : int
        The version that `committed` made.

    Raises
    ------
    RetryableCommitConflictError
        If the same operation, planned again on the latest version, succeeds.
    CommitConflictError
        If the planned change cannot be applied anymore.
    """
    rule = MATRIX[own.operation.name][committed.operation.name]
    verdict = rule if isinstance(rule, Verdict) else rule(own.operation, committed.operation)
    if verdict is Verdict.COMPATIBLE:
        return
    cause = (
        f"this {own.operation.name}, planned on version {own.read_version}, meets version {version},"
        f" which another writer committed concurrently by the operation {committed.operation.name}"
    )
    if verdict is Verdict.RETRYABLE:
        raise RetryableCommitConflictError(f"{cause}; nothing was changed: run it again on the latest version")
    raise CommitConflictError(
        f"{cause}, after which the planned change cannot be applied; nothing was changed:"
        " look at the latest version, then decide whether to run it again"
    )
