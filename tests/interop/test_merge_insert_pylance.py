"""Merges by key: what pylance makes of one copy of a table, we make of another."""

import datetime
import decimal
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyroaring
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_format
from lance_format import InvalidInputError, RetryableCommitConflictError, SchemaMismatchError
from lance_format.table.dataset import merge_builder

ROW = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]

TARGET = pa.table(
    {
        "k": [1, 2, 3, None, 5, 6, 7, 7],
        "v": ["a", "b", "c", "d", "e", None, "g", "h"],
        "w": [1.0, 2.0, 3.0, 4.0, float("nan"), 6.0, 7.0, 8.0],
        "x": [{"y": n, "z": [n] * (n % 3)} for n in range(8)],
    }
)


def source(*keys: int | None) -> pa.Table:
    """Rows with these keys, and values of all kinds."""
    return pa.table(
        {
            "k": pa.array(keys, pa.int64()),
            "v": pa.array([None if n % 4 == 3 else f"new {n}" for n in range(len(keys))], pa.string()),
            "w": pa.array([n * 1.5 for n in range(len(keys))], pa.float64()),
            "x": pa.array([{"y": -n, "z": None} for n in range(len(keys))], TARGET.schema.field("x").type),
        }
    )


def rows_of(table: Any) -> list[str]:
    """The rows with all that the table knows of them; in order, for that is not settled."""
    columns = [*table.schema.names, *(ROW if table.has_stable_row_ids else ROW[1:])]
    return sorted(map(str, table.to_table(columns=columns).to_pylist()))


def write(path: Path, target: pa.Table, *, stable: bool = True) -> None:
    """A table with several fragments, some rows of them deleted, and rows of several versions."""
    shutil.rmtree(path, ignore_errors=True)
    half = (target.num_rows + 1) // 2
    lance.write_dataset(target.slice(0, half), str(path), max_rows_per_file=3, enable_stable_row_ids=stable)
    table = lance.write_dataset(target.slice(half), str(path), mode="append")
    table.insert(target.slice(0, 1))
    table.delete(f"_rowid = {table.to_table(columns=['_rowid'])['_rowid'][-1].as_py()}")


Clauses = Callable[[Any], Any]


def changed_rows(operation: Any) -> dict[int, pyroaring.BitMap]:
    """Offsets of rows changed in place; the bytes of equal bitmaps may differ."""
    found = operation.updated_fragment_offsets or {}
    return {fragment_id: pyroaring.BitMap.deserialize(offsets) for fragment_id, offsets in found.items()}


def merge_both(path: Path, data: Any, on: Any, clauses: Clauses) -> None:
    """Merge with both libraries into copies of a table, and check that they do the same."""
    copy = path.with_name(path.name + " of pylance")
    shutil.copytree(path, copy)
    reference, ours = lance.dataset(str(copy)), lance_format.dataset(path)
    expected = clauses(reference.merge_insert(on)).execute(data)
    assert clauses(ours.merge_insert(on)).execute(data) == expected
    assert ours.version == reference.version
    assert rows_of(ours) == rows_of(reference) == rows_of(lance.dataset(str(path)))
    made, theirs = (lance.dataset(str(x)).read_transaction(ours.version).operation for x in (path, copy))
    assert type(made) is type(theirs)
    names = ["removed_fragment_ids", "update_mode"]
    for name in [*names, "fields_for_preserving_frag_bitmap"] if made.new_fragments else names:
        assert getattr(made, name) == getattr(theirs, name)
    assert sorted(made.fields_modified) == sorted(theirs.fields_modified)
    assert changed_rows(made) == changed_rows(theirs)
    shutil.rmtree(copy)
    check = lance.dataset(str(path))
    check.validate()
    assert str(check.to_table().to_pylist()) == str(ours.to_table().to_pylist())


def upsert(merge: Any) -> Any:
    return merge.when_matched_update_all().when_not_matched_insert_all()


