"""What may follow what: whether an operation planned on one version can land on top of others committed since.

The matrix is data. Its rows are the operations that this library commits, its columns those that any writer may have
committed meanwhile, under their names in the format.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from lance_format.errors import CommitConflictError, RetryableCommitConflictError
from lance_format.table.transaction import OtherOperation, Transaction


class Verdict(enum.Enum):
    """What a committed operation means for one that is still to be committed."""

    COMPATIBLE = "may follow"
    RETRYABLE = "must be planned again"
    INCOMPATIBLE = "cannot follow"


Rule = Verdict | Callable[[Transaction, Transaction], Verdict]


def _append_after_project(_own: Transaction, committed: Transaction) -> Verdict:
    """Rows that are already written may hold nulls where the changed schema forbids them."""
    operation = committed.operation
    preserved = isinstance(operation, OtherOperation) and operation.preserves_nullability
    return Verdict.COMPATIBLE if preserved else Verdict.RETRYABLE


def _append_after_merge(own: Transaction, committed: Transaction) -> Verdict:
    """A column that was cast is another field since: values written for the old one would be lost silently."""
    operation = committed.operation
    if isinstance(operation, OtherOperation) and not own.field_ids <= operation.field_ids:
        return Verdict.RETRYABLE
    return _append_after_project(own, committed)


_COMPATIBLE, _RETRYABLE, _INCOMPATIBLE = Verdict.COMPATIBLE, Verdict.RETRYABLE, Verdict.INCOMPATIBLE

MATRIX: dict[str, dict[str, Rule]] = {
    "append": {
        "append": _COMPATIBLE,
        "delete": _COMPATIBLE,
        "update": _COMPATIBLE,
        "overwrite": _INCOMPATIBLE,
        "rewrite": _COMPATIBLE,
        "merge": _append_after_merge,
        "project": _append_after_project,
        "create_index": _COMPATIBLE,
        "restore": _INCOMPATIBLE,
        "update_config": _COMPATIBLE,
        "data_replacement": _COMPATIBLE,
        "reserve_fragments": _COMPATIBLE,
        "update_bases": _COMPATIBLE,
        "clone": _COMPATIBLE,
        "update_mem_wal_state": _INCOMPATIBLE,
        "data_overlay": _INCOMPATIBLE,
        "append_fri_transitions": _INCOMPATIBLE,
        "unknown": _INCOMPATIBLE,
    },
    "overwrite": {
        "append": _COMPATIBLE,
        "delete": _COMPATIBLE,
        "update": _COMPATIBLE,
        "overwrite": _RETRYABLE,
        "rewrite": _COMPATIBLE,
        "merge": _COMPATIBLE,
        "project": _COMPATIBLE,
        "create_index": _COMPATIBLE,
        "restore": _COMPATIBLE,
        # They conflict on a common key only, and no overwrite of this library sets one.
        "update_config": _COMPATIBLE,
        "data_replacement": _COMPATIBLE,
        "reserve_fragments": _COMPATIBLE,
        "update_bases": _COMPATIBLE,
        "clone": _COMPATIBLE,
        "update_mem_wal_state": _INCOMPATIBLE,
        "data_overlay": _INCOMPATIBLE,
        "append_fri_transitions": _INCOMPATIBLE,
        "unknown": _INCOMPATIBLE,
    },
}


def check_conflict(own: Transaction, committed: Transaction, version: int) -> None:
    """Raise unless a transaction may land on top of one that is committed.

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
        If what was planned no longer makes sense.
    """
    rule = MATRIX[own.operation.name][committed.operation.name]
    verdict = rule if isinstance(rule, Verdict) else rule(own, committed)
    if verdict is Verdict.COMPATIBLE:
        return
    cause = (
        f"this {own.operation.name}, planned on version {own.read_version}, meets version {version},"
        f" which another writer made meanwhile by the operation {committed.operation.name}"
    )
    if verdict is Verdict.RETRYABLE:
        raise RetryableCommitConflictError(f"{cause}; nothing was changed: run it again on the latest version")
    raise CommitConflictError(
        f"{cause}, after which the planned change cannot be applied; nothing was changed:"
        " look at the latest version, then decide whether to run it again"
    )
