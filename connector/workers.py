"""Spark's Python workers: the check that they find this package, and the daemon that forks them.

The environment and the working directory at the start of the JVM decide the Python of workers and its module path. Both
may differ from those of the driver, so they are read from the JVM, and that Python reports which files it would load.

Workers are forked from `connector.daemon` where that is safe: in local mode, if they find this package. On a cluster,
where executors start with their own settings, the user sets it.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODULE = "connector.daemon"
SETTING = "spark.python.daemon.module"
_PACKAGES = ("pyspark_lance", "lance_format", "connector")
"""Packages that must come from one directory: another module of one of these names may shadow ours."""
_DEPENDENCIES = ("numba", "pyarrow")
_MORE_DEPENDENCIES = (
    *("llvmlite", "lz4", "numpy", "obstore", "py4j", "pyroaring", "snowballstemmer", "sqlglot", "urllib3", "xxhash"),
    "zstandard",
)
"""Packages that some workers need, and that another module may shadow, too."""
_PROBE = """
import importlib.util, json, sys
found = {name: importlib.util.find_spec(name) for name in sys.argv[1:]}
print(json.dumps({name: spec and spec.origin for name, spec in found.items()}))
"""
_PROBE_SECONDS = 60

_log = logging.getLogger(__name__)


def find_problem(spark: SparkSession) -> str | None:
    """Return the reason why the workers that read and write tables cannot load this package, if there is one.

    Parameters
    ----------
    spark : SparkSession
        A session whose driver is in this process.

    Returns
    -------
    str or None
        The problem and its remedy.
    """
    try:
        return _find_problem(_python_of_data_sources(spark), *_surroundings(spark))
    except Exception as error:  # Errors of py4j, or of a session without a JVM: a worker will report the problem.
        _log.info("it cannot be told whether Python workers find this package: %s", error)
        return None


def fork_prepared(spark: SparkSession) -> bool:
    """Fork the Python workers of a session in local mode from `connector.daemon`.

    Parameters
    ----------
    spark : SparkSession

    Returns
    -------
    bool
        Whether later workers are forked from it.
    """
    try:
        context: Any = spark.sparkContext
        pythons = {context.pythonExec, _python_of_data_sources(spark)}
        surroundings = _surroundings(spark)
        if not _is_local(context.master) or any(_find_problem(python, *surroundings) for python in pythons):
            return False
        settings = context._jsc.sc().conf()  # The configuration of the running context, not a copy.
        if not settings.contains(SETTING):
            settings.set(SETTING, MODULE)
        return str(settings.get(SETTING)) == MODULE
    except Exception as error:  # Errors of py4j, or of a session without a JVM: workers start as by default.
        _log.info("Python workers are not forked from a daemon that has read tables in it: %s", error)
        return False


def _is_local(master: str) -> bool:
    """Return whether tasks run in the driver's process, and thus by its settings."""
    return master == "local" or master.startswith("local[")


def _python_of_data_sources(spark: SparkSession) -> str:
    """Return the Python in which Spark runs data sources: `PYSPARK_DRIVER_PYTHON`, else `PYSPARK_PYTHON`."""
    jvm: Any = spark.sparkContext._jvm
    return str(getattr(getattr(jvm.org.apache.spark.api.python, "PythonUtils$"), "MODULE$").defaultPythonExec())


def _surroundings(spark: SparkSession) -> tuple[str, str]:
    """Return the working directory of workers, and a `PYTHONPATH` equivalent to their module path."""
    from pyspark import SparkFiles

    context: Any = spark.sparkContext
    system = context._jvm.java.lang.System
    shipped = SparkFiles.getRootDirectory()
    entries = [shipped, *(os.path.join(shipped, name) for name in context._python_includes)]  # noqa: PTH118
    return str(system.getProperty("user.dir")), os.pathsep.join([*entries, system.getenv("PYTHONPATH") or ""])


def _find_problem(python: str, directory: str, python_path: str) -> str | None:
    cure = (
        f"set the environment variable PYSPARK_PYTHON, and PYSPARK_DRIVER_PYTHON if you use it, to {sys.executable}"
        " before the session starts"
    )
    try:
        found = _probe(python, directory, python_path)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        if hiding := _hiding_file(error, directory):
            return (
                f"Spark's workers, which start in {directory}, take {hiding} for the module {hiding.stem!r} of Python;"
                " rename that file, or start Spark from another directory"
            )
        return f"Spark's workers run {python!r}, which is no Python that works ({error}); {cure}"
    missing = [name for name in (*_PACKAGES, *_DEPENDENCIES) if found[name] is None]
    if missing:
        return f"Spark's workers run {python!r}, which does not find the package {missing[0]!r}; {cure}"
    for name in (*_DEPENDENCIES, *_MORE_DEPENDENCIES):
        origin = Path(found[name] or "")
        is_there = Path(directory) in (origin.parent, origin.parent.parent)
        is_installed = any(Path(directory).glob(f"{name}-*.dist-info"))
        if is_there and not is_installed:
            return (
                f"Spark's workers, which start in {directory}, take {origin} for the package {name!r}; rename it, or"
                " start Spark from another directory"
            )
    home = Path(found[_PACKAGES[0]] or "").parent.parent
    for name in _PACKAGES:
        origin = Path(found[name] or "")
        if origin.parent.parent != home:
            return (
                f"Spark's workers, which start in {directory}, take {origin} for the package {name!r} of pyspark-lance"
                f" in {home}; rename that file, or start Spark from another directory"
            )
    return None


def _hiding_file(error: Exception, directory: str) -> Path | None:
    """Return the file in a directory that a Python process took for a module which it needs, and failed by."""
    trace = error.stderr if isinstance(error, subprocess.CalledProcessError) else ""
    files = (Path(path) for path in re.findall(r'File "(.+)", line \d+', trace))
    return next((path for path in files if path.parent == Path(directory)), None)


def _probe(python: str, directory: str, python_path: str) -> dict[str, str | None]:
    """Return the file that a Python process would load for each package; None for packages that it does not find."""
    command = [python, "-c", _PROBE, *_PACKAGES, *_DEPENDENCIES, *_MORE_DEPENDENCIES]
    environment = {**os.environ, "PYTHONPATH": python_path}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=directory, env=environment, timeout=_PROBE_SECONDS, check=True
    )
    found: dict[str, str | None] = json.loads(done.stdout.strip().rpartition("\n")[2])
    return found
