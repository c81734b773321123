"""Changes of single rows and compaction in Spark, against a rewrite as Parquet and against pylance in one process.

    python benchmarks/changes.py [speed | memory] [--rows N] [--rounds R] [--keep DIRECTORY]

`speed` merges, updates and deletes 1 % of the rows, at random places, and compacts 200 small fragments. Each change
begins with the same version, which is restored before. The medians of the rounds are printed in seconds, with the
ratios to a scan of the columns that MERGE joins and to the others. The counts of rows are compared before anything is
timed. pylance changes its own copy of the table; Parquet writes all rows again, as a join says.

`memory` updates and merges all rows on a local cluster, and prints by how much the processes of the driver grow. It
needs Linux.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import lance
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import lance_format
import pyspark_lance

_FRAGMENTS = 8
_SMALL_FRAGMENTS = 200
Run = Callable[[], object]


def _session(master: str, **settings: str) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).config("spark.log.level", "ERROR")
    given = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.unix.domain.socket.enabled": "true",
        **settings,
    }
    for name, value in given.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    pyspark_lance.register(spark)
    return spark


def _rows(spark: SparkSession, num_rows: int, partitions: int) -> DataFrame:
    return spark.range(0, num_rows, 1, partitions).selectExpr(
        "id",
        "(id * 1000003) % 997 AS few",
        "hash(id) / 100D AS price",
        "concat('name ', hash(id, 1)) AS name",
        "date_add(DATE'1992-01-01', CAST(id % 2500 AS INT)) AS day",
        "hash(id, 2) AS number",
    )


def _source(spark: SparkSession, num_rows: int) -> DataFrame:
    """Return rows for 1 % of a table, a tenth of them new, in random order."""
    old = f"(id * 1000003 * 89) % {num_rows}"
    ids = spark.range(num_rows // 100).selectExpr(f"IF(id % 10 = 0, {num_rows} + id, {old}) AS id")
    return ids.dropDuplicates(["id"]).selectExpr(
        "id", "id % 997 AS few", "1.5D AS price", "'merged' AS name", "DATE'2024-05-05' AS day", "0 AS number"
    )


class _Tables:
    """The same rows as Parquet, as a table of ours, and as a copy of it that pylance changes.

    Parameters
    ----------
    spark : SparkSession
    directory : Path
    num_rows : int
    """

    def __init__(self, spark: SparkSession, directory: Path, num_rows: int) -> None:
        self.parquet, self.source = str(directory / "parquet"), str(directory / "source")
        self.ours, self.theirs = str(directory / "ours.lance"), str(directory / "theirs.lance")
        self.small, self.their_small = str(directory / "small.lance"), str(directory / "their_small.lance")
        if not Path(self.their_small).exists():
            _rows(spark, num_rows, _FRAGMENTS).write.parquet(self.parquet)
            _source(spark, num_rows).write.parquet(self.source)
            spark.read.parquet(self.parquet).write.format("lance").save(self.ours)
            small = _rows(spark, num_rows // 10, _SMALL_FRAGMENTS)
            small.write.format("lance").save(self.small)
            shutil.copytree(self.ours, self.theirs)
            shutil.copytree(self.small, self.their_small)

    def restore(self) -> None:
        """Bring the first version of all tables back."""
        for path in (self.ours, self.theirs, self.small, self.their_small):
            dataset = lance_format.dataset(path, 1)
            if lance_format.dataset(path).version != 1:
                dataset.restore()


def _changes(spark: SparkSession, tables: _Tables, directory: Path) -> Mapping[str, Mapping[str, Run]]:
    target = f"lance.`{tables.ours}`"
    spark.read.parquet(tables.source).createOrReplaceTempView("source")
    spark.read.parquet(tables.parquet).createOrReplaceTempView("parquet_table")

    def sql(statement: str) -> Run:
        return lambda: spark.sql(statement).collect()

    def rewrite(query: str) -> Run:
        return lambda: spark.sql(query).write.mode("overwrite").parquet(str(directory / "rewritten"))

    def merge() -> object:
        rows = pq.read_table(tables.source, schema=None).combine_chunks()
        theirs = lance.dataset(tables.theirs)
        rows = rows.cast(theirs.schema)
        return theirs.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)

    merged = (
        f"MERGE INTO {target} t USING source s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    updated = "CASE WHEN number % 100 = 3 THEN 0D ELSE price END"
    columns = ", ".join(f"coalesce(s.{name}, t.{name}) AS {name}" for name in ("few", "price", "name", "day", "number"))
    return {
        "MERGE 1 %": {
            "ours": sql(merged),
            "parquet": rewrite(
                f"SELECT coalesce(s.id, t.id) AS id, {columns} FROM parquet_table t FULL OUTER JOIN source s"
                " ON t.id = s.id"
            ),
            "pylance": merge,
        },
        "UPDATE 1 %": {
            "ours": sql(f"UPDATE {target} SET price = 0 WHERE number % 100 = 3"),
            "parquet": rewrite(f"SELECT id, few, {updated} AS price, name, day, number FROM parquet_table"),
            "pylance": lambda: lance.dataset(tables.theirs).update({"price": "0.0"}, where="number % 100 = 3"),
        },
        "DELETE 1 %": {
            "ours": sql(f"DELETE FROM {target} WHERE number % 100 = 3"),
            "parquet": rewrite("SELECT * FROM parquet_table WHERE number % 100 <> 3"),
            "pylance": lambda: lance.dataset(tables.theirs).delete("number % 100 = 3"),
        },
        f"compact {_SMALL_FRAGMENTS} fragments": {
            "ours": sql(f"CALL lance.system.optimize(table => 'lance.`{tables.small}`')"),
            "pylance": lambda: lance.dataset(tables.their_small).optimize.compact_files(),
        },
    }


def _seconds(run: Run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _median(run: Run, before: Run, rounds: int) -> float:
    spent = []
    for _ in range(rounds + 1):
        before()
        spent.append(_seconds(run))
    return statistics.median(spent[1:])


def _check(spark: SparkSession, tables: _Tables, changes: Mapping[str, Mapping[str, Run]], directory: Path) -> None:
    """Compare what each change leaves, by counts and sums."""
    summary = "count(*)", "sum(id)", "sum(few)", "round(sum(price))", "max(name)", "sum(number)"
    for name, runs in changes.items():
        if "parquet" not in runs:
            continue
        tables.restore()
        for run in runs.values():
            run()
        frames = {
            "ours": spark.read.format("lance").load(tables.ours),
            "parquet": spark.read.parquet(str(directory / "rewritten")),
            "pylance": spark.read.format("lance").load(tables.theirs),
        }
        found = {contestant: frame.selectExpr(*summary).first() for contestant, frame in frames.items()}
        if len(set(found.values())) != 1:
            raise AssertionError(f"{name} leaves other rows: {found}")


def _run_speed(directory: Path, num_rows: int, rounds: int) -> None:
    spark = _session("local[2]", **{"spark.driver.memory": "4g"})
    tables = _Tables(spark, directory, num_rows)
    changes = _changes(spark, tables, directory)
    _check(spark, tables, changes, directory)
    tables.restore()
    joined = spark.read.format("lance").load(tables.ours)
    scan = _median(lambda: joined.write.format("noop").mode("overwrite").save(), lambda: None, rounds)
    print(f"{num_rows:,} rows of 6 columns in {_FRAGMENTS} fragments; a scan of all columns takes {scan:.3f} s")
    print(f"{'':24}{'ours s':>9}{'parquet s':>11}{'pylance s':>11}{'/ scan':>9}{'/ parquet':>11}{'/ pylance':>11}")
    for name, runs in changes.items():
        times = {who: _median(run, tables.restore, rounds) for who, run in runs.items()}
        ours, parquet, pylance = times["ours"], times.get("parquet", float("nan")), times["pylance"]
        ratios = f"{ours / scan:9.2f}{ours / parquet:11.2f}{ours / pylance:11.2f}"
        print(f"{name:24}{ours:9.3f}{parquet:11.3f}{pylance:11.3f}{ratios}", flush=True)
    spark.stop()


@contextmanager
def _peak(virtual_machine: int) -> Iterator[dict[str, int]]:
    """Measure by how many bytes the memory of the driver's processes grows at most."""
    idle = _driver_memory(virtual_machine)
    grown, stopped = dict.fromkeys(idle, 0), threading.Event()

    def watch() -> None:
        while not stopped.wait(0.05):
            for name, size in _driver_memory(virtual_machine).items():
                grown[name] = max(grown[name], size - idle[name])

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield grown
    finally:
        stopped.set()
        watcher.join()


