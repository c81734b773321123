"""`add_columns`: new columns from a view or table whose rows name rows of the table."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, LongType, StringType

from connector.backfill.job import add_columns_from
from connector.procedures.declaring import Result, Target, columns
from lance_format import NotSupportedError

SCHEMA = columns(columns=ArrayType(StringType()), version=LongType())


def add_columns(target: Target, *, source: str, key: str | None, columns: list[str] | None) -> Result:
    """Add columns from a view or table; see `connector.backfill.job.add_columns_from`."""
    spark = target.spark
    if spark is None:
        raise NotSupportedError(
            "add_columns runs a Spark job, and the driver's process has no Python session to start it from: call the"
            " procedure from a Python program"
        )

    def attempt() -> Result:
        dataset = target.open()
        added = add_columns_from(spark, dataset, spark.table(source), key=key, columns=columns)
        return Result(SCHEMA, [(list(added), dataset.version)])

    return target.retry(attempt)
