"""The active session of a thread: that of its statement, in which Spark also looks for the data source of a write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def active_session() -> SparkSession | None:
    """Return the session of the statement that this thread runs; None if there is none.

    `SparkSession.getActiveSession` returns the latest session of this process that Python made active, whoever asks.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context: Any = SparkContext._active_spark_context
    if context is None:
        return None
    found = context._jvm.org.apache.spark.sql.classic.SparkSession.getActiveSession()
    if not found.isDefined():
        return None
    latest: Any = SparkSession._activeSession
    if latest is not None and latest._jsparkSession.equals(found.get()):
        return latest  # type: ignore[no-any-return]
    return SparkSession(context, found.get())


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


def is_remote(spark: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")
