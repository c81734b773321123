"""The daemon that Spark forks Python workers from, with what reading tables takes imported and set up before.

    spark.python.daemon.module connector.daemon

A worker begins with imports, and with the set-up of the compiler, that take a second, and Spark ends it whenever a
query has rows enough, as `where` with `limit` does, so that the next query starts another one. Here all of that is done
once for all workers. `connector.workers` makes the setting where it can.

What has been imported is frozen: workers collect garbage after every task, which would go through all of it, and have
copies made of memory that they share.
"""

from __future__ import annotations

import contextlib
import gc
import importlib

import lance_format

_MODULES = ("pyspark.worker", "connector.read.reader", "connector.write.writer", "connector.jobs.running", "pandas")
"""What tasks import; PyArrow imports pandas, where it is installed, for the first array that it makes."""


def preload() -> None:
    """Import what tasks import, and set the compiler up; where that fails it fails again in the task that needs it."""
    for module in _MODULES:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    lance_format.prepare_compiler()


if __name__ == "__main__":
    from pyspark.daemon import manager

    with contextlib.suppress(Exception):
        preload()
    gc.collect()
    gc.freeze()
    manager()
