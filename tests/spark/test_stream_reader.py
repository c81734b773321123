"""The stream source without Spark: offsets, batches, and what versions deliver, restarted between any two batches."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from connector.options.options import LanceOptions
from connector.source.data_source import LanceDataSource
from connector.stream.offsets import Offset
from connector.stream.source import LIMITS_BATCHES, create_stream_reader
from lance_format import (
    ChangeLog,
    InvalidInputError,
    LanceDataset,
    NotSupportedError,
    SchemaMismatchError,
    VersionNotFoundError,
    dataset,
    write_dataset,
)
from lance_format.object_store.local import LocalStore
from lance_format.object_store.store import FirstNames
from lance_format.table.format.table_directory import TableDirectory
from tests.table.versions.test_old_tables import _change_latest as change_latest

needs_limits = pytest.mark.skipif(not LIMITS_BATCHES, reason="Spark 4.1 does not let sources limit batches")


def flat(batches: list[list[int]]) -> list[int]:
    return list(itertools.chain.from_iterable(batches))


def latest(reader: Any, start: dict[str, Any]) -> dict[str, Any]:
    """Return where the next batch ends, as Spark asks for it."""
    found = reader.latestOffset(start, reader.getDefaultReadLimit()) if LIMITS_BATCHES else reader.latestOffset()
    assert isinstance(found, dict)
    return found


class Stream:
    """What Spark does with a source: each batch by a reader of its own, as after a restart."""

    def __init__(self, path: str, **options: object) -> None:
        self.options = {"path": path, **{name: str(value) for name, value in options.items()}}
        self.offset: dict[str, Any] | None = None

    def reader(self) -> Any:
        source = LanceDataSource(dict(self.options))
        schema = source.schema()
        return source.streamReader(schema)

    def batch(self) -> list[dict[str, Any]] | None:
        """Return the rows of the next batch, None if there is none."""
        reader = self.reader()
        if self.offset is None:
            self.offset = reader.initialOffset()
        start = self.offset
        end = latest(reader, start)
        start, end = json.loads(json.dumps(start)), json.loads(json.dumps(end))
        if start == end:
            return None
        rows = self.between(start, end)
        assert self.between(start, end) == rows
        reader.commit(end)
        self.offset = end
        return rows

    def between(self, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
        reader = self.reader()
        parts = pickle.loads(pickle.dumps(reader.partitions(start, end)))
        worker = pickle.loads(pickle.dumps(reader))
        return [row for part in parts for batch in worker.read(part) for row in batch.to_pylist()]

    def batches(self) -> list[list[dict[str, Any]]]:
        found = []
        while (rows := self.batch()) is not None:
            found.append(rows)
        return found

    def ids(self) -> list[list[int]]:
        return [sorted(row["id"] for row in rows) for rows in self.batches()]


def numbers(start: int, stop: int) -> pa.Table:
    return pa.table({"id": range(start, stop), "v": [str(number) for number in range(start, stop)]})


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def table(request: pytest.FixtureRequest, path: str) -> LanceDataset:
    return write_dataset(numbers(0, 10), path, max_rows_per_file=4, enable_stable_row_ids=request.param)


@needs_limits
@pytest.mark.parametrize("limit", [{"maxFilesPerTrigger": 2}, {"maxBytesPerTrigger": 1}])
def test_the_snapshot_and_appends_come_in_order_and_once(table: LanceDataset, path: str, limit: dict[str, int]) -> None:
    stream = Stream(path, **limit)
    size = limit.get("maxFilesPerTrigger", 1)
    fragments = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert stream.batch() == numbers(0, 4 * size).to_pylist()
    table.optimize.compact_files()
    lance.dataset(path).insert(numbers(10, 14))
    table = dataset(path)
    table.insert(numbers(14, 20), max_rows_per_file=3)
    table.optimize.compact_files()
    table.update_config({"note": "x"})
    rest = stream.ids()
    assert flat(rest) == flat(fragments[size:]) + list(range(10, 20))
    assert max(map(len, rest)) <= 4 * size
    assert stream.batch() is None
    table.insert(numbers(20, 22))
    assert stream.ids() == [[20, 21]]


def test_without_limits_all_that_is_new_is_one_batch(table: LanceDataset, path: str) -> None:
    stream = Stream(path)
    assert stream.ids() == [list(range(10))]
    for start in (10, 12, 14):
        table.insert(numbers(start, start + 2))
    assert stream.ids() == [list(range(10, 16))]


@needs_limits
def test_available_now_ends_where_it_began(table: LanceDataset, path: str) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

    reader = Stream(path, maxFilesPerTrigger=1).reader()
    reader.prepareForTriggerAvailableNow()
    table.insert(numbers(10, 12))
    offset, seen = reader.initialOffset(), []
    assert reader.getDefaultReadLimit() == ReadMaxFiles(1)
    while seen[-1:] != [offset]:
        seen.append(offset)
        offset = reader.latestOffset(offset, ReadMaxFiles(1))
    assert [(found["version"], found["index"]) for found in seen] == [(1, 0), (1, 1), (1, 2), (2, 0)]
    assert reader.latestOffset(seen[0], ReadAllAvailable()) == seen[-1]
    assert reader.reportLatestOffset()["version"] == 2


def keep_rows(table: LanceDataset) -> None:
    table.optimize.compact_files()
    table.update_config({"a": "b"})
    table.create_scalar_index("id", "ZONEMAP")
    table.add_columns({"w": "id * 2"})
    table.drop_columns(["w"])


def test_versions_that_keep_rows_deliver_nothing(table: LanceDataset, path: str) -> None:
    stream = Stream(path, columns="id")
    stream.batches()
    keep_rows(table)
    lance.dataset(path).optimize.compact_files()
    assert stream.ids() in ([], [[]])
    source = {"id": [30], "v": ["30"]}
    dataset(path).merge_insert("id").when_not_matched_insert_all().execute(source)
    assert stream.ids() == [[30]]


CHANGES = {
    "delete": lambda table: table.delete("id < 5"),
    "update": lambda table: table.update({"v": "'new'"}, "id < 2"),
    "merge": lambda table: (
        table.merge_insert("id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute({"id": [1, 40], "v": ["new", "40"]})
    ),
    "overwrite": lambda table: table.insert(numbers(50, 52), mode="overwrite"),
    "restore": lambda table: (table.delete("id = 1"), table.checkout_version(1).restore()),
}
DELIVERED = {"delete": [], "update": [0, 1], "merge": [1, 40], "overwrite": [50, 51], "restore": [1]}


@pytest.mark.slow
@pytest.mark.parametrize("change", list(CHANGES))
def test_changes_of_rows_are_refused_or_ignored(table: LanceDataset, path: str, change: str) -> None:
    stream = Stream(path)
    stream.batches()
    start = stream.offset
    CHANGES[change](table)
    dataset(path).insert(numbers(90, 91))
    did = "deleted rows" if change in ("delete", "restore") else "changed rows"
    with pytest.raises(InvalidInputError, match=rf"version 2 of .* {did}.*skipChangeCommits=true.*ignoreChanges=true"):
        stream.batch()
    found = {}
    for option in ("skipChangeCommits", "ignoreChanges", "ignoreDeletes"):
        stream.options = {"path": path, option: "true"}
        stream.offset = start
        if option == "ignoreDeletes" and change not in ("delete", "restore"):
            with pytest.raises(InvalidInputError, match="changed rows"):
                stream.ids()
            continue
        found[option] = sorted(flat(stream.ids()))
    assert found["skipChangeCommits"] == ([1, 90] if change == "restore" else [90])
    assert found["ignoreChanges"] == [*DELIVERED[change], 90]
    assert found.get("ignoreDeletes") == {"delete": [90], "restore": [1, 90]}.get(change)


def test_a_changed_schema_stops_the_stream_until_it_is_restarted(table: LanceDataset, path: str) -> None:
    stream = Stream(path)
    reader = stream.reader()
    start = reader.initialOffset()
    table.insert(numbers(10, 11))
    table.add_columns({"w": "id * 2"})
    table.alter_columns({"path": "v", "name": "text"})
    table.insert({"id": [11], "text": ["11"], "w": [22]})
    end = Offset(6).to_json()
    with pytest.raises(SchemaMismatchError, match=r"version 3 .*changed the columns.*w int64; restart the query"):
        reader.partitions(start, end)
    rows = stream.between(start, end)
    assert rows[9:] == [
        {"id": 9, "text": "9", "w": None},
        {"id": 10, "text": "10", "w": None},
        {"id": 11, "text": "11", "w": 22},
    ]


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("library", [dataset, lance.dataset])
def test_columns_that_were_renamed_and_cast_keep_their_values(
    table: LanceDataset, path: str, library: Any, at_once: bool
) -> None:
    table.add_columns({"n": "cast(id as int)"})
    table.add_columns({"m": "'another'"})
    table.drop_columns(["m"])
    rename, cast = {"path": "n", "name": "m"}, {"data_type": pa.int64()}
    changes = [{**rename, **cast}] if at_once else [rename, {"path": "m", **cast}]
    for change in changes:
        library(path).alter_columns(change)
    start, end = Offset.initial(2, is_snapshot=True, after="").to_json(), Offset(3).to_json()
    found = [(row["id"], row["m"]) for row in Stream(path).between(start, end)]
    assert found == [(number, number) for number in range(10)]
    assert [row["m"] for row in Stream(path, filter="m >= 8").between(start, end)] == [8, 9]
    feed = Stream(path, readChangeFeed=True, startingVersion=2).between(Offset(2).to_json(), end)
    assert sorted(row["m"] for row in feed if row["m"] is not None) == list(range(10))


@pytest.mark.parametrize("change", ["compaction", "restore"])
def test_a_column_with_the_id_of_one_that_was_dropped_is_another(table: LanceDataset, path: str, change: str) -> None:
    table.add_columns({"old": "id"})
    if change == "restore":
        dataset(path, version=1).restore()
    else:
        table.drop_columns(["old"])
        dataset(path).optimize.compact_files()
    dataset(path).add_columns({"new": "id * 7"})
    ids = [{field.name(): field.id() for field in lance_schema.fields()} for lance_schema in _schemas(path, 2)]
    assert ids[0]["old"] == ids[-1]["new"]
    start, end = Offset.initial(2, is_snapshot=True, after="").to_json(), Offset(3).to_json()
    assert [row["new"] for row in Stream(path).between(start, end)] == [None] * 10


@pytest.mark.parametrize("kind", ["struct", "list", "map"])
def test_fields_below_columns_are_found_by_their_ids(path: str, kind: str) -> None:
    below = pa.struct([("a", pa.int32()), ("b", pa.int32()), ("c", pa.int32())])
    types = {"struct": below, "list": pa.list_(below), "map": pa.map_(pa.string(), below)}
    first = {"a": 1, "b": 2, "c": 3}
    values = {"struct": first, "list": [first], "map": [("k", first)]}
    first_rows = pa.table({"id": [1, 2], "s": pa.array([values[kind], None], types[kind])})
    table = write_dataset(first_rows, path, data_storage_version="2.2")
    at = {"struct": "s", "list": "s.item", "map": "s.entries.value"}[kind]
    for name, other in (("a", "x"), ("b", "a"), ("x", "b")):
        table.alter_columns({"path": f"{at}.{name}", "name": other})
    if kind == "struct":
        table.alter_columns({"path": f"{at}.b", "data_type": pa.int64()})
    table.drop_columns([f"{at}.c"])
    added = pa.struct([("b", pa.int64()), ("a", pa.int32()), ("c", pa.int32())])
    if kind == "struct":
        rows = pa.table({"id": [3], "s": pa.array([{"b": 4, "a": 5, "c": 6}], added)})
        write_dataset(rows, path, mode="append", merge_schema=True)
    start, end = Offset.initial(1, is_snapshot=True, after="").to_json(), Offset(dataset(path).version + 1).to_json()
    expected = {"b": 1, "a": 2, "c": None} if kind == "struct" else {"b": 1, "a": 2}
    found = [row["s"] for row in Stream(path).between(start, end)]
    assert found[:2] == [{"struct": expected, "list": [expected], "map": [("k", expected)]}[kind], None]
    assert [row["id"] for row in Stream(path, filter="s IS NULL").between(start, end)] == [2]
    if kind == "struct":
        assert found[2:] == [{"b": 4, "a": 5, "c": 6}]
        for predicate, ids in (("s.b = 1", [1]), ("s.a = 2", [1]), ("s.c = 3", []), ("s.c = 6 OR s.a > 9", [3])):
            assert [row["id"] for row in Stream(path, filter=predicate).between(start, end)] == ids
        table = dataset(path)
        table.alter_columns({"path": "s", "name": "t"})
        assert [row["id"] for row in Stream(path, filter="t.b = 1").between(start, end)] == [1]


def test_a_column_with_the_name_of_one_that_was_dropped_is_another(table: LanceDataset, path: str) -> None:
    table.drop_columns(["v"])
    table.add_columns({"v": "id * 7"})
    start, end = Offset.initial(1, is_snapshot=True, after="").to_json(), Offset(2).to_json()
    assert [row["v"] for row in Stream(path).between(start, end)] == [None] * 10
    assert [row["id"] for row in Stream(path, filter="v IS NULL AND id > 7").between(start, end)] == [8, 9]


def test_a_column_with_the_name_and_the_id_of_one_that_was_dropped_is_another(table: LanceDataset, path: str) -> None:
    table.drop_columns(["v"])
    write_dataset({"id": [10]}, path, mode="append")
    dataset(path).optimize.compact_files()
    dataset(path).add_columns({"v": "cast(id * 7 AS string)"})
    assert _schemas(path, 1)[0] == _schemas(path, 1)[-1]
    start, end = Offset.initial(1, is_snapshot=True, after="").to_json(), Offset(2).to_json()
    assert [row["v"] for row in Stream(path).between(start, end)] == [None] * 10
    assert Stream(path, filter="v IS NOT NULL").between(start, end) == []
    feed = Stream(path, readChangeFeed=True, startingVersion=1)
    changes = feed.between(Offset(1).to_json(), Offset(dataset(path).version + 1).to_json())
    assert {row["_commit_version"] for row in changes if row["v"] is not None} == {dataset(path).version}
    write_dataset(numbers(11, 13), path, mode="append")
    start, end = Offset(dataset(path).version).to_json(), Offset(dataset(path).version + 1).to_json()
    write_dataset(numbers(13, 14), path, mode="append")
    dataset(path).optimize.compact_files()
    assert [row["v"] for row in Stream(path).between(start, end)] == ["11", "12"]


def _schemas(path: str, first: int) -> list[Any]:
    return [dataset(path, version=number).lance_schema for number in range(first, dataset(path).version + 1)]


def test_a_restore_that_undoes_a_compaction_too_brings_back_values(table: LanceDataset, path: str) -> None:
    table.optimize.compact_files()
    table.drop_columns(["v"])
    dataset(path, version=1).restore()
    stream = Stream(path, readChangeFeed=True, startingVersion=3)
    feed = [row for row in flat(stream.batches()) if row["_commit_version"] == 4]
    kinds = ("update_preimage", "update_postimage") if table.has_stable_row_ids else ("delete", "insert")
    assert [(row["id"], row["v"]) for row in feed if row["_change_type"] == kinds[0]] == [(n, None) for n in range(10)]
    assert [(row["id"], row["v"]) for row in feed if row["_change_type"] == kinds[1]] == [
        (n, str(n)) for n in range(10)
    ]


def _changes_of(path: str, version: int) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows that a version changed, by the kind of the change."""
    start, end = Offset(version).to_json(), Offset(version + 1).to_json()
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in Stream(path, readChangeFeed=True, startingVersion=version).between(start, end):
        found.setdefault(row["_change_type"], []).append((row["id"], row["v"]))
    return {kind: sorted(rows) for kind, rows in found.items()}


