"""Streams of Lance tables against those of Parquet files.

    python benchmarks/streaming.py [source] [trigger] [--rows N] [--rounds R]

`source` reads the same rows, written by Spark, as a stream from both formats into a sink that drops them, in turn. The
medians of the rounds are printed as rows per second, with the ratio of Lance to Parquet: above 1 is faster. `trigger`
prints how long the source takes to find out that there is nothing new, in tables of 10 and of 5,000 versions.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import lance_format
import pyspark_lance

Part = Callable[[SparkSession, Path, argparse.Namespace], None]
_FILES = 8


def _session() -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.log.level", "ERROR")
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


def _drain(spark: SparkSession, directory: Path, name: str, number: int) -> tuple[float, int]:
    """Run a stream over all rows, and return the seconds of its batches and the number of rows."""
    path = str(directory / name)
    schema = spark.read.format(name).load(path).schema
    stream = spark.readStream.format(name).schema(schema).load(path)
    writer = stream.writeStream.format("noop").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(directory / f"{name}-checkpoint-{number}")).start()
    query.awaitTermination()
    progress = [dict(found) for found in query.recentProgress]
    rows = sum(found["numInputRows"] for found in progress)
    return sum(found["durationMs"]["triggerExecution"] for found in progress) / 1000, rows


def measure_source(spark: SparkSession, directory: Path, arguments: argparse.Namespace) -> None:
    """Print the rows per second that the sources of both formats deliver."""
    rows = spark.range(0, arguments.rows, 1, _FILES).selectExpr(*_columns())
    rows.write.parquet(str(directory / "parquet"))
    rows.write.format("lance").mode("append").save(str(directory / "lance"))
    spent: dict[str, list[float]] = {"lance": [], "parquet": []}
    for number in range(arguments.rounds + 1):
        for name, times in spent.items():
            seconds, found = _drain(spark, directory, name, number)
            if found != arguments.rows:
                raise AssertionError(f"{name} delivered {found} of {arguments.rows} rows")
            times.extend([seconds] if number else [])  # the first round starts workers
    speed = {name: arguments.rows / statistics.median(times) for name, times in spent.items()}
    ratio = speed["lance"] / speed["parquet"]
    print(f"source: Lance {speed['lance']:,.0f} rows/s, Parquet {speed['parquet']:,.0f} rows/s, ratio {ratio:.2f}")


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


PARTS: Mapping[str, Part] = {"source": measure_source, "trigger": measure_trigger}


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
