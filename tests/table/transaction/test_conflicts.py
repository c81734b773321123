import dataclasses
from typing import Any

import pytest

from lance_format import CommitConflictError, RetryableCommitConflictError
from lance_format.datatypes import Schema
from lance_format.proto import table_pb2
from lance_format.table.format.file_entries import DataFile, DeletionFile, DeletionFileType
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.index_metadata import FRAGMENT_REUSE_INDEX, IndexMetadata, parse_index
from lance_format.table.transaction.conflicts import MATRIX, check_conflict
from lance_format.table.transaction.operations import (
    Append,
    CreateIndex,
    DataReplacement,
    Delete,
    Merge,
    OtherOperation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    Update,
    UpdateConfig,
)
from lance_format.table.transaction.operations.update_config import MapUpdate
from lance_format.table.transaction.transaction import Transaction
from tests.table.builders import SCHEMA, some_fragment

MEMBERS = {field.name for field in table_pb2.Transaction.DESCRIPTOR.oneofs_by_name["operation"].fields}
LANCE_SCHEMA = Schema.from_arrow(SCHEMA)
YES, RETRY, NO = None, RetryableCommitConflictError, CommitConflictError


def index(name: str = "i", fields: tuple[int, ...] = (0,), fragments: tuple[int, ...] | None = (1,)) -> IndexMetadata:
    message = table_pb2.IndexMetadata(name=name, fields=fields, uuid=table_pb2.UUID(uuid=name.encode().ljust(16)[:16]))
    made = parse_index(message)
    return made if fragments is None else made.with_fragments(fragments)


def with_deletions(fragment: FragmentMetadata, number: int) -> FragmentMetadata:
    return dataclasses.replace(fragment, deletion_file=DeletionFile(4, number, DeletionFileType.ARROW_ARRAY, 1))


ONE, TWO = some_fragment(fragment_id=1), some_fragment(fragment_id=2)
NEW = some_fragment()
OTHER_FILE = DataFile("other.lance", (0,), (0,), 2, 2, 10)
REWRITTEN = dataclasses.replace(ONE, files=(OTHER_FILE,))

OPERATIONS: dict[str, Any] = {
    "append": Append((NEW,)),
    "delete": Delete((with_deletions(ONE, 1),), frozenset()),
    "delete whole": Delete((), frozenset({1})),
    "delete elsewhere": Delete((with_deletions(TWO, 1),), frozenset({3})),
    "update": Update(frozenset(), (with_deletions(ONE, 2),), (NEW,)),
    "update whole": Update(frozenset({1}), (), (NEW,)),
    "update elsewhere": Update(frozenset(), (with_deletions(TWO, 2),), (NEW,)),
    "update columns": Update(frozenset(), (REWRITTEN,), (), frozenset({0}), rewrites_rows=False),
    "overwrite": Overwrite((NEW,), LANCE_SCHEMA),
    "overwrite k": Overwrite((NEW,), LANCE_SCHEMA, config_upserts={"k": "1"}),
    "overwrite derives": Overwrite((NEW,), LANCE_SCHEMA, derives_rows=True),
    "rewrite": Rewrite((RewriteGroup((ONE,), (NEW,)),)),
    "rewrite elsewhere": Rewrite((RewriteGroup((TWO,), (NEW,)),)),
    "merge": Merge((ONE, TWO), LANCE_SCHEMA),
    "merge kept": Merge((ONE, TWO), LANCE_SCHEMA, preserves_nullability=True),
    "merge cast": Merge((ONE, TWO), Schema.from_arrow(SCHEMA, first_id=1), preserves_nullability=True),
    "project": Project(LANCE_SCHEMA),
    "project kept": Project(LANCE_SCHEMA, preserves_nullability=True),
    "create_index": CreateIndex((index(),)),
    "create_index j": CreateIndex((index("j", (1,), (2,)),)),
    "create_index anywhere": CreateIndex((index("k", (1,), None),)),
    "create_index reuse": CreateIndex((index(FRAGMENT_REUSE_INDEX, (), (9,)),)),
    "restore": Restore(1),
    "update_config": UpdateConfig(config=MapUpdate({"k": "1"})),
    "update_config removes": UpdateConfig(config=MapUpdate({"k": None})),
    "update_config other": UpdateConfig(config=MapUpdate({"other": "1"})),
    "update_config schema": UpdateConfig(schema_metadata=MapUpdate({"k": "1"})),
    "update_config field": UpdateConfig(field_metadata={0: MapUpdate({"k": "1"})}),
    "data_replacement": DataReplacement(((1, OTHER_FILE),)),
    "data_replacement elsewhere": DataReplacement(((2, OTHER_FILE),)),
    "reserve_fragments": ReserveFragments(3),
}

