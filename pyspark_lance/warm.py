"""Compilation of kernels, planner and modules, so that no first query waits: `python -m pyspark_lance.warm`."""

from __future__ import annotations

import os
import sys
import time

from pyspark_lance.bytecode import compile_modules


def warm() -> None:
    """Compile the kernels, the classes of the planner and the Python modules, unless they are compiled already.

    The kernels are those of all file formats that can be written. If there is no Java, a line says that the planner is
    not compiled. Another says so of modules whose bytecode cannot be stored.
    """
    from lance_format.warming import compile_kernels  # imports what a start of the command line does without

    started = time.perf_counter()
    compile_kernels()
    print(f"All kernels are compiled, after {time.perf_counter() - started:.0f} s.")
    started = time.perf_counter()
    problem = _compile_planner()
    if problem is None:
        print(f"The planner is compiled, after {time.perf_counter() - started:.0f} s.")
    else:
        print(f"The planner is not compiled: {problem}")
    started = time.perf_counter()
    left = compile_modules()
    if not left:
        print(f"All modules are compiled, after {time.perf_counter() - started:.0f} s.")
    else:
        print(f"{len(left)} modules are not compiled, as their directories cannot be written, such as {left[0].parent}")


def _compile_planner() -> str | None:
    """Start a driver, and compile the planner in it; return the problem, if any."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from connector import LanceDataSource
    from connector.planner import install

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # No worker starts, but the session checks it.
    builder = SparkSession.builder.master("local[1]").appName("warm")
    builder.config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    try:
        spark = builder.getOrCreate()
    except PySparkException as error:
        return f"Spark does not start: {error}"
    try:
        return None if install(spark, LanceDataSource) else "this Spark is not one that it knows"
    finally:
        spark.stop()


if __name__ == "__main__":
    warm()