CLAUSES: dict[str, Clauses] = {
    "upsert": upsert,
    "update": lambda merge: merge.when_matched_update_all(),
    "insert": lambda merge: merge.when_not_matched_insert_all(),
    "delete": lambda merge: merge.when_matched_delete(),
    "delete and insert": lambda merge: merge.when_matched_delete().when_not_matched_insert_all(),
    "update if": lambda merge: merge.when_matched_update_all("source.w > target.w"),
    "upsert if": lambda merge: upsert(merge).when_matched_update_all("source.w < 2 or target.v is null"),
    "upsert if never": lambda merge: upsert(merge).when_matched_update_all("false"),
    "replace": lambda merge: upsert(merge).when_not_matched_by_source_delete(),
    "replace some": lambda merge: upsert(merge).when_not_matched_by_source_delete("k >= 3 or v = 'd'"),
    "delete others": lambda merge: merge.when_not_matched_by_source_delete(),
    "delete other": lambda merge: merge.when_not_matched_by_source_delete("x.y < 4"),
    "all": lambda merge: (
        merge.when_matched_update_all("target.x.y > 1")
        .when_not_matched_insert_all()
        .when_not_matched_by_source_delete()
    ),
    "the last word counts": lambda merge: merge.when_matched_update_all("source.w > 1").when_matched_delete(),
    "fail": lambda merge: merge.when_matched_fail().when_not_matched_insert_all(),
}


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("clauses", CLAUSES)
def test_merges(tmp_path: Path, clauses: str, stable: bool) -> None:
    write(tmp_path / "t", TARGET, stable=stable)
    keys = (8, 9, None, 9) if clauses == "fail" else (9, 7, 3, None, 1, 10, 6, 9, None)
    merge_both(tmp_path / "t", source(*keys), "k", CLAUSES[clauses])


@pytest.mark.slow
@pytest.mark.parametrize("clauses", sorted(set(CLAUSES) - {"fail"}))
@pytest.mark.parametrize("keys", [(), (11,), (1, 2, 3, 5, 6, 7)], ids=str)
def test_nothing_or_everything_matches(tmp_path: Path, clauses: str, keys: tuple[int, ...]) -> None:
    write(tmp_path / "t", TARGET)
    merge_both(tmp_path / "t", source(*keys), "k", CLAUSES[clauses])


@pytest.mark.slow
@pytest.mark.parametrize("columns", [["k"], ["v", "k"], ["x", "k", "w"], ["w", "v", "x", "k"]], ids=str)
@pytest.mark.parametrize("clauses", ["upsert", "update", "insert", "delete", "replace"])
def test_columns_that_are_missing_keep_their_values(tmp_path: Path, columns: list[str], clauses: str) -> None:
    write(tmp_path / "t", TARGET)
    merge_both(tmp_path / "t", source(9, 7, 3, 1).select(columns), "k", CLAUSES[clauses])


AB, NESTED = (
    pa.struct({"a": pa.int64(), "b": pa.string()}),
    pa.struct({"p": pa.struct({"x": pa.int8(), "y": pa.int8()})}),
)
PARTS: dict[str, tuple[pa.DataType, list[Any], pa.DataType, list[Any]]] = {
    "struct": (
        AB,
        [{"a": 1, "b": "x"}, None, {"a": None, "b": "z"}, {"a": 4, "b": None}, None],
        pa.struct({"a": pa.int64()}),
        [{"a": 7}, {"a": 8}, None, {"a": None}, None, {"a": 9}],
    ),
    "other order": (
        AB,
        [{"a": 1, "b": "x"}, None],
        pa.struct({"b": pa.string(), "a": pa.int64()}),
        [{"b": "q", "a": 2}] * 3,
    ),
    "nested": (
        NESTED,
        [{"p": {"x": 1, "y": 2}}, {"p": None}, None],
        pa.struct({"p": pa.struct({"y": pa.int8()})}),
        [{"p": {"y": 7}}, {"p": {"y": 8}}, {"p": {"y": 9}}, {"p": None}],
    ),
}


@pytest.mark.parametrize("clauses", ["upsert", "update", "insert"])
@pytest.mark.parametrize("name", PARTS)
def test_fields_of_structs_that_are_missing_keep_their_values(tmp_path: Path, name: str, clauses: str) -> None:
    kind, before, given, after = PARTS[name]
    target = pa.table({"k": range(len(before)), "s": pa.array(before, kind), "v": ["v"] * len(before)})
    lance_format.write_dataset(target, tmp_path / "t", max_rows_per_file=2, enable_stable_row_ids=True)
    shutil.copytree(tmp_path / "t", tmp_path / "copy")
    data = pa.table({"k": range(len(after)), "s": pa.array(after, given)})
    reference, ours = lance.dataset(str(tmp_path / "copy")), lance_format.dataset(tmp_path / "t")
    counts = [CLAUSES[clauses](table.merge_insert("k")).execute(data) for table in (reference, ours)]
    assert counts[0] == counts[1]
    assert rows_of(ours) == rows_of(reference) == rows_of(lance.dataset(str(tmp_path / "t")))


