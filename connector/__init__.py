"""Lance tables in Spark: the data source `lance`, and `register` for a session that cannot find it by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connector.data_source import LanceDataSource

if TYPE_CHECKING:  # Importing it takes as long as all the rest, on every query that is planned.
    from pyspark.sql import SparkSession

__all__ = ["LanceDataSource", "register"]

_PUSHDOWN_SETTING = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Make `format("lance")` known to a session, and let Spark push filters to it.

    Sessions find the data source without this; what they lack then is filter pushdown, which Spark has off by default.

    Parameters
    ----------
    spark : SparkSession
    """
    spark.dataSource.register(LanceDataSource)
    spark.conf.set(_PUSHDOWN_SETTING, "true")