@pytest.fixture
def stable(path: str) -> LanceDataset:
    return write_dataset(numbers(0, 10), path, max_rows_per_file=4, enable_stable_row_ids=True)


def _update_in_place(path: str, *columns: str) -> None:
    """Update the first row of the first fragment, as pylance does: without a record of the row."""
    table = lance.dataset(path)
    new = pa.table(
        {"_rowid": pa.array([0], pa.uint64()), **{name: [-1] if name == "id" else ["new"] for name in columns}}
    )
    fragment, modified = table.get_fragments()[0].update_columns(new)
    operation = lance.LanceOperation.Update(updated_fragments=[fragment], fields_modified=modified)
    lance.LanceDataset.commit(path, operation, read_version=table.version)


@pytest.mark.parametrize("detour", [False, True])
def test_a_restore_undoes_updates_that_no_row_records(stable: LanceDataset, path: str, detour: bool) -> None:
    _update_in_place(path, "v")
    if detour:  # by way of a restore: of the version with the update, whose changes are those of version 2
        dataset(path, version=1).restore()
        dataset(path, version=2).restore()
    dataset(path).optimize.compact_files()
    dataset(path).delete("id = 3")
    dataset(path, version=1).restore()
    rows = [(number, str(number)) for number in range(4)]
    assert _changes_of(path, dataset(path).version) == {
        "update_preimage": [(0, "new"), *rows[1:3]],
        "update_postimage": rows[:3],
        "insert": rows[3:],
    }


