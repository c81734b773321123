"""An index covers no fragment with unknown values, after any change of the table."""

import dataclasses
from typing import Any

import pyarrow as pa
import pytest

from lance_format.datatypes import Schema
from lance_format.proto import table_pb2
from lance_format.table.format.file_entries import DataFile, DeletionFile, DeletionFileType
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.index_metadata import IndexMetadata, parse_index
from lance_format.table.format.manifest import Manifest, first_manifest
from lance_format.table.transaction.operations import (
    Append,
    CreateIndex,
    DataReplacement,
    Delete,
    Merge,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    Update,
    UpdateConfig,
)
from lance_format.version import STABLE
from tests.table.builders import SCHEMA, some_fragment

FIELDS = Schema.from_arrow(SCHEMA)
ONE, TWO = some_fragment(fragment_id=1), some_fragment(fragment_id=2)
FILE = ONE.files[0]
OTHER_A, OTHER_S = (DataFile(f"{field}.lance", (field,), (0,), 2, 2, 10) for field in (0, 1))
NEW = some_fragment()


def index(name: str, *fragments: int, fields: tuple[int, ...] = (0,)) -> IndexMetadata:
    identity = table_pb2.UUID(uuid=f"{name}{fragments}".encode().ljust(16)[:16])
    return parse_index(table_pb2.IndexMetadata(name=name, fields=fields, uuid=identity)).with_fragments(fragments)


def table(*indices: IndexMetadata) -> Manifest:
    created = first_manifest(FIELDS, STABLE)
    return dataclasses.replace(
        created, version=3, fragments=FragmentList((ONE, TWO)), max_fragment_id=2, indices=indices
    )


def with_file(file: DataFile, field: int) -> Any:
    """Return the first fragment with another file for one of its fields."""
    left = dataclasses.replace(FILE, fields=tuple(-2 if other == field else other for other in FILE.fields))
    return dataclasses.replace(ONE, files=(left, file))


DELETED = dataclasses.replace(ONE, deletion_file=DeletionFile(3, 1, DeletionFileType.ARROW_ARRAY, 1))
NEW_FIELDS = Schema((*FIELDS.fields, dataclasses.replace(FIELDS.fields[0], name="b", id=2)))
NEW_FILE = dataclasses.replace(ONE, files=(FILE, DataFile("b.lance", (2,), (0,), 2, 2, 10)))

# What becomes of indices on the columns `a` (field 0) and `s` (field 1), which covered both fragments.
CASES: dict[str, tuple[Any, set[int] | None, set[int] | None]] = {
    "append": (Append((NEW,)), {1, 2}, {1, 2}),
    "delete rows": (Delete((DELETED,), frozenset()), {1, 2}, {1, 2}),
    "delete all": (Delete((), frozenset({1, 2})), {1, 2}, {1, 2}),
    "update": (Update(frozenset(), (DELETED,), (NEW,)), {1, 2}, {1, 2}),
    "update in place": (
        Update(frozenset(), (with_file(OTHER_A, 0),), (), frozenset({0}), rewrites_rows=False),
        {2},
        {1, 2},
    ),
    "data replacement": (DataReplacement(((1, dataclasses.replace(FILE, path="x.lance")),)), {2}, {2}),
    "merge": (Merge((NEW_FILE, TWO), NEW_FIELDS), {1, 2}, {1, 2}),
    "merge of other values": (Merge((with_file(OTHER_S, 1), TWO), FIELDS), {1, 2}, {2}),
    "project": (Project(Schema(FIELDS.fields[:1])), {1, 2}, None),
    "overwrite": (Overwrite((NEW,), FIELDS), None, None),
    "rewrite": (Rewrite((RewriteGroup((ONE,), (NEW,)),)), {2}, {2}),
    "restore": (Restore(1, table()), None, None),
    "reserve": (ReserveFragments(2), {1, 2}, {1, 2}),
    "config": (UpdateConfig(), {1, 2}, {1, 2}),
    "index": (CreateIndex((index("other", 1),)), {1, 2}, {1, 2}),
}


@pytest.mark.parametrize("case", CASES)
def test_operations(case: str) -> None:
    operation, *expected = CASES[case]
    after = operation.apply(table(index("a", 1, 2), index("s", 1, 2, fields=(1,))))
    found = {index.name: set(index.fragment_ids or ()) for index in after.indices}
    assert [found.get(name) for name in ("a", "s")] == expected


LISTS = Schema.from_arrow(pa.schema({"l": pa.list_(pa.int64()), "x": pa.int64()}))
ITEMS, XS = (DataFile(f"{fields[0]}.lance", fields, (0,), 2, 1, 10) for fields in ((1,), (2,)))
OTHER_ITEMS = dataclasses.replace(ITEMS, path="other.lance")
REPLACED = dataclasses.replace(ONE, files=(OTHER_ITEMS, XS))
LISTS_IN_PLACE: dict[str, Any] = {
    "replacement": DataReplacement(((1, OTHER_ITEMS),)),
    "update": Update(frozenset(), (REPLACED,), (), fields_modified=frozenset({1}), rewrites_rows=False),
    "merge": Merge((REPLACED, dataclasses.replace(TWO, files=(ITEMS, XS))), LISTS),
}


@pytest.mark.parametrize("case", LISTS_IN_PLACE)
def test_files_name_lists_by_their_items(case: str) -> None:
    fragments = [dataclasses.replace(each, files=(ITEMS, XS)) for each in (ONE, TWO)]
    before = dataclasses.replace(table(), fragments=FragmentList(fragments), schema=LISTS)
    indices = (index("l", 1, 2), index("x", 1, 2, fields=(2,)))
    after = LISTS_IN_PLACE[case].apply(dataclasses.replace(before, indices=indices))
    assert [set(index.fragment_ids or ()) for index in after.indices] == [{2}, {1, 2}]


def test_ids_of_fragments_are_not_given_out_again() -> None:
    """An index may still name the fragments that had them."""
    emptied = Delete((), frozenset({1, 2})).apply(table(index("a", 1, 2)))
    assert [fragment.id for fragment in Append((NEW,)).apply(emptied).fragments] == [3]
    restored = Restore(1, table()).apply(dataclasses.replace(emptied, max_fragment_id=9))
    assert [fragment.id for fragment in Append((NEW,)).apply(restored).fragments] == [1, 2, 10]


def test_parts_of_an_index_stand_beside_each_other() -> None:
    first, second = index("a", 1), index("a", 2)
    both = CreateIndex((second,)).apply(table(first)).indices
    assert both == (first, second)
    merged = index("a", 1, 2)
    assert CreateIndex((merged,), both).apply(table(*both)).indices == (merged,)


def test_of_a_dropped_column_no_index_comes() -> None:
    dropped = dataclasses.replace(table(), schema=Schema(FIELDS.fields[:1]))
    made = (index("a", 1), index("s", 1, fields=(1,)))
    assert CreateIndex(made).apply(dropped).indices == made[:1]
