"""Making and updating indices that name rows; for random tables see `tests/interop/test_row_indices_pylance.py`."""

import itertools
import pickle
from pathlib import Path
from typing import Any

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import (
    CorruptFileError,
    IndexConfig,
    InvalidInputError,
    LanceError,
    NotSupportedError,
    RetryableCommitConflictError,
)
from lance_format.table.indices import part_rows
from lance_format.table.indices.building import TrainedIndex, TrainIndexTask
from lance_format.table.indices.kinds import bitmap_file, bitmap_index, btree_file, btree_index
from lance_format.table.indices.kinds.bitmap_file import KeyedRows
from lance_format.table.indices.part_rows import OrderedRows
from lance_format.table.versions.table_version import TableVersion
from tests.table.builders import rows
from tests.table.leftovers import leftovers

KINDS = ("BTREE", "BITMAP")
FLOATS = [1.5, None, -0.0, np.nan, 0.0, -np.inf, -np.nan, -2.0, None, np.inf]


def make(path: Path, num_rows: int = 100, **options: Any) -> lance_format.LanceDataset:
    return lance_format.write_dataset(rows(0, num_rows), path, max_rows_per_file=20, **options)


def covered(table: lance_format.LanceDataset) -> list[list[int]]:
    return [sorted(index["fragment_ids"]) for index in table.list_indices()]


def found(table: lance_format.LanceDataset, given: str) -> list[int]:
    scanner = table.scanner(["a"], given)
    result = scanner.to_table()
    assert result == table.scanner(["a"], given, use_scalar_index=False).to_table()
    return sorted(result["a"].to_pylist())


def index_files(path: Path) -> list[Path]:
    return sorted(file for file in (path / "_indices").rglob("*") if file.is_file())


def content(path: Path, uuid: str) -> dict[str, pa.Table]:
    files = sorted((path / "_indices" / uuid).iterdir())
    return {file.name: lance.file.LanceFileReader(str(file)).read_all().to_table() for file in files}


@pytest.mark.parametrize("column", ["a", "f", "s", "g.y"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_files_hold_what_those_of_pylance_hold(tmp_path: Path, kind: str, column: str) -> None:
    rng = np.random.default_rng(0)
    table = {
        "a": pa.array(rng.integers(0, 3000, 10_000), mask=rng.random(10_000) < 0.1),
        "f": pa.array(rng.choice(np.array([value for value in FLOATS if value is not None]), 10_000)),
        "s": pa.array([f"owl {number}" for number in rng.integers(0, 500, 10_000)]),
        "g": pa.array([None if number % 9 == 0 else {"y": number} for number in rng.integers(0, 99, 10_000).tolist()]),
    }
    dataset = lance_format.write_dataset(pa.table(table), tmp_path, max_rows_per_file=3000)
    dataset.delete("a % 11 = 3")
    dataset.create_scalar_index(column, kind, "ours")
    lance.dataset(str(tmp_path)).create_scalar_index(column, kind, "theirs")
    dataset.checkout_latest()
    ours, theirs = (index["uuid"] for index in sorted(dataset.list_indices(), key=lambda index: index["name"]))
    expected = content(tmp_path, theirs)
    for name, made in content(tmp_path, ours).items():
        metadata = dict(made.schema.metadata)
        del metadata[b"lance.checksums"]
        assert made.schema.equals(expected[name].schema)
        assert metadata == (expected[name].schema.metadata or {})
        assert _plain(made) == _plain(expected[name])


def _plain(table: pa.Table) -> list[str]:
    """Return the rows as text, by which NaN are equal; ids of equal values in order, and bitmaps as ids."""
    columns = table.to_pydict()
    if "bitmaps" in columns:
        columns["bitmaps"] = [bitmap_index._parse(data, 10**9).tolist() for data in columns["bitmaps"]]
    rows = [repr(row) for row in zip(*columns.values(), strict=True)]
    if "ids" in columns:
        assert [repr(value) for value in columns["values"]] == [row[1:].rpartition(",")[0] for row in rows]
        groups = itertools.groupby(zip(columns["values"], columns["ids"], strict=True), lambda row: repr(row[0]))
        rows = [f"{value} {sorted(number for _, number in group)}" for value, group in groups]
    return rows


@pytest.mark.parametrize("width", [16, 32, 64])
def test_floats_are_in_the_total_order(width: int) -> None:
    value_type = {16: pa.float16(), 32: pa.float32(), 64: pa.float64()}[width]
    numbers = np.array([0 if value is None else value for value in FLOATS], f"f{width // 8}")
    values = pa.array(numbers, value_type, mask=np.array([value is None for value in FLOATS]))
    ordered = OrderedRows.of([values], [np.arange(10, dtype=np.uint64)], value_type)
    assert ordered.ids.tolist() == [1, 8, 6, 5, 7, 2, 4, 0, 9, 3]
    assert ordered.values.null_count == 2


def _large_values(*sizes: int) -> pa.Array:
    """Return values whose memory nobody has touched."""
    offsets = np.cumsum([0, *sizes])
    buffers = [None, pa.py_buffer(offsets), pa.allocate_buffer(int(offsets[-1]))]
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), buffers)


