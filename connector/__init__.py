"""Lance tables in Spark: the data source `lance`, and `register` for a session that cannot find it by itself."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from connector.planner import install
from connector.source.data_source import LanceDataSource

if TYPE_CHECKING:  # Importing it takes as long as all the rest, on every query that is planned.
    from pyspark.sql import SparkSession

__all__ = ["LanceDataSource", "register"]


def register(spark: SparkSession) -> None:
    """Make `format("lance")` known to a session, and let Spark push to tables what they can do.

    `connector.planner` says what that is. Sessions find the data source without this, but then every query reads all
    rows of all columns. So it does in a session whose planner is out of reach, as through Spark Connect, or where
    `spark.lance.planner.enabled` is `false`. In local mode, Python workers also start faster; see `connector.daemon`.

    Parameters
    ----------
    spark : SparkSession
    """
    spark.dataSource.register(LanceDataSource)
    _speed_up(spark)


def speed_up_here() -> None:
    """Let Spark push what it can, if this is the driver of a session; workers, which import this as well, are none."""
    pyspark = sys.modules.get("pyspark.sql.session")
    session = None if pyspark is None else pyspark.SparkSession.getActiveSession()
    if session is not None:
        _speed_up(session)


def _speed_up(spark: SparkSession) -> None:
    from connector.workers import fork_prepared  # what it imports is of no use in workers

    install(spark, LanceDataSource)
    fork_prepared(spark)
