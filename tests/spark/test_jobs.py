"""Planned changes as Spark jobs."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lance_format
from connector.jobs.failures import JobFailedError, explain
from connector.jobs.running import run
from connector.jobs.sizes import SETTING, needs_job
from lance_format import (
    CommitStateUnknownError,
    Compaction,
    CorruptFileError,
    InvalidInputError,
    RetryableCommitConflictError,
)
from tests.spark.conftest import files
from tests.spark.programs import run as run_program
from tests.table.changes.test_planned_change import CHANGES, rows, write
from tests.table.leftovers import leftovers

_GROUP = "of the user"
_GROUP_NUMBERS = itertools.count()
SPLIT = {"split_size_bytes": 20_000}


@pytest.fixture(autouse=True)
def always_a_job(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the smallest change be a job."""
    if "spark" not in request.fixturenames:
        yield
        return
    with job_from(request.getfixturevalue("spark"), 0):
        yield


@contextlib.contextmanager
def job_from(spark: SparkSession, num_bytes: int | None) -> Iterator[None]:
    """Set the size from which a change is a job, or unset it."""
    if num_bytes is None:
        spark.conf.unset(SETTING)
    else:
        spark.conf.set(SETTING, str(num_bytes))
    try:
        yield
    finally:
        spark.conf.unset(SETTING)


@pytest.fixture
def table(tmp_path: Path) -> lance_format.LanceDataset:
    return write(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CHANGES))
def test_a_job_does_what_one_process_does(spark: SparkSession, name: str, tmp_path: Path) -> None:
    change = CHANGES[name]
    table, other = write(tmp_path / "a", change), write(tmp_path / "b", change)
    plan = change.plan(table)
    assert len(plan.tasks) > 3
    assert run(spark, table, plan, description=name) == change.run(other)
    assert table.version == other.version
    assert rows(table) == rows(other)
    lance.dataset(table.uri).validate()
    assert leftovers(Path(table.uri)) == leftovers(Path(other.uri)) == set()


def test_each_task_is_a_task_of_spark(spark: SparkSession, table: lance_format.LanceDataset) -> None:
    plan = table.plan_update({"name": "upper(name)"}, **SPLIT)
    jobs = jobs_of(spark, lambda: run(spark, table, plan, description="update birds"))
    assert [(job.description, job.num_tasks) for job in jobs] == [("lance: update birds", len(plan.tasks))]


def test_the_description_and_the_group_of_the_user_come_back(
    spark: SparkSession, table: lance_format.LanceDataset
) -> None:
    context = spark.sparkContext
    context.setJobDescription("before")
    try:
        plan = table.plan_update({"name": "upper(name)"}, **SPLIT)
        jobs_of(spark, lambda: run(spark, table, plan, description="update birds"))
        assert context.getLocalProperty("spark.job.description") == "before"
        assert spark.getTags() == set()
    finally:
        context.setJobDescription(None)


def test_little_work_starts_no_job(spark: SparkSession, table: lance_format.LanceDataset) -> None:
    nothing = Compaction.plan(table, {"target_rows_per_fragment": 10})
    assert not nothing.tasks
    assert not jobs_of(spark, lambda: run(spark, table, nothing, description="compact nothing"))
    assert table.version == 1
    several = table.plan_update({"name": "upper(name)"}, **SPLIT)
    size = several.input_bytes(table)
    assert size
    with job_from(spark, size):
        assert not jobs_of(spark, lambda: run(spark, table, several, description="update"))
    assert table.count_rows("name LIKE 'BIRD%'") == 20_000
    one = Compaction.plan(table)
    with job_from(spark, None):
        assert not jobs_of(spark, lambda: run(spark, table, one, description="compact all"))
    assert (table.version, len(table.get_fragments())) == (3, 1)
    again = table.plan_update({"name": "lower(name)"}, **SPLIT)
    with job_from(spark, (again.input_bytes(table) or 0) - 1):
        assert len(jobs_of(spark, lambda: run(spark, table, again, description="update"))) == 1


@pytest.mark.parametrize(("size", "num_bytes"), [("65536", 2**16), ("64k", 2**16), (" 3MB", 3 * 2**20), ("1g", 2**30)])
def test_the_size_of_jobs_is_given_as_to_spark(spark: SparkSession, size: str, num_bytes: int) -> None:
    spark.conf.set(SETTING, size)
    assert [needs_job(spark, found) for found in (num_bytes, num_bytes + 1)] == [False, True]


@pytest.mark.parametrize("size", ["", "m", "-1", "1.5g", "64 m", "64mib"])
def test_another_size_of_jobs_is_refused(spark: SparkSession, table: lance_format.LanceDataset, size: str) -> None:
    spark.conf.set(SETTING, size)
    with pytest.raises(InvalidInputError, match=f"must be a size, such as 67108864 or 64m, not '{size}'"):
        run(spark, table, Compaction.plan(table), description="compact")


