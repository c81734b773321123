"""Changes of tables of file format 0.1: pylance reads the results, and the same changes by pylance give the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import LanceOperation, NotSupportedError, RetryableCommitConflictError
from tests.nested_arrays import RandomValues, random_type

Change = Callable[[Any], Any]
WAY_OUT = r'compact_files\(data_storage_version="2.2"\)'


def _rows(num_rows: int = 300, start: int = 0) -> pa.Table:
    ids = range(start, start + num_rows)
    columns = {
        "id": pa.array(ids),
        "s": [f"{row}" if row % 7 else None for row in ids],
        "l": [[row] * (row % 3) for row in ids],
        "st": [{"x": row, "y": str(row)} for row in ids],
    }
    return pa.table(columns)


def _write(path: Path, data: pa.Table | None = None, rows_per_file: int = 120) -> str:
    options = {"max_rows_per_file": rows_per_file, "max_rows_per_group": 50}
    lance.write_dataset(_rows() if data is None else data, str(path), data_storage_version="legacy", **options)
    return str(path)


def _check(path: str, version: str = "0.1") -> pa.Table:
    """Read a table with both libraries, and return its rows."""
    ours, theirs = lance_format.dataset(path), lance.dataset(path)
    theirs.validate()
    assert ours.data_storage_version == theirs.data_storage_version == version
    found = ours.to_table()
    found.validate(full=True)
    expected = theirs.to_table()
    assert found.schema.equals(expected.schema, check_metadata=True)
    assert found == expected
    assert ours.validate() is None
    rows = random.Random(0).sample(range(found.num_rows), k=min(9, found.num_rows))
    assert ours.take(rows) == theirs.take(rows)
    return found


def _merge(dataset: Any, columns: list[str]) -> Any:
    data = _rows(3, 298).select(columns).set_column(0, "id", pa.array([4, 298, 900]))
    merge = dataset.merge_insert("id").when_matched_update_all()
    return (merge.when_not_matched_insert_all() if len(columns) == 4 else merge).execute(data)


def _double(batch: pa.RecordBatch) -> pa.RecordBatch:
    ids = batch["id"].to_pylist()
    texts = pa.array([[["a", str(row)]] * (row % 3) for row in ids], pa.list_(pa.list_(pa.string())))
    return pa.record_batch({"double": pa.array([2 * row for row in ids]), "texts": texts})


CHANGES: dict[str, Change] = {
    "update": lambda ds: ds.update({"s": "concat(s, 'x')", "id": "id + 1000"}, "id > 40 and id < 200"),
    "merge rows": lambda ds: _merge(ds, ["id", "s", "l", "st"]),
    "merge columns": lambda ds: _merge(ds, ["id", "s"]),
    "add by SQL": lambda ds: ds.add_columns({"twice": "id * 2", "even": "id % 2 = 0", "t": "s"}),
    "add by a function": lambda ds: ds.add_columns(_double, read_columns=["id"]),
    "add rows": lambda ds: ds.add_columns(pa.table({"b": [f"{row}" for row in range(ds.count_rows())]}).to_reader()),
    "add by key": lambda ds: ds.merge(pa.table({"id": range(1500), "w": range(1500)}), "id"),
    "cast": lambda ds: ds.alter_columns({"path": "id", "data_type": pa.int32()}),
    "rename": lambda ds: ds.alter_columns({"path": "s", "name": "text"}),
    "drop": lambda ds: ds.drop_columns(["s"]),
    "compact": lambda ds: ds.optimize.compact_files(),
    "index": lambda ds: ds.create_scalar_index("id", "ZONEMAP"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_changes_end_as_in_pylance(name: str, tmp_path: Path) -> None:
    ours, theirs = _write(tmp_path / "ours"), _write(tmp_path / "theirs")
    datasets = lance_format.dataset(ours), lance.dataset(theirs)
    for dataset in datasets:
        dataset.delete("id % 10 = 3")
        CHANGES[name](dataset)
    assert _check(ours) == lance.dataset(theirs).to_table()
    files = [
        [
            (file.fields, file.column_indices, file.file_major_version, file.file_minor_version)
            for fragment in dataset.get_fragments()
            for file in fragment.data_files()
        ]
        for dataset in (lance.dataset(ours), lance.dataset(theirs))
    ]
    assert files[0] == files[1]


@pytest.mark.parametrize("name", ["update", "merge rows", "compact"])
def test_files_list_their_fields_by_id(name: str, tmp_path: Path) -> None:
    """A column that has got another type has the last id, and keeps its place."""
    path = _write(tmp_path / "t")
    table = lance.dataset(path)
    table.alter_columns({"path": "id", "data_type": pa.int32()})
    table.alter_columns({"path": "id", "data_type": pa.int64()})
    table.delete("id % 10 = 3")
    CHANGES[name](lance_format.dataset(path))
    _check(path)


def _changed_by_pylance(path: str, change: Change) -> bool:
    """Let pylance change a table, and return whether it can: it cannot add columns where few rows are left, say."""
    try:
        change(lance.dataset(path))
    except OSError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_many_changes_by_both(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    path = _write(tmp_path / "t")
    for name in rng.sample([name for name in CHANGES if name not in ("drop", "rename", "cast")], k=6):
        lance_format.dataset(path).delete(f"id % 50 = {rng.randrange(50)}")
        if rng.random() < 0.5 or not _changed_by_pylance(path, CHANGES[name]):
            CHANGES[name](lance_format.dataset(path))
        _check(path)
    lance_format.dataset(path).optimize.compact_files(data_storage_version=rng.choice(["2.0", "2.1", "2.2"]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_new_columns_of_random_types(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    num_rows = rng.choice([1, 60, 300])
    path = _write(tmp_path / "t", pa.table({"id": range(num_rows)}), rng.choice([70, 1000]))
    arrow_type = random_type(rng, rng.randint(0, 3), maps=False)
    array = RandomValues(rng, 0, 0, rng.choice([1, 3, 20])).array(arrow_type, num_rows)
    dataset = lance_format.dataset(path)
    if rng.random() < 0.5:
        dataset.delete(f"id % 9 = {rng.randrange(9)}")
    data = pa.table({"id": range(num_rows), "c": array})
    live = data.filter(pa.array([row in dataset.to_table()["id"].to_pylist() for row in range(num_rows)]))
    reason = ""
    try:
        dataset.add_columns(live.select(["c"]).to_reader())
    except NotSupportedError as error:  # Values without bytes, and types that pylance cannot take single rows of.
        reason = str(error)
    if reason:
        assert "0.1" in reason
        assert dataset.version == lance.dataset(path).version
        dataset.optimize.compact_files(data_storage_version="2.2")
        return
    assert _check(path)["c"].to_pylist() == live["c"].to_pylist()


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, None, 3]),
        pa.array(["a", "", "c"]),
        pa.array([b"", None, b"c"]),
        pa.array([[1], None, []]),
        pa.array([[1], [None], []]),
        pa.array([["a"], [""], []]),
        pa.array([{"x": 1}, None, {"x": 3}]),
        pa.array([[1.0, 2.0], None, [1.0, 2.0]], pa.list_(pa.float32(), 2)),
        pa.array([[1.0, 2.0], [None, 1.0], [1.0, 2.0]], pa.list_(pa.float32(), 2)),
        pa.array([[True, False]] * 3, pa.list_(pa.bool_(), 2)),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([[("a", 1)], [], []], pa.map_(pa.string(), pa.int64())),
    ],
    ids=lambda values: str(values.type),
)
def test_values_that_the_format_cannot_hold_are_refused(values: pa.Array, tmp_path: Path) -> None:
    path = _write(tmp_path / "t", pa.table({"id": range(3)}))
    before = sorted((tmp_path / "t" / "data").iterdir())
    with pytest.raises(NotSupportedError, match=r"0\.1|2\.2"):
        lance_format.dataset(path).add_columns(pa.table({"c": values}).to_reader())
    assert sorted((tmp_path / "t" / "data").iterdir()) == before
    dataset = lance_format.dataset(path)
    dataset.optimize.compact_files(data_storage_version="2.2")
    dataset.add_columns(pa.table({"c": values}).to_reader())
    assert lance.dataset(path).to_table()["c"].to_pylist() == values.to_pylist()


def test_values_are_replaced_where_rows_are(tmp_path: Path) -> None:
    path = _write(tmp_path / "t")
    dataset = lance_format.dataset(path)
    values = pa.table({"id": [3, 50, 299], "s": ["x", "y", "z"]})
    dataset.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns").execute(values)
    found = _check(path)
    assert found["id"].to_pylist() == list(range(300))
    assert found.take([3, 50, 299])["s"].to_pylist() == ["x", "y", "z"]
    plan = dataset.plan_add_columns({"k": "id * 2"}, split_size_bytes=1)
    assert len(plan.tasks) == 2
    plan.commit(dataset, [task.execute(dataset) for task in plan.tasks])
    assert _check(path)["k"].to_pylist() == list(range(0, 600, 2))


def test_columns_of_nulls(tmp_path: Path) -> None:
    path = _write(tmp_path / "t")
    dataset = lance_format.dataset(path)
    dataset.add_columns(pa.field("n", pa.int32()))
    assert _check(path)["n"].null_count == 300
    with pytest.raises(NotSupportedError, match=WAY_OUT):
        dataset.update({"s": "'x'"}, "id = 3")
    dataset.optimize.compact_files(data_storage_version="2.2")
    dataset.update({"s": "'x'"}, "id = 3")
    assert _check(path, "2.2")["n"].null_count == 300


def test_appends_are_refused_with_the_way_out(tmp_path: Path) -> None:
    path = _write(tmp_path / "t")
    before = _check(path)
    dataset = lance_format.dataset(path)
    for version in (None, "2.2", "legacy"):
        with pytest.raises(lance_format.LanceError, match=WAY_OUT):
            lance_format.write_dataset(before, path, mode="append", data_storage_version=version)
    with pytest.raises(lance_format.LanceError, match=WAY_OUT):
        dataset.update({"s": "'x'"}, "id = 3", data_storage_version="2.2")
    with pytest.raises(lance_format.LanceError, match=WAY_OUT):
        lance_format.write_dataset(before, tmp_path / "new", data_storage_version="legacy")
    assert _check(path) == before
    dataset.optimize.compact_files(data_storage_version="2.2")
    lance_format.write_dataset(before, path, mode="append")
    assert _check(path, "2.2") == pa.concat_tables([before, before])


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_compaction_to_a_newer_format(version: str, tmp_path: Path) -> None:
    path = _write(tmp_path / "t")
    dataset = lance_format.dataset(path)
    dataset.create_scalar_index("id", "ZONEMAP")
    dataset.delete("id % 4 = 1")
    dataset.add_columns({"twice": "id * 2"})
    before = _check(path)
    found = dataset.optimize.compact_files(data_storage_version=version)
    assert found.fragments_removed == 2
    assert _check(path, version) == before
    assert lance_format.dataset(path, version=1).to_table().num_rows == 300
    assert dataset.count_rows("id = 200") == lance.dataset(path).count_rows("id = 200") == 1
    lance.dataset(path).insert(before)
    assert _check(path, version) == pa.concat_tables([before, before])


def test_large_fragments_are_taken_to_a_newer_format(tmp_path: Path) -> None:
    path = _write(tmp_path / "t")
    dataset = lance_format.dataset(path)
    dataset.optimize.compact_files(data_storage_version="2.2", target_rows_per_fragment=10)
    assert _check(path, "2.2").num_rows == 300


def test_a_part_of_a_table_cannot_be_newer(tmp_path: Path) -> None:
    path = _write(tmp_path / "t")
    before = _check(path)
    dataset = lance_format.dataset(path)
    limits: list[dict[str, Any]] = [{"max_source_fragments": 1}, {"excluded_fragment_ids": [1]}]
    for limit in limits:
        with pytest.raises(lance_format.InvalidInputError, match="leave out"):
            dataset.optimize.compact_files(data_storage_version="2.2", **limit)
    options = {"data_storage_version": "2.2", "target_rows_per_fragment": 10}
    plan = lance_format.Compaction.plan(dataset, options)
    results = [task.execute(dataset) for task in plan.tasks]
    assert len(results) > 1
    with pytest.raises(RetryableCommitConflictError, match="all tasks at once"):
        lance_format.Compaction.commit(dataset, results[:1])
    assert _check(path) == before
    lance_format.Compaction.commit(dataset, results)
    assert _check(path, "2.2") == before


def test_rows_that_pylance_appends_concurrently(tmp_path: Path) -> None:
    path = _write(tmp_path / "t")
    dataset, theirs = lance_format.dataset(path), lance.dataset(path)
    plan = lance_format.Compaction.plan(dataset, {"data_storage_version": "2.2"})
    results = [task.execute(dataset) for task in plan.tasks]
    theirs.insert(_rows(5, 1000))
    with pytest.raises(RetryableCommitConflictError, match="rows were added"):
        lance_format.Compaction.commit(dataset, results)
    stale = lance.dataset(path)
    lance_format.dataset(path).optimize.compact_files(data_storage_version="2.2")
    before = _check(path, "2.2")
    assert before.num_rows == 305
    with pytest.raises(OSError, match="mixes V1 and V2"):
        stale.insert(_rows(5, 2000))
    assert _check(path, "2.2") == before


def test_files_of_other_formats_cannot_be_committed(tmp_path: Path) -> None:
    path = _write(tmp_path / "t")
    new = str(tmp_path / "new")
    lance_format.write_dataset(_rows(), new, data_storage_version="2.2")
    fragments = lance_format.write_fragments(_rows(), new, data_storage_version="2.2")
    name = fragments[0].files[0].path
    Path(path, "data", name).write_bytes(Path(new, "data", name).read_bytes())
    with pytest.raises(lance_format.InvalidInputError, match=WAY_OUT):
        lance_format.LanceDataset.commit(path, LanceOperation.Append(fragments), read_version=1)
    _check(path)
