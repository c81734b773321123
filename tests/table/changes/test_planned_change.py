"""Changes in steps: a plan, tasks that run anywhere, one commit, as one process would have made it."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_format
from lance_format import (
    CommitConflictError,
    Compaction,
    InvalidInputError,
    LanceDataset,
    MergeInsertBuilder,
    RetryableCommitConflictError,
)
from lance_format.file import LanceFileReader
from lance_format.table.indices.building import ChangedIndices
from lance_format.table.versions.planned_change import ChangePlan
from tests.processes import context
from tests.table.leftovers import leftovers

ROWS = 20_000
SPLIT = {"split_size_bytes": 20_000}


def rank(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"rank": pc.multiply(batch["id"], 2)})


@lance_format.batch_udf(pa.schema({"length": pa.int32()}))
def length(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"length": pc.utf8_length(batch["name"])})


def add_rows(table: LanceDataset) -> None:
    """Create an index, and fragments that it does not cover."""
    table.create_scalar_index("id", "ZONEMAP")
    for fragment in range(4):
        first = ROWS + fragment * 100
        table.insert({"id": range(first, first + 100), "name": ["owl"] * 100})


def in_one_process(change: Callable[[LanceDataset], object]) -> Callable[[LanceDataset], ChangedIndices]:
    """Return a change of the only index, which returns what its plan does."""

    def run(table: LanceDataset) -> ChangedIndices:
        change(table)
        return ChangedIndices(("id_idx",), ())

    return run


def data(*columns: str) -> pa.Table:
    """Return new values for some rows, and rows that the table lacks."""
    ids = [*range(5, ROWS, 7), *range(ROWS, ROWS + 500)]
    return pa.table({"id": ids, "name": [f"emu {row}" for row in ids]}).select(["id", *columns])


def upsert(table: LanceDataset) -> MergeInsertBuilder:
    return table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()


def synchronize(table: LanceDataset) -> MergeInsertBuilder:
    """Build a merge that updates some rows that match, and deletes some of the others."""
    builder = table.merge_insert("id").when_matched_update_all("target.id % 2 = 0").when_not_matched_insert_all()
    return builder.when_not_matched_by_source_delete("id % 5 = 1")


def rewrite(table: LanceDataset) -> MergeInsertBuilder:
    return table.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns")


def widen(table: LanceDataset) -> None:
    table.add_columns({"size": "id * 3"})


def delete_some(table: LanceDataset) -> None:
    table.delete("id % 4 = 1")


@dataclass(frozen=True)
class Change:
    """A change of a table, as a plan and as one call.

    Parameters
    ----------
    plan : callable
    run : callable
    prepare : callable, optional
        Changes a new table first.
    rival : callable
        A change that it cannot follow.
    """

    plan: Callable[[LanceDataset], ChangePlan[Any, Any]]
    run: Callable[[LanceDataset], Any]
    prepare: Callable[[LanceDataset], object] | None = None
    rival: Callable[[LanceDataset], object] = lambda table: table.delete("id = 1")


CHANGES = {
    "delete": Change(
        lambda table: table.plan_delete("id % 3 = 1", **SPLIT),
        lambda table: table.delete("id % 3 = 1"),
    ),
    "update": Change(
        lambda table: table.plan_update({"name": "upper(name)"}, "id % 3 = 1", **SPLIT),
        lambda table: table.update({"name": "upper(name)"}, "id % 3 = 1"),
    ),
    "new columns by SQL": Change(
        lambda table: table.plan_add_columns({"twice": "id * 2", "loud": "upper(name)"}, **SPLIT),
        lambda table: table.add_columns({"twice": "id * 2", "loud": "upper(name)"}),
    ),
    "new columns by a function": Change(
        lambda table: table.plan_add_columns(rank, ["id"], **SPLIT),
        lambda table: table.add_columns(rank, ["id"]),
    ),
    "new columns by a decorated function": Change(
        lambda table: table.plan_add_columns(length, **SPLIT),
        lambda table: table.add_columns(length),
    ),
    "columns of other types": Change(
        lambda table: table.plan_alter_columns({"path": "id", "data_type": pa.float64()}, **SPLIT),
        lambda table: table.alter_columns({"path": "id", "data_type": pa.float64()}),
    ),
    "merge": Change(
        lambda table: upsert(table).plan(data("name"), **SPLIT),
        lambda table: upsert(table).execute(data("name")),
        rival=lambda table: table.delete("id = 5"),
    ),
    "merge of some columns": Change(
        lambda table: upsert(table).plan(data("name"), **SPLIT),
        lambda table: upsert(table).execute(data("name")),
        prepare=widen,
        rival=lambda table: table.insert({"id": [ROWS + 3]}),
    ),
    "merge that deletes": Change(
        lambda table: synchronize(table).plan(data("name"), **SPLIT),
        lambda table: synchronize(table).execute(data("name")),
        rival=lambda table: upsert(table).execute({"id": [ROWS], "name": ["owl"]}),
    ),
    "merge that deletes by key": Change(
        lambda table: table.merge_insert("id").when_matched_delete().plan(data(), **SPLIT),
        lambda table: table.merge_insert("id").when_matched_delete().execute(data()),
        rival=lambda table: table.delete("id = 5"),
    ),
    "merge that inserts": Change(
        lambda table: table.merge_insert("id").when_not_matched_insert_all().plan(data("name"), **SPLIT),
        lambda table: table.merge_insert("id").when_not_matched_insert_all().execute(data("name")),
        rival=lambda table: table.insert({"id": [ROWS + 3], "name": ["jay"]}),
    ),
    "merge in place": Change(
        lambda table: rewrite(table).plan(data("name"), **SPLIT),
        lambda table: rewrite(table).execute(data("name")),
        prepare=widen,
        rival=lambda table: table.update({"name": "'owl'"}, "id = 5"),
    ),
    "compaction": Change(
        lambda table: Compaction.plan(table, {"target_rows_per_fragment": 2500}),
        lambda table: table.optimize.compact_files(target_rows_per_fragment=2500),
        prepare=delete_some,
        rival=lambda table: table.delete("id = 2"),
    ),
    "index": Change(
        lambda table: table.plan_scalar_index("id", "ZONEMAP", **SPLIT),
        in_one_process(lambda table: table.create_scalar_index("id", "ZONEMAP")),
        rival=lambda table: table.create_scalar_index("id", "ZONEMAP"),
    ),
    "index, updated": Change(
        lambda table: table.optimize.plan_optimize_indices(**SPLIT),
        in_one_process(lambda table: table.optimize.optimize_indices()),
        prepare=add_rows,
        rival=lambda table: table.optimize.optimize_indices(),
    ),
    "index, trained again": Change(
        lambda table: table.optimize.plan_optimize_indices(retrain=True, **SPLIT),
        in_one_process(lambda table: table.optimize.optimize_indices(retrain=True)),
        prepare=add_rows,
        rival=lambda table: table.optimize.optimize_indices(),
    ),
}


def write(path: Path, change: Change | None = None, *, stable: bool = False) -> LanceDataset:
    data = pa.table({"id": range(ROWS), "name": [f"bird {row}" for row in range(ROWS)]})
    table = lance_format.write_dataset(
        data, path / "table.lance", max_rows_per_file=ROWS // 4, enable_stable_row_ids=stable
    )
    if change is not None and change.prepare is not None:
        change.prepare(table)
    return table


def files(table: LanceDataset) -> set[str]:
    root = Path(table.uri)
    return {str(file.relative_to(root)) for file in root.rglob("*") if file.is_file()}


def rows(table: LanceDataset, *columns: str) -> list[dict[str, Any]]:
    return table.to_table(columns=["id", "name", *columns]).sort_by("id").to_pylist()


def indices(table: LanceDataset) -> list[tuple[str, set[int], pa.Table]]:
    """Return the name of each index, the fragments that it covers, and its zones."""
    path = Path(table.uri) / "_indices"
    return [
        (
            index["name"],
            index["fragment_ids"],
            LanceFileReader(path / index["uuid"] / "zonemap.lance").read_all().to_table(),
        )
        for index in table.list_indices()
    ]


def execute(plan: ChangePlan[Any, Any], table: LanceDataset) -> list[Any]:
    """Run tasks in threads, in reverse, with everything pickled on its way."""
    tasks = [pickle.loads(pickle.dumps(task)) for task in reversed(plan.tasks)]
    with ThreadPoolExecutor(2) as pool:
        return [pickle.loads(pickle.dumps(result)) for result in pool.map(lambda task: task.execute(table), tasks)]


@pytest.fixture(params=list(CHANGES))
def change(request: pytest.FixtureRequest) -> Change:
    return CHANGES[request.param]


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
def test_tasks_do_what_one_process_does(change: Change, stable: bool, tmp_path: Path) -> None:
    table, other = write(tmp_path / "a", change, stable=stable), write(tmp_path / "b", change, stable=stable)
    plan = pickle.loads(pickle.dumps(change.plan(table)))
    assert len(plan.tasks) > 3
    assert plan.commit(table, execute(plan, table)) == change.run(other)
    identities = ["_rowid"] if stable else []
    assert rows(table, *identities) == rows(other, *identities)
    assert indices(table) == indices(other)
    reference = lance.dataset(table.uri)
    reference.validate()
    assert reference.to_table().sort_by("id") == other.to_table().sort_by("id")
    assert reference.to_table(filter="id = 7 OR id > 19990") == table.to_table(filter="id = 7 OR id > 19990")
    table.validate()


@pytest.mark.slow
def test_a_second_commit_changes_nothing(change: Change, tmp_path: Path) -> None:
    table = write(tmp_path, change)
    plan = change.plan(table)
    results = execute(plan, table)
    outcome = plan.commit(table, results)
    made, before = table.version, files(table)
    table.update_config({"a": "b"})
    assert plan.commit(table, results) == outcome
    assert (table.version, table.latest_version) == (made, made + 1)
    assert not [file for file in files(table) - before if not file.startswith(("_versions", "_transactions"))]


@pytest.mark.slow
def test_a_plan_that_is_given_up_leaves_no_file(change: Change, tmp_path: Path) -> None:
    table = write(tmp_path, change)
    before, version = files(table), table.version
    plan = change.plan(table)
    results = execute(plan, table)
    execute(plan, table)  # tasks whose results were lost
    plan.abort(table, results)
    assert files(table) == before
    assert table.latest_version == version


@pytest.mark.slow
def test_a_commit_that_collides_leaves_no_file(change: Change, tmp_path: Path) -> None:
    table = write(tmp_path, change)
    plan = change.plan(table)
    change.rival(lance_format.dataset(table.uri))
    before = files(table)
    results = execute(plan, table)
    with pytest.raises(RetryableCommitConflictError):
        plan.commit(table, results)
    assert files(table) == before


@pytest.mark.slow
def test_a_commit_after_a_cleanup_of_its_version_lands_or_collides(change: Change, tmp_path: Path) -> None:
    table = write(tmp_path, change)
    plan, planned_on = change.plan(table), table.version
    results = execute(plan, table)
    other = lance_format.dataset(table.uri)
    other.update_config({"a": "b"})
    other.cleanup_old_versions(versions=[planned_on])
    with contextlib.suppress(RetryableCommitConflictError):
        plan.commit(table, results)
        assert table.version == other.version + 1
    lance_format.dataset(table.uri).validate()
    assert leftovers(Path(table.uri)) == set()


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with context.Pool(2) as made:
        yield made


def _run(task: Any, uri: str) -> Any:
    return task.execute(lance_format.dataset(uri))


@pytest.mark.slow
def test_processes_run_tasks(change: Change, pool: Pool, tmp_path: Path) -> None:
    table, other = write(tmp_path / "a", change), write(tmp_path / "b", change)
    plan = change.plan(table)
    results = pool.starmap(_run, [(task, table.uri) for task in plan.tasks])
    assert plan.commit(table, results) == change.run(other)
    assert table.to_table().sort_by("id") == other.to_table().sort_by("id")
    assert indices(table) == indices(other)


@pytest.mark.slow
def test_all_results_are_needed_and_each_once(change: Change, tmp_path: Path) -> None:
    table = write(tmp_path, change)
    plan = change.plan(table)
    results = execute(plan, table)
    before, version = files(table), table.version
    for given in (results[1:], [*results, results[0]], [*results[1:], results[1]]):
        with pytest.raises(InvalidInputError, match="commit one of each task"):
            plan.commit(table, given)
        assert table.latest_version == version
    assert files(table) == before
    plan.commit(table, results)
    table.validate()


@pytest.mark.slow
def test_a_plan_commits_its_own_results_only(change: Change, tmp_path: Path) -> None:
    """Two plans of one change have equally many tasks, and their results name other files."""
    table = write(tmp_path, change)
    plan, other = change.plan(table), change.plan(table)
    results, others = execute(plan, table), execute(other, table)
    assert len(results) == len(others) > 1
    before, version = files(table), table.version
    for given in (others, [results[0], *others[1:]], [*results[:-1], others[-1]]):
        with pytest.raises(InvalidInputError, match=f"is of the plan {other.uuid}, not of this one, {plan.uuid}"):
            plan.commit(table, given)
        with pytest.raises(InvalidInputError, match="of the plan"):
            plan.abort(table, given)
        assert table.latest_version == version
        assert files(table) == before
    other.abort(table, others)
    plan.commit(table, results)
    table.validate()
    lance.dataset(table.uri).validate()


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
    rows = pa.table({"new": range(ROWS)})
    for given in (rows, rows.to_reader(), iter(rows.to_batches())):
        with pytest.raises(InvalidInputError, match="given are for one process"):
            table.plan_add_columns(given, reader_schema=rows.schema)
    resumed = lance_format.batch_udf(length.output_schema, tmp_path / "checkpoint")(length.func)
    with pytest.raises(InvalidInputError, match="checkpoint is a file of one process"):
        table.plan_add_columns(resumed)
    assert not (tmp_path / "checkpoint").exists()


def test_rows_of_a_merge_that_match_twice_or_must_not_are_found_by_tasks(tmp_path: Path) -> None:
    table = write(tmp_path)
    plan = upsert(table).plan({"id": [3, ROWS - 1, ROWS - 1], "name": ["owl", "emu", "jay"]}, **SPLIT)
    with pytest.raises(InvalidInputError, match=f"several rows of the data match .* id = {ROWS - 1}"):
        execute(plan, table)
    plan = table.merge_insert("id").when_matched_fail().when_not_matched_insert_all().plan(data("name"), **SPLIT)
    with pytest.raises(InvalidInputError, match="has a row already"):
        execute(plan, table)
    plan = upsert(table).plan({"id": [-1, -1, None], "name": ["owl", "emu", "jay"]}, **SPLIT)
    assert plan.commit(table, execute(plan, table)) == {
        "num_inserted_rows": 3,
        "num_updated_rows": 0,
        "num_deleted_rows": 0,
    }
    assert table.count_rows() == ROWS + 3


def test_a_merge_into_an_empty_table_inserts(tmp_path: Path) -> None:
    table = lance_format.write_dataset(data("name").schema.empty_table(), tmp_path / "table.lance")
    plan = upsert(table).plan(data("name"))
    assert plan.tasks == ()
    assert plan.commit(table, []).num_inserted_rows == data().num_rows
    assert lance.dataset(table.uri).to_table() == data("name")


def test_one_task_of_a_merge_inserts_beside_what_it_updates(tmp_path: Path) -> None:
    table, other = write(tmp_path / "a"), write(tmp_path / "b")
    plan = upsert(table).plan(data("name"))
    assert [task.inserts for task in plan.tasks] == [True]
    assert plan.commit(table, execute(plan, table)) == upsert(other).execute(data("name"))
    assert len(table.get_fragments()) == len(other.get_fragments()) == 5
    assert table.to_table() == other.to_table()


@pytest.mark.parametrize("size", [0, True, 1.5])
def test_sizes_of_tasks_are_whole_numbers(size: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="split_size_bytes"):
        write(tmp_path).plan_add_columns({"twice": "id * 2"}, split_size_bytes=size)


def test_small_fragments_share_a_task(tmp_path: Path) -> None:
    table = write(tmp_path)
    assert [len(task.positions) for task in table.plan_add_columns({"a": "id"}).tasks] == [4]
    halves = table.plan_add_columns({"a": "id"}, split_size_bytes=400_000).tasks
    assert [task.positions for task in halves] == [(0, 1), (2, 3)]


def test_an_update_of_indices_that_has_nothing_to_do_makes_no_version(tmp_path: Path) -> None:
    table = write(tmp_path)
    table.create_scalar_index("id", "ZONEMAP")
    plan = table.optimize.plan_optimize_indices()
    assert plan.tasks == ()
    plan.commit(table, [])
    assert table.version == table.latest_version == 2


def test_some_tasks_of_a_compaction_may_be_committed_before_it_is_given_up(tmp_path: Path) -> None:
    table = write(tmp_path, CHANGES["compaction"])
    expected = rows(table)
    plan = Compaction.plan(table, {"target_rows_per_fragment": 2500})
    results = execute(plan, table)
    Compaction.commit(table, results[:2])
    with pytest.raises(InvalidInputError, match="commit one of each task"):
        plan.commit(table, results[2:])
    with pytest.raises(CommitConflictError):
        plan.commit(table, results)
    before = files(table)
    plan.abort(table, results)
    assert files(table) == before
    for opened in (table, lance_format.dataset(table.uri)):
        assert rows(opened) == expected
        opened.validate()
    lance.dataset(table.uri).validate()


def test_a_compaction_that_has_nothing_to_do_makes_no_version(tmp_path: Path) -> None:
    table = write(tmp_path)
    plan = Compaction.plan(table, {"target_rows_per_fragment": 10})
    assert plan.tasks == []
    assert plan.commit(table, []) == {
        "fragments_removed": 0,
        "fragments_added": 0,
        "files_removed": 0,
        "files_added": 0,
    }
    assert table.latest_version == 1
