"""The rule for Spark jobs: a change is one if its tasks read more than the driver reads itself.

A job costs some tenths of a second before its first task runs. The driver reads 64 MiB in that time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lance_format import InvalidInputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "spark.lance.job.minBytes"
DEFAULT_BYTES = 64 * 1024 * 1024
_UNITS = ("", "k", "m", "g", "t", "p")
_SIZE = re.compile(r"(\d{1,18})([kmgtp]?)b?", re.ASCII)


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
        If the setting `spark.lance.job.minBytes` is no size.
    """
    if spark is None:
        return False
    given = spark.conf.get(SETTING, None)
    least = DEFAULT_BYTES if given is None else _parse_size(given)
    return num_bytes is None or num_bytes > least


def _parse_size(text: str) -> int:
    """Return the bytes that a setting of Spark means: a number, of bytes or of a unit such as `m` or `mb`."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None:
        raise InvalidInputError(f"{SETTING} must be a size, such as 67108864 or 64m, not {text!r}")
    return int(match[1]) << 10 * _UNITS.index(match[2])
