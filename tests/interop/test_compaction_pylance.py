"""Compaction: ours does to one copy of a table what pylance's does to another, and indices stay true."""

import dataclasses
import pickle
import shutil
from pathlib import Path
from typing import Any

import lance
import lance.optimize
import pyarrow as pa
import pytest

import lance_format
from lance_format import (
    CommitConflictError,
    Compaction,
    InvalidInputError,
    NotSupportedError,
    RetryableCommitConflictError,
)
from lance_format.table.maintenance.compaction import CompactionMetrics, compact_files
from lance_format.table.maintenance.compaction_options import CompactionOptions
from tests.interop.test_scans_pylance import people
from tests.interop.test_table_pylance import assert_same

LINEAGE = ["id", "name", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def extra(num_rows: int) -> pa.Table:
    return people(100).slice(0, num_rows).drop_columns(["x"])


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Fragments of 30, 30, 30, 10, 200 and 5 rows, some of them deleted or updated, with a column added and dropped."""
    table = lance.write_dataset(
        people(100), str(tmp_path / "t"), max_rows_per_file=30, enable_stable_row_ids=request.param
    )
    table.delete("id % 10 = 3")
    table.insert(people(200))
    table.insert(people(5))
    table.update({"name": "'updated'"}, "id = 41 or id = 2")
    table.add_columns({"y": "id + 1"})
    table.drop_columns(["x"])
    return tmp_path / "t"


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"target_rows_per_fragment": 50},
        {"target_rows_per_fragment": 100},
        {"target_rows_per_fragment": 29},
        {"target_rows_per_fragment": 1},
        {"target_rows_per_fragment": 1, "materialize_deletions": False},
        {"target_rows_per_fragment": 1, "materialize_deletions_threshold": 0.0},
        {"materialize_deletions": False},
        {"batch_size": 7},
    ],
    ids=str,
)
def test_compactions(path: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    shutil.copytree(path, tmp_path / "copy")
    ours, reference = lance_format.dataset(path), lance.dataset(str(tmp_path / "copy"))
    metrics = ours.optimize.compact_files(**options)
    expected = reference.optimize.compact_files(**options)
    assert dataclasses.asdict(metrics) == {
        name: getattr(expected, name) for name in dataclasses.asdict(CompactionMetrics())
    }
    assert_same(path)
    sizes = [[fragment.count_rows() for fragment in table.get_fragments()] for table in (ours, reference)]
    assert sizes[0] == sizes[1]
    assert ours.to_table() == reference.to_table()
    if ours.has_stable_row_ids:
        assert lance.dataset(str(path)).to_table(columns=LINEAGE) == reference.to_table(columns=LINEAGE)
    changed = ours.version
    ours.optimize.compact_files(**options)
    reference.optimize.compact_files(**options)
    assert [fragment.count_rows() for fragment in ours.get_fragments()] == [
        fragment.count_rows() for fragment in reference.get_fragments()
    ]
    assert ours.version >= changed


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "ZONEMAP"])
def test_indices_stay_true(path: Path, kind: str) -> None:
    reference = lance.dataset(str(path))
    reference.create_scalar_index("id", kind)
    reference.insert(extra(7).append_column("y", pa.array(range(7))))
    filters = ["id = 41", "id < 5", "id >= 90 and id < 150", "id = 3"]
    expected = [reference.to_table(filter=text, columns=["name", "id"]).sort_by("name") for text in filters]
    lance_format.dataset(path).optimize.compact_files()
    for step in ("compacted", "optimized", "updated"):
        reference = lance.dataset(str(path))
        if step == "optimized":
            reference.optimize.optimize_indices()
        if step == "updated":
            lance_format.dataset(path).update({"y": "0"}, "id = 41")
        found = [reference.to_table(filter=text, columns=["name", "id"]).sort_by("name") for text in filters]
        assert found == expected, step
        assert_same(path)


def test_options_come_from_the_configuration(path: Path) -> None:
    table = lance_format.dataset(path)
    table.update_config({"lance.compaction.target_rows_per_fragment": "50"})
    assert CompactionOptions.choose(table._table, {}).target_rows_per_fragment == 50
    assert CompactionOptions.choose(table._table, {"target_rows_per_fragment": 7}).target_rows_per_fragment == 7
    table.update_config({"lance.compaction.materialize_deletions": "perhaps"})
    with pytest.raises(InvalidInputError, match=r"lance\.compaction\.materialize_deletions is 'perhaps'"):
        table.optimize.compact_files()
    for wrong in ({"target_rows_per_fragment": 0}, {"materialize_deletions_threshold": 2}, {"nope": 1}):
        with pytest.raises(InvalidInputError):
            table.optimize.compact_files(**wrong)


def test_others_come_first(path: Path) -> None:
    options = CompactionOptions()
    stale = lance_format.dataset(path)._table
    lance.dataset(str(path)).insert(extra(1))
    made, _ = compact_files(stale, options)
    assert made.manifest.version == stale.manifest.version + 2
    assert_same(path)
    stale = lance_format.dataset(path)._table
    lance.dataset(str(path)).delete("id = 9")
    files = {file.name for file in (path / "data").iterdir()}
    with pytest.raises(RetryableCommitConflictError):
        compact_files(stale, options)
    assert {file.name for file in (path / "data").iterdir()} == files
    # A delete that was planned before a compaction landed finds its rows where they are since.
    table = lance_format.dataset(path)
    lance.dataset(str(path)).optimize.compact_files(materialize_deletions_threshold=0.0)
    assert table.delete("id = 8") == {"num_deleted_rows": 2}
    assert_same(path)


def test_tasks_run_anywhere(path: Path) -> None:
    table = lance_format.dataset(path)
    before = table.to_table()
    plan = pickle.loads(pickle.dumps(Compaction.plan(table, {"target_rows_per_fragment": 50, "num_threads": 2})))
    assert plan.read_version == table.version
    assert plan.num_tasks() == len(plan.tasks) > 1
    table.update_config({"meanwhile": "1"})
    results = pickle.loads(pickle.dumps([pickle.loads(pickle.dumps(task)).execute(table) for task in plan.tasks]))
    for result, task in zip(results, plan.tasks, strict=True):
        assert result.old_fragments == task.fragments
        assert result.metrics.fragments_removed == len(task.fragments)
    metrics = Compaction.commit(table, results[:1])
    assert metrics == results[0].metrics
    Compaction.commit(table, results[1:])
    version = table.version
    assert version == plan.read_version + 3
    Compaction.commit(table, results[1:])
    assert table.version == version
    with pytest.raises(CommitConflictError):
        Compaction.commit(table, results)
    other = Compaction.plan(lance_format.dataset(path, plan.read_version))
    with pytest.raises(InvalidInputError, match="different plans"):
        Compaction.commit(table, [results[0], other.tasks[0].execute(table)])
    assert assert_same(path).to_table().sort_by([("id", "ascending"), ("name", "ascending")]) == before.sort_by(
        [("id", "ascending"), ("name", "ascending")]
    )


def test_what_is_compacted_is_limited(tmp_path: Path) -> None:
    data = pa.table({"a": range(60)})

    def rewritten(**options: object) -> list[list[int]]:
        lance.write_dataset(data, tmp_path, max_rows_per_file=10, mode="overwrite")
        table = lance_format.dataset(tmp_path)
        first = table.get_fragments()[0].fragment_id
        options = {"target_rows_per_fragment": 20, **options}
        if "excluded_fragment_ids" in options:
            options["excluded_fragment_ids"] = [first + 2, 10**6]
        theirs = lance.optimize.Compaction.plan(lance.dataset(tmp_path), options)
        found = [[fragment.id - first for fragment in task.fragments] for task in Compaction.plan(table, options).tasks]
        assert found == [[fragment.id - first for fragment in task.fragments] for task in theirs.tasks]
        return found

    assert rewritten() == [[0, 1], [2, 3], [4, 5]]
    assert rewritten(max_source_fragments=5) == [[0, 1], [2, 3]]
    assert rewritten(max_source_rows=20) == [[0, 1]]
    assert rewritten(max_source_bytes=10) == []
    assert rewritten(excluded_fragment_ids=True) == [[0, 1], [3, 4, 5]]


def test_options_of_pylance_without_effect(path: Path) -> None:
    table = lance_format.dataset(path)
    table.optimize.compact_files(num_threads=2, io_buffer_size=100, compaction_mode="try_binary_copy")
    assert_same(path)
    with pytest.raises(NotSupportedError, match="compaction_mode"):
        table.optimize.compact_files(compaction_mode="force_binary_copy")
    with pytest.raises(InvalidInputError, match="excluded_fragment_ids"):
        table.optimize.compact_files(excluded_fragment_ids="all")


def _check_same_fields(table: lance_format.LanceDataset) -> None:
    """Compact four fragments into one that has the same rows and fields."""
    expected, held = table.to_table(), table.get_fragments()[0].metadata.field_ids
    assert table.optimize.compact_files().fragments_removed == 4
    assert table.to_table().equals(expected)
    assert lance.dataset(table.uri).to_table().equals(expected)
    (fragment,) = table.get_fragments()
    assert fragment.metadata.field_ids == held


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_columns_without_values_stay_unwritten(tmp_path: Path, version: str) -> None:
    """Format 2.0 cannot hold null structs, as a column of structs that was added has."""
    rows = people(100).select(["id", "name"])
    table = lance_format.write_dataset(rows, tmp_path, data_storage_version=version, max_rows_per_file=30)
    table.add_columns(pa.schema([("pair", pa.struct([("one", pa.int64())])), ("text", pa.string())]))
    _check_same_fields(table)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_fields_without_values_stay_unwritten(tmp_path: Path, version: str) -> None:
    rows = people(100).select(["id", "name"]).append_column("home", pa.array([{"city": "Rome"}] * 100))
    table = lance_format.write_dataset(rows, tmp_path, data_storage_version=version, max_rows_per_file=30)
    place = pa.struct([("x", pa.int64())])
    table.add_columns(pa.field("home", pa.struct([("place", place), ("floor", pa.int32())])))
    _check_same_fields(table)
    table.validate()