def test_tasks_run_here_without_a_session(table: lance_format.LanceDataset) -> None:
    plan = table.plan_update({"name": "upper(name)"}, "id < 5", **SPLIT)
    assert run(None, table, plan, description="update").num_rows_updated == 5


def test_branches(spark: SparkSession, table: lance_format.LanceDataset) -> None:
    branch = table.create_branch("side")
    plan = branch.plan_update({"name": "'owl'"}, "id % 2 = 0", **SPLIT)
    assert run(spark, branch, plan, description="update a branch").num_rows_updated == 10_000
    assert branch.count_rows("name = 'owl'") == 10_000
    assert table.latest_version == 1
    assert leftovers(Path(table.uri)) == set()


@lance_format.batch_udf(pa.schema({"odd": pa.int64()}))
def refusing(batch: pa.RecordBatch) -> pa.RecordBatch:
    if batch["id"][0].as_py() >= 15_000:
        raise CorruptFileError("no odd number", path="/a/b.lance", offset=7)
    return pa.record_batch({"odd": batch["id"]})


@lance_format.batch_udf(pa.schema({"odd": pa.int64()}))
def failing(batch: pa.RecordBatch) -> pa.RecordBatch:
    if batch["id"][0].as_py() >= 15_000:
        raise ZeroDivisionError("no odd number")
    return pa.record_batch({"odd": batch["id"]})


@pytest.mark.slow
def test_a_failed_job_raises_the_error_of_the_task(spark: SparkSession, table: lance_format.LanceDataset) -> None:
    before = files(table.uri)
    with pytest.raises(CorruptFileError, match=r"^/a/b.lance: no odd number \(at byte 7\)$"):
        run(spark, table, table.plan_add_columns(refusing, **SPLIT), description="add odd")
    with pytest.raises(
        JobFailedError, match=r"^the job 'add odd' failed, and its change was not committed: ZeroDivisionError: no odd"
    ):
        run(spark, table, table.plan_add_columns(failing, **SPLIT), description="add odd")
    assert files(table.uri) == before
    assert spark.getTags() == set()


@lance_format.batch_udf(pa.schema({"odd": pa.int64()}))
def dying(_batch: pa.RecordBatch) -> pa.RecordBatch:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


@pytest.mark.slow
def test_the_error_of_a_job_whose_worker_died_says_so(spark: SparkSession, table: lance_format.LanceDataset) -> None:
    before = files(table.uri)
    with pytest.raises(JobFailedError, match=r"^the job 'add odd' failed, and .* Python worker exited unexpectedly"):
        run(spark, table, table.plan_add_columns(dying, **SPLIT), description="add odd")
    assert files(table.uri) == before


@pytest.mark.parametrize("is_job", [False, True])
def test_a_job_whose_version_was_removed_may_be_planned_again(
    spark: SparkSession, table: lance_format.LanceDataset, is_job: bool
) -> None:
    plan = table.plan_update({"name": "upper(name)"}, **SPLIT)
    rival = lance_format.dataset(table.uri)
    rival.update_config({"a": "b"})
    rival.cleanup_old_versions(versions=[1])
    with (
        job_from(spark, 0 if is_job else None),
        pytest.raises(RetryableCommitConflictError, match=r"a cleanup removed version 1, .* 'update birds'"),
    ):
        run(spark, table, plan, description="update birds")
    assert leftovers(Path(table.uri)) == set()


def test_a_failure_in_threads_leaves_no_file(spark: SparkSession, table: lance_format.LanceDataset) -> None:
    before = files(table.uri)
    with job_from(spark, None), pytest.raises(ZeroDivisionError):
        run(spark, table, table.plan_add_columns(failing, **SPLIT), description="add odd")
    assert files(table.uri) == before


def test_a_failure_in_the_driver_leaves_no_file(table: lance_format.LanceDataset) -> None:
    before = files(table.uri)
    with pytest.raises(ZeroDivisionError):
        run(None, table, table.plan_add_columns(failing, **SPLIT), description="add odd")
    assert files(table.uri) == before


def test_a_conflict_leaves_no_file(spark: SparkSession, table: lance_format.LanceDataset) -> None:
    plan = table.plan_update({"name": "upper(name)"}, **SPLIT)
    rival = lance_format.dataset(table.uri)
    rival.delete("id = 5")
    before = files(table.uri)
    with pytest.raises(RetryableCommitConflictError):
        run(spark, table, plan, description="update birds")
    assert files(table.uri) == before


def test_files_of_lost_runs_are_deleted(spark: SparkSession, table: lance_format.LanceDataset) -> None:
    plan = table.plan_update({"name": "upper(name)"}, **SPLIT)
    for task in plan.tasks:  # Runs whose results are lost.
        task.execute(table)
    assert len(leftovers(Path(table.uri))) == len(plan.tasks)
    run(spark, table, plan, description="update birds")
    assert leftovers(Path(table.uri)) == set()
    assert table.count_rows("name LIKE 'BIRD%'") == 20_000