def test_ordered_values_of_more_than_an_array_holds() -> None:
    values = _large_values(1 << 30, 1 << 30, 3, 4)
    ordered = OrderedRows(values, np.arange(4, dtype=np.uint64), pa.binary())
    assert [len(value.as_buffer()) for value in ordered.column(2, 4)] == [3, 4]
    assert list(btree_file._bounded(ordered, 0, 4)) == [(0, 1), (1, 2), (2, 4)]


@pytest.mark.slow
def test_keys_of_more_than_an_array_holds() -> None:
    values = [_large_values(size).cast(pa.binary()) for size in (1 << 30, (1 << 30) + 1)]
    with pytest.raises(NotSupportedError, match="have more than 2 GiB, which a BITMAP index cannot hold: make one of"):
        KeyedRows.of([(value, np.zeros(1, np.uint64)) for value in values], pa.binary(), "BITMAP")


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_holds_as_many_fragments_as_fit(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_rows, "_PART_BYTES", 40 * 16)
    monkeypatch.setattr(part_rows, "_BATCH_ROWS", 20)  # So that no two fragments are read together.
    table = make(tmp_path)
    table.create_scalar_index("a", kind)
    assert covered(table) == [[0, 1], [2, 3], [4]]
    assert found(table, "a IN (3, 44, 99)") == [3, 44, 99]
    scanner = table.scanner(filter="a = 44")
    assert [task.ranges for task in scanner.plan_tasks()] == [((2, 4, 5),)]
    assert {index["name"] for index in table.list_indices()} == {"a_idx"}
    assert lance.dataset(str(tmp_path)).to_table(filter="a = 44").num_rows == 1


@pytest.mark.parametrize("kind", KINDS)
def test_updates_merge_the_parts_that_have_no_more_rows(tmp_path: Path, kind: str) -> None:
    table = make(tmp_path)
    table.create_scalar_index("a", kind)
    first = table.list_indices()[0]["uuid"]
    sizes = []
    for number in range(7):
        table = lance_format.write_dataset(rows(100 + number, 101 + number), tmp_path, mode="append")
        table.optimize.optimize_indices()
        sizes.append([len(ids) for ids in covered(table)])
        assert found(table, f"a >= {99 + number}") == list(range(99 + number, 101 + number))
    assert sizes == [[5, 1], [5, 2], [5, 2, 1], [5, 4], [5, 4, 1], [5, 4, 2], [5, 4, 2, 1]]
    assert table.list_indices()[0]["uuid"] == first
    version = table.version
    table.optimize.optimize_indices()
    assert table.version == version
    table.optimize.optimize_indices(num_indices_to_merge=2)
    assert [len(ids) for ids in covered(table)] == [5, 4, 3]
    table.optimize.optimize_indices(num_indices_to_merge=0)
    assert [len(ids) for ids in covered(table)] == [5, 4, 3]
    table.optimize.optimize_indices(retrain=True)
    assert [len(ids) for ids in covered(table)] == [12]