def test_parts_of_structs_that_cannot_be_told_apart(tmp_path: Path) -> None:
    lists = pa.table({"k": [1], "l": pa.array([[{"a": 1, "b": "x"}]], pa.list_(AB)), "s": pa.array([None], AB)})
    table = lance_format.write_dataset(lists, tmp_path / "t")
    merge = upsert(table.merge_insert("k"))
    with pytest.raises(SchemaMismatchError, match=r"column 'l\.item' has the fields a, the table's a, b"):
        merge.execute({"k": [1], "l": [[{"a": 2}]]})
    with pytest.raises(SchemaMismatchError, match="column 's' has the fields a, the table's a, b"):
        upsert(table.merge_insert("s")).execute({"s": [{"a": 2}]})
    conditional = merge.when_matched_update_all("source.s.b = 'x'")
    with pytest.raises(InvalidInputError, match="'b'"):
        conditional.execute({"k": [1], "s": [{"a": 2}]})
    assert (
        "read of the rows that are updated: l, s\n"
        in merge.when_matched_update_all().explain_plan(pa.schema({"k": pa.int64(), "s": pa.struct({"a": pa.int64()})}))
        + "\n"
    )
    inserts = table.merge_insert("k").when_not_matched_insert_all()
    assert inserts.execute({"k": [2], "l": [[{"a": 2}]]})["num_inserted_rows"] == 1
    assert table.to_table(filter="k = 2")["l"].to_pylist() == [[{"a": 2, "b": None}]]


def values(kind: pa.DataType) -> list[Any]:
    if pa.types.is_boolean(kind):
        return [True, False, None]
    if pa.types.is_decimal(kind):
        return [decimal.Decimal("1.50"), decimal.Decimal("-2.00"), None]
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return [b"aa", b"bb", None]
    if pa.types.is_fixed_size_list(kind):
        return [[0.0, 1.0], [-0.0, 1.0], [float("nan"), None], None]
    if pa.types.is_nested(kind) and not pa.types.is_struct(kind):
        return [[("a", 1), ("b", None)], [("a", 1)], [("b", None), ("a", 1)], [], None]
    if pa.types.is_struct(kind):
        return [{"a": 1, "b": None}, {"a": None, "b": "x"}, {"a": None, "b": None}, None]
    if pa.types.is_floating(kind):
        return [np.float16(0.0), np.float16(-0.0), np.float16("nan"), np.float16(2), None]
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
        return {
            "date": [datetime.date(1960, 1, 1), datetime.date(2020, 1, 1), None],
            "time": [datetime.time(1), datetime.time(2), None],
        }.get(str(kind)[:4] if "stamp" not in str(kind) else "", [datetime.datetime(1960, 1, 1), None])
    return ["", "b\0", None] if "string" in str(kind) else [0, 5, None]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        pa.bool_(),
        pa.int8(),
        pa.uint64(),
        pa.float16(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(10, 2),
        pa.decimal256(40, 2),
        pa.date32(),
        pa.time64("us"),
        pa.timestamp("us"),
        pa.timestamp("ns", "UTC"),
        pa.duration("s"),
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.binary(2),
        pa.dictionary(pa.int8(), pa.string()),
        pa.struct({"a": pa.int32(), "b": pa.string()}),
        pa.list_(pa.float64(), 2),
        pa.large_list(pa.struct({"a": pa.string(), "b": pa.int8()})),
        pa.map_(pa.string(), pa.int8()),
    ],
    ids=str,
)
def test_types_of_keys(tmp_path: Path, kind: pa.DataType) -> None:
    found = values(kind)
    # what cannot be written can be looked up all the same
    clauses = CLAUSES["delete"] if pa.types.is_dictionary(kind) else upsert

    def table(keys: list[Any]) -> pa.Table:
        array = pa.array(keys, pa.float16()).cast(kind) if pa.types.is_floating(kind) else pa.array(keys, kind)
        return pa.table({"k": array, "v": pa.array(range(len(keys)), pa.int64())})

    for some in (found[1:], found[2:], found[:0]):
        write(tmp_path / "t", table(found))
        merge_both(tmp_path / "t", table(some), ["k"], clauses)


