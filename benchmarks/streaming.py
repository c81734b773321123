"""Streams of Lance tables against those of Parquet files.

    python benchmarks/streaming.py [source] [sink] [trigger] [--rows N] [--rounds R]

`source` reads the same rows, written by Spark, as a stream from both formats into a sink that drops them, in turn.
`sink` reads them from Parquet files, as a stream in four batches, into both formats, and then adds batches of one row.
The medians of the rounds are printed as rows per second, with the ratio of Lance to Parquet: above 1 is faster.
`trigger` prints how long the source takes to find out that there is nothing new, in tables of 10 and 5,000 versions.

Under `CPU` the same is computed from the CPU time of this process and all those that it started, which other processes
on the machine disturb less.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import lance_format
import pyspark_lance

Part = Callable[[SparkSession, Path, argparse.Namespace], None]
_FILES = 8
_SMALL_BATCHES = 6


def _session() -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.log.level", "ERROR")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .getOrCreate()
    )
    pyspark_lance.register(spark)
    return spark


def _columns() -> list[str]:
    return [
        "id",
        "CAST(id % 1000 AS INT) AS few",
        *(f"CAST(hash(id, {number}) AS BIGINT) AS long{number}" for number in range(3)),
        *(f"rand({number}) AS double{number}" for number in range(3)),
        *(f"concat('name ', CAST(abs(hash(id, {number})) AS STRING)) AS text{number}" for number in range(2)),
    ]


@dataclass(frozen=True, slots=True)
class Spent:
    """What a query took.

    Parameters
    ----------
    seconds : float
        Of its batches.
    cpu_seconds : float
    rows : int
    batches : list of float
        The seconds of each batch.
    """

    seconds: float
    cpu_seconds: float
    rows: int
    batches: list[float]


def _cpu_seconds() -> float:
    """Return the CPU time of this process, the JVM and the Python workers, ended ones included."""
    found: dict[int, tuple[int, float]] = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                found[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    ours, size = {os.getpid()}, 0
    while len(ours) > size:
        size = len(ours)
        ours |= {pid for pid, (parent, _) in found.items() if parent in ours}
    return sum(found[pid][1] for pid in ours)


def _run(writer: DataStreamWriter, checkpoint: Path, target: Path | None = None) -> Spent:
    """Run a query over all that there is."""
    before = _cpu_seconds()
    started = writer.trigger(availableNow=True).option("checkpointLocation", str(checkpoint))
    query = started.start() if target is None else started.start(str(target))
    query.awaitTermination()
    progress = [dict(found) for found in query.recentProgress]
    batches = [found["durationMs"]["triggerExecution"] / 1000 for found in progress if found["numInputRows"]]
    rows = sum(found["numInputRows"] for found in progress)
    return Spent(sum(batches), _cpu_seconds() - before, rows, batches)


def _prepare(spark: SparkSession, directory: Path, arguments: argparse.Namespace) -> None:
    if not (directory / "lance").exists():
        rows = spark.range(0, arguments.rows, 1, _FILES).selectExpr(*_columns())
        rows.write.parquet(str(directory / "parquet"))
        rows.write.format("lance").mode("append").save(str(directory / "lance"))


def _report(part: str, spent: Mapping[str, list[Spent]], rows: int) -> None:
    """Print medians, without the first round, which starts workers."""
    for what, seconds in (("time", lambda x: x.seconds), ("CPU ", lambda x: x.cpu_seconds)):
        speed = {name: rows / statistics.median(map(seconds, found[1:])) for name, found in spent.items()}
        print(
            f"{part}, {what}: Lance {speed['lance']:,.0f} rows/s, Parquet {speed['parquet']:,.0f} rows/s,"
            f" ratio {speed['lance'] / speed['parquet']:.2f}",
            flush=True,
        )


def measure_source(spark: SparkSession, directory: Path, arguments: argparse.Namespace) -> None:
    """Print the rows per second that the sources of both formats deliver."""
    _prepare(spark, directory, arguments)
    spent: dict[str, list[Spent]] = {"lance": [], "parquet": []}
    for number in range(arguments.rounds + 1):
        for name, found in spent.items():
            path = str(directory / name)
            stream = spark.readStream.format(name).schema(spark.read.format(name).load(path).schema).load(path)
            found.append(_run(stream.writeStream.format("noop"), directory / f"source-{name}-{number}"))
            if found[-1].rows != arguments.rows:
                raise AssertionError(f"{name} delivered {found[-1].rows} of {arguments.rows} rows")
    _report("source", spent, arguments.rows)


def measure_sink(spark: SparkSession, directory: Path, arguments: argparse.Namespace) -> None:
    """Print the rows per second that the sinks of both formats take, and the time of a small batch."""
    _prepare(spark, directory, arguments)
    source = str(directory / "parquet")
    rows = spark.readStream.schema(spark.read.parquet(source).schema).option("maxFilesPerTrigger", _FILES // 4)
    small = directory / "small"
    for number in range(_SMALL_BATCHES):
        spark.range(number, number + 1).write.mode("append").parquet(str(small))
    one = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(small)).where("id IS NOT NULL")
    spent: dict[str, list[Spent]] = {"lance": [], "parquet": []}
    latency: dict[str, list[float]] = {"lance": [], "parquet": []}
    for number in range(arguments.rounds + 1):
        for name, found in spent.items():
            target = directory / f"sink-{name}-{number}"
            found.append(_run(rows.parquet(source).writeStream.format(name), Path(f"{target}-checkpoint"), target))
            target = directory / f"small-{name}-{number}"
            batches = _run(one.writeStream.format(name), Path(f"{target}-checkpoint"), target).batches
            latency[name] += batches if number else []
    _report("sink", spent, arguments.rows)
    medians = {name: statistics.median(found) * 1000 for name, found in latency.items()}
    print(f"small batch: Lance {medians['lance']:.0f} ms, Parquet {medians['parquet']:.0f} ms")


def measure_trigger(spark: SparkSession, directory: Path, arguments: argparse.Namespace) -> None:
    """Print the time of an empty trigger in tables of few and of many versions."""
    from connector.source.data_source import LanceDataSource

    del spark, arguments
    for versions in (10, 5000):
        path = str(directory / f"versions-{versions}")
        table = lance_format.write_dataset({"id": [1]}, path)
        for number in range(versions - 1):
            table.update_config({"number": str(number)})
        source = LanceDataSource({"path": path})
        reader: Any = source.streamReader(source.schema())
        limit = [reader.getDefaultReadLimit()] if hasattr(reader, "prepareForTriggerAvailableNow") else []
        end = reader.latestOffset(*([reader.initialOffset()] if limit else []), *limit)
        times = []
        for _ in range(50):
            start = time.perf_counter()
            reader.latestOffset(*([end] if limit else []), *limit)
            times.append(time.perf_counter() - start)
        print(f"empty trigger with {versions:5,} versions: {statistics.median(times) * 1000:.2f} ms")


PARTS: Mapping[str, Part] = {"source": measure_source, "sink": measure_sink, "trigger": measure_trigger}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    spark = _session()
    with tempfile.TemporaryDirectory() as directory:
        for name in arguments.parts or PARTS:
            PARTS[name](spark, Path(directory), arguments)


if __name__ == "__main__":
    main()