# What depends on details, beyond the entries of the matrix that do not.
RULES = [
    ("append", "merge", RETRY),
    ("append", "merge kept", YES),
    ("append", "merge cast", RETRY),
    ("append", "project", RETRY),
    ("append", "project kept", YES),
    ("delete", "delete", YES),
    ("delete", "delete elsewhere", YES),
    ("delete", "delete whole", RETRY),
    ("delete whole", "delete", RETRY),
    ("delete whole", "delete whole", RETRY),
    ("delete", "update", YES),
    ("delete", "update columns", RETRY),
    ("delete", "update whole", RETRY),
    ("delete", "rewrite", RETRY),
    ("delete", "rewrite elsewhere", YES),
    ("delete", "data_replacement", RETRY),
    ("delete", "data_replacement elsewhere", YES),
    ("update", "update", YES),
    ("update", "update elsewhere", YES),
    ("update", "update columns", RETRY),
    ("update whole", "update", RETRY),
    ("update", "delete", YES),
    ("update", "project", RETRY),
    ("update", "project kept", YES),
    ("update", "rewrite", RETRY),
    ("update", "rewrite elsewhere", YES),
    ("update", "data_replacement", RETRY),
    ("overwrite", "overwrite", RETRY),
    ("overwrite k", "overwrite k", NO),
    *(("overwrite derives", name, RETRY) for name in ("append", "delete", "overwrite", "merge", "restore")),
    *(("overwrite derives", name, YES) for name in ("rewrite", "create_index", "update_config")),
    ("overwrite k", "overwrite", RETRY),
    ("overwrite k", "update_config", NO),
    ("overwrite k", "update_config removes", NO),
    ("overwrite k", "update_config other", YES),
    ("overwrite", "update_config", YES),
    ("rewrite", "delete", RETRY),
    ("rewrite", "delete elsewhere", YES),
    ("rewrite", "update", RETRY),
    ("rewrite", "update elsewhere", YES),
    ("rewrite", "rewrite", RETRY),
    ("rewrite", "rewrite elsewhere", YES),
    ("create_index", "update", YES),
    ("create_index", "update columns", RETRY),
    ("create_index j", "update columns", YES),
    ("rewrite", "create_index", RETRY),
    ("rewrite", "create_index j", YES),
    ("rewrite", "create_index anywhere", RETRY),
    ("rewrite", "create_index reuse", RETRY),
    ("rewrite", "data_replacement", RETRY),
    ("create_index", "create_index", RETRY),
    ("create_index", "create_index j", YES),
    ("create_index", "rewrite", RETRY),
    ("create_index", "rewrite elsewhere", YES),
    ("create_index anywhere", "rewrite elsewhere", RETRY),
    ("create_index", "data_replacement", RETRY),
    ("create_index j", "data_replacement", YES),
    ("update_config", "update_config", NO),
    ("update_config", "update_config removes", NO),
    ("update_config removes", "update_config", NO),
    ("update_config removes", "update_config removes", YES),
    ("update_config", "update_config other", YES),
    ("update_config schema", "update_config schema", NO),
    ("update_config schema", "update_config", YES),
    ("update_config field", "update_config field", NO),
    ("update_config", "overwrite", YES),
    ("update_config", "overwrite k", NO),
    ("update_config schema", "overwrite", NO),
    ("update_config field", "overwrite", NO),
    ("data_replacement", "delete", YES),
    ("data_replacement", "delete whole", NO),
    ("data_replacement", "update", RETRY),
    ("data_replacement", "update whole", NO),
    ("data_replacement", "update elsewhere", YES),
    ("data_replacement", "create_index", RETRY),
    ("data_replacement", "create_index j", YES),
    ("data_replacement", "data_replacement", RETRY),
    ("data_replacement", "data_replacement elsewhere", YES),
    ("data_replacement", "rewrite", RETRY),
]


def check(own: str, other: str, expected: type[CommitConflictError] | None) -> None:
    committed = OPERATIONS.get(other, OtherOperation(other))
    arguments = Transaction(4, OPERATIONS[own]), Transaction(4, committed), 5
    if expected is YES:
        check_conflict(*arguments)
        return
    with pytest.raises(CommitConflictError, match=r"planned on version 4.*version 5.*nothing was changed") as caught:
        check_conflict(*arguments)
    assert type(caught.value) is expected


def test_every_operation_of_the_format_has_a_verdict() -> None:
    assert MATRIX.keys() == {name for name in OPERATIONS if " " not in name}
    for own in MATRIX:
        assert set(MATRIX[own]) == MEMBERS | {"unknown"}


# Rows: this library's operations. Columns: append, delete, update, overwrite, rewrite, merge, project, create_index,
# restore, update_config, data_replacement, reserve_fragments, unknown. y: may follow, r: has to be planned again,
# n: cannot follow, .: depends, and is among the rules.
TABLE = """
append            y y y n y . . y n y y y n
delete            y . . n . r y y n y . y n
update            y . . n . r . y n y . y n
overwrite         y y y . y y y y y . y y n
rewrite           y . . n . r y . n y . y n
merge             r r r n r r n y n y r y n
project           y y y n y r r y n y y y n
create_index      y y y n . y y . n y . y n
restore           y y y y y y y y y y y y n
update_config     y y y . y y y y y . y y n
data_replacement  y . . n . r y . n y . y n
reserve_fragments y y y n y y y y n y y y n
"""
COLUMNS = [line.split()[0] for line in TABLE.split("\n") if line]


@pytest.mark.parametrize("line", [line for line in TABLE.split("\n") if line])
def test_what_does_not_depend_on_details(line: str) -> None:
    own, *verdicts = line.split()
    for other, verdict in zip([*COLUMNS, "unknown"], verdicts, strict=True):
        if verdict != ".":
            check(own, other, {"y": YES, "r": RETRY, "n": NO}[verdict])
        else:
            assert any(a.split()[0] == own and b.split()[0] == other for a, b, _ in RULES), (own, other)


@pytest.mark.parametrize(("own", "other", "expected"), RULES)
def test_rules(own: str, other: str, expected: type[CommitConflictError] | None) -> None:
    check(own, other, expected)


@pytest.mark.parametrize("own", MATRIX)
def test_operations_that_are_not_understood(own: str) -> None:
    for other in ("data_overlay", "update_mem_wal_state", "append_fri_transitions"):
        check(own, other, NO)
    for other in ("clone", "update_bases"):
        check(own, other, YES)
