"""Drivers that are killed while they read a table as a stream: each row comes once, whatever other writers do."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lance_format
from connector.stream.source import LIMITS_BATCHES
from lance_format import LanceError
from tests.processes import context
from tests.spark.programs import FORKED_PREPARED

pytestmark = pytest.mark.system

_PROGRAM = """
import sys
from pyspark.sql import SparkSession
import pyspark_lance
from connector.stream.source import LIMITS_BATCHES

path, out, checkpoint, trigger = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
builder = builder.config("spark.sql.streaming.minBatchesToRetain", "100000")
# Else Spark 4.3 starts no query whose driver was killed while it wrote the offsets of its first batch.
builder = builder.config("spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart", "false")
spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
pyspark_lance.register(spark)
reader = spark.readStream.format("lance").option("ignoreDeletes", "true")
stream = (reader.option("maxFilesPerTrigger", "5") if LIMITS_BATCHES else reader).load(path)
print("started", flush=True)
writer = stream.writeStream.format("parquet").option("checkpointLocation", checkpoint)
writer = writer.trigger(availableNow=True) if trigger == "once" else writer.trigger(processingTime="0 seconds")
writer.start(out).awaitTermination()
print("done", flush=True)
"""
_ROWS = 40
"""Number of rows of an append."""
_MOST_VERSIONS = 60
"""Number of versions that the stream has not read from which on writers wait."""


class Place:
    """The directories of a table, of a stream that reads it, and of what other writers do."""

    def __init__(self, directory: Path) -> None:
        self.table, self.out = str(directory / "t"), directory / "out"
        self.checkpoint, self.program = directory / "checkpoint", directory / "stream_program.py"
        self.end, self.failures = directory / "end", directory / "failures"

    def read_until(self) -> int | None:
        """Return the version that the next batch begins with; None before the first batch is finished."""
        finished = [int(path.name) for path in (self.checkpoint / "commits").glob("[0-9]*") if path.name.isdigit()]
        if not finished:
            return None
        return int(json.loads((self.checkpoint / f"offsets/{max(finished)}").read_text().splitlines()[2])["version"])

    def is_far_behind(self) -> bool:
        """Return whether the stream has so much to read that writers wait."""
        return lance_format.dataset(self.table).version - (self.read_until() or 1) > _MOST_VERSIONS

    def count(self, kind: str) -> int:
        """Return the number of batches that were planned (`offsets`), written or finished (`commits`)."""
        place = self.out / "_spark_metadata" if kind == "written" else self.checkpoint / kind
        return len({path.name.split(".")[0] for path in place.glob("[0-9]*")})


def rows(writer: int, number: int) -> pa.Table:
    """Return the rows of an append. No two of them have the same id."""
    ids = range((2 * number + writer) * _ROWS, (2 * number + writer + 1) * _ROWS)
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [f"row {number}" for number in ids]})


def append(place: Place, writer: int, number: int) -> None:
    """Append by this library or by pylance, and note it."""
    if writer:
        lance.write_dataset(rows(writer, number), place.table, mode="append", max_rows_per_file=25)
    else:
        lance_format.write_dataset(rows(writer, number), place.table, mode="append", max_rows_per_file=25)
    Path(f"{place.table}.{writer}").write_text(str(number + 1))


def delete(place: Place, chance: random.Random) -> None:
    """Delete some rows, as soon as a stream has begun: it reads all rows that were there then."""
    if place.read_until() is not None:
        lance_format.dataset(place.table).delete(f"id % 100 = {chance.randrange(100)}")


def compact(place: Place) -> None:
    lance_format.dataset(place.table).optimize.compact_files(target_rows_per_fragment=1000)


def clean_up(place: Place) -> None:
    """Remove all versions that the stream has read, and that it does not compare others with."""
    version = place.read_until()
    if version is not None and version > 2:
        lance_format.dataset(place.table, version=version - 1).cleanup_old_versions(timedelta(0))


def work(place: Place, kind: str, seconds: float, begun: int = 0) -> None:
    """Do one thing again and again until the end; conflicts with others are tried again."""
    chance, number = random.Random(kind), begun
    works: dict[str, Callable[[], object]] = {
        "append": lambda: append(place, 0, number),
        "append by pylance": lambda: append(place, 1, number),
        "delete": lambda: delete(place, chance),
        "compact": lambda: compact(place),
        "clean up": lambda: clean_up(place),
    }
    while not place.end.exists():
        try:
            if kind == "clean up" or not place.is_far_behind():
                works[kind]()
                number += 1
        except LanceError as error:
            with place.failures.open("a") as log:
                log.write(f"{kind}: {type(error).__name__}: {error}\n")
        time.sleep(chance.random() * 2 * seconds)


@contextmanager
def writers(place: Place) -> Iterator[None]:
    """Let other processes change the table all the time."""
    paces = {"append": 1.0, "append by pylance": 1.0, "delete": 1.5, "compact": 3.0, "clean up": 2.0}
    begun = {"append": 1}
    processes = [
        context.Process(target=work, args=(place, kind, seconds, begun.get(kind, 0))) for kind, seconds in paces.items()
    ]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        place.end.touch()
        for process in processes:
            process.join(120)
    assert [process.exitcode for process in processes] == [0] * len(processes)


def run(place: Place, trigger: str = "once", kill_at: str | None = None, jitter: float = 0) -> bool:
    """Run the program, and kill it after a batch was planned, written or finished; return whether it ended before."""
    before = 0 if kill_at is None else place.count(kill_at)
    place.program.write_text(_PROGRAM)
    arguments = [place.table, str(place.out), str(place.checkpoint), trigger]
    environment = {**os.environ, "PYTHONPATH": FORKED_PREPARED, "PYSPARK_PYTHON": sys.executable}
    environment |= {"PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with subprocess.Popen(
        [sys.executable, str(place.program), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=place.program.parent,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        if kill_at is not None:
            while process.poll() is None and place.count(kill_at) <= before:
                time.sleep(0.01)
            time.sleep(jitter)  # the point in time is what varies
            os.killpg(process.pid, signal.SIGKILL)  # the JVM too
        return process.stdout.readline() == "done\n"


def read_rows(out: Path) -> pa.Table:
    """Return the rows of the files that Spark's sink has committed; those of killed batches lie beside them."""
    lines = [line for log in (out / "_spark_metadata").glob("[0-9]*") for line in log.read_text().splitlines()[1:]]
    names = {Path(json.loads(line)["path"]).name for line in lines}
    return pa.concat_tables([pq.read_table(out / name) for name in sorted(names)]).sort_by("id")


