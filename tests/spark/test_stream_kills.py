"""Drivers of streams that are killed: the restarted query adds each batch once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.parquet
import pytest

import lance_format
from tests.spark.conftest import ROOT

_PROGRAM = """
import sys
from pyspark.sql import SparkSession
import pyspark_lance

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
rows = spark.readStream.schema("a long, s string").option("maxFilesPerTrigger", 1).parquet(f"{sys.argv[1]}/source")
writer = rows.repartition(2).writeStream.format("lance").option("checkpointLocation", f"{sys.argv[1]}/checkpoint")
query = writer.trigger(availableNow=True).start(f"{sys.argv[1]}/table.lance")
query.awaitTermination()
"""
_ROWS = 1000


def start(directory: Path) -> subprocess.Popen[bytes]:
    """Start the query, whose processes form a session of their own."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environment.pop("PYSPARK_DRIVER_PYTHON", None)
    command = [sys.executable, str(directory / "program.py"), str(directory)]
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
    """Run the query until a condition holds, and kill it; return whether it ended first."""
    process = start(directory)
    deadline = time.monotonic() + 900
    while process.poll() is None and not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    time.sleep(jitter)
    has_ended = process.poll() is not None
    end(process)
    return has_ended


def names(directory: Path) -> set[str]:
    """Return the names of the files of the table."""
    return {path.name for path in (directory / "table.lance").rglob("*") if path.suffix in (".lance", ".manifest")}


def prepare(directory: Path, num_files: int) -> None:
    (directory / "program.py").write_text(_PROGRAM)
    (directory / "source").mkdir()
    for number in range(num_files):
        numbers = range(number * _ROWS, (number + 1) * _ROWS)
        rows = pa.table({"a": numbers, "s": [f"row {value}" for value in numbers]})
        pyarrow.parquet.write_table(rows, directory / f"source/{number:03}.parquet")


def check(directory: Path, num_files: int) -> None:
    """Check that each row is in the table once."""
    ours = lance_format.dataset(directory / "table.lance").to_table().sort_by("a")
    assert ours["a"].to_pylist() == list(range(num_files * _ROWS))
    assert ours["s"].to_pylist() == [f"row {value}" for value in range(num_files * _ROWS)]
    reference = lance.dataset(directory / "table.lance")
    reference.validate()
    assert reference.to_table().sort_by("a") == ours


def finish(directory: Path) -> None:
    process = start(directory)
    try:
        assert process.wait(900) == 0
    finally:
        end(process)


def test_a_killed_driver_adds_each_batch_once(tmp_path: Path) -> None:
    """Killed once when a data file is begun, and once when a version is there of which the checkpoint does not know."""
    prepare(tmp_path, 2)
    assert not kill_when(tmp_path, lambda: any(name.endswith(".lance") for name in names(tmp_path)))
    before = {name for name in names(tmp_path) if name.endswith(".manifest")}
    assert not kill_when(tmp_path, lambda: any(n.endswith(".manifest") for n in names(tmp_path) - before))
    finish(tmp_path)
    check(tmp_path, 2)


@pytest.mark.nightly
def test_drivers_that_are_killed_fifty_times_add_each_batch_once(tmp_path: Path) -> None:
    chosen, num_files, num_kills = random.Random(7), 60, 0
    prepare(tmp_path, num_files)
    while num_kills < 50:
        known, suffix = names(tmp_path), chosen.choice([".lance", ".manifest"])
        jitter = chosen.choice([0.0, chosen.random() * 0.1, chosen.random()])
        if kill_when(tmp_path, lambda: any(n.endswith(suffix) for n in names(tmp_path) - known), jitter):  # noqa: B023
            break
        num_kills += 1
    finish(tmp_path)
    check(tmp_path, num_files)
    assert num_kills > 25
