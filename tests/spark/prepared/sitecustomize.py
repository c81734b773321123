"""Prepares the processes in which Spark plans reads and writes of Python data sources, if it is on their path.

Spark forks one from `pyspark.daemon` for each question to a data source. Each imports the data source and its
dependencies, which takes longer than the answer. Here the daemon imports them before it forks.

Since Python 3.13 `importlib.invalidate_caches`, which a process calls first, forgets what archives contain. `pkgutil`,
with which it then looks for data sources, cannot list an archive whose modules have all been imported before.
"""

import contextlib
import gc
import importlib
import pkgutil
import sys
import zipimport


def _modules_of(importer, prefix=""):
    zipimport.zipimporter(importer.archive)  # Reads the contents if they have been forgotten.
    return pkgutil.iter_zipimport_modules(importer, prefix)


if "pyspark.daemon" in sys.orig_argv:
    for module in ("connector.source.data_source", "connector.read.reader", "connector.write.writer", "pandas"):
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    pkgutil.iter_importer_modules.register(zipimport.zipimporter, _modules_of)
    gc.collect()
    gc.freeze()