def test_a_restore_redoes_updates_that_no_row_records(stable: LanceDataset, path: str) -> None:
    _update_in_place(path, "v")
    dataset(path, version=1).restore()
    dataset(path).optimize.compact_files()
    dataset(path, version=2).restore()
    rows = [(number, str(number)) for number in range(4)]
    assert _changes_of(path, 5) == {"update_preimage": rows, "update_postimage": [(0, "new"), *rows[1:]]}


def test_a_restore_undoes_updates_of_all_columns(stable: LanceDataset, path: str) -> None:
    _update_in_place(path, "id", "v")
    dataset(path, version=1).restore()
    rows = [(number, str(number)) for number in range(4)]
    assert _changes_of(path, 3) == {"update_preimage": [(-1, "new"), *rows[1:]], "update_postimage": rows}


def test_a_restored_column_whose_id_another_one_had_has_its_values(stable: LanceDataset, path: str) -> None:
    stable.drop_columns(["v"])
    dataset(path).optimize.compact_files()
    dataset(path).add_columns(pa.field("other", pa.string()))
    ids = [{field.name(): field.id() for field in lance_schema.fields()} for lance_schema in _schemas(path, 1)]
    assert ids[0]["v"] == ids[-1]["other"]
    dataset(path, version=1).restore()
    assert _changes_of(path, 5) == {
        "update_preimage": [(number, None) for number in range(10)],
        "update_postimage": [(number, str(number)) for number in range(10)],
    }


