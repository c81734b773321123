"""Lance tables in Spark.

Importing this package prepares every session of the process: Spark's planner pushes operations to tables, and all save
modes and tables of the session catalog work.

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

`pyspark_lance.register(spark)` does the same for one session, and raises an error if its workers cannot load the
package.

Spark's workers import this package too: they look for `DefaultSource` in all packages called `pyspark_*`. Spark only
logs exceptions of these imports, and then reports an unknown data source. The import therefore always succeeds, and
reads and writes raise the reason.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pyspark_lance.imports import check_not_hidden, unavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connector.table_api.lance_table import LanceTable

__all__ = ["DefaultSource", "LanceTable", "register"]

try:
    check_not_hidden()
    from connector import LanceDataSource, follow_sessions
    from connector import register as _register
except Exception as error:  # Reads, writes and `register` raise it.
    _problem: Exception | None = error
    DefaultSource = unavailable(error)
    logging.getLogger(__name__).warning("there are no Lance tables in Spark here: %s", error)
else:
    _problem = None

    class DefaultSource(LanceDataSource):  # type: ignore[no-redef]
        """The data source under a name that workers find even if its dependencies are missing."""

    follow_sessions()


def register(spark: SparkSession) -> None:
    """Register `format("lance")` with a session, and let Spark's planner push operations to tables.

    Importing the package already prepares the sessions of a process; this function also checks the workers. Spark
    Connect gets the data source without pushdown: every query reads all rows and columns that its options name.

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


def __getattr__(name: str) -> Any:
    """Import `LanceTable` on first use: workers import this package too, and do not need it."""
    if name != "LanceTable":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if _problem is not None:
        raise _problem
    from connector.table_api.lance_table import LanceTable

    return LanceTable


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
