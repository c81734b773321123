"""Running a planned change: one Spark task per task of the plan, and one commit by the driver.

The tasks reach the executors inside a Python function of the job, not in an RDD or a DataFrame: Spark Connect has no
RDDs, and Spark may put several rows of a DataFrame into one partition. `spark.range` gives each partition one number,
the position of the task in the plan.

| event | result |
|---|---|
| a task fails | Spark runs it again; after the last failure the files of all tasks are deleted |
| a task runs twice | the plan gets one result; the files of the other run are deleted after the commit |
| an executor is lost | Spark runs its tasks elsewhere |
| the commit fails | the files are deleted unless it is unclear whether the commit landed |
| the user interrupts the driver | the job is stopped, and the files are deleted |
| the driver dies | the files remain until a cleanup |
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from connector.jobs.failures import explain
from connector.jobs.labels import labelled
from connector.write.writer import delete_files
from lance_format import ChangePlan, LanceDataset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
_SMALL_BYTES = 64 * 1024 * 1024
"""Maximum input of a single task that runs in the driver."""


def run(spark: SparkSession | None, dataset: LanceDataset, plan: ChangePlan[Any, T], *, description: str) -> T:
    """Run the tasks of a planned change, and commit their results.

    Works without the planner bridge, and with Spark Connect. A single task with little input runs in the driver.

    Parameters
    ----------
    spark : SparkSession or None
        The session that runs the tasks. If it is None, they run in this process, one after the other.
    dataset : LanceDataset
        Any version of the table. It moves to the version that the commit makes.
    plan : ChangePlan
        For example of `dataset.plan_update` or `Compaction.plan`.
    description : str
        Work of the job, such as "compact fragments 3-17". Spark's UI shows it after "lance: ".

    Returns
    -------
    T
        The outcome that the commit of the plan returns.

    Raises
    ------
    LanceError
        If a task or the commit fails. No file is left, unless it is unclear whether the commit landed.
    RetryableCommitConflictError
        If another writer changed the same rows: plan the change again.
    """
    tasks = list(plan.tasks)
    if spark is None or not _needs_job(dataset, tasks):
        return plan.commit(dataset, _run_here(dataset, plan, tasks))
    outcome = plan.commit(dataset, _run_job(spark, dataset, plan, tasks, description))
    plan.discard_lost(dataset)
    return outcome


def _needs_job(dataset: LanceDataset, tasks: Sequence[Any]) -> bool:
    if len(tasks) != 1:
        return bool(tasks)
    size = tasks[0].input_bytes(dataset)
    return size is None or size > _SMALL_BYTES


def _run_here(dataset: LanceDataset, plan: ChangePlan[Any, T], tasks: Sequence[Any]) -> list[Any]:
    try:
        return [task.execute(dataset) for task in tasks]
    except BaseException:
        plan.abort(dataset)
        raise


def _run_job(
    spark: SparkSession, dataset: LanceDataset, plan: ChangePlan[Any, T], tasks: Sequence[Any], description: str
) -> list[Any]:
    from pyspark.sql.functions import udf

    execute = udf(_remote(dataset.checkout_version(plan.read_version), tasks), "binary", useArrow=False)
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    rows = numbers.select(execute.asNondeterministic()("id").alias("result"))
    try:
        with labelled(spark, description, f"lance-{plan.uuid}"):
            return [pickle.loads(row.result) for row in rows.collect()]
    except BaseException as error:
        delete_files(lambda: plan.abort(dataset), len(tasks))
        if isinstance(error, Exception):
            raise explain(error, description) from error
        raise


def _remote(dataset: LanceDataset, tasks: Sequence[Any]) -> Callable[[int], bytes]:
    """Return a function that executes the task at a position, and returns the pickled result."""
    from pyspark import cloudpickle

    pickled: bytes = cloudpickle.dumps((dataset, list(tasks)))  # type: ignore[no-untyped-call]
    payload = zlib.compress(pickled, 1)

    def execute(position: int) -> bytes:
        return execute_task(payload, position)

    return execute


def execute_task(payload: bytes, position: int) -> bytes:
    """Execute one of some tasks, in a worker.

    Parameters
    ----------
    payload : bytes
        The dataset and the tasks, pickled and compressed.
    position : int
        The position of the task.

    Returns
    -------
    bytes
        The result, pickled.
    """
    dataset, tasks = pickle.loads(zlib.decompress(payload))
    return pickle.dumps(tasks[position].execute(dataset))
