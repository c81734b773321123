"""Preparation of the sessions of this process: the planner bridge, and preloaded workers.

A registered session is prepared. So is every session of a process that imports `pyspark_lance`, before or after the
session is made. Spark has no hook for that, so `follow_sessions` wraps the constructor of all sessions with a driver in
this process. Workers import the same package, but make no sessions.
"""

from __future__ import annotations

import functools
import logging
import os
import weakref
from typing import TYPE_CHECKING, Any

from connector.active_session import is_remote
from connector.planner import install, name_source
from connector.source.data_source import LanceDataSource
from lance_format import InvalidInputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

_SERVES_CONNECT = "SPARK_LOCAL_REMOTE"
"""Set if the session is the server of a Spark Connect session in the same process."""
_FOLLOWED = "_is_followed_by_lance"

_log = logging.getLogger(__name__)
_prepared: weakref.WeakSet[Any] = weakref.WeakSet()
"""The Spark contexts whose first session has been prepared."""


def register(spark: SparkSession, source: type[DataSource] = LanceDataSource) -> None:
    """Register `format("lance")` with a session, and let Spark's planner push operations to tables.

    `docs/pushdown.md` lists these operations. Sessions of a process that has imported `pyspark_lance` do not need this.
    Others find the data source too, but then every query reads all rows of all columns, `append` and `overwrite` are
    the only save modes, and catalogs have no tables. The same applies to Spark Connect, which has no driver in this
    process, and if `spark.lance.planner.enabled` is `false`. In local mode, Python workers also start faster; see
    `connector.daemon`.

    Parameters
    ----------
    spark : SparkSession
    source : type of DataSource, optional
        The class that workers load.

    Raises
    ------
    InvalidInputError
        If Spark's workers cannot load this package, because their Python does not have it, or finds another module
        under one of its names.
    """
    if is_remote(spark):
        _log.warning("Spark Connect plans Lance tables without pushdown: the driver is not in this process")
    else:
        problem = _prepare(spark)
        if problem is not None:
            raise InvalidInputError(problem)
    spark.dataSource.register(source)


def follow_sessions() -> None:
    """Prepare the session of this process, if there is one, and all future ones."""
    from pyspark.sql import SparkSession

    made: Any = SparkSession.__init__
    if hasattr(made, _FOLLOWED):
        return

    @functools.wraps(made)
    def prepared(self: SparkSession, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        _prepare_first(self)

    setattr(prepared, _FOLLOWED, True)
    SparkSession.__init__ = prepared  # type: ignore[method-assign]
    active = SparkSession.getActiveSession()
    if active is not None:
        _prepare_first(active)


def _prepare_first(spark: SparkSession) -> None:
    """Prepare the first session of its context; Spark makes others from it all the time."""
    if is_remote(spark) or _SERVES_CONNECT in os.environ:
        return
    context = spark.sparkContext
    if context in _prepared:
        return
    problem = _prepare(spark)
    if problem is not None:
        _log.warning("Lance tables cannot be read or written: %s", problem)


def _prepare(spark: SparkSession) -> str | None:
    """Prepare a session; return the problem that keeps workers from loading this package, if any."""
    from connector.workers import find_problem, fork_prepared  # Workers do not need its imports.

    _prepared.add(spark.sparkContext)
    problem = find_problem(spark)
    is_installed = install(spark, LanceDataSource)
    is_forked = problem is None and fork_prepared(spark)
    if is_installed:
        name_source(spark, LanceDataSource if is_forked else None)
    return problem
