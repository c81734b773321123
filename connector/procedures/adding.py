"""`add_columns`: new columns from a view or table whose rows name rows of the table."""

from __future__ import annotations

from pyspark.errors import ParseException
from pyspark.sql.types import ArrayType, LongType, StringType

from connector.backfill.job import add_columns_from
from connector.procedures.declaring import Result, Target, columns
from lance_format import InvalidInputError, NotSupportedError

SCHEMA = columns(columns=ArrayType(StringType()), version=LongType())


def add_columns(target: Target, *, source: str, key: str | None, columns: list[str] | None) -> Result:
    """Add columns from a view or table; see `connector.backfill.job.add_columns_from`.

    Raises
    ------
    InvalidInputError
        If the source is no name.
    NotSupportedError
        If the driver is no Python program.
    """
    spark = target.spark
    if spark is None:
        raise NotSupportedError(
            "add_columns runs a Spark job, and the driver's process has no Python session to start it from: call the"
            " procedure from a Python program"
        )

    def attempt() -> Result:
        dataset = target.open()
        try:
            rows = spark.table(source)
        except ParseException as error:
            raise InvalidInputError(f"source is {source!r}; the name of a view or table is needed") from error
        added = add_columns_from(spark, dataset, rows, key=key, columns=columns)
        return Result(SCHEMA, [(list(added), dataset.version)])

    return target.retry(attempt)
