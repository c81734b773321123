"""The change feed without Spark: its columns in versions that had others."""

from __future__ import annotations

import pickle
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from connector.source.data_source import LanceDataSource
from lance_format import LanceDataset, LanceOperation, SchemaMismatchError, write_dataset
from tests.spark.test_stream_reader import Stream


def feed(path: str, **options: object) -> list[dict[str, Any]]:
    """Return the changes without their times."""
    source = LanceDataSource({"path": path, "readChangeFeed": "true", **{x: str(y) for x, y in options.items()}})
    reader: Any = source.reader(source.schema())
    parts, worker = pickle.loads(pickle.dumps((reader.partitions(), reader)))
    rows = [row for part in parts for batch in worker.read(part) for row in batch.to_pylist()]
    return [{name: value for name, value in row.items() if name != "_commit_timestamp"} for row in rows]


def streamed(path: str, **options: object) -> list[dict[str, Any]]:
    return [row for batch in Stream(path, **options).batches() for row in batch]


def change(kind: str, version: int, **values: object) -> dict[str, object]:
    return {**values, "_change_type": kind, "_commit_version": version}


def updated(stable: bool) -> tuple[str, str]:
    """Return the kinds of the values before and after an update."""
    return ("update_preimage", "update_postimage") if stable else ("delete", "insert")


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def stable(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def table(path: str, stable: bool) -> LanceDataset:
    return write_dataset({"a": [1], "b": [2]}, path, enable_stable_row_ids=stable)


@pytest.mark.parametrize("library", [lance, lance_format])
def test_before_an_overwrite_columns_go_by_name(table: LanceDataset, path: str, library: Any) -> None:
    """An overwrite numbers fields from 0 again."""
    library.write_dataset(pa.table({"b": [20], "c": [30]}), path, mode="overwrite")
    expected = [change("insert", 1, b=2, c=None), change("delete", 2, b=2, c=None), change("insert", 2, b=20, c=30)]
    assert feed(path, startingVersion=1) == expected
    table.checkout_latest()
    table.alter_columns({"path": "c", "name": "d"})
    expected = [{("d" if name == "c" else name): value for name, value in row.items()} for row in expected]
    assert feed(path, startingVersion=1) == expected


def test_columns_follow_their_field_ids_through_a_restore(table: LanceDataset, path: str) -> None:
    table.alter_columns({"path": "b", "name": "c"})
    table.insert({"a": [3], "c": [4]})
    table.checkout_version(1).restore()
    assert feed(path, startingVersion=2) == [change("insert", 3, a=3, b=4), change("delete", 4, a=3, b=4)]
    write_dataset({"b": [5], "a": [6]}, path, mode="overwrite")
    table.checkout_version(4).restore()
    assert feed(path, startingVersion=5) == [
        change("delete", 5, a=1, b=2),
        change("insert", 5, a=6, b=5),
        change("delete", 6, a=6, b=5),
        change("insert", 6, a=1, b=2),
    ]
    assert feed(path, startingVersion=1, endingVersion=1) == [change("insert", 1, a=1, b=2)]


def test_the_name_of_a_renamed_column_may_be_given_again(table: LanceDataset, path: str) -> None:
    table.alter_columns({"path": "b", "name": "c"})
    table.add_columns(pa.field("b", pa.int64()))
    table.insert({"a": [3], "c": [4], "b": [5]})
    assert feed(path, startingVersion=1) == [change("insert", 1, a=1, c=2, b=None), change("insert", 4, a=3, c=4, b=5)]


def test_columns_that_are_dropped_and_restored_update_their_rows(
    table: LanceDataset, path: str, *, stable: bool
) -> None:
    table.drop_columns(["b"])
    assert feed(path, startingVersion=2) == []
    table.checkout_version(1).restore()
    before, after = updated(stable)
    restored = [change(before, 3, a=1, b=None), change(after, 3, a=1, b=2)]
    assert feed(path, startingVersion=3) == restored
    assert feed(path, startingVersion=2) == [change(before, 2, a=1, b=2), change(after, 2, a=1, b=None), *restored]


@pytest.mark.parametrize("kind", ["struct", "list", "map"])
def test_fields_below_columns_that_are_dropped_and_restored_update_their_rows(path: str, kind: str) -> None:
    below = pa.struct([("x", pa.int64()), ("y", pa.int64())])
    types = {"struct": below, "list": pa.list_(below), "map": pa.map_(pa.string(), below)}

    def value(x: int | None) -> Any:
        first = {"x": x, "y": 2}
        return {"struct": first, "list": [first], "map": [("k", first)]}[kind]

    rows = pa.table({"a": [1], "s": pa.array([value(1)], types[kind])})
    table = write_dataset(rows, path, data_storage_version="2.2", enable_stable_row_ids=True)
    table.drop_columns([{"struct": "s.x", "list": "s.item.x", "map": "s.entries.value.x"}[kind]])
    table.checkout_version(1).restore()
    before, after = updated(stable=True)
    assert feed(path, startingVersion=2) == [
        change(before, 2, a=1, s=value(1)),
        change(after, 2, a=1, s=value(None)),
        change(before, 3, a=1, s=value(None)),
        change(after, 3, a=1, s=value(1)),
    ]


def test_a_restore_updates_rows_beside_those_that_were_updated_in_place(path: str) -> None:
    table = write_dataset({"a": [1, 2], "b": [3, 4], "c": [5, 6]}, path, enable_stable_row_ids=True)
    update_in_place(path, {"a": [2], "c": [8]}, with_lineage=False)
    update_in_place(path, {"a": [1], "c": [7]}, with_lineage=True)
    table.checkout_version(1).restore()
    table.checkout_version(3).restore()
    table.drop_columns(["b"])
    table.checkout_version(1).restore()
    found = feed(path, startingVersion=4, endingVersion=4)
    assert [(row["a"], row["c"]) for row in found] == [(1, 7), (2, 8), (1, 5), (2, 6)]
    found = feed(path, startingVersion=7)
    assert [(row["a"], row["b"]) for row in found] == [(1, None), (2, None), (1, 3), (2, 4)]


def update_in_place(path: str, values: dict[str, Any], *, with_lineage: bool) -> None:
    fragment = lance_format.dataset(path).get_fragments()[0]
    updated, fields, *offsets = fragment.update_columns(pa.table(values), "a", "a", with_offsets=with_lineage)
    operation = LanceOperation.Update(
        updated_fragments=[updated],
        fields_modified=fields,
        update_mode="rewrite_columns",
        updated_fragment_offsets={0: offsets[0]} if with_lineage else None,
    )
    LanceDataset.commit(path, operation, read_version=lance_format.dataset(path).version)


def test_an_append_needs_no_version_before_it(table: LanceDataset, path: str) -> None:
    table.insert({"a": [3], "b": [4]})
    table.cleanup_old_versions(retain_versions=1)
    assert feed(path, startingVersion=2) == [change("insert", 2, a=3, b=4)]


@pytest.mark.parametrize("library", [lance, lance_format])
def test_a_branch_begins_with_no_change(table: LanceDataset, path: str, library: Any) -> None:
    table.update({"b": "7"}, "a = 1")
    library.dataset(path).create_branch("trial", 2)
    branch = lance_format.dataset(f"{path}/tree/trial")
    branch.insert({"a": [3], "b": [4]})
    expected = [change("insert", 3, a=3, b=4)]
    for start in ({"startingVersion": 2}, {"startingTimestamp": "2020-01-01 00:00:00Z"}):
        assert feed(path, branch="trial", **start) == expected
        assert [row["a"] for row in streamed(path, branch="trial", readChangeFeed=True, **start)] == [3]


def test_all_rows_of_version_1_are_new_in_a_branch(table: LanceDataset, path: str) -> None:
    table.create_branch("trial", 1)
    assert feed(path, branch="trial", startingVersion=1) == [change("insert", 1, a=1, b=2)]
    assert streamed(path, branch="trial", startingVersion=1) == [{"a": 1, "b": 2}]


def test_versions_that_keep_rows_need_no_version_before_them(table: LanceDataset, path: str) -> None:
    table.insert({"a": [3], "b": [4]})
    table.optimize.compact_files()
    table.cleanup_old_versions(retain_versions=1)
    table.insert({"a": [5], "b": [6]})
    assert feed(path, startingVersion=3) == [change("insert", 4, a=5, b=6)]


def test_earlier_versions_lack_columns_that_are_not_null(table: LanceDataset, path: str, *, stable: bool) -> None:
    lance.dataset(path).add_columns({"c": "'x'"})
    table.checkout_latest()
    assert not table.schema.field("c").nullable
    before, after = updated(stable)
    expected = [
        change("insert", 1, a=1, b=2, c=None),
        change(before, 2, a=1, b=2, c=None),
        change(after, 2, a=1, b=2, c="x"),
    ]
    assert feed(path, startingVersion=1) == expected
    assert [row["c"] for row in streamed(path, readChangeFeed=True, startingVersion=1)] == [None, None, "x"]
    with pytest.raises(
        SchemaMismatchError, match="before 2 lack the column 'c', which must not be null: let it be null"
    ):
        streamed(path, startingVersion=1, ignoreChanges=True)
    table.alter_columns({"path": "c", "nullable": True})
    assert streamed(path, startingVersion=1, ignoreChanges=True)[0] == {"a": 1, "b": 2, "c": None}
