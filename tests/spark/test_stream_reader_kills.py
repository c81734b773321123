"""Drivers that are killed while they read a table as a stream: no row is lost, and none comes twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import lance_format
from lance_format import LanceDataset
from tests.spark.conftest import ROOT

_PROGRAM = """
import sys
from pyspark.sql import SparkSession
import pyspark_lance
from connector.stream.source import LIMITS_BATCHES

path, out, checkpoint = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
pyspark_lance.register(spark)
reader = spark.readStream.format("lance").option("ignoreDeletes", "true")
stream = (reader.option("maxFilesPerTrigger", "1") if LIMITS_BATCHES else reader).load(path)
print("started", flush=True)
writer = stream.writeStream.format("parquet").option("checkpointLocation", checkpoint).trigger(availableNow=True)
writer.start(out).awaitTermination()
print("done", flush=True)
"""
_ROWS = 200


class Table:
    """A table that other writers change while it is read."""

    def __init__(self, path: Path) -> None:
        self.path, self.num_rows = str(path), 0
        self.append()

    def append(self) -> LanceDataset:
        rows = {"id": range(self.num_rows, self.num_rows + _ROWS)}
        self.num_rows += _ROWS
        return lance_format.write_dataset(rows, self.path, mode="append", max_rows_per_file=50)

    def change(self, chance: random.Random) -> None:
        """Append, compact, and delete rows that a stream may have read or not."""
        table = self.append()
        if chance.random() < 0.5:
            table.optimize.compact_files(target_rows_per_fragment=1000)
        table.delete(f"id % 100 = {chance.randrange(100)}")
        table.cleanup_old_versions(retain_versions=200)


def run(directory: Path, kill_after: float | None = None) -> bool:
    """Run the program, and return whether it came to its end."""
    program = directory / "stream_program.py"
    program.write_text(_PROGRAM)
    arguments = [str(directory / name) for name in ("t", "out", "checkpoint")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    environment |= {"PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with subprocess.Popen(
        [sys.executable, str(program), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=directory,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        if kill_after is None:
            return process.stdout.readline() == "done\n"
        time.sleep(kill_after)  # the point in time is what varies
        os.killpg(process.pid, signal.SIGKILL)  # the JVM too
        return process.stdout.readline() == "done\n"


def sink_files(out: Path) -> list[str]:
    """Return the files that Spark's sink has committed; those of killed batches lie beside them."""
    lines = [line for log in (out / "_spark_metadata").glob("[0-9]*") for line in log.read_text().splitlines()[1:]]
    paths = {json.loads(line)["path"] for line in lines}
    return sorted(str(out / Path(path).name) for path in paths)


def check(directory: Path, seed: int, kills: int) -> int:
    """Kill and restart a stream, and return how many of the runs were killed before their end."""
    chance = random.Random(seed)
    table = Table(directory / "t")
    killed = 0
    for _ in range(kills):
        table.change(chance)
        killed += not run(directory, chance.uniform(0, 12))
    assert run(directory)
    found = [number for file in sink_files(directory / "out") for number in pq.read_table(file)["id"].to_pylist()]
    assert len(found) == len(set(found))  # none twice
    deleted = set(range(table.num_rows)) - set(found)
    left = set(lance_format.dataset(table.path).to_table()["id"].to_pylist())
    assert not deleted & left  # only what was deleted before the stream came by may be missing
    return killed


def test_a_killed_stream_goes_on(tmp_path: Path) -> None:
    check(tmp_path, seed=1, kills=2)


@pytest.mark.nightly
def test_a_stream_that_is_killed_again_and_again_goes_on(tmp_path: Path) -> None:
    kills = int(os.environ.get("LANCE_KILL_COUNT", "50"))
    assert check(tmp_path, seed=2, kills=kills) > kills // 2