def test_rows_that_a_restore_moves_count_as_updated_if_a_version_is_gone(stable: LanceDataset, path: str) -> None:
    _update_in_place(path, "v")
    dataset(path).optimize.compact_files()
    dataset(path, version=1).restore()
    dataset(path, version=3).cleanup_old_versions(datetime.timedelta(0))
    assert [item["version"] for item in dataset(path).versions()] == [3, 4]
    rows = [(number, str(number)) for number in range(10)]
    assert _changes_of(path, 4) == {"update_preimage": [(0, "new"), *rows[1:]], "update_postimage": rows}


def test_a_batch_has_rows_twice_that_a_restore_brings_back(table: LanceDataset, path: str) -> None:
    stream = Stream(path, ignoreChanges=True)
    stream.batches()
    table.insert(numbers(10, 14))
    table.optimize.compact_files()
    dataset(path, version=2).restore()
    dataset(path).insert(numbers(14, 16))
    restored = [] if table.has_stable_row_ids else range(14)
    assert sorted(flat(stream.ids())) == sorted([*range(10, 14), *restored, 14, 15])


def test_a_filter_is_about_the_columns_of_the_latest_version(table: LanceDataset, path: str) -> None:
    table.add_columns({"a": "id", "b": "9 - id"})
    table.alter_columns({"path": "a", "name": "c"})
    table.alter_columns({"path": "b", "name": "a"})
    table.add_columns({"d": "id"})
    start, end = Offset.initial(2, is_snapshot=True, after="").to_json(), Offset(3).to_json()

    def found(predicate: str, **options: str) -> list[int]:
        return [row["id"] for row in Stream(path, filter=predicate, **options).between(start, end)]

    assert found("c = 1") == [1]
    assert found("a = 1") == [8]
    assert found("A + c = 9 AND id IN (1, 3)", columns="id") == [1, 3]
    assert found("d = 1") == []
    assert found("d IS NULL AND a > 7") == [0, 1]
    feed = Stream(path, filter="a = 1", readChangeFeed="true", startingVersion="2")
    assert [(row["id"], row["a"]) for row in feed.between(Offset(2).to_json(), end) if row["a"] == 1][-1:] == [(8, 1)]


