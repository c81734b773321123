"""Changes in steps: a plan, tasks that run anywhere, one commit, as one process would have made it."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_format
from lance_format import InvalidInputError, LanceDataset, RetryableCommitConflictError
from lance_format.table.versions.planned_change import ChangePlan

ROWS = 20_000
Plan = Callable[[LanceDataset], ChangePlan[Any, Any]]
Change = Callable[[LanceDataset], Any]


def rank(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"rank": pc.multiply(batch["id"], 2)})


@lance_format.batch_udf(pa.schema({"length": pa.int32()}))
def length(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"length": pc.utf8_length(batch["name"])})


CHANGES: dict[str, tuple[Plan, Change]] = {
    "delete": (
        lambda table: table.plan_delete("id % 3 = 1", split_size_bytes=20_000),
        lambda table: table.delete("id % 3 = 1"),
    ),
    "update": (
        lambda table: table.plan_update({"name": "upper(name)"}, "id % 3 = 1", split_size_bytes=20_000),
        lambda table: table.update({"name": "upper(name)"}, "id % 3 = 1"),
    ),
    "new columns by SQL": (
        lambda table: table.plan_add_columns({"twice": "id * 2", "loud": "upper(name)"}, split_size_bytes=20_000),
        lambda table: table.add_columns({"twice": "id * 2", "loud": "upper(name)"}),
    ),
    "new columns by a function": (
        lambda table: table.plan_add_columns(rank, ["id"], split_size_bytes=20_000),
        lambda table: table.add_columns(rank, ["id"]),
    ),
    "new columns by a decorated function": (
        lambda table: table.plan_add_columns(length, split_size_bytes=20_000),
        lambda table: table.add_columns(length),
    ),
}


def write(path: Path, *, stable: bool = False) -> LanceDataset:
    data = pa.table({"id": range(ROWS), "name": [f"bird {row}" for row in range(ROWS)]})
    return lance_format.write_dataset(
        data, path / "table.lance", max_rows_per_file=ROWS // 4, enable_stable_row_ids=stable
    )


def files(table: LanceDataset) -> set[str]:
    root = Path(table.uri)
    return {str(file.relative_to(root)) for file in root.rglob("*") if file.is_file()}


def rows(table: LanceDataset, *columns: str) -> list[dict[str, Any]]:
    return table.to_table(columns=["id", "name", *columns]).sort_by("id").to_pylist()


def execute(plan: ChangePlan[Any, Any], table: LanceDataset) -> list[Any]:
    """Run tasks in threads, in reverse, with everything pickled on its way."""
    tasks = [pickle.loads(pickle.dumps(task)) for task in reversed(plan.tasks)]
    with ThreadPoolExecutor(2) as pool:
        return [pickle.loads(pickle.dumps(result)) for result in pool.map(lambda task: task.execute(table), tasks)]


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("name", CHANGES)
def test_tasks_do_what_one_process_does(name: str, stable: bool, tmp_path: Path) -> None:
    plan_change, change = CHANGES[name]
    table, other = write(tmp_path / "a", stable=stable), write(tmp_path / "b", stable=stable)
    plan = pickle.loads(pickle.dumps(plan_change(table)))
    assert len(plan.tasks) > 3
    assert plan.commit(table, execute(plan, table)) == change(other)
    identities = ["_rowid"] if stable else []
    assert rows(table, *identities) == rows(other, *identities)
    assert lance.dataset(table.uri).to_table().sort_by("id") == other.to_table().sort_by("id")
    table.validate()


@pytest.mark.parametrize("name", CHANGES)
def test_a_second_commit_changes_nothing(name: str, tmp_path: Path) -> None:
    table = write(tmp_path)
    plan = CHANGES[name][0](table)
    results = execute(plan, table)
    outcome = plan.commit(table, results)
    before = files(table)
    table.update_config({"a": "b"})
    assert plan.commit(table, results) == outcome
    assert table.version == 2
    assert {file for file in files(table) if "_deletions" in file or "data" in file} == {
        file for file in before if "_deletions" in file or "data" in file
    }


@pytest.mark.parametrize("name", CHANGES)
def test_a_plan_that_is_given_up_leaves_no_file(name: str, tmp_path: Path) -> None:
    table = write(tmp_path)
    before = files(table)
    plan = CHANGES[name][0](table)
    results = execute(plan, table)
    execute(plan, table)  # tasks whose results were lost
    plan.abort(table, results)
    assert files(table) == before
    assert table.latest_version == 1


@pytest.mark.parametrize("name", CHANGES)
def test_a_commit_that_collides_leaves_no_file(name: str, tmp_path: Path) -> None:
    table = write(tmp_path)
    plan = CHANGES[name][0](table)
    lance_format.dataset(table.uri).delete("id = 1")
    before = files(table)
    results = execute(plan, table)
    with pytest.raises(RetryableCommitConflictError):
        plan.commit(table, results)
    assert files(table) == before


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with multiprocessing.get_context("spawn").Pool(2) as made:
        yield made


def _run(task: Any, uri: str) -> Any:
    return task.execute(lance_format.dataset(uri))


@pytest.mark.parametrize("name", CHANGES)
def test_processes_run_tasks(name: str, pool: Pool, tmp_path: Path) -> None:
    table, other = write(tmp_path / "a"), write(tmp_path / "b")
    plan_change, change = CHANGES[name]
    plan = plan_change(table)
    results = pool.starmap(_run, [(task, table.uri) for task in plan.tasks])
    assert plan.commit(table, results) == change(other)
    assert table.to_table().sort_by("id") == other.to_table().sort_by("id")


@pytest.mark.parametrize("name", CHANGES)
def test_all_results_are_needed_and_each_once(name: str, tmp_path: Path) -> None:
    table = write(tmp_path)
    plan = CHANGES[name][0](table)
    results = execute(plan, table)
    before = files(table)
    for given in (results[1:], [*results, results[0]], [*results[1:], results[1]]):
        with pytest.raises(InvalidInputError, match="commit one of each task"):
            plan.commit(table, given)
        assert table.latest_version == 1
    assert files(table) == before
    plan.commit(table, results)
    table.validate()


def test_outcomes_are_attributes_and_mappings(tmp_path: Path) -> None:
    outcome = write(tmp_path).delete("id < 5")
    assert outcome.num_deleted_rows == outcome["num_deleted_rows"] == 5
    assert outcome == {"num_deleted_rows": 5}
    assert {**outcome} == {"num_deleted_rows": 5}
    assert "num_rows_updated" not in outcome
    with pytest.raises(KeyError):
        outcome["commit"]


def test_columns_of_nulls_need_no_task(tmp_path: Path) -> None:
    table = write(tmp_path)
    plan = table.plan_add_columns(pa.field("colour", pa.string()))
    assert plan.tasks == ()
    plan.commit(table, [])
    assert lance.dataset(table.uri).to_table()["colour"].null_count == ROWS


def test_new_columns_of_a_table_without_rows_need_no_task(tmp_path: Path) -> None:
    table = lance_format.write_dataset(pa.table({"id": pa.array([], pa.int64())}), tmp_path / "table.lance")
    plan = table.plan_add_columns({"twice": "id * 2"})
    assert plan.tasks == ()
    plan.commit(table, [])
    assert table.schema.names == lance.dataset(table.uri).schema.names == ["id", "twice"]


def test_rows_and_checkpoints_are_for_one_process(tmp_path: Path) -> None:
    table = write(tmp_path)
    batches = pa.table({"new": range(ROWS)}).to_reader()
    for given in (batches, iter(batches)):
        with pytest.raises(InvalidInputError, match="iterator go to one process"):
            table.plan_add_columns(given, reader_schema=batches.schema)
    resumed = lance_format.batch_udf(length.output_schema, tmp_path / "checkpoint")(length.func)
    with pytest.raises(InvalidInputError, match="checkpoint is a file of one process"):
        table.plan_add_columns(resumed)
    assert not (tmp_path / "checkpoint").exists()


@pytest.mark.parametrize("size", [0, True, 1.5])
def test_sizes_of_tasks_are_whole_numbers(size: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="split_size_bytes"):
        write(tmp_path).plan_add_columns({"twice": "id * 2"}, split_size_bytes=size)


def test_small_fragments_share_a_task(tmp_path: Path) -> None:
    table = write(tmp_path)
    assert [len(task.places) for task in table.plan_add_columns({"a": "id"}).tasks] == [4]
    halves = table.plan_add_columns({"a": "id"}, split_size_bytes=400_000).tasks
    assert [task.places for task in halves] == [(0, 1), (2, 3)]