def test_keys_of_several_columns(tmp_path: Path) -> None:
    target = pa.table({"a": [1, 1, 2, None, 2], "b": ["x", "y", None, "x", "y"], "c": range(5)})
    data = pa.table({"b": ["y", None, "x", "q", "x"], "a": [2, 2, None, 5, 1], "c": range(10, 15)})
    write(tmp_path / "t", target)
    merge_both(tmp_path / "t", data, ["a", "b"], upsert)
    merge_both(tmp_path / "t", data.slice(1), ["B", "a", "A"], upsert)


def test_the_primary_key_is_the_default(tmp_path: Path) -> None:
    key = pa.field("k", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"})
    schema = pa.schema([key, pa.field("v", pa.string())])
    write(tmp_path / "t", pa.table({"k": [1, 2, 3], "v": ["a", "b", "c"]}, schema))
    merge_both(tmp_path / "t", pa.table({"k": [2, 9], "v": ["x", "y"]}, schema), None, upsert)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_merge(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("any") / "t"
    key = st.one_of(st.none(), st.integers(0, 12))
    target = data.draw(st.lists(st.tuples(key, st.integers(0, 3)), min_size=2, max_size=20))
    own = data.draw(st.lists(st.tuples(key, st.integers(0, 3)), max_size=12, unique_by=lambda row: row[0]))
    names = ["k", "g"]

    def table(rows: list[tuple[int | None, int]]) -> pa.Table:
        keys, groups = [row[0] for row in rows], [row[1] for row in rows]
        texts = pa.array(map(str, keys), pa.string())
        return pa.table({"k": pa.array(keys, pa.int64()), "g": pa.array(groups, pa.int64()), "v": texts})

    clauses = data.draw(
        st.sampled_from(
            [
                upsert,
                *(CLAUSES[name] for name in ("insert", "delete", "delete and insert", "delete others")),
                lambda merge: upsert(merge).when_matched_update_all("source.g >= target.g"),
                lambda merge: upsert(merge).when_not_matched_by_source_delete("g = 1"),
                lambda merge: merge.when_matched_update_all().when_not_matched_by_source_delete("v <> '1'"),
            ]
        )
    )
    write(path, table(target), stable=data.draw(st.booleans()))
    merge_both(path, table(own), data.draw(st.sampled_from([names[:1], names])), clauses)


@pytest.mark.parametrize(
    ("keys", "clauses"),
    [
        ((3, 3), CLAUSES["upsert"]),
        ((7, 7), CLAUSES["delete"]),
        ((3, 3), lambda merge: merge.when_matched_update_all("source.w >= 0")),
        ((1, 8), CLAUSES["fail"]),
    ],
    ids=["two for one", "two delete one", "two for one if", "a key is there"],
)
def test_what_pylance_refuses_as_well(tmp_path: Path, keys: tuple[int, ...], clauses: Clauses) -> None:
    write(tmp_path / "t", TARGET)
    reference, ours = lance.dataset(str(tmp_path / "t")), lance_format.dataset(tmp_path / "t")
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidInputError, match="k = "):
        clauses(ours.merge_insert("k")).execute(source(*keys))
    assert sorted(tmp_path.rglob("*")) == files
    with pytest.raises(OSError, match="k = "):
        clauses(reference.merge_insert("k")).execute(source(*keys))
    assert ours.latest_version == ours.version


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CLAUSES.keys() - {"fail"}))
def test_merges_that_are_committed_later(tmp_path: Path, name: str) -> None:
    paths = [tmp_path / "t", tmp_path / "copy"]
    for path in paths:
        write(path, TARGET)
    tables = [lance_format.dataset(path) for path in paths]
    expected = CLAUSES[name](tables[0].merge_insert("k")).execute(source(1, 3, 20))
    transaction, counts = CLAUSES[name](tables[1].merge_insert("k")).execute_uncommitted(source(1, 3, 20))
    assert (counts, tables[1].latest_version) == (expected, tables[1].version)
    made = lance_format.LanceDataset.commit(tables[1], transaction)
    assert rows_of(made) == rows_of(tables[0]) == rows_of(lance.dataset(str(paths[1])))