@pytest.mark.parametrize("kind", KINDS)
def test_without_rows(tmp_path: Path, kind: str) -> None:
    table = make(tmp_path / "t")
    table.create_scalar_index("a", kind, train=False)
    assert covered(table) == [[]]
    assert found(table, "a = 7") == [7]
    table.optimize.optimize_indices()
    assert covered(table) == [[0, 1, 2, 3, 4]]
    empty = lance_format.write_dataset(rows(0, 0), tmp_path / "e")
    empty.create_scalar_index("a", kind)
    assert covered(empty) == [[]]
    lance.dataset(str(tmp_path / "e")).insert(rows(5, 9))
    empty.checkout_latest()
    lance.dataset(str(tmp_path / "e")).optimize.optimize_indices()
    empty.checkout_latest()
    assert covered(empty) == [[0]]
    assert found(empty, "a = 7") == [7]


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_changed_rows(tmp_path: Path, kind: str, stable: bool) -> None:
    table = make(tmp_path, enable_stable_row_ids=stable)
    table.create_scalar_index("a", kind)
    table.delete("a < 10")
    table.update({"a": "a + 1000"}, where="a % 10 = 3")
    assert found(table, "a IN (5, 13, 14, 1013)") == [14, 1013]
    table.optimize.compact_files(target_rows_per_fragment=1000)
    table.optimize.optimize_indices()
    assert covered(table) == [sorted(fragment.fragment_id for fragment in table.get_fragments())]
    assert found(table, "a IN (5, 13, 14, 1013)") == [14, 1013]
    assert lance.dataset(str(tmp_path)).to_table(filter="a IN (5, 13, 14, 1013)").num_rows == 2


