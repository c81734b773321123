"""The daemon from which Spark forks Python workers; it has already imported the modules that read tables.

    spark.python.daemon.module connector.daemon

The imports of a worker and the set-up of the compiler take a second. Spark ends a worker when a query has enough rows,
as with `where` and `limit`, and the next query starts another. The daemon imports and sets up once for all workers.
`connector.workers` makes the setting if it can.

Imported objects are frozen. Workers collect garbage after every task, which would visit them and copy shared memory.

A worker that Spark ends early prints no traceback about its closed pipe.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
from collections.abc import Callable
from typing import IO

import lance_format

_MODULES = ("pyspark.worker", "connector.source.data_source", "connector.jobs.running", "pandas")
"""Modules that tasks import, or that import these. PyArrow imports pandas, if it is installed, for its first array."""


def preload() -> None:
    """Import the modules of tasks, and set the compiler up; failures recur in the tasks that need them."""
    for module in _MODULES:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    lance_format.prepare_compiler()


def ending_quietly(main: Callable[[IO[bytes], IO[bytes]], None]) -> Callable[[IO[bytes], IO[bytes]], None]:
    """Return the function of a worker that ends the process if nobody reads its output, as Spark has enough rows.

    Parameters
    ----------
    main : callable
        The function of Spark's worker, of its input and output. It tells errors by the output.
    """

    def run(infile: IO[bytes], outfile: IO[bytes]) -> None:
        try:
            main(infile, outfile)
        finally:
            try:
                outfile.flush()
            except BrokenPipeError:
                os._exit(1)

    return run


if __name__ == "__main__":
    from pyspark import worker
    from pyspark.daemon import manager

    worker.main = ending_quietly(worker.main)
    with contextlib.suppress(Exception):
        preload()
    gc.collect()
    gc.freeze()
    manager()
