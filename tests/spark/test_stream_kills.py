"""Drivers of streams that are killed: the restarted query adds each batch once."""

from __future__ import annotations

import datetime
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet
import pytest

import lance_format
from tests.spark.conftest import ROOT
from tests.table.leftovers import leftovers

_PROGRAM = """
import sys
from pyspark.sql import SparkSession
import pyspark_lance

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.scheduler.mode", "FAIR")
spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
root, queries = sys.argv[1], []
for name in sys.argv[2:]:
    rows = spark.readStream.schema("a long, s string").option("maxFilesPerTrigger", 1).parquet(f"{root}/source")
    mode = name.split("-")[0]
    rows = rows.groupBy("a").agg({"s": "max"}).toDF("a", "s") if mode == "complete" else rows.repartition(2)
    writer = rows.writeStream.format("lance").outputMode(mode).trigger(availableNow=True)
    writer = writer.option("mergeKey", "a") if mode == "update" else writer
    queries.append(writer.option("checkpointLocation", f"{root}/{name}.checkpoint").start(f"{root}/{name}.lance"))
for query in queries:
    query.awaitTermination()
"""
_ROWS, _NEW = 200, 150
"""Numbers of rows of a file, and of those whose key no earlier file has."""


def start(directory: Path) -> subprocess.Popen[bytes]:
    """Start all queries in one driver, whose processes form a session of their own."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environment.pop("PYSPARK_DRIVER_PYTHON", None)
    command = [sys.executable, str(directory / "program.py"), str(directory), *tables(directory)]
    return subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.DEVNULL)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill all processes of a session: the daemon of Spark's workers has a group of its own."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.getsid(int(entry.name)) == process.pid:
                os.kill(int(entry.name), signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()


def kill_when(directory: Path, condition: Callable[[], bool], jitter: float = 0) -> bool:
    """Run the queries until a condition holds, and kill their driver; return whether they ended first."""
    process = start(directory)
    deadline = time.monotonic() + 900
    while process.poll() is None and not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    time.sleep(jitter)
    has_ended = process.poll() is not None
    end(process)
    return has_ended


def tables(directory: Path) -> list[str]:
    """Return the names of the tables, which begin with the output mode of their query."""
    return (directory / "tables").read_text().split()


def names(directory: Path) -> set[str]:
    """Return the names of the files of all tables."""
    return {path.name for path in directory.glob("*.lance/*/*") if path.suffix in (".lance", ".manifest")}


def rows_of(number: int) -> dict[int, str]:
    """Return the rows of a file by their keys, some of which the file before it has, too."""
    keys = range(number * _NEW, number * _NEW + _ROWS)
    return {key: f"row {number:03} {key}" for key in keys}


def prepare(directory: Path, num_files: int, *given: str) -> None:
    (directory / "program.py").write_text(_PROGRAM)
    (directory / "tables").write_text(" ".join(given))
    (directory / "source").mkdir()
    for number in range(num_files):
        rows = rows_of(number)
        table = pa.table({"a": pa.array(rows, pa.int64()), "s": list(rows.values())})
        pyarrow.parquet.write_table(table, directory / f"source/{number:03}.parquet")
    for name in given:
        if name.startswith("update"):
            lance_format.write_dataset(table.slice(0, 0), directory / f"{name}.lance")


def check(directory: Path, num_files: int) -> None:
    """Check that each batch is in each table once, and that a cleanup leaves only files that a version has."""
    files = [rows_of(number) for number in range(num_files)]
    latest = {key: text for rows in files for key, text in rows.items()}
    for name in tables(directory):
        path = directory / f"{name}.lance"
        every = [row for rows in files for row in rows.items()] if name.startswith("append") else latest.items()
        table = lance_format.dataset(path)
        ours = table.to_table().sort_by([("a", "ascending"), ("s", "ascending")])
        assert list(zip(ours["a"].to_pylist(), ours["s"].to_pylist(), strict=True)) == sorted(every), name
        reference: Any = lance.dataset(path)
        reference.validate()
        assert reference.to_table().sort_by([("a", "ascending"), ("s", "ascending")]) == ours
        table.cleanup_old_versions(datetime.timedelta(0), delete_unverified=True)
        assert not leftovers(path)


def finish(directory: Path) -> None:
    process = start(directory)
    try:
        assert process.wait(900) == 0
    finally:
        end(process)


def test_a_killed_driver_adds_each_batch_once(tmp_path: Path) -> None:
    """Killed once when a data file is begun, and once when a version is there of which the checkpoint does not know."""
    prepare(tmp_path, 2, "append", "complete", "update")
    before = names(tmp_path)
    assert not kill_when(tmp_path, lambda: any(name.endswith(".lance") for name in names(tmp_path) - before))
    before = names(tmp_path)
    assert not kill_when(tmp_path, lambda: any(n.endswith(".manifest") for n in names(tmp_path) - before))
    finish(tmp_path)
    check(tmp_path, 2)


@pytest.mark.nightly
def test_queries_that_are_killed_fifty_times_add_each_batch_once(tmp_path: Path) -> None:
    """A driver runs several queries, each of which is killed at some point of its own batch."""
    count = int(os.environ.get("LANCE_KILL_COUNT", "50"))
    modes = ["append", "append-2", "append-3", "complete", "update", "update-2"]
    chosen, num_files, num_kills = random.Random(7), 40, 0
    prepare(tmp_path, num_files, *modes)
    while num_kills < count:
        known, suffix = names(tmp_path), chosen.choice([".lance", ".manifest"])
        jitter = chosen.choice([0.0, chosen.random() * 0.1, chosen.random(), chosen.random() * 3])
        if kill_when(tmp_path, lambda: any(n.endswith(suffix) for n in names(tmp_path) - known), jitter):  # noqa: B023
            break
        num_kills += len(modes)
    finish(tmp_path)
    check(tmp_path, num_files)
    assert num_kills > count // 2