def test_a_changed_column_of_the_filter_stops_the_stream(table: LanceDataset, path: str) -> None:
    stream = Stream(path, columns="id", filter="v = '3'")
    reader = stream.reader()
    table.alter_columns({"path": "v", "name": "w"})
    with pytest.raises(SchemaMismatchError, match="changed the columns"):
        reader.partitions(Offset(2).to_json(), Offset(3).to_json())


def test_fragments_that_share_an_id_are_refused(path: str) -> None:
    for first in (0, 10, 20):
        write_dataset(numbers(first, first + 10), path, mode="append")
    change_latest(Path(path), lambda message: setattr(message.fragments[2], "id", 1))
    for options in ({}, {"startingVersion": 3}, {"readChangeFeed": True}):
        with pytest.raises(NotSupportedError, match="several fragments of the id 1, which streams"):
            Stream(path, **options).batches()
    write_dataset(numbers(30, 35), path, mode="append")
    assert Stream(path, startingVersion=4).ids() == [list(range(30, 35))]


def test_cleanups_lose_what_was_not_read(table: LanceDataset, path: str) -> None:
    stream = Stream(path)
    stream.batches()
    for start in (10, 11, 12):
        table.insert(numbers(start, start + 1))
    fresh = Stream(path, startingVersion=2)
    fresh.offset = fresh.reader().initialOffset()
    table.cleanup_old_versions(retain_versions=1)
    for behind in (stream, fresh):
        with pytest.raises(VersionNotFoundError, match=r"version 2 .*removed by a cleanup.*tag.*failOnDataLoss=false"):
            behind.batch()
        behind.options["failOnDataLoss"] = "false"
        assert behind.ids() == [[12]]
    with pytest.raises(VersionNotFoundError, match="startingVersion 2 is not there"):
        Stream(path, startingVersion=2).batch()


@needs_limits
def test_a_snapshot_that_was_removed_is_a_loss(table: LanceDataset, path: str) -> None:
    stream = Stream(path, maxFilesPerTrigger=1)
    assert stream.batch() == numbers(0, 4).to_pylist()
    table.insert(numbers(10, 11))
    table.cleanup_old_versions(retain_versions=1)
    with pytest.raises(VersionNotFoundError, match=r"version 1 .*removed by a cleanup"):
        stream.batch()
    stream.options["failOnDataLoss"] = "false"
    assert stream.ids() == [[10]]


def test_columns_are_found_without_the_versions_before_what_is_read(table: LanceDataset, path: str) -> None:
    stream = Stream(path, readChangeFeed=True)
    table.add_columns({"n": "cast(id as int)"})
    stream.batches()
    table.alter_columns({"path": "n", "data_type": pa.int64()})
    dataset(path, version=2).restore()
    dataset(path, version=2).cleanup_old_versions(datetime.timedelta(0))
    assert [item["version"] for item in dataset(path).versions()] == [2, 3, 4]
    assert {(row["n"], row["id"]) for row in flat(stream.batches())} <= {(number, number) for number in range(10)}


