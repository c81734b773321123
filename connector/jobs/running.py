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
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from connector.jobs.failures import explain
from connector.jobs.labels import labelled
from connector.jobs.sizes import needs_job
from connector.write.writer import delete_files
from lance_format import ChangePlan, LanceDataset, RetryableCommitConflictError, VersionNotFoundError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
_THREADS = 4
"""Maximum number of tasks that run at a time in the driver, where all of them together read little."""


def run(spark: SparkSession | None, dataset: LanceDataset, plan: ChangePlan[Any, T], *, description: str) -> T:
    """Run the tasks of a planned change, and commit their results.

    Works without the planner bridge, and with Spark Connect. Tasks that read little in all run in the driver; see
    `connector.jobs.sizes`.

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
        If another writer changed the same rows, or a cleanup removed the version that the change was planned on: plan
        the change again.
    """
    outcome = plan.commit(dataset, execute(spark, dataset, plan, description=description))
    plan.discard_lost(dataset)
    return outcome


def execute(spark: SparkSession | None, dataset: LanceDataset, plan: ChangePlan[Any, T], *, description: str) -> Any:
    """Run the tasks of a planned change, and return their results without committing them; see `run`."""
    tasks = list(plan.tasks)
    size = plan.input_bytes(dataset)
    try:
        if tasks and needs_job(spark, size):
            assert spark is not None
            return _run_job(spark, dataset, plan, tasks, description)
        return _run_here(dataset, plan, tasks, 1 if spark is None else _THREADS)
    except VersionNotFoundError as error:
        raise RetryableCommitConflictError(
            f"{error}: a cleanup removed version {plan.read_version}, which the job {description!r} was planned on;"
            " nothing was changed: run it again on the latest version"
        ) from error


def _run_here(dataset: LanceDataset, plan: ChangePlan[Any, T], tasks: Sequence[Any], num_threads: int) -> list[Any]:
    try:
        with ThreadPoolExecutor(num_threads, "lance") as pool:
            return list(pool.map(lambda task: task.execute(dataset), tasks))
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
