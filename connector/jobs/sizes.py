"""The rule for Spark jobs: a change is one if its tasks read more than the driver reads itself.

A job costs some tenths of a second before its first task runs. The driver reads 64 MiB in that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_format import InvalidInputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "spark.lance.job.minBytes"
DEFAULT_BYTES = 64 * 1024 * 1024


def needs_job(spark: SparkSession | None, num_bytes: int | None) -> bool:
    """Return whether work is to be done by a Spark job.

    Parameters
    ----------
    spark : SparkSession or None
        The session that would run it. Without one there are no jobs.
    num_bytes : int or None
        Maximum size of the input of all tasks together, or None if it is unknown.

    Raises
    ------
    InvalidInputError
        If the setting `spark.lance.job.minBytes` is not a number of bytes.
    """
    if spark is None:
        return False
    given = spark.conf.get(SETTING, str(DEFAULT_BYTES))
    if given is None or not given.isdecimal():
        raise InvalidInputError(f"{SETTING} must be a number of bytes, not {given!r}")
    return num_bytes is None or num_bytes > int(given)
