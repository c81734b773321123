"""Lance tables in Spark.

Importing this prepares every session of the process: Spark's planner then asks tables for what they can do, all save
modes are there, and so are tables of catalogs.

>>> import tempfile
>>> import pyspark_lance
>>> from pyspark.sql import SparkSession
>>> spark = SparkSession.builder.master("local[2]").getOrCreate()
>>> path = tempfile.mkdtemp() + "/numbers.lance"
>>> spark.range(3).write.format("lance").save(path)
>>> spark.read.format("lance").load(path).where("id > 1").show()
+---+
| id|
+---+
|  2|
+---+
<BLANKLINE>

`pyspark_lance.register(spark)` does the same for one session, and says what is wrong if its workers cannot load this.

Spark's workers import this package as well: they look for `DefaultSource` in all packages called `pyspark_*`. What an
import raises there is only logged, and Spark says that it does not know the data source. So the import succeeds
whatever is missing, and the reason is raised once something is read or written.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark_lance.imports import check_not_hidden, unavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DefaultSource", "register"]

try:
    check_not_hidden()
    from connector import LanceDataSource, follow_sessions
    from connector import register as _register
except Exception as error:  # whatever it is, it is raised by what needs the import
    _problem: Exception | None = error
    DefaultSource = unavailable(error)
    logging.getLogger(__name__).warning("there are no Lance tables in Spark here: %s", error)
else:
    _problem = None

    class DefaultSource(LanceDataSource):  # type: ignore[no-redef]
        """The data source by a name that a worker finds even where it does not find what is behind it."""

    follow_sessions()


def register(spark: SparkSession) -> None:
    """Make `format("lance")` known to a session, and let Spark push to tables what they can do.

    Sessions of a process that has imported this package are prepared without it; it adds what is wrong, as an error.
    Through Spark Connect the data source is made known, and every query reads all rows and columns that its options
    name.

    Parameters
    ----------
    spark : SparkSession

    Raises
    ------
    ImportError
        If another module hides a package of this distribution, or a dependency is not installed.
    InvalidInputError
        If Spark's workers cannot load this package.
    """
    if _problem is not None:
        raise _problem
    _register(spark, DefaultSource)
