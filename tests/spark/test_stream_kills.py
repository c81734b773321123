"""Drivers of streams that are killed: the restarted query adds each batch once."""

from __future__ import annotations

import datetime
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet
import pytest

import lance_format
from lance_format import DatasetNotFoundError, last_batches
from tests.spark.programs import FORKED_PREPARED
from tests.table.leftovers import leftovers

pytestmark = pytest.mark.system

_PROGRAM = """
import sys
from pyspark.sql import SparkSession
import pyspark_lance
from connector.stream.source import LIMITS_BATCHES

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.scheduler.mode", "FAIR")
builder = builder.config("spark.sql.streaming.minBatchesToRetain", "100000")
# Else Spark 4.3 starts no query whose driver was killed while it wrote the offsets of its first batch.
builder = builder.config("spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart", "false")
spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
root, queries = sys.argv[1], []
for name in sys.argv[2:]:
    mode = name.split("-")[0]
    if mode == "relay":
        reader = spark.readStream.format("lance")
        rows = (reader.option("maxFilesPerTrigger", 3) if LIMITS_BATCHES else reader).load(f"{root}/append.lance")
    else:
        rows = spark.readStream.schema("a long, s string").option("maxFilesPerTrigger", 1).parquet(f"{root}/source")
        # A driver that is killed while it plans a batch lets the next one have two files, which share keys.
        is_grouped = mode in ("complete", "update")
        rows = rows.groupBy("a").agg({"s": "max"}).toDF("a", "s") if is_grouped else rows.repartition(2)
    writer = rows.writeStream.format("lance").outputMode("append" if mode == "relay" else mode)
    writer = writer.option("mergeKey", "a") if mode == "update" else writer
    writer = writer.option("checkpointLocation", f"{root}/{name}.checkpoint").trigger(availableNow=True)
    queries.append(writer.start(f"{root}/{name}.lance"))
for query in queries:
    query.awaitTermination()
"""
_ROWS, _NEW = 200, 150
"""Numbers of rows of a file, and of those whose key no earlier file has."""