def test_a_merge_that_is_committed_too_late(tmp_path: Path) -> None:
    write(tmp_path / "t", TARGET)
    table = lance_format.dataset(tmp_path / "t")
    transaction, _ = upsert(table.merge_insert("k")).execute_uncommitted(source(1, 2))
    lance.dataset(str(tmp_path / "t")).update({"v": "'z'"}, "k = 2")
    with pytest.raises(RetryableCommitConflictError):
        lance_format.LanceDataset.commit(table, transaction)


def test_plans_for_people(tmp_path: Path) -> None:
    write(tmp_path / "t", TARGET)
    table = lance_format.dataset(tmp_path / "t")
    data = source(1, 20).select(["k", "v"])
    merge = table.merge_insert("k").when_matched_update_all("source.v <> target.v").when_not_matched_insert_all()
    merge = merge.when_not_matched_by_source_delete("w > 3").use_index(False)
    plan = merge.explain_plan(data.schema)
    clauses = "on=[k], when_matched=update if source.v <> target.v, when_not_matched=insert"
    assert f"MergeInsert: {clauses}, when_not_matched_by_source=delete if w > 3" in plan
    assert "read of all rows: k, v, w\n" in plan
    assert "read of the rows that are updated: w, x" in plan
    assert "read of the rows that are updated: (nothing)" in merge.explain_plan()
    assert "v: string" in merge.explain_plan(verbose=True)
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    analysis = merge.analyze_plan(data)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == files
    counts = merge.execute(data)
    assert f"metrics: {', '.join(f'{name}={count}' for name, count in counts.items())}, num_files_written=1" in analysis
    written = {file.file_size_bytes for part in table.get_fragments()[-1:] for file in part.data_files()}
    assert f"bytes_written={written.pop()}" in analysis
    for call in (merge.explain_plan, merge.analyze_plan):
        with pytest.raises(InvalidInputError, match="lacks the column 'k'"):
            call(data.select(["v"]).schema if call == merge.explain_plan else data.select(["v"]))


def test_repeated_keys_that_replace_nothing_are_fine(tmp_path: Path) -> None:
    write(tmp_path / "t", TARGET)
    merge_both(tmp_path / "t", source(3, 3, 20, 20), "k", CLAUSES["insert"])
    merge_both(tmp_path / "t", source(1, 1, 1), "k", lambda merge: merge.when_matched_update_all("source.w = 1.5"))


@pytest.mark.parametrize(
    ("data", "on", "clauses", "error"),
    [
        (source(1), "nope", CLAUSES["upsert"], InvalidInputError),
        (source(1), None, CLAUSES["upsert"], InvalidInputError),
        (source(1), [], CLAUSES["upsert"], InvalidInputError),
        (source(1), "k", lambda merge: merge, InvalidInputError),
        (source(1).select(["v"]), "k", CLAUSES["upsert"], InvalidInputError),
        (source(1).rename_columns(["k", "v", "w", "zz"]), "k", CLAUSES["upsert"], SchemaMismatchError),
        (pa.table({"k": pa.array([1], pa.int32())}), "k", CLAUSES["delete"], SchemaMismatchError),
        (pa.table({"k": [1], "v": [1]}), "k", CLAUSES["update"], SchemaMismatchError),
        (source(1), "k", lambda merge: merge.when_matched_update_all("w > 1"), InvalidInputError),
        (source(1), "k", lambda merge: merge.when_matched_update_all("source.nope > 1"), InvalidInputError),
        (source(1), "k", lambda merge: merge.when_matched_update_all("source.w"), InvalidInputError),
        (source(1), "k", lambda merge: merge.when_matched_update_all("source is null"), InvalidInputError),
        (source(1), "k", lambda merge: merge.when_matched_update_all("source.w >"), InvalidInputError),
        (
            source(1).select(["k", "v"]),
            "k",
            lambda merge: merge.when_matched_update_all("source.w > target.w"),
            InvalidInputError,
        ),
        (source(1), "k", lambda merge: merge.when_not_matched_by_source_delete("target.k = 1"), InvalidInputError),
        (source(1), "k", lambda merge: upsert(merge).conflict_retries(-1), InvalidInputError),
        (source(1), "k", lambda merge: upsert(merge).retry_timeout(timedelta(-1)), InvalidInputError),
    ],
)
def test_nonsense_is_refused(tmp_path: Path, data: pa.Table, on: Any, clauses: Clauses, error: type[Exception]) -> None:
    write(tmp_path / "t", TARGET)
    table = lance_format.dataset(tmp_path / "t")
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(error):
        clauses(table.merge_insert(on)).execute(data)
    assert sorted(tmp_path.rglob("*")) == files


