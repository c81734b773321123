"""The cost of the library at the start of a process, of the first decode, and of the first queries of a Spark session.

    python benchmarks/startup.py

Processes are started one after the other; medians in milliseconds are printed. Importing the library is to add under 50
ms to importing pyarrow and numpy, and the first decode in a process, its kernels compiled by an earlier one, under 300
ms. The exit status says whether they do. Modules have bytecode, as an installer or the first process makes it. Sessions
of Spark, which `--no-spark` leaves out, are new for each format: they write a range, write it again and sum it up
twice. The time until there is a session is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_IMPORT = """
import time
import numpy, pyarrow
start = time.perf_counter()
import {module}
print((time.perf_counter() - start) * 1e3)
"""
_DECODE = """
import sys, time
from lance_format.file import LanceFileReader
start = time.perf_counter()
LanceFileReader(sys.argv[1]).read_all().to_table()
print((time.perf_counter() - start) * 1e3)
"""
_AGAIN = """
import sys, time
from lance_format.file import LanceFileReader
LanceFileReader(sys.argv[1]).read_all().to_table()
start = time.perf_counter()
LanceFileReader(sys.argv[1]).read_all().to_table()
print((time.perf_counter() - start) * 1e3)
"""
_WRITE = """
import sys
import numpy as np, pyarrow as pa
from lance_format.file import LanceFileWriter
rows = np.arange(10_000)
texts = [f"https://example.org/{row}" for row in rows]
table = pa.table({"n": rows, "x": rows / 7, "s": texts, "l": [[1, 2]] * 10_000})
with LanceFileWriter(sys.argv[1]) as writer:
    writer.write_batch(table)
"""
_SPARK = """
import json, sys, time
import pyspark_lance
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    .config("spark.ui.showConsoleProgress", "false").getOrCreate()
)
kind, path = sys.argv[2], f"{sys.argv[1]}-{sys.argv[2]}"
spark.range(1).collect()
def write(): spark.range(1000).write.format(kind).mode("append").save(path)
def read(): spark.read.format(kind).load(path).selectExpr("sum(id)").collect()
times = []
for call in write, write, read, read:
    start = time.perf_counter()
    call()
    times.append((time.perf_counter() - start) * 1e3)
print(json.dumps(times))
"""
_QUERIES = ("first write", "second write", "first read", "second read")
_LIMITS = {"import lance_format": 50.0, "first decode": 300.0}


def _run(program: str, path: Path, *arguments: str) -> str:
    command = [sys.executable, "-c", program, str(path), *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def _median(program: str, path: Path, runs: int) -> float:
    _run(program, path)  # warms the disk, and the cache of compiled kernels
    return statistics.median(float(_run(program, path)) for _ in range(runs))


def _sessions(path: Path, runs: int) -> Iterator[str]:
    """Yield a line for each query of a new session, with its time by each format."""
    times: dict[str, list[list[float]]] = {"lance": [], "parquet": []}
    for run in range(runs):
        for kind, found in times.items():
            found.append(json.loads(_run(_SPARK, path.with_name(f"run{run}"), kind)))
    by_query = (zip(*found, strict=True) for found in times.values())
    for query, ours, theirs in zip(_QUERIES, *by_query, strict=True):
        yield f"{query:24}{statistics.median(ours):8.0f} ms   Parquet {statistics.median(theirs):8.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--no-spark", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "file.lance"
        _run(_WRITE, path)
        found = {
            "import lance_format": _median(_IMPORT.format(module="lance_format"), path, options.runs),
            "import lance": _median(_IMPORT.format(module="lance"), path, options.runs),
            "first decode": _median(_DECODE, path, options.runs),
            "second decode": _median(_AGAIN, path, options.runs),
        }
        sessions = [] if options.no_spark else list(_sessions(path, options.runs))
    for name, milliseconds in found.items():
        limit = f"   at most {_LIMITS[name]:.0f}" if name in _LIMITS else ""
        print(f"{name:24}{milliseconds:8.1f} ms{limit}")
    for line in sessions:
        print(line)
    sys.exit(any(found[name] > limit for name, limit in _LIMITS.items()))


if __name__ == "__main__":
    main()