def test_columns_go_by_name_around_a_restore_of_a_version_that_is_gone(table: LanceDataset, path: str) -> None:
    table.insert({"id": [10], "v": ["10"]})
    stream = Stream(path, ignoreChanges=True)
    stream.batches()
    table.insert({"id": [11], "v": ["11"]})
    dataset(path, version=1).restore()
    dataset(path).add_columns({"n": "id * 2"})
    dataset(path, version=2).cleanup_old_versions(datetime.timedelta(0))
    assert [item["version"] for item in dataset(path).versions()] == [2, 3, 4, 5]
    assert flat(stream.batches()) == [{"id": 11, "v": "11", "n": None}]


@pytest.mark.parametrize("library", [write_dataset, lance.write_dataset])
@pytest.mark.parametrize("kind", ["top", "struct", "map"])
def test_columns_that_were_renamed_before_an_overwrite_keep_their_values(path: str, kind: str, library: Any) -> None:
    def rows(numbers: list[int], *names: str) -> pa.Table:
        below = pa.struct([(name, pa.int64()) for name in names])
        if kind == "top":
            return pa.table({"id": numbers, **{name: [n * 10 for n in numbers] for name in names}})
        values = [dict.fromkeys(names, n * 10) for n in numbers]
        if kind == "struct":
            return pa.table({"id": numbers, "s": pa.array(values, below)})
        return pa.table({"id": numbers, "s": pa.array([[("k", x)] for x in values], pa.map_(pa.string(), below))})

    at = {"top": "", "struct": "s.", "map": "s.entries.value."}[kind]
    table = write_dataset(rows([1, 2], "gone", "was", "also"), path, data_storage_version="2.2")
    table.drop_columns([f"{at}gone"])
    table.alter_columns({"path": f"{at}was", "name": "now"})
    table.delete("id = 2")
    library(rows([3], "now", "also"), path, mode="overwrite", data_storage_version="2.2")
    stream = Stream(path, readChangeFeed=True, startingVersion=1)
    changes = flat(stream.batches())
    seen = [(row["_change_type"], row["_commit_version"], row["id"]) for row in changes]
    assert seen == [("insert", 1, 1), ("insert", 1, 2), ("delete", 4, 2), ("delete", 5, 1), ("insert", 5, 3)]
    for row in changes:
        found = row if kind == "top" else row["s"] if kind == "struct" else row["s"][0][1]
        assert {"now": found["now"], "also": found["also"]} == dict.fromkeys(("now", "also"), row["id"] * 10)


def test_a_column_with_the_name_and_the_id_of_one_before_an_overwrite_is_another(
    table: LanceDataset, path: str
) -> None:
    table.alter_columns({"path": "v", "name": "w"})
    lance.write_dataset(numbers(10, 11), path, mode="overwrite")
    assert _schemas(path, 1)[0] == _schemas(path, 1)[-1]
    changes = flat(Stream(path, readChangeFeed=True, startingVersion=1).batches())
    assert {(row["_change_type"], row["v"]) for row in changes} == {
        ("insert", None),
        ("delete", None),
        ("insert", "10"),
    }
    dataset(path, version=2).restore()
    changes = flat(Stream(path, readChangeFeed=True, startingVersion=1).batches())
    assert sorted(row["w"] for row in changes if row["w"] is not None) == sorted([*map(str, range(10))] * 3)


def test_values_that_do_not_fit_since_an_overwrite_are_named_with_the_remedy(table: LanceDataset, path: str) -> None:
    stream = Stream(path, ignoreChanges=True)
    stream.batches()
    table.insert({"id": [10], "v": ["x"]})
    write_dataset({"id": [20], "v": [7]}, path, mode="overwrite")
    with pytest.raises(
        NotSupportedError, match=r"version 2 of .*'v': string does not fit.*leave .* by the option columns"
    ):
        stream.batch()
    stream.options["columns"] = "id"
    assert flat(stream.ids()) == [10, 20]


def test_another_table_at_the_same_path_is_recognised(table: LanceDataset, path: str) -> None:
    stream = Stream(path)
    stream.batches()
    table.delete("true")  # keeps a reference in use
    for mode in ("shorter", "longer"):
        LanceDataset.drop(path)
        made = write_dataset(numbers(0, 3), path)
        if mode == "longer":
            made.insert(numbers(3, 5))
        with pytest.raises(InvalidInputError, match=r"not the one that the checkpoint is of.*another checkpoint"):
            stream.batch()