def test_a_required_column_cannot_be_left_out_of_new_rows(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("k", pa.int64()), pa.field("v", pa.int64(), nullable=False)])
    write(tmp_path / "t", pa.table({"k": [1, 2], "v": [3, 4]}, schema))
    table = lance_format.dataset(tmp_path / "t")
    with pytest.raises(SchemaMismatchError, match="'v' is missing"):
        upsert(table.merge_insert("k")).execute({"k": [1, 5]})
    merge_both(tmp_path / "t", pa.table({"k": [1, 5]}), "k", CLAUSES["update"])


@pytest.mark.parametrize("form", ["pandas", "dict", "rows", "reader", "batches"])
def test_forms_of_data(tmp_path: Path, form: str) -> None:
    write(tmp_path / "t", TARGET)
    data = source(1, 9).select(["k", "w"])
    given: dict[str, Any] = {
        "pandas": data.to_pandas(),
        "dict": data.to_pydict(),
        "rows": data.to_pylist(),
        "reader": data.to_reader(),
        "batches": iter(data.to_batches()),
    }
    table = lance_format.dataset(tmp_path / "t")
    result = upsert(table.merge_insert("k")).execute(given[form], schema=data.schema if form == "batches" else None)
    assert result == {"num_inserted_rows": 1, "num_updated_rows": 1, "num_deleted_rows": 0}


def test_many_rows(tmp_path: Path) -> None:
    """More rows than are searched at once."""
    numbers = np.random.default_rng(7).permutation(300_000)
    target = pa.table({"k": numbers[:200_000], "v": numbers[:200_000] % 1000})
    table = lance_format.write_dataset(target, tmp_path / "t", max_rows_per_file=150_000)
    data = pa.table({"k": numbers[100_000:], "v": -numbers[100_000:]})
    result = upsert(table.merge_insert("k")).execute(data)
    assert result == {"num_inserted_rows": 100_000, "num_updated_rows": 100_000, "num_deleted_rows": 0}
    merged = lance.dataset(str(tmp_path / "t")).to_table().sort_by("k")
    assert merged["k"].to_pylist() == list(range(300_000))
    expected = np.empty(300_000, np.int64)
    expected[numbers[:100_000]] = numbers[:100_000] % 1000
    expected[numbers[100_000:]] = -numbers[100_000:]
    assert np.array_equal(merged["v"].to_numpy(), expected)


