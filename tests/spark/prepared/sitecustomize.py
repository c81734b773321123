"""Prepares the processes in which Spark plans reads and writes of Python data sources, if it is on their path.

Spark forks one from `pyspark.daemon` for each question to a data source. Each imports the data source and its
dependencies, which takes longer than the answer. Here the daemon imports them before it forks.
"""

import contextlib
import gc
import importlib
import sys

if "pyspark.daemon" in sys.orig_argv:
    for module in ("connector.source.data_source", "connector.read.reader", "connector.write.writer", "pandas"):
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    gc.collect()
    gc.freeze()
