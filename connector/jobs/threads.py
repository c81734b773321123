"""The active session of a thread, in which Spark looks for the data source of a write if it is none of Java's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from connector.jobs.labels import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextlib.contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Make a session that of this thread for the block. Threads of users have none, except the one that made it.

    Parameters
    ----------
    spark : SparkSession
    """
    if is_remote(spark):
        yield
        return
    session: Any = spark
    sessions = session._jvm.org.apache.spark.sql.classic.SparkSession
    former = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        if former.isDefined():
            sessions.setActiveSession(former.get())
        else:
            sessions.clearActiveSession()
