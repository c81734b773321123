"""Cleanups in steps: tasks delete the same files as one process, and none that concurrent changes need."""

from __future__ import annotations

import dataclasses
import datetime
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import pytest

import lance_format
from lance_format import InvalidInputError, LanceDataset, LanceOperation
from lance_format.table.versions.cleanup_plan import CleanupPlan
from tests.table.builders import rows

AT_ONCE = datetime.timedelta(0)


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    """Versions 1 to 6, with deletions and an index; the last has nothing of the others."""
    path = tmp_path / "table"
    for start in range(3):
        lance_format.write_dataset(rows(10 * start, 10 * start + 10), path, mode="append")
    made = lance_format.dataset(path)
    made.create_scalar_index("a", "ZONEMAP")
    made.delete("a = 3")
    return lance_format.write_dataset(rows(100, 102), path, mode="overwrite")


def files(table: LanceDataset) -> set[str]:
    root = Path(table.uri)
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def execute(plan: CleanupPlan, table: LanceDataset) -> list[Any]:
    """Run tasks in threads, in reverse, with everything pickled on its way."""
    tasks = [pickle.loads(pickle.dumps(task)) for task in reversed(plan.tasks)]
    with ThreadPoolExecutor(2) as pool:
        return [pickle.loads(pickle.dumps(result)) for result in pool.map(lambda task: task.execute(table), tasks)]


def test_tasks_do_what_one_process_does(table: LanceDataset, tmp_path: Path) -> None:
    shutil.copytree(table.uri, tmp_path / "other")
    other = lance_format.dataset(tmp_path / "other")
    expected = other.cleanup_old_versions(AT_ONCE)
    assert (expected.old_versions, expected.data_files_removed, expected.index_files_removed) == (5, 3, 1)
    plan = pickle.loads(pickle.dumps(table.begin_cleanup(AT_ONCE, files_per_task=2)))
    assert plan.removed.old_versions == 5
    assert plan.removed.data_files_removed == 0
    assert [len(task.files) for task in plan.tasks[:-1]] == [2] * (len(plan.tasks) - 1)
    assert len(plan.tasks) > 3
    results = execute(plan, table)
    assert plan.commit(table, results) == expected
    assert files(table) == files(other)
    assert plan.commit(table, results) == expected
    assert table.version == table.latest_version == 6
    assert lance.dataset(table.uri).to_table() == rows(100, 102)


def test_each_result_is_needed_once(table: LanceDataset) -> None:
    plan = table.begin_cleanup(AT_ONCE, files_per_task=2)
    results = execute(plan, table)
    for given in (results[1:], [*results, results[0]]):
        with pytest.raises(InvalidInputError, match="commit one of each task"):
            plan.commit(table, given)


def test_results_of_another_cleanup_are_refused(table: LanceDataset) -> None:
    plan, other = (table.begin_cleanup(AT_ONCE, files_per_task=2) for _ in range(2))
    others = [dataclasses.replace(result, uuid=other.uuid) for result in execute(plan, table)]
    with pytest.raises(InvalidInputError, match=f"of the plan {other.uuid}, not of this one"):
        plan.commit(table, others)


def test_tasks_spare_what_is_named_since_the_plan_was_made(table: LanceDataset) -> None:
    old = lance_format.dataset(table.uri, version=1)
    fragments = [fragment.metadata for fragment in old.get_fragments()]
    plan = table.begin_cleanup(AT_ONCE, files_per_task=2)
    LanceDataset.commit(table.uri, LanceOperation.Append(fragments), read_version=6)
    stats = plan.commit(table, execute(plan, table))
    assert stats.data_files_removed == 2
    latest = lance_format.dataset(table.uri)
    assert latest.to_table()["a"].to_pylist() == [100, 101, *range(10)]
    latest.validate()


def test_what_is_left_is_for_the_next_cleanup(table: LanceDataset) -> None:
    plan = table.begin_cleanup(AT_ONCE, files_per_task=2)
    results = [plan.tasks[0].execute(table)]
    plan.abort(table, results)
    table.validate()
    left = sum(len(task.files) for task in plan.tasks[1:])
    found = table.cleanup_old_versions(AT_ONCE, delete_unverified=True)
    names = ("data_files_removed", "transaction_files_removed", "index_files_removed", "deletion_files_removed")
    assert sum(found[name] for name in names) == left
    assert lance.dataset(table.uri).to_table() == rows(100, 102)


def test_a_tag_stops_a_cleanup_before_anything_goes(table: LanceDataset) -> None:
    table.tags.create("first", 1)
    before = files(table)
    with pytest.raises(InvalidInputError, match="tags: 'first'"):
        table.begin_cleanup(AT_ONCE)
    assert files(table) == before


def test_tasks_share_the_rate(table: LanceDataset) -> None:
    plan = table.begin_cleanup(AT_ONCE, files_per_task=2, delete_rate_limit=1000)
    assert sum(task.rate or 0 for task in plan.tasks) == pytest.approx(1000)


@pytest.mark.parametrize("number", [0, -1])
def test_wrong_numbers_of_files_are_refused(table: LanceDataset, number: int) -> None:
    before = files(table)
    with pytest.raises(InvalidInputError, match="files_per_task"):
        table.begin_cleanup(AT_ONCE, files_per_task=number)
    assert files(table) == before