def test_where_streams_start(table: LanceDataset, path: str) -> None:
    table.insert(numbers(10, 12))
    time = table.versions()[-1]["timestamp"].astimezone(datetime.UTC)
    table.insert(numbers(12, 13))
    for start in ({"startingVersion": 2}, {"startingTimestamp": time.isoformat(sep=" ")}):
        assert Stream(path, **start).ids() == [[10, 11, 12]]
    assert Stream(path, startingVersion=1).ids() == [list(range(13))]
    latest = Stream(path, startingVersion="latest")
    assert flat(latest.ids()) == []
    table.insert(numbers(13, 14))
    assert flat(latest.ids()) == [13]
    for start, message in (
        ({"startingVersion": 5}, "startingVersion 5 is later than version 4"),
        ({"startingTimestamp": "2999-01-01 00:00:00+00:00"}, "startingTimestamp is too late"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            Stream(path, **start).batch()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"version": 1}, "'version' names one version"),
        ({"tag": "x"}, "'tag' names one version"),
        ({"timestampAsOf": "2020-01-01 00:00:00+00:00"}, "'timestamp' names one version"),
        ({"endingVersion": 1}, "are for batches"),
        ({"metadata_table": "files"}, "cannot be read as a stream"),
        ({"startingVersion": 0}, "whole number from 1"),
        ({"startingVersion": 1, "startingTimestamp": "2020-01-01 00:00:00+00:00"}, "contradict each other"),
        ({"ignoreChanges": "true", "skipChangeCommits": "true"}, "contradict each other"),
        ({"readChangeFeed": "true", "ignoreDeletes": "true"}, "contradict each other"),
        ({"maxBytesPerTrigger": "many"}, "number of bytes"),
        ({"maxFilesPerTrigger": 2**31}, "whole number from 1 to 2147483647"),
        ({"maxRowsPerTrigger": "1"}, "unknown option"),
    ],
)
def test_options_that_do_not_work_are_refused_by_name(path: str, options: dict[str, Any], message: str) -> None:
    write_dataset({"id": [1]}, path)
    with pytest.raises(InvalidInputError, match=message):
        create_stream_reader(
            LanceOptions.parse({"path": path, **{k: str(v) for k, v in options.items()}}), StructType()
        )


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ({"version": 1}, "is not one of a stream"),
        ({**Offset(1).to_json(), "version": "1"}, "is not one of a stream"),
        ({"format": 2, "version": 1}, "written by a later release"),
    ],
)
def test_foreign_offsets_are_refused(stored: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Offset.parse(stored)


def test_offsets_that_are_in_checkpoints_are_read() -> None:
    stored = (
        '{"format": 1, "version": 7, "index": 3, "isSnapshot": true, "after": "0a", "isInitial": false,'
        ' "startVersion": 7, "startIsSnapshot": true}'
    )
    assert json.dumps(Offset.parse(json.loads(stored)).to_json()) == stored


@pytest.mark.parametrize("start", [{}, {"startingVersion": "latest"}, {"startingVersion": 1}])
@pytest.mark.parametrize("limit", [{"maxFilesPerTrigger": 1}, {}] if LIMITS_BATCHES else [{}])
def test_a_first_batch_that_is_repeated_starts_where_it_started(
    table: LanceDataset, path: str, start: dict[str, Any], limit: dict[str, Any]
) -> None:
    stream = Stream(path, **start, **limit)
    reader = stream.reader()
    first = reader.initialOffset()
    table.insert(numbers(10, 12))
    end = latest(reader, first)
    rows = stream.between(first, end)
    assert rows
    table.insert(numbers(12, 14))
    again = stream.reader().initialOffset()  # Spark has not kept the first one
    assert again == first or "startingVersion" not in start or start["startingVersion"] == "latest"
    assert stream.between(again, end) == rows
    stream.offset = end
    after = flat(stream.ids())
    assert sorted([row["id"] for row in rows] + after) == list(range(10 if "latest" in start.values() else 0, 14))


def test_branches_are_streamed(table: LanceDataset, path: str) -> None:
    branch = table.create_branch("work")
    stream = Stream(path, branch="work")
    assert stream.ids() == [list(range(10))]
    table.insert(numbers(70, 71))
    branch.insert(numbers(80, 81))
    assert stream.ids() == [[80]]


def test_changes_as_a_stream(table: LanceDataset, path: str) -> None:
    stream = Stream(path, readChangeFeed="true")
    [rows] = stream.batches()
    assert [(row["id"], row["_change_type"], row["_commit_version"]) for row in rows] == [
        (number, "insert", 1) for number in range(10)
    ]
    table.delete("id = 3")
    table.optimize.compact_files()
    table.update({"v": "'new'"}, "id = 4")
    [rows] = stream.batches()
    updates = ("update_preimage", "update_postimage") if table.has_stable_row_ids else ("delete", "insert")
    assert [(row["id"], row["v"], row["_change_type"], row["_commit_version"]) for row in rows] == [
        (3, "3", "delete", 2),
        (4, "4", updates[0], 4),
        (4, "new", updates[1], 4),
    ]


def test_a_stream_of_changes_has_the_updates_that_a_batch_has(table: LanceDataset, path: str) -> None:
    stream = Stream(path, readChangeFeed="true", columns="id")
    stream.batches()
    table.update({"v": "'new'"}, "id = 4")
    [rows] = stream.batches()
    source = LanceDataSource({"path": path, "readChangeFeed": "true", "columns": "id", "startingVersion": "2"})
    reader: Any = source.reader(source.schema())
    batch = [row for part in reader.partitions() for found in reader.read(part) for row in found.to_pylist()]
    assert [row["id"] for row in rows] == [4, 4]
    assert rows == batch


@pytest.mark.parametrize("options", [{}, {"startingVersion": 2}])
def test_a_restarted_stream_of_changes_does_not_need_its_first_version(
    table: LanceDataset, path: str, options: dict[str, Any]
) -> None:
    table.insert(numbers(10, 11))
    stream = Stream(path, readChangeFeed="true", **options)
    stream.batches()
    table.insert(numbers(11, 12))
    table.delete("id = 3")
    table.cleanup_old_versions(retain_versions=2)
    [rows] = stream.batches()
    assert [(row["id"], row["_change_type"], row["_commit_version"]) for row in rows] == [
        (11, "insert", 3),
        (3, "delete", 4),
    ]
    if options:
        with pytest.raises(VersionNotFoundError, match="startingVersion 2 is not there"):
            Stream(path, readChangeFeed="true", **options).batch()


def test_changes_of_what_comes_next_as_a_stream(table: LanceDataset, path: str) -> None:
    stream = Stream(path, readChangeFeed="true", startingVersion="latest")
    assert not any(stream.batches())  # Spark 4.1 begins with an empty batch
    table.delete("id = 3")
    [rows] = stream.batches()
    assert [(row["id"], row["_change_type"]) for row in rows] == [(3, "delete")]


def test_large_changes_are_divided(path: str) -> None:
    table = write_dataset(numbers(0, 200_000), path, max_rows_per_file=100_000)
    for start in range(0, 40, 2):
        table.insert(numbers(start, start + 2))
    stream = Stream(path, split_size_bytes=500_000, startingVersion=1)
    reader = stream.reader()
    parts = reader.partitions(reader.initialOffset(), Offset(22).to_json())
    assert len(parts) > 2
    assert {part.version for found in parts for part in found.parts} == {21}  # one version has all of it as it was
    [rows] = stream.batches()
    assert len(rows) == 200_040


class Listings(LocalStore):
    """Local files that note what is asked of them."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def list_first(self, prefix: str) -> FirstNames:
        self.asked.append("list")
        return super().list_first(prefix)

    def size(self, path: str) -> int:
        self.asked.append("look up")
        return super().size(path)

    def read(self, path: str, max_bytes: int, tag: str | None = None) -> bytes:
        self.asked.append("read")
        return super().read(path, max_bytes, tag)


def test_an_empty_trigger_looks_up_the_next_version_only(path: str) -> None:
    table = write_dataset({"id": [1]}, path)
    for number in range(30):
        table.update_config({"n": str(number)})
    store = Listings()
    directory = TableDirectory(store, table._table.directory.root)
    reader: Any = Stream(path).reader()
    counted = LanceDataset(table.uri, dataclasses.replace(table._table, directory=directory))
    reader._log = reader._versions._log = ChangeLog(counted)
    start = latest(reader, reader.initialOffset())
    store.asked.clear()
    assert latest(reader, start) == start
    assert store.asked == ["look up"]
    table.insert({"id": [2]})
    assert latest(reader, start) != start
    assert store.asked[1:] == ["look up", "list", "read"]


@pytest.mark.parametrize("num_versions", [1, 3, 5])
@pytest.mark.parametrize("writer", [write_dataset, lance.write_dataset])
def test_a_running_stream_notices_another_table_at_its_path(path: str, writer: Any, num_versions: int) -> None:
    """It has fewer versions, as many, or more. With as many it is noticed when it has one more."""
    for mode in ("create", "append", "append"):
        writer(numbers(0, 3), path, mode=mode)
    reader = Stream(path).reader()
    start = reader.initialOffset()
    end = latest(reader, start)
    assert reader.partitions(start, end)
    shutil.rmtree(path)
    for number in range(num_versions):
        writer(numbers(100, 103), path, mode="append" if number else "create")
    reader._log._watch._listed_at -= 60
    with pytest.raises(InvalidInputError, match="dropped and created again"):
        read_on(reader, end, lambda: writer(numbers(100, 103), path, mode="append"))


def read_on(reader: Any, start: dict[str, Any], change: Callable[[], object]) -> None:
    """Plan two batches, and change the table in between. A reader of Spark 4.1 learns late where a batch starts."""
    reader.partitions(start, latest(reader, start))
    change()
    reader.partitions(start, latest(reader, start))


def test_batches_have_as_many_tasks_as_can_run(path: str) -> None:
    table = write_dataset({"id": range(1 << 20), "other": range(1 << 20)}, path, max_rows_per_file=1 << 17)
    for parallelism in (1, 2):
        source = LanceDataSource({"path": path, "__lance.parallelism": str(parallelism)})
        reader: Any = source.streamReader(source.schema())
        start = reader.initialOffset()
        tasks = reader.partitions(start, latest(reader, start))
        assert len(tasks) == parallelism
        assert sum(batch.num_rows for task in tasks for batch in reader.read(task)) == table.count_rows()
