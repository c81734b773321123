import pytest

from lance_format import CommitConflictError, RetryableCommitConflictError
from lance_format.proto import table_pb2
from lance_format.table.conflicts import MATRIX, check_conflict
from lance_format.table.transaction import OtherOperation, Transaction
from tests.table.builders import append, creation, some_fragment

OPERATIONS = {field.name for field in table_pb2.Transaction.DESCRIPTOR.oneofs_by_name["operation"].fields}

# Columns: may follow, must be planned again, cannot follow.
EXPECTED = {
    "append": (
        {"append", "delete", "update", "rewrite", "create_index", "update_config", "data_replacement"}
        | {"reserve_fragments", "update_bases", "clone"},
        {"merge", "project"},
        {"overwrite", "restore", "update_mem_wal_state", "data_overlay", "append_fri_transitions", "unknown"},
    ),
    "overwrite": (
        {"append", "delete", "update", "rewrite", "create_index", "update_config", "data_replacement"}
        | {"reserve_fragments", "update_bases", "clone", "merge", "project", "restore"},
        {"overwrite"},
        {"update_mem_wal_state", "data_overlay", "append_fri_transitions", "unknown"},
    ),
}


def committed(name: str) -> Transaction:
    if name in ("append", "overwrite"):
        return append(4) if name == "append" else creation()
    return Transaction(4, OtherOperation(name))


@pytest.mark.parametrize("own", MATRIX)
def test_every_operation_of_the_format_has_a_verdict(own: str) -> None:
    assert set(MATRIX[own]) == OPERATIONS | {"unknown"}


@pytest.mark.parametrize(("own", "other"), [(own, other) for own in MATRIX for other in MATRIX[own]])
def test_verdicts(own: str, other: str) -> None:
    transaction = append(4) if own == "append" else creation()
    follows, again, never = EXPECTED[own]
    if other in follows:
        check_conflict(transaction, committed(other), 5)
        return
    with pytest.raises(CommitConflictError, match=f"{own}.*version 5.*{other}.*nothing was changed") as caught:
        check_conflict(transaction, committed(other), 5)
    assert isinstance(caught.value, RetryableCommitConflictError) == (other in again)
    assert other in again | never


def test_an_append_follows_a_change_of_schema_that_keeps_its_fields_and_requires_nothing_new() -> None:
    own = append(4, some_fragment())
    kept = frozenset({0, 1, 2})
    check_conflict(own, Transaction(4, OtherOperation("project", preserves_nullability=True)), 5)
    check_conflict(own, Transaction(4, OtherOperation("merge", True, kept)), 5)
    for operation in (OtherOperation("merge", False, kept), OtherOperation("merge", True, kept - {1})):
        with pytest.raises(RetryableCommitConflictError):
            check_conflict(own, Transaction(4, operation), 5)
