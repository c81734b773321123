"""Choice of the daemon that Python workers are forked from: `connector.daemon`, if nothing speaks against it.

That is in local mode, where Spark's Python is this one and finds the package too. On a cluster, whose executors are
started with their settings, it is the user's to set.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODULE = "connector.daemon"
SETTING = "spark.python.daemon.module"
_DISTRIBUTION = "pyspark-lance"

_log = logging.getLogger(__name__)


def fork_prepared(spark: SparkSession) -> bool:
    """Have the Python workers of a session that runs in one process forked from `connector.daemon`.

    Parameters
    ----------
    spark : SparkSession

    Returns
    -------
    bool
        Whether they are from now on.
    """
    try:
        context: Any = spark.sparkContext
        if not _is_local(context.master) or not _finds_this(context.pythonExec):
            return False
        settings = context._jsc.sc().conf()  # that of the running context, not a copy
        if not settings.contains(SETTING):
            settings.set(SETTING, MODULE)
        return str(settings.get(SETTING)) == MODULE
    except Exception as error:  # of py4j, or because a session has no JVM: workers start as they always did
        _log.info("Python workers are not forked from a daemon that has read tables in it: %s", error)
        return False


def _is_local(master: str) -> bool:
    """Tell whether tasks run in the driver's process, and so by its settings."""
    return master == "local" or master.startswith("local[")


def _finds_this(python: str) -> bool:
    """Tell whether workers find this package: their Python is this one, and it is installed or on their path."""
    if shutil.which(python) != sys.executable:
        return False
    root = Path(__file__).parents[1]
    if any(Path(entry) == root for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry):
        return True
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        importlib.metadata.distribution(_DISTRIBUTION)
        return True
    return False
