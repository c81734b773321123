"""Appends with columns that the table lacks make one version, even if other writers add columns concurrently."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import (
    CommitConflictError,
    CommitStateUnknownError,
    FragmentMetadata,
    InvalidInputError,
    NotSupportedError,
    RetryableCommitConflictError,
    SchemaMismatchError,
    StorageError,
    TableWrite,
)
from lance_format.table.batches.fitting import arrange
from tests.table.builders import data_files, rows
from tests.table.faults import FaultyStore

BOTH = pa.schema({"s": pa.string(), "b": pa.bool_(), "n": pa.struct({"x": pa.int32(), "y": pa.list_(pa.int8())})})
"""One column that the table has, and two new ones."""


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    table = lance_format.write_dataset(rows(0, 10), tmp_path / "t", enable_stable_row_ids=request.param)
    table.delete("a = 3")
    return tmp_path / "t"


def plan(path: Path, schema: pa.Schema = BOTH) -> TableWrite:
    return lance_format.plan_write(str(path), schema, mode="append", merge_schema=True)


def write(planned: TableWrite, name: str = "new", schema: pa.Schema = BOTH) -> list[FragmentMetadata]:
    """Write one row, as another process would."""
    row: dict[str, Any] = {"s": name, "b": True, "n": {"x": 1, "y": [2]}}
    batch = pa.RecordBatch.from_pylist([{key: row[key] for key in schema.names}], schema)
    fragments = pickle.loads(pickle.dumps(planned)).write_fragments([batch])
    return [FragmentMetadata.from_json(fragment.to_json()) for fragment in fragments]


def names(path: Path) -> list[str]:
    return lance_format.dataset(path).schema.names  # type: ignore[no-any-return]


def last_rows(path: Path, count: int) -> list[dict[str, Any]]:
    table = lance_format.dataset(path).to_table()
    return table.slice(table.num_rows - count).to_pylist()  # type: ignore[no-any-return]


def test_columns_and_rows_come_in_one_version(path: Path) -> None:
    planned = plan(path)
    fragments = write(planned)
    assert (planned.commit(fragments), planned.commit(fragments)) == (3, 3)
    table = lance_format.dataset(path)
    assert table.version == 3
    assert table.schema.names == ["a", "s", "b", "n"]
    assert table.to_table()["n"].null_count == 9
    assert last_rows(path, 2) == [
        {"a": 9, "s": "row 9", "b": None, "n": None},
        {"a": None, "s": "new", "b": True, "n": {"x": 1, "y": [2]}},
    ]
    if table.has_stable_row_ids:
        lineage = table.to_table(["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]).to_pylist()
        assert lineage[-2:] == [
            {"_rowid": 9, "_row_created_at_version": 1, "_row_last_updated_at_version": 1},
            {"_rowid": 10, "_row_created_at_version": 3, "_row_last_updated_at_version": 3},
        ]


def test_write_dataset_takes_new_columns(path: Path) -> None:
    table = lance_format.write_dataset(pa.table({"c": [1]}), path, mode="append", merge_schema=True)
    assert (table.version, table.schema.names) == (3, ["a", "s", "c"])
    assert last_rows(path, 1) == [{"a": None, "s": None, "c": 1}]


def test_without_rows_the_columns_come_alone(path: Path) -> None:
    assert plan(path).commit([]) == 3
    assert names(path) == ["a", "s", "b", "n"]
    assert lance_format.dataset(path).count_rows() == 9


def test_a_known_schema_is_appended_as_ever(path: Path) -> None:
    planned = lance_format.plan_write(str(path), rows(0, 1).schema, mode="append", merge_schema=True)
    assert planned.new_fields == ()
    assert planned.commit(planned.write_fragments(rows(10, 11).to_batches())) == 3
    assert names(path) == ["a", "s"]


def test_writers_that_add_the_same_columns_add_them_once(path: Path) -> None:
    writers = [plan(path) for _ in range(3)]
    written = [write(planned, f"writer {index}") for index, planned in enumerate(writers)]
    assert [planned.commit(written[index]) for index, planned in enumerate(writers)] == [3, 4, 5]
    assert [planned.commit(written[index]) for index, planned in enumerate(writers)] == [3, 4, 5]
    assert names(path) == ["a", "s", "b", "n"]
    assert [row["s"] for row in last_rows(path, 3)] == ["writer 0", "writer 1", "writer 2"]
    assert all(row["b"] and row["n"] == {"x": 1, "y": [2]} for row in last_rows(path, 3))


MEANWHILE: dict[str, Callable[[lance_format.LanceDataset], object]] = {
    "rows": lambda table: lance_format.write_dataset(rows(20, 25), table.uri, mode="append"),
    "deleted": lambda table: table.delete("a = 5"),
    "updated": lambda table: table.update({"s": "'other'"}, "a = 6"),
    "another column": lambda table: table.add_columns({"z": "a * 2"}),
    "one of the columns": lambda table: table.add_columns({"b": "a > 5"}),
    "a column that came and went": lambda table: (table.add_columns({"z": "a * 2"}), table.drop_columns(["z"])),
    "a dropped column": lambda table: table.drop_columns(["a"]),
    "a renamed column": lambda table: table.alter_columns({"path": "s", "name": "t"}),
    "compacted": lambda table: table.optimize.compact_files(),
}


@pytest.mark.parametrize("name", MEANWHILE)
def test_others_may_change_the_table_meanwhile(path: Path, name: str) -> None:
    planned = plan(path)
    fragments = write(planned)
    table = lance_format.dataset(path)
    MEANWHILE[name](table)
    before = lance_format.dataset(path).to_table().to_pylist()
    version = lance_format.dataset(path).version + 1
    assert (planned.commit(fragments), planned.commit(fragments)) == (version, version)
    (new,) = last_rows(path, 1)
    assert (new["t" if name == "a renamed column" else "s"], new["b"], new["n"]) == ("new", True, {"x": 1, "y": [2]})
    after = lance_format.dataset(path).to_table().to_pylist()
    assert [{key: row[key] for key in before[0]} for row in after[:-1]] == before
    assert names(path).count("b") == 1


REFUSED: dict[str, Callable[[lance_format.LanceDataset], object]] = {
    "another type": lambda table: table.add_columns({"b": "a"}),
    "another type below": lambda table: table.add_columns(pa.field("n", pa.struct({"x": pa.int32()}))),
    "another case": lambda table: table.add_columns({"B": "a > 5"}),
    "a known column by the name of a new one": lambda table: table.alter_columns({"path": "s", "name": "b"}),
    "cast": lambda table: table.alter_columns({"path": "s", "data_type": pa.large_string()}),
    "required": lambda table: table.alter_columns({"path": "a", "nullable": False}),
    "overwritten": lambda table: lance_format.write_dataset(rows(0, 3), table.uri, mode="overwrite"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_others_made_of_the_table_does_not_fit(path: Path, name: str) -> None:
    planned = plan(path)
    fragments = write(planned)
    REFUSED[name](lance_format.dataset(path))
    before = data_files(path)
    expected = CommitConflictError if name == "overwritten" else RetryableCommitConflictError
    with pytest.raises(expected, match="run it again"):
        planned.commit(fragments)
    assert data_files(path) == before
    assert len(planned.abort(fragments)) == 1


@pytest.mark.parametrize(
    ("schema", "error", "message"),
    [
        (pa.schema([pa.field("b", pa.bool_(), nullable=False)]), SchemaMismatchError, "'b' cannot be null"),
        (pa.schema({"S": pa.string()}), SchemaMismatchError, "differs from column 's' only in case"),
        (pa.schema({"s": pa.int64(), "b": pa.bool_()}), SchemaMismatchError, "column 's' is int64"),
        (pa.schema({"_rowid": pa.int64()}), InvalidInputError, "cannot have a column '_rowid'"),
    ],
)
def test_columns_that_cannot_be_added(path: Path, schema: pa.Schema, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        plan(path, schema)


def grow(path: Path, *fields: pa.Field) -> TableWrite:
    """An append whose struct has these fields besides one that the table has."""
    return plan(path, pa.schema({"a": pa.int64(), "p": pa.struct([*fields, pa.field("x", pa.int64())])}))


def write_grown(planned: TableWrite, struct: dict[str, Any]) -> list[FragmentMetadata]:
    kind = next(field.to_arrow_type() for field in planned.schema.fields if field.name == "p")
    batch = pa.record_batch({"a": pa.array([77], pa.int64()), "p": pa.array([struct], kind)})
    return pickle.loads(pickle.dumps(planned)).write_fragments([batch])  # type: ignore[no-any-return]


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    lance_format.write_dataset({"a": [1, 2], "p": [{"x": 1}, None]}, tmp_path / "t")
    return tmp_path / "t"


Y, Z = pa.field("y", pa.string()), pa.field("z", pa.struct({"w": pa.int8()}))


def test_writers_that_add_the_same_fields_of_structs_add_them_once(nested: Path) -> None:
    writers = [grow(nested, Y), grow(nested, Z, Y), grow(nested, Z)]
    rows = [{"x": 10, "y": "one"}, {"x": 20, "y": "two", "z": {"w": 2}}, {"x": 30, "z": {"w": 3}}]
    written = [write_grown(planned, row) for planned, row in zip(writers, rows, strict=True)]
    lance_format.dataset(nested).add_columns({"q": "a * 2"})
    assert [planned.commit(files) for planned, files in zip(writers, written, strict=True)] == [3, 4, 5]
    assert [planned.commit(files) for planned, files in zip(writers, written, strict=True)] == [3, 4, 5]
    table = lance_format.dataset(nested)
    table.validate()
    assert table.schema.field("p").type == pa.struct([pa.field("x", pa.int64()), Y, Z])
    assert table.to_table()["p"].to_pylist() == [
        {"x": 1, "y": None, "z": None},
        None,
        *({"x": None, "y": None, "z": None} | row for row in rows),
    ]
    assert table.to_table(["p.y"], filter="p.z.w = 2")["p.y"].to_pylist() == ["two"]
    ids = [node.id for node in table._table.manifest.schema.walk()]
    assert len(ids) == len(set(ids))


GROWN_MEANWHILE: dict[str, Callable[[lance_format.LanceDataset], object]] = {
    "another type": lambda table: table.add_columns(pa.field("p", pa.struct({"y": pa.int8()}))),
    "another case": lambda table: table.add_columns(pa.field("p", pa.struct({"Y": pa.string()}))),
    "dropped": lambda table: table.drop_columns(["p"]),
}


@pytest.mark.parametrize("name", GROWN_MEANWHILE)
def test_what_others_made_of_a_struct_does_not_fit(nested: Path, name: str) -> None:
    planned = grow(nested, Y)
    fragments = write_grown(planned, {"x": 1, "y": "a"})
    GROWN_MEANWHILE[name](lance_format.dataset(nested))
    with pytest.raises(RetryableCommitConflictError, match="run it again"):
        planned.commit(fragments)
    assert len(planned.abort(fragments)) == 1


@pytest.mark.parametrize(
    ("column", "error", "message"),
    [
        (pa.field("p", pa.struct([Y.with_nullable(False), ("x", pa.int64())])), SchemaMismatchError, "'p.y' cannot be"),
        (
            pa.field("p", pa.struct({"x": pa.int64(), "X": pa.int8()})),
            SchemaMismatchError,
            "'p.X' differs from .*'p.x'",
        ),
        (pa.field("p", pa.struct([("x", pa.string()), Y])), SchemaMismatchError, "column 'p.x' is string"),
        (pa.field("p", pa.list_(pa.struct([Y]))), SchemaMismatchError, "column 'p' is list"),
        (pa.field("m", pa.map_(pa.string(), AB := pa.struct([("x", pa.int64()), Y]))), NotSupportedError, "is a map"),
        (pa.field("f", pa.list_(AB, 1)), NotSupportedError, "is a fixed-size list"),
        (pa.field("k", AB), NotSupportedError, "is a packed struct"),
    ],
)
def test_structs_that_cannot_grow(tmp_path: Path, column: pa.Field, error: type[Exception], message: str) -> None:
    point = pa.struct({"x": pa.int64()})
    packed = pa.field("k", point, metadata={"lance-encoding:packed": "true"})
    fields = [("p", point), ("m", pa.map_(pa.string(), point)), ("f", pa.list_(point, 1)), packed]
    lance_format.write_dataset(pa.schema(fields).empty_table(), tmp_path / "t")
    with pytest.raises(error, match=message):
        plan(tmp_path / "t", pa.schema([column]))
    with pytest.raises((error, InvalidInputError)):
        lance_format.dataset(tmp_path / "t").add_columns(column)
    assert lance_format.dataset(tmp_path / "t").latest_version == 1


POINT, OTHER = (
    pa.struct({"u": pa.int64(), "v": pa.string()}),
    pa.struct({"w": pa.int8(), "v": pa.string(), "u": pa.int64()}),
)
POINTS = [{"u": 1, "v": "a"}, None, {"u": None, "v": "c"}, {"u": 4, "v": None}, {"u": 5, "v": "e"}]


@pytest.mark.parametrize(
    ("values", "kind", "wanted"),
    [
        (POINTS, POINT, OTHER),
        ([POINTS[:2], None, [], POINTS[2:], [None]], pa.list_(POINT), pa.list_(OTHER)),
        ([POINTS[:2], None, [], POINTS[2:], [None]], pa.large_list(POINT), pa.large_list(OTHER)),
        ([POINTS[:2], None, POINTS[2:4], [None, None]], pa.list_(POINT, 2), pa.list_(OTHER, 2)),
        (
            [[("a", POINTS[0])], None, [], [("b", None), ("c", POINTS[3])]],
            pa.map_(pa.string(), POINT),
            pa.map_(pa.string(), OTHER),
        ),
        (
            [{"p": None, "l": [[POINTS[0]], None]}, None, {"p": POINTS[4], "l": None}, {"p": POINTS[0], "l": []}],
            pa.struct({"p": POINT, "l": pa.list_(pa.list_(POINT))}),
            pa.struct({"l": pa.list_(pa.list_(OTHER)), "p": OTHER}),
        ),
    ],
    ids=["struct", "list", "large list", "vector", "map", "nested"],
)
def test_structs_are_arranged(values: list[Any], kind: pa.DataType, wanted: pa.DataType) -> None:
    whole = pa.array([*values, *values], kind)
    for start, stop in [(0, len(whole)), (1, len(whole) - 1), (2, 3), (1, 1)]:
        arranged = arrange(whole[start:stop], wanted)
        arranged.validate(full=True)
        assert arranged.type == wanted
        assert arranged.to_pylist() == pa.array(whole[start:stop].to_pylist(), wanted).to_pylist()
    assert arrange(whole, kind) is whole


def test_fields_of_structs_match_by_name(nested: Path) -> None:
    kind = pa.list_(pa.struct({"u": pa.int64(), "v": pa.string()}))
    table = lance_format.write_dataset(
        pa.table({"l": pa.array([[{"u": 1, "v": "a"}]], kind)}), nested, mode="overwrite"
    )
    table.insert(
        pa.table(
            {
                "l": pa.array(
                    [[{"v": "b", "u": 2}, None], None], pa.list_(pa.struct({"v": pa.string(), "u": pa.int64()}))
                )
            }
        )
    )
    table.insert({"l": [[{"v": "c"}]]})
    assert table.to_table()["l"].to_pylist() == [
        [{"u": 1, "v": "a"}],
        [{"u": 2, "v": "b"}, None],
        None,
        [{"u": None, "v": "c"}],
    ]
    with pytest.raises(SchemaMismatchError, match=r"column 'l.item' has the fields v, w, the table's u, v"):
        table.insert({"l": [[{"v": "c", "w": 1}]]})


@pytest.mark.parametrize("mode", ["create", "overwrite"])
def test_only_appends_add_columns(tmp_path: Path, mode: str) -> None:
    with pytest.raises(InvalidInputError, match="merge_schema is for mode"):
        lance_format.plan_write(str(tmp_path), BOTH, mode=mode, merge_schema=True)


@pytest.mark.parametrize("name", ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version"])
def test_names_of_row_columns_are_not_given_away(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"cannot have a column '{name}'"):
        lance_format.write_dataset(pa.table({name: [1]}), tmp_path / "t")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("readable", [True, False])
def test_a_reply_that_is_lost_costs_nothing(path: Path, monkeypatch: pytest.MonkeyPatch, readable: bool) -> None:
    """The version lands, the storage reports an error; what follows, a second commit or an abort, changes nothing."""
    planned = plan(path)
    fragments = write(planned)
    landed: list[str] = []

    def fail(_number: int, when: str, name: str, file: str) -> None:
        if (name, when) == ("put_if_absent", "after"):
            landed.append(file)
            raise StorageError("lost")
        if name == "read" and file in landed and not readable:
            raise StorageError("unreachable")

    resolve = lance_format.table.format.table_directory.resolve
    with monkeypatch.context() as patch:
        patch.setattr(
            "lance_format.table.format.table_directory.resolve", lambda *given: _faulty(resolve(*given), fail)
        )
        if readable:
            assert planned.commit(fragments) == 3
        else:
            with pytest.raises(CommitStateUnknownError):
                planned.commit(fragments)
    assert planned.abort(fragments) == []
    assert planned.commit(fragments) == 3
    assert last_rows(path, 1)[0]["b"] is True


def _faulty(resolved: Any, fail: Callable[[int, str, str, str], None]) -> tuple[Any, str]:
    return FaultyStore(resolved[0], fail), resolved[1]


def _large_texts() -> pa.Table:
    """Return short texts, and three whose memory of 1 GiB, which they share, nobody has touched."""
    offsets = np.array([0, 1, 3, 1 << 30], np.int32)
    chunk = pa.Array.from_buffers(pa.binary(), 3, [None, pa.py_buffer(offsets), pa.allocate_buffer(1 << 30)])
    ids = pa.chunked_array([[0, 1, 102], [3, 4, 105], [6, 7, 108]])
    return pa.table({"id": ids, "text": pa.chunked_array([chunk] * 3)})


def test_columns_of_more_bytes_than_an_array_holds(tmp_path: Path) -> None:
    table = lance_format.write_dataset({"id": range(9)}, tmp_path / "t")
    table.merge(_large_texts(), "id")
    texts = [text and len(text) for text in table.to_table()["text"].to_pylist()]
    assert texts == [1, 2, None] * 3


def test_new_values_of_more_bytes_than_an_array_holds(tmp_path: Path) -> None:
    table = lance_format.write_dataset(pa.table({"id": range(9), "text": pa.nulls(9, pa.binary())}), tmp_path / "t")
    made, fields = table.get_fragments()[0].update_columns(_large_texts(), "id", "id")
    changed = lance_format.LanceOperation.Update(updated_fragments=[made], fields_modified=fields)
    table = lance_format.LanceDataset.commit(table.uri, changed, read_version=table.version)
    texts = [text and len(text) for text in table.to_table()["text"].to_pylist()]
    assert texts == [1, 2, None] * 3