class Job:
    """A job of Spark, as its status store has it."""

    def __init__(self, found: Any) -> None:
        self.description = found.description().get() if found.description().isDefined() else None
        self.num_tasks = found.numCompletedTasks()


def jobs_of(spark: SparkSession, call: Any) -> list[Job]:
    """Return the jobs that a call starts in the group of its caller."""
    context: Any = spark.sparkContext
    before = context.getLocalProperty("spark.job.description")
    group = f"{_GROUP} {next(_GROUP_NUMBERS)}"
    context.setLocalProperty("spark.jobGroup.id", group)
    try:
        call()
        assert context.getLocalProperty("spark.jobGroup.id") == group
        assert context.getLocalProperty("spark.job.description") == before
        context._jsc.sc().listenerBus().waitUntilEmpty()
        store = context._jsc.sc().statusStore()
        return [Job(store.job(number)) for number in sorted(context.statusTracker().getJobIdsForGroup(group))]
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


_CLUSTER = """
import pathlib, signal, sys
import lance
import pyarrow as pa
import lance_format
from connector.jobs import running
from connector.jobs.running import run
from tests.table.changes.test_planned_change import CHANGES, indices, rows, write
from tests.table.leftovers import leftovers

path = sys.argv[1]
builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.log.level", "OFF")
builder = builder.config("spark.lance.job.minBytes", "0")
spark = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").getOrCreate()
lance_format.write_dataset({"id": range(4000)}, path, max_rows_per_file=500)
table = lance_format.dataset(path)

def breaking(how):
    @lance_format.batch_udf(pa.schema({"twice": pa.int64()}))
    def twice(batch):
        from pyspark import TaskContext
        if batch["id"][0].as_py() == 3500 and TaskContext.get().attemptNumber() == 0:
            how()
        return pa.record_batch({"twice": [2 * value for value in batch["id"].to_pylist()]})
    return twice

def fail():
    raise OSError("a bad day")

def kill():
    daemon = os.getppid()
    executor = int(pathlib.Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(executor, signal.SIGKILL)

found = {}
for how in (fail, kill):
    table = lance_format.dataset(path)
    plan = table.plan_add_columns(breaking(how), split_size_bytes=300_000)
    assert 1 < len(plan.tasks) < 8
    run(spark, table, plan, description="add twice")
    in_use = {file.path for fragment in table.get_fragments() for file in fragment.data_files()}
    on_disk = {file.name for file in pathlib.Path(path, "data").iterdir()}
    found[how.__name__] = [table.version, sorted(on_disk - in_use), table.count_rows("twice = id * 2")]
    table.drop_columns(["twice"])
    table.cleanup_old_versions(retain_versions=1)

class LosingTask:
    # A task that loses its executor the first time, once it has written its files.
    def __init__(self, task):
        self.task = task

    def execute(self, dataset):
        from pyspark import TaskContext
        result = self.task.execute(dataset)
        if TaskContext.get().attemptNumber() == 0:
            kill()
        return result

remote = running._remote
running._remote = lambda dataset, tasks: remote(dataset, [LosingTask(tasks[0]), *tasks[1:]])
for name in ("update", "compaction", "index", "merge of some columns"):
    change = CHANGES[name]
    table, other = (write(pathlib.Path(path, "..", kind, name), change) for kind in ("lost", "whole"))
    outcomes = run(spark, table, change.plan(table), description=name), change.run(other)
    lance.dataset(table.uri).validate()
    same = outcomes[0] == outcomes[1] and rows(table) == rows(other) and indices(table) == indices(other)
    found[name] = [same, table.version - other.version, len(leftovers(pathlib.Path(table.uri)))]
spark.stop()
print(json.dumps(found))
"""


@pytest.mark.system
def test_tasks_that_fail_and_executors_that_are_lost(tmp_path: Path) -> None:
    found = run_program(_CLUSTER, tmp_path, str(tmp_path / "table.lance"))
    assert (found.pop("fail"), found.pop("kill")) == ([2, [], 4000], [4, [], 4000])
    assert found == {name: [True, 0, 0] for name in ("update", "compaction", "index", "merge of some columns")}


def test_errors_of_commits_by_the_driver_are_those_of_the_library() -> None:
    text = (
        "An error occurred while calling o1.save.\n: org.apache.spark.sql.AnalysisException: [PYTHON_DATA_SOURCE_ERROR]"
        " Failed to commit Python data source lance: CommitStateUnknownError: version 4 was created SQLSTATE: 38000\n"
        "\tat lance.Python.call(Unknown Source)\n\tSuppressed: org.apache.spark.sql.AnalysisException:"
        " [PYTHON_DATA_SOURCE_ERROR] Failed to abort Python data source lance: StorageError: access denied"
    )
    found = explain(RuntimeError(text), "sort fragments 0-1")
    assert (type(found), str(found)) == (CommitStateUnknownError, "version 4 was created")
