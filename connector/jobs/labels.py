"""Names of jobs in Spark's UI and progress bar, and tags for stopping them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from connector.active_session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DESCRIPTION = "spark.job.description"
_PREFIX = "lance: "


@contextlib.contextmanager
def labelled(spark: SparkSession, description: str, tag: str) -> Iterator[None]:
    """Give the jobs that this thread starts a description and a tag, and restore the former description afterwards.

    The job group stays, since users cancel their jobs by it. Spark Connect has tags only. If the block fails or is
    interrupted, the jobs of the tag are stopped.

    Parameters
    ----------
    spark : SparkSession
    description : str
        Work of the jobs, such as "compact fragments 3-17".
    tag : str
        A unique name.
    """
    context: Any = None if is_remote(spark) else spark.sparkContext
    former = None if context is None else context.getLocalProperty(_DESCRIPTION)
    if context is not None:
        context.setJobDescription(f"{_PREFIX}{description}")
    spark.addTag(tag)
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):
            spark.interruptTag(tag)
        raise
    finally:
        spark.removeTag(tag)
        if context is not None:
            context.setJobDescription(former)