def _driver_memory(virtual_machine: int) -> dict[str, int]:
    """Return the memory of the driver's Python, its JVM, and the Python workers that plan and commit.

    Executors of a local cluster are JVMs below that of the driver. They and their workers are left out.
    """
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            children.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
    workers, found = list(children.get(virtual_machine, ())), 0
    while workers:
        pid = workers.pop()
        with suppress(OSError):
            if "java" not in Path(f"/proc/{pid}/comm").read_text():
                found += _memory(pid)
                workers += children.get(pid, ())
    return {"Python": _memory(os.getpid()), "JVM": _memory(virtual_machine), "workers of the driver": found}


def _memory(pid: int) -> int:
    """Return the proportional set size of a process in bytes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


def _run_memory(directory: Path, num_rows: int) -> None:
    paths = os.pathsep.join(path for path in sys.path if path)
    settings = {"spark.driver.memory": "1g", "spark.executorEnv.PYTHONPATH": paths}
    spark = _session("local-cluster[2,1,2048]", **settings)
    path = str(directory / "memory.lance")
    shutil.rmtree(path, ignore_errors=True)
    _rows(spark, num_rows, _FRAGMENTS).write.format("lance").save(path)
    target = f"lance.`{path}`"
    spark.sql(f"UPDATE {target} SET price = 1 WHERE id % 100 = 0").collect()
    virtual_machine: Any = spark.sparkContext._jvm
    pid = virtual_machine.java.lang.ProcessHandle.current().pid()
    source = f"(SELECT id, 2.5D AS price FROM range(0, {num_rows}, 1, {_FRAGMENTS}))"
    statements = {
        "UPDATE": f"UPDATE {target} SET price = price + number",
        "MERGE": f"MERGE INTO {target} t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET price = s.price",
    }
    for name, statement in statements.items():
        with _peak(pid) as grown:
            start = time.perf_counter()
            spark.sql(statement).collect()
            seconds = time.perf_counter() - start
        print(f"{name} of {num_rows:,} rows in {seconds:.1f} s; the driver grows by", end=" ")
        print(", ".join(f"{size / 2**20:.0f} MiB ({who})" for who, size in grown.items()), flush=True)
    spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=["speed", "memory"], help="what to run; both by default")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="where the tables are kept from one run to the next")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = arguments.keep or Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        if arguments.part != "memory":
            _run_speed(directory, arguments.rows, arguments.rounds)
        if arguments.part != "speed":
            _run_memory(directory, arguments.rows)


if __name__ == "__main__":
    main()
