"""Tasks of compactions and their results as JSON, which travel between this library and pylance."""

import json
from pathlib import Path
from typing import Any

import lance
import lance.optimize
import pyarrow as pa
import pytest

import lance_format
from lance_format import Compaction, InvalidInputError, NotSupportedError
from lance_format.table.maintenance.compaction import CompactionTask, RewriteResult
from tests.interop.test_table_pylance import assert_same

OPTIONS = {"target_rows_per_fragment": 4, "batch_size": 3}
ROW = ["a", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    table = lance.write_dataset(
        pa.table({"a": range(12)}), tmp_path / "t", max_rows_per_file=2, enable_stable_row_ids=request.param
    )
    table.delete("a = 3")
    return tmp_path / "t"


def plan(library: Any, path: Path, **options: Any) -> list[Any]:
    compaction = Compaction if library is lance_format else lance.optimize.Compaction
    return list(compaction.plan(library.dataset(path), {**OPTIONS, **options}).tasks)


def commit(library: Any, path: Path, results: list[Any]) -> None:
    compaction = Compaction if library is lance_format else lance.optimize.Compaction
    compaction.commit(library.dataset(path), results)


def test_our_tasks_are_run_by_pylance(path: Path) -> None:
    before = lance_format.dataset(path).to_table(ROW[1:] if lance_format.dataset(path).has_stable_row_ids else ["a"])
    tasks = plan(lance_format, path)
    theirs = [lance.optimize.CompactionTask.from_json(task.json()) for task in tasks]
    results = [RewriteResult.from_json(task.execute(lance.dataset(path)).json()) for task in theirs]
    assert [result.original_fragments for result in results] == [task.fragments for task in tasks]
    commit(lance_format, path, results)
    commit(lance_format, path, results)  # Again, which changes nothing.
    table = assert_same(path)
    assert table.to_table(before.schema.names) == before
    assert len(table.get_fragments()) == len(tasks) < 6


def test_tasks_of_pylance_are_run_by_ours(path: Path) -> None:
    before = lance_format.dataset(path).to_table(["a"])
    tasks = [CompactionTask.from_json(task.json()) for task in plan(lance, path)]
    assert tasks[0].options.target_rows_per_fragment == 4
    results = [task.execute(lance_format.dataset(path)) for task in tasks]
    commit(lance, path, [lance.optimize.RewriteResult.from_json(result.json()) for result in results])
    table = assert_same(path)
    assert table.to_table(["a"]) == before
    assert len(table.get_fragments()) == len(tasks) < 6


def test_what_travels_is_the_same(path: Path) -> None:
    ours, theirs = plan(lance_format, path), plan(lance, path)
    assert [CompactionTask.from_json(task.json()) for task in ours] == ours
    mine, other = (json.loads(tasks[0].json()) for tasks in (ours, theirs))
    assert mine["options"].keys() == other["options"].keys()
    assert mine.keys() - {"uuid"} == other.keys()
    result = ours[0].execute(lance_format.dataset(path))
    assert RewriteResult.from_json(result.json()) == result
    assert (
        json.loads(result.json()).keys() - {"uuid"} == json.loads(theirs[0].execute(lance.dataset(path)).json()).keys()
    )


def test_files_of_another_version(path: Path) -> None:
    for library in (lance_format, lance):
        table: Any = library.dataset(path)
        table.optimize.compact_files(target_rows_per_fragment=4, data_storage_version="2.1")
        assert {file.file_minor_version for fragment in table.get_fragments() for file in fragment.data_files()} == {1}
        assert table.data_storage_version == "2.2"
        assert_same(path)
        table.insert(pa.table({"a": [100]}))
        table.insert(pa.table({"a": [101]}))
    lance_format.dataset(path).update_config({"lance.compaction.data_storage_version": "2.1"})
    (task, *_) = plan(lance_format, path, target_rows_per_fragment=100)
    assert (
        task.options.data_storage_version == CompactionTask.from_json(task.json()).options.data_storage_version == "2.1"
    )
    with pytest.raises(InvalidInputError, match="unknown file format version"):
        plan(lance_format, path, data_storage_version="9")
    with pytest.raises(NotSupportedError):
        plan(lance_format, path, data_storage_version="0.1")


@pytest.mark.parametrize(
    "change",
    [{"read_version": "1"}, {"uuid": "x"}, {"options": None}, {"task": {"fragments": [{}]}}, {"task": []}],
    ids=str,
)
def test_malformed_tasks(path: Path, change: dict[str, Any]) -> None:
    task = json.loads(plan(lance_format, path)[0].json())
    with pytest.raises(InvalidInputError, match="malformed task"):
        CompactionTask.from_json(json.dumps({**task, **change}))
    with pytest.raises(InvalidInputError, match="malformed result"):
        RewriteResult.from_json(json.dumps({**task, **change}))


def test_tasks_that_ask_for_more(path: Path) -> None:
    task = json.loads(plan(lance, path)[0].json())
    options = {**task["options"], "enable_binary_copy_force": True}
    with pytest.raises(NotSupportedError):
        CompactionTask.from_json(json.dumps({**task, "options": options}))
