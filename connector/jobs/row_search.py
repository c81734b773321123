"""Finding the rows that a write replaces, as a job before its commit."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from connector.jobs.running import execute
from connector.write.replaced_rows import FoundRows, ReplacedRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def find_replaced_rows(spark: SparkSession | None, replaced: ReplacedRows) -> bytes:
    """Return the pickled message that tells the commit of a write which rows it replaces.

    Parameters
    ----------
    spark : SparkSession or None
        The session that runs the job.
    replaced : ReplacedRows

    Raises
    ------
    LanceError
        If a task fails.
    """
    dataset = replaced.open()
    plan = dataset.plan_delete(replaced.rows)
    results = execute(spark, dataset, plan, description=f"find rows to replace in {replaced.options.path}")
    return pickle.dumps(FoundRows.of(plan.uuid, results))
