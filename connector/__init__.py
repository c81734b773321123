"""Lance tables in Spark: the data source `lance`, and `register` for a session that cannot find it by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connector.data_source import LanceDataSource
from connector.planner import install

if TYPE_CHECKING:  # Importing it takes as long as all the rest, on every query that is planned.
    from pyspark.sql import SparkSession

__all__ = ["LanceDataSource", "register"]

_PUSHDOWN_SETTING = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Make `format("lance")` known to a session, and let Spark push to tables what they can do.

    `connector.planner` says what that is. Sessions find the data source without this, but then every query reads all
    rows of all columns. So it does in a session whose planner is out of reach, as through Spark Connect, or where
    `spark.lance.planner.enabled` is `false`.

    Parameters
    ----------
    spark : SparkSession
    """
    spark.dataSource.register(LanceDataSource)
    spark.conf.set(_PUSHDOWN_SETTING, "true")
    install(spark)