def check(directory: Path, seed: int, kills: int) -> dict[str, int]:
    """Kill and restart a stream while others write, and return how often, and how often within a batch."""
    chance, place = random.Random(seed), Place(directory)
    append(place, 0, 0)
    found = {"kills": 0, "within a batch": 0, "ended before": 0}
    with writers(place):
        for number in range(kills):
            # Some runs fix where they end; others read what is written while they run.
            kind = chance.choice(["offsets", "written", "commits"])
            jitter = chance.choice([0.0, chance.random() * 0.05, chance.random() * 0.3, chance.random()])
            if run(place, "once" if number % 4 == 3 else "always", kind, jitter):
                found["ended before"] += 1
                continue
            found["kills"] += 1
            found["within a batch"] += place.count("offsets") > place.count("commits")
            print(found, place.count("commits"), flush=True)
    found["versions"] = lance_format.dataset(place.table).version
    found["versions that are left"] = len(lance_format.dataset(place.table).versions())
    found["batches"] = place.count("offsets")
    found["conflicts"] = len(place.failures.read_text().splitlines()) if place.failures.exists() else 0
    assert run(place)
    if not LIMITS_BATCHES:
        assert run(place)  # The run before ended with the batch that was under way.
    appended: list[Any] = [
        rows(writer, number) for writer in (0, 1) for number in range(int(Path(f"{place.table}.{writer}").read_text()))
    ]
    # Each row that was ever appended, even if it was deleted since: it is read at the version that appended it.
    assert read_rows(place.out).equals(pa.concat_tables(appended).combine_chunks().sort_by("id"))
    return found


def test_a_killed_stream_goes_on(tmp_path: Path) -> None:
    check(tmp_path, seed=1, kills=2)


@pytest.mark.nightly
def test_a_stream_that_is_killed_again_and_again_goes_on(tmp_path: Path) -> None:
    kills = int(os.environ.get("LANCE_KILL_COUNT", "50"))
    found = check(tmp_path, seed=2, kills=kills)
    print(found)
    assert found["within a batch"] >= kills // 4
    assert found["versions that are left"] < found["versions"]