def test_pylance_finds_the_primary_keys_that_we_insert(tmp_path: Path) -> None:
    key = pa.field("k", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"})
    schema = pa.schema([key, pa.field("v", pa.string())])
    stale = lance.write_dataset(pa.table({"k": [1], "v": ["a"]}, schema), str(tmp_path / "t"))
    upsert(lance_format.dataset(tmp_path / "t").merge_insert()).execute(pa.table({"k": [2], "v": ["ours"]}, schema))
    upsert(stale.merge_insert()).execute(pa.table({"k": [2], "v": ["theirs"]}, schema))
    rows = lance_format.dataset(tmp_path / "t").to_table().to_pydict()
    assert rows == {"k": [1, 2], "v": ["a", "theirs"]}


def test_conditions_of_pyarrow(tmp_path: Path) -> None:
    write(tmp_path / "t", TARGET)
    merge = lance_format.dataset(tmp_path / "t").merge_insert("k")
    result = merge.when_not_matched_by_source_delete(pc.field("w") > 3).execute(source(5, 6))
    assert result == {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 3}


def test_a_merge_runs_on_the_latest_version(tmp_path: Path) -> None:
    write(tmp_path / "t", TARGET)
    table = lance_format.dataset(tmp_path / "t")
    lance.dataset(str(tmp_path / "t")).insert(source(9))
    assert upsert(table.merge_insert("k")).execute(source(9))["num_updated_rows"] == 1
    old = lance_format.dataset(tmp_path / "t", version=1)
    assert upsert(old.merge_insert("k").conflict_retries(0)).execute(source(9))["num_updated_rows"] == 1


def racing(monkeypatch: pytest.MonkeyPatch, *changes: Callable[[], object]) -> None:
    """Let others change the table when a merge has just looked up its latest version: one change an attempt."""
    plan, left = merge_builder.merge_insert, list(changes)

    def late(*arguments: Any) -> Any:
        if left:
            left.pop(0)()
        return plan(*arguments)

    monkeypatch.setattr(merge_builder, "merge_insert", late)


def test_a_key_that_others_insert_meanwhile_is_updated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "t")
    write(tmp_path / "t", TARGET)
    table = lance_format.dataset(path)
    racing(monkeypatch, lambda: lance.dataset(path).insert(source(20)), lambda: lance.dataset(path).insert(source(9)))
    upsert(table.merge_insert("k").conflict_retries(0)).execute(source(21))
    with pytest.raises(RetryableCommitConflictError, match="k = 9"):
        upsert(table.merge_insert("k").conflict_retries(0)).execute(source(9))
    racing(monkeypatch, lambda: lance.dataset(path).insert(source(30)))
    assert upsert(table.merge_insert("k")).execute(source(9, 30)) == {
        "num_inserted_rows": 0,
        "num_updated_rows": 2,
        "num_deleted_rows": 0,
    }
    racing(monkeypatch, lambda: lance.dataset(path).insert(source(40)))
    with pytest.raises(RetryableCommitConflictError, match="k = 40"):
        upsert(table.merge_insert("k").retry_timeout(timedelta())).execute(source(40))
    lance.dataset(path).validate()


def test_a_key_that_others_rename_meanwhile_is_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "t")
    write(tmp_path / "t", TARGET)
    table = lance_format.dataset(path)
    files = sorted((tmp_path / "t" / "data").iterdir())
    racing(monkeypatch, lambda: lance.dataset(path).alter_columns({"path": "k", "name": "key"}))
    with pytest.raises(RetryableCommitConflictError, match="columns k"):
        upsert(table.merge_insert("k").conflict_retries(0)).execute(source(60))
    with pytest.raises(InvalidInputError, match="no column 'k'"):
        upsert(table.merge_insert("k")).execute(source(60))
    assert sorted((tmp_path / "t" / "data").iterdir()) == files


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_blobs_are_kept_and_replaced(tmp_path: Path, version: str) -> None:
    blob = (
        lance.blob.blob_field("b")
        if version == "2.2"
        else pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    )

    def table(keys: list[int], values: list[bytes | None]) -> pa.Table:
        blobs = lance.blob.blob_array(values) if version == "2.2" else pa.array(values, pa.large_binary())
        schema = pa.schema([pa.field("k", pa.int64()), pa.field("v", pa.string()), blob])
        return pa.table([keys, [str(key) for key in keys], blobs], schema=schema)

    path = str(tmp_path / "t")
    lance.write_dataset(table([1, 2, 3], [b"x" * 70_000, None, b"z"]), path, data_storage_version=version)
    ours = lance_format.dataset(path)
    upsert(ours.merge_insert("k")).execute({"k": [2, 1, 9], "v": ["two", "one", "nine"]})
    upsert(ours.merge_insert("k")).execute(table([3, 4], [b"Z", b"w" * 80_000]))
    expected = {
        "k": [1, 2, 3, 4, 9],
        "v": ["one", "two", "3", "4", "nine"],
        "b": [b"x" * 70_000, None, b"Z", b"w" * 80_000, None],
    }
    assert ours.to_table(blob_handling="all_binary").sort_by("k").to_pydict() == expected
    reference = lance.dataset(path)
    reference.validate()
    assert reference.scanner(blob_handling="all_binary").to_table().sort_by("k").to_pydict() == expected