def test_the_size_of_pages_is_kept(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.create_scalar_index("a", IndexConfig("btree", {"zone_size": 7}))
    for options in ({}, {"retrain": True}):
        table.insert(rows(100, 120))
        table.optimize.optimize_indices(**options)
        stats = lance.dataset(str(tmp_path)).stats.index_stats("a_idx")
        num_rows = stats["num_indexed_rows_per_delta"]
        assert [part["num_pages"] for part in stats["indices"]] == [-(-number // 7) for number in num_rows]
        assert sum(num_rows) == table.count_rows()
    for index in table.list_indices():
        assert content(tmp_path, index["uuid"])["page_lookup.lance"].schema.metadata[b"batch_size"] == b"7"


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_run_anywhere(tmp_path: Path, kind: str) -> None:
    table = make(tmp_path)
    plan = pickle.loads(pickle.dumps(table.plan_scalar_index("a", kind, split_size_bytes=50)))
    assert len(plan.tasks) > 2
    results = [pickle.loads(pickle.dumps(task.execute(table))) for task in plan.tasks]
    num_files = len(index_files(tmp_path))
    plan.tasks[0].execute(table)
    assert len(index_files(tmp_path)) > num_files
    plan.commit(table, results)
    plan.discard_lost(table)
    assert len(index_files(tmp_path)) == num_files
    assert len(list((tmp_path / "_indices").iterdir())) == len(plan.tasks)
    assert len(covered(table)) == len(plan.tasks)
    assert sorted(itertools.chain(*covered(table))) == [0, 1, 2, 3, 4]
    assert found(table, "a = 77") == [77]
    other = table.plan_scalar_index("a", kind, "other", split_size_bytes=50)
    ended = [task.execute(table) for task in other.tasks[1:]]
    other.tasks[0].execute(table)  # its result is lost
    other.abort(table, ended)
    assert len(index_files(tmp_path)) == num_files
    assert len(list((tmp_path / "_indices").iterdir())) == len(plan.tasks)


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_index_leaves_no_files(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_rows, "_PART_BYTES", 1)
    table = make(tmp_path)
    path = next((tmp_path / "data").glob("*"))
    for file in sorted((tmp_path / "data").iterdir())[-1:]:
        file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(LanceError):
        lance_format.dataset(tmp_path).create_scalar_index("a", kind)
    assert index_files(tmp_path) == []
    assert not list((tmp_path / "_indices").glob("*"))
    assert path.exists()
    assert lance_format.dataset(tmp_path).version == table.version


@pytest.mark.parametrize("kind", [*KINDS, "ZONEMAP"])
@pytest.mark.parametrize("is_update", [False, True])
def test_the_column_is_dropped_concurrently(tmp_path: Path, kind: str, is_update: bool) -> None:
    table = make(tmp_path)
    if is_update:
        table.create_scalar_index("s", kind)
        table.insert(rows(100, 120))
        plan = table.optimize.plan_optimize_indices()
    else:
        plan = table.plan_scalar_index("s", kind)
    results = [task.execute(table) for task in plan.tasks]
    other = lance_format.dataset(tmp_path)
    other.drop_columns(["s"])
    with pytest.raises(RetryableCommitConflictError, match=r"the column of index 's_idx', .* was dropped"):
        plan.commit(table, results)
    assert other.latest_version == other.version
    assert leftovers(tmp_path) == set()


def test_the_column_is_dropped_while_its_index_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(tmp_path)
    run = TrainIndexTask.run

    def run_then_drop(task: TrainIndexTask, version: TableVersion) -> TrainedIndex:
        result = run(task, version)
        lance_format.dataset(tmp_path).drop_columns(["s"])
        return result

    monkeypatch.setattr(TrainIndexTask, "run", run_then_drop)
    with pytest.raises(InvalidInputError, match="'s'"):
        table.create_scalar_index("s", "BTREE")
    assert leftovers(tmp_path) == set()


def test_rows_are_not_kept_twice() -> None:
    values, ids = [pa.array([2, 1])], [np.array([5, 6], np.uint64)]
    ordered = OrderedRows.of(values, ids, pa.int64())
    assert (ordered.values.to_pylist(), ordered.ids.tolist()) == ([1, 2], [6, 5])
    assert values == []
    assert ids == []


def test_too_many_distinct_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bitmap_file, "MOST_KEYS", 50)
    table = make(tmp_path)
    with pytest.raises(NotSupportedError, match=r"100 distinct values and more; a BITMAP index may have 50: .* BTREE"):
        table.create_scalar_index("a", "BITMAP")
    assert index_files(tmp_path) == []


@pytest.mark.parametrize("kind", KINDS)
def test_large_strings_within_a_part(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_rows, "_LARGE_BYTES", 1)
    table = make(tmp_path)
    table.create_scalar_index("s", kind)
    assert found(table, "s = 'row 7'") == [7]
    assert lance.dataset(str(tmp_path)).to_table(filter="s = 'row 7'").num_rows == 1


@pytest.mark.parametrize(
    ("column", "kind", "error", "message"),
    [
        ("g", "BTREE", NotSupportedError, "of numbers, booleans, strings"),
        ("l", "BITMAP", NotSupportedError, "'l' is of type list"),
        ("a", IndexConfig("BTREE", {"zone_size": 0}), InvalidInputError, "zone_size is 0"),
        ("a", IndexConfig("BTREE", {"size": 1}), InvalidInputError, "'size' of BTREE .* there is zone_size"),
        ("a", IndexConfig("BITMAP", {"size": 1}), InvalidInputError, "'size' of BITMAP .* it has none"),
    ],
)
def test_what_cannot_be_indexed(tmp_path: Path, column: str, kind: Any, error: type[Exception], message: str) -> None:
    fields = [("a", pa.int64()), ("l", pa.list_(pa.int64())), ("g", pa.struct([("y", pa.int64())]))]
    table = lance_format.write_dataset(pa.schema(fields).empty_table(), tmp_path)
    with pytest.raises(error, match=message):
        table.create_scalar_index(column, kind)


def test_a_number_of_nulls_that_is_null_is_refused() -> None:
    fields = [field.with_nullable(True) for field in btree_index.lookup_columns(pa.int64())]
    columns = [
        pa.array(values, field.type) for values, field in zip(([0, 5], [4, 9], [0, None], [0, 1]), fields, strict=True)
    ]
    with pytest.raises(CorruptFileError, match=r"^x/page_lookup\.lance: the number of nulls of a page is null$"):
        btree_index._zones_of(pa.record_batch(columns, pa.schema(fields)), 5, 10, "x/page_lookup.lance")