def start(directory: Path, *chosen: str) -> subprocess.Popen[bytes]:
    """Start queries, by default all, in one driver, whose processes form a session of their own."""
    environment = {
        **os.environ,
        "PYTHONPATH": FORKED_PREPARED,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environment.pop("PYSPARK_DRIVER_PYTHON", None)
    command = [sys.executable, str(directory / "program.py"), str(directory), *(chosen or tables(directory))]
    with (directory / "errors").open("wb") as file:
        return subprocess.Popen(command, env=environment, start_new_session=True, stderr=file)


def errors(directory: Path) -> str:
    """Return the last errors of a driver."""
    return (directory / "errors").read_text()[-5000:]


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill all processes of a session: the daemon of Spark's workers has a group of its own."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.getsid(int(entry.name)) == process.pid:
                os.kill(int(entry.name), signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()


def kill_when(directory: Path, condition: Callable[[], bool], jitter: float = 0, *chosen: str) -> bool:
    """Run queries until a condition holds, and kill their driver; return whether they ended first."""
    process = start(directory, *chosen)
    deadline = time.monotonic() + 900
    while process.poll() is None and not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(jitter)
    code = process.poll()
    end(process)
    assert not code, errors(directory)
    return code is not None


def tables(directory: Path) -> list[str]:
    """Return the names of the tables, which begin with the output mode of their query."""
    return (directory / "tables").read_text().split()


KINDS = {"data file": "*.lance/data", "version": "*.lance/_versions", "plan": "*/offsets", "commit": "*/commits"}
"""Directories whose files show how far queries are: files of tables, and of checkpoints."""


def count(directory: Path, kind: str) -> int:
    """Return the number of files of a kind, of all queries; those of Spark that begin with a dot are others."""
    return sum(not path.name.startswith(".") for place in directory.glob(KINDS[kind]) for path in place.iterdir())


def last(directory: Path, name: str, kind: str) -> int:
    """Return the last batch that a checkpoint has planned (`offsets`) or finished (`commits`); -1 if there is none."""
    place = directory / f"{name}.checkpoint" / kind
    return max((int(path.name) for path in place.glob("[0-9]*") if path.name.isdigit()), default=-1)


def landed(directory: Path, name: str) -> int:
    """Return the last batch that the table of a query has; -1 if it has none."""
    try:
        found = last_batches(lance_format.dataset(directory / f"{name}.lance").config())
    except DatasetNotFoundError:
        return -1
    return max(found.values(), default=-1)


def rows_of(number: int) -> dict[int, str]:
    """Return the rows of a file by their keys, some of which the file before it has, too."""
    keys = range(number * _NEW, number * _NEW + _ROWS)
    return {key: f"row {number:03} {key}" for key in keys}


def table_of(number: int) -> pa.Table:
    rows = rows_of(number)
    return pa.table({"a": pa.array(rows, pa.int64()), "s": list(rows.values())})


def num_arrived(directory: Path) -> int:
    return len(list((directory / "source").iterdir()))


def arrive(directory: Path, num_files: int) -> None:
    """Let files arrive, up to a number of them."""
    for number in range(num_arrived(directory), num_files):
        pyarrow.parquet.write_table(table_of(number), directory / "next")
        os.utime(directory / "next", (number, number))  # Spark takes the oldest file first
        (directory / "next").rename(directory / f"source/{number:03}.parquet")


def prepare(directory: Path, num_files: int, *given: str) -> None:
    (directory / "program.py").write_text(_PROGRAM)
    (directory / "tables").write_text(" ".join(given))
    (directory / "source").mkdir()
    arrive(directory, num_files)
    for name in given:
        if name.startswith("update") or (name == "append" and "relay" in given):
            lance_format.write_dataset(table_of(0).slice(0, 0), directory / f"{name}.lance")


def check(directory: Path, num_files: int) -> None:
    """Check that each batch is in each table once, and that a cleanup leaves only files that a version has."""
    files = [rows_of(number) for number in range(num_files)]
    latest = {key: text for rows in files for key, text in rows.items()}
    for name in tables(directory):
        path = directory / f"{name}.lance"
        is_all = name.startswith(("append", "relay"))
        every = sorted([row for rows in files for row in rows.items()] if is_all else latest.items())
        table = lance_format.dataset(path)
        ours = table.to_table().sort_by([("a", "ascending"), ("s", "ascending")])
        assert ours["a"].to_pylist() == [key for key, _ in every], name
        assert ours["s"].to_pylist() == [text for _, text in every], name
        reference: Any = lance.dataset(path)
        reference.validate()
        assert reference.to_table().sort_by([("a", "ascending"), ("s", "ascending")]) == ours
        table.cleanup_old_versions(datetime.timedelta(0), delete_unverified=True)
        assert not leftovers(path)


def finish(directory: Path) -> None:
    process = start(directory)
    try:
        assert process.wait(900) == 0, errors(directory)
    finally:
        end(process)


def test_a_killed_driver_adds_each_batch_once(tmp_path: Path) -> None:
    """Killed once when a data file is begun, and once when a version is there of which the checkpoint does not know."""
    prepare(tmp_path, 2, "append", "complete", "update")
    for kind in ("data file", "version"):
        before = count(tmp_path, kind)
        assert not kill_when(tmp_path, lambda: count(tmp_path, kind) > before)  # noqa: B023
    finish(tmp_path)
    check(tmp_path, 2)


@pytest.mark.nightly
def test_a_driver_that_is_killed_fifty_times_adds_each_batch_once(tmp_path: Path) -> None:
    """Each driver runs two of four queries, one of which reads the table of another as a stream."""
    kills, modes = int(os.environ.get("LANCE_KILL_COUNT", "50")), ("append", "complete", "update", "relay")
    chosen, met = random.Random(int(os.environ.get("LANCE_KILL_SEED", "7"))), Counter[str]()
    prepare(tmp_path, 0, *modes)
    while met["kills"] < kills:
        arrive(tmp_path, min(last(tmp_path, name, "commits") for name in modes[:3]) + 13)
        kind, queries = chosen.choice(list(KINDS)), chosen.sample(modes, 2)
        before = count(tmp_path, kind)
        jitter = chosen.choice([0.0, chosen.random() * 0.05, chosen.random() * 0.3, chosen.random()])
        if kill_when(tmp_path, lambda: count(tmp_path, kind) > before, jitter, *queries):  # noqa: B023
            continue
        met["kills"] += 1
        for name in queries:
            planned, finished = last(tmp_path, name, "offsets"), last(tmp_path, name, "commits")
            met["within a batch"] += planned > finished
            met["between the table and the checkpoint"] += planned > finished and landed(tmp_path, name) == planned
        print(dict(met), flush=True)
    num_files = num_arrived(tmp_path)
    finish(tmp_path)
    finish(tmp_path)  # the table that the last query reads has grown
    check(tmp_path, num_files)
    assert met["within a batch"] >= kills // 2
    assert met["between the table and the checkpoint"]
