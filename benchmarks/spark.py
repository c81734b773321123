"""Lance tables in Spark against Parquet, and against the plainest Python data source around pylance.

    python benchmarks/spark.py [queries | groups | clicks | tpch] [--rows N] [--scale-factor F] [--shuffled]
        [--rounds R] [--keep DIRECTORY] [--sockets unix | tcp]

All three hold the same rows, written by Spark, and are read in one session, in turn, for R rounds and eight seconds at
least. Medians are printed in seconds, with the ratios of ours to the others: below 1 is faster. Before that, every
result is compared with that of Parquet. The groups are the questions of the db-benchmark
(https://duckdblabs.github.io/db-benchmark) about its table G1, with Spark's functions, and a few more. The clicks are
the queries of `clicks.sql` about a generated table of page views. TPC-H wants `tpchgen-cli` to be installed;
`--shuffled` stores its rows in random order. Only the queries are also asked of the source around pylance.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.functions import rand

import connector

_TPCH_TABLES = ("lineitem", "orders", "customer", "part", "partsupp", "supplier", "nation", "region")
_VECTOR_SIZE = 768
_LEAST_SECONDS = 8
"""Short queries are asked more often than there are rounds: their times vary the most."""
Make = Callable[[str], DataFrame]


class WrappedPylance(DataSource):
    """The plainest data source around pylance: a partition a fragment, all columns, no filters."""

    @classmethod
    def name(cls) -> str:
        return "pylance"

    def schema(self) -> object:
        import lance
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(lance.dataset(self.options["path"]).schema)

    def reader(self, schema: object) -> DataSourceReader:
        return WrappedPylanceReader(schema, self.options["path"])


class WrappedPylanceReader(DataSourceReader):
    def __init__(self, schema: object, path: str) -> None:
        self._schema, self._path = schema, path

    def partitions(self) -> list[InputPartition]:
        import lance

        return [InputPartition(fragment.fragment_id) for fragment in lance.dataset(self._path).get_fragments()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import lance
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(self._schema, timezone="UTC")
        for batch in lance.dataset(self._path).get_fragment(partition.value).to_batches(batch_size=65_536):
            yield pa.RecordBatch.from_arrays(
                [array.cast(field.type) for array, field in zip(batch.columns, schema, strict=True)], schema=schema
            )


def _session(sockets: str) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "6g")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.python.unix.domain.socket.enabled", str(sockets == "unix").lower())
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    connector.register(spark)
    spark.dataSource.register(WrappedPylance)
    return spark


def _save(frame: DataFrame, directory: Path, name: str) -> None:
    """Store a frame as Parquet and as Lance, which pylance reads too."""
    if (directory / name).exists():
        return
    frame.write.parquet(str(directory / name / "parquet"))
    frame.write.format("lance").mode("append").save(str(directory / name / "lance"))


def _load(spark: SparkSession, directory: Path, name: str, contestant: str) -> DataFrame:
    stored = "parquet" if contestant == "parquet" else "lance"
    return spark.read.format(contestant).load(str(directory / name / stored))


def _numbers(spark: SparkSession, num_rows: int) -> DataFrame:
    """20 columns: `id` in order, `key` the same numbers shuffled, and 18 of several kinds."""
    prime = 1_000_003
    shuffled = f"(id * {prime}) % {num_rows}"
    columns = ["id", f"{shuffled} as key", f"cast({shuffled} % 1000 as int) as few"]
    columns += [f"cast(hash(id, {i}) as bigint) as long{i}" for i in range(6)]
    columns += [f"rand({i}) as double{i}" for i in range(5)]
    columns += [f"concat('name ', cast(abs(hash(id, {i})) as string)) as text{i}" for i in range(4)]
    columns += [
        "date_add(date '1992-01-01', cast(id % 2500 as int)) as day",
        "cast(id % 1000 as decimal(12, 2)) as price",
    ]
    return spark.range(0, num_rows, 1, 4).selectExpr(*columns)


def _vectors(spark: SparkSession, num_rows: int) -> DataFrame:
    vector = f"transform(sequence(1, {_VECTOR_SIZE}), i -> cast(hash(id, i) as float) / 2147483648f) as vector"
    return spark.range(0, num_rows, 1, 4).selectExpr("id", vector)


def _texts(spark: SparkSession, num_rows: int) -> DataFrame:
    text = "concat_ws(' ', transform(sequence(1, 40), i -> cast(abs(hash(id, i)) as string))) as text"
    return spark.range(0, num_rows, 1, 4).selectExpr("id", text)


def _queries(spark: SparkSession, directory: Path, num_rows: int) -> Mapping[str, Make]:
    def frame(name: str) -> Callable[[str], DataFrame]:
        return lambda contestant: _load(spark, directory, name, contestant)

    numbers, vectors, texts = frame("numbers"), frame("vectors"), frame("texts")
    few = ", ".join(str(number * 997 % num_rows) for number in range(1000))
    middle = num_rows // 2
    return {
        "full scan, 20 columns": numbers,
        "1 of 20 columns": lambda c: numbers(c).select("double3"),
        "count(*)": lambda c: numbers(c).selectExpr("count(*)"),
        "0.1 % by a clustered key": lambda c: numbers(c).where(f"id between {middle} and {middle + num_rows // 1000}"),
        "0.1 % by a random key": lambda c: numbers(c).where("few = 7"),
        "lookup of 1 key": lambda c: numbers(c).where(f"id = {middle}"),
        "lookup of 1 random key": lambda c: numbers(c).where(f"key = {middle}"),
        "lookup of 1,000 keys": lambda c: numbers(c).where(f"id in ({few})"),
        "ten rows": lambda c: numbers(c).limit(10),
        "sum by group": lambda c: numbers(c).groupBy("few").agg({"long0": "sum", "double0": "max"}),
        "vectors, scan": vectors,
        "vectors, lookup of 1": lambda c: vectors(c).where("id = 4321"),
        "vectors, lookup of 1,000": lambda c: vectors(c).where(f"id % {max(num_rows // 50 // 1000, 1)} = 0"),
        "wide strings, scan": texts,
    }


def _groups(spark: SparkSession, num_rows: int) -> DataFrame:
    """The table G1 of the db-benchmark: keys of 100 values, and of a hundredth of the rows; and a price and a day."""
    few, many = 100, max(num_rows // 100, 1)
    columns = [f"concat('id', lpad(1 + abs(hash(id, {i})) % {few}, 3, '0')) as id{i}" for i in (1, 2)]
    columns += [f"concat('id', lpad(1 + abs(hash(id, 3)) % {many}, 10, '0')) as id3"]
    columns += [f"1 + abs(hash(id, {i})) % {few} as id{i}" for i in (4, 5)]
    columns += [f"1 + abs(hash(id, 6)) % {many} as id6", "1 + abs(hash(id, 7)) % 5 as v1"]
    columns += ["1 + abs(hash(id, 8)) % 15 as v2", "round(rand(9) * 100, 6) as v3"]
    columns += ["cast(abs(hash(id, 10)) % 10000000 / 100 as decimal(15, 2)) as price"]
    columns += ["date_add(date '2020-01-01', abs(hash(id, 11)) % 2000) as day"]
    return spark.range(0, num_rows, 1, 4).selectExpr(*columns)


_GROUP_QUERIES = {
    "q1": "SELECT id1, sum(v1) FROM t GROUP BY id1",
    "q2": "SELECT id1, id2, sum(v1) FROM t GROUP BY id1, id2",
    "q3": "SELECT id3, sum(v1), avg(v3) FROM t GROUP BY id3",
    "q4": "SELECT id4, avg(v1), avg(v2), avg(v3) FROM t GROUP BY id4",
    "q5": "SELECT id6, sum(v1), sum(v2), sum(v3) FROM t GROUP BY id6",
    "q6": "SELECT id4, id5, percentile(v3, 0.5), stddev(v3) FROM t GROUP BY id4, id5",
    "q7": "SELECT id3, max(v1) - min(v2) FROM t GROUP BY id3",
    "q8": "SELECT id6, v3 FROM (SELECT id6, v3, row_number() OVER (PARTITION BY id6 ORDER BY v3 DESC) n FROM t) "
    "WHERE n <= 2",
    "q9": "SELECT id2, id4, power(corr(v1, v2), 2) FROM t GROUP BY id2, id4",
    "q10": "SELECT id1, id2, id3, id4, id5, id6, sum(v3), count(*) FROM t GROUP BY id1, id2, id3, id4, id5, id6",
    "no groups": "SELECT sum(v1), avg(v3), max(id1), count(*) FROM t",
    "expressions": "SELECT id4, sum(price * (1 - 0.05)), count(*) FROM t WHERE day >= date '2021-01-01' GROUP BY id4",
    "years": "SELECT year(day), v1, sum(price), avg(price) FROM t GROUP BY year(day), v1",
    "conditions": "SELECT id1, sum(CASE WHEN v1 > 3 THEN price ELSE 0 END) FROM t WHERE id2 LIKE 'id01%' GROUP BY id1",
    "distinct": "SELECT count(*) FROM (SELECT DISTINCT id3 FROM t)",
}


def _clicks(spark: SparkSession, num_rows: int) -> DataFrame:
    """Page views in order of their time: most users and pages have few, most views no phrase and no campaign."""

    def skewed(seed: int, most: int) -> str:
        """Return numbers below `most`, the small ones often."""
        return f"cast(pow(pmod(hash(id, {seed}), 1000003) / 1000003.0, 3) * {most} as bigint)"

    pages, users = skewed(1, max(num_rows // 5, 1)), skewed(2, max(num_rows // 6, 1))
    started = "timestamp '2013-07-01 00:00:00'"
    columns = [
        "xxhash64(id) as id",
        f"timestampadd(SECOND, cast(id * 2600000 / {num_rows} as int), {started}) as time",
        f"date_add(date '2013-07-01', cast(id * 30 / {num_rows} as int)) as day",
        f"435090932899640 + 1000003 * {users} as user",
        f"cast({skewed(3, 6000)} as int) as site",
        f"cast({skewed(4, 5000)} as int) as region",
        "cast(pmod(hash(id, 5), 90) as smallint) as system",
        "cast(if(pmod(hash(id, 6), 20) = 0, pmod(hash(id, 7), 60), 0) as smallint) as campaign",
        "cast(pmod(hash(id, 8), 100) as smallint) as engine",
        "cast(800 + 16 * pmod(hash(id, 9), 80) as smallint) as width",
        "cast(600 + 8 * pmod(hash(id, 10), 80) as smallint) as height",
        "cast(if(pmod(hash(id, 11), 7) = 0, 1, 0) as smallint) as refresh",
        "cast(hash(id, 12) as int) as address",
        f"if(pmod(hash(id, 13), 8) = 0, concat('how to mend ', {skewed(14, max(num_rows // 20, 1))}), '') as phrase",
        "if(pmod(hash(id, 15), 15) = 0, concat('phone ', pmod(hash(id, 16), 160)), '') as model",
        f"concat('https://www.example.org/', if(pmod(hash(id, 17), 9) = 0, 'shop', 'news'), '/page/', {pages}) as url",
        f"concat('A page about ', {pages}, ' and what else there is to say') as title",
    ]
    return spark.range(0, num_rows, 1, 4).selectExpr(*columns)


def _noop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _time(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _medians(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    for run in runs.values():
        run()
    spent: dict[str, list[float]] = {name: [] for name in runs}
    start = time.perf_counter()
    while min(map(len, spent.values())) < rounds or time.perf_counter() - start < _LEAST_SECONDS:
        for name, run in runs.items():
            spent[name].append(_time(run))
    return {name: statistics.median(times) for name, times in spent.items()}


def _print_header() -> None:
    print(f"{'':28}{'lance s':>9}{'parquet s':>11}{'pylance s':>11}{'/ parquet':>11}{'/ pylance':>11}")


def _print_line(name: str, times: Mapping[str, float]) -> None:
    ours, parquet, pylance = times["lance"], times["parquet"], times.get("pylance", math.nan)
    print(f"{name:28}{ours:9.3f}{parquet:11.3f}{pylance:11.3f}{ours / parquet:11.2f}{ours / pylance:11.2f}", flush=True)


def _check(name: str, frames: Mapping[str, DataFrame]) -> None:
    """Compare results as multisets; floating-point sums may differ in the last digits."""
    rows = {contestant: sorted(map(_parted, frame.collect()), key=repr) for contestant, frame in frames.items()}
    for contestant, found in rows.items():
        pairs = zip(found, rows["parquet"], strict=True)
        if not all(ours[0] == theirs[0] and _are_close(ours[1], theirs[1]) for ours, theirs in pairs):
            raise AssertionError(f"{name}: {contestant} gives other rows than parquet")


def _parted(row: tuple[object, ...]) -> tuple[list[object], list[float]]:
    """Return the values that have to be equal, then the others."""
    return [value for value in row if not isinstance(value, float)], [
        value for value in row if isinstance(value, float)
    ]


def _are_close(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    pairs = zip(ours, theirs, strict=True)
    return all(math.isclose(a, b, rel_tol=1e-9) or (math.isnan(a) and math.isnan(b)) for a, b in pairs)


def _run_queries(spark: SparkSession, directory: Path, num_rows: int, rounds: int) -> None:
    _save(_numbers(spark, num_rows), directory, "numbers")
    _save(_vectors(spark, num_rows // 50), directory, "vectors")
    _save(_texts(spark, num_rows // 10), directory, "texts")
    print(f"\n{num_rows:,} rows, {num_rows // 50:,} vectors of {_VECTOR_SIZE} floats, {num_rows // 10:,} wide strings")
    _print_header()
    for name, make in _queries(spark, directory, num_rows).items():
        if "scan" not in name and "columns" not in name and name != "ten rows":
            _check(name, {contestant: make(contestant) for contestant in ("lance", "parquet", "pylance")})
        runs = {c: lambda c=c, make=make: _noop(make(c)) for c in ("lance", "parquet", "pylance")}
        _print_line(name, _medians(runs, rounds))
    source = _load(spark, directory, "numbers", "parquet")
    with tempfile.TemporaryDirectory() as scratch:
        runs = {
            c: lambda c=c: source.write.format(c).mode("overwrite").save(f"{scratch}/{c}") for c in ("lance", "parquet")
        }
        _print_line("write", _medians(runs, rounds))


def _texts_of(name: str) -> dict[str, str]:
    """Return the queries of a file that has a comment with the name of each before it."""
    found = {}
    for part in Path(__file__).with_name(name).read_text().split("\n-- q")[1:]:
        number, text = part.split("\n", 1)
        found[f"q{number}"] = text.strip().removesuffix(";")
    return found


def _compare(
    make: Callable[[str, str], DataFrame],
    texts: Mapping[str, str],
    rounds: int,
    unchecked: frozenset[str] = frozenset(),
) -> None:
    """Print the time of each query of both formats, their sums, and the geometric mean of the ratios."""
    _print_header()
    lines = []
    for name, text in texts.items():
        if name not in unchecked:
            _check(name, {contestant: make(contestant, text) for contestant in ("lance", "parquet")})
        runs = {c: lambda c=c, text=text: _noop(make(c, text)) for c in ("lance", "parquet")}
        lines.append(_medians(runs, rounds))
        _print_line(name, lines[-1])
    _print_line("total", {contestant: sum(line[contestant] for line in lines) for contestant in lines[0]})
    ratio = statistics.geometric_mean(line["lance"] / line["parquet"] for line in lines)
    print(f"geometric mean of ratios: {ratio:.2f} of Parquet's time")


def _asking(spark: SparkSession, directory: Path, tables: Mapping[str, str]) -> Callable[[str, str], DataFrame]:
    """Return a function that makes the query of a text, of the tables of a contestant, which are loaded once."""
    frames = {
        (contestant, view): _load(spark, directory, name, contestant)
        for contestant in ("lance", "parquet")
        for view, name in tables.items()
    }

    def make(contestant: str, text: str) -> DataFrame:
        for view in tables:
            frames[contestant, view].createOrReplaceTempView(view)
        return spark.sql(text)

    return make


def _run_groups(spark: SparkSession, directory: Path, num_rows: int, rounds: int) -> None:
    _save(_groups(spark, num_rows), directory, "groups")
    make = _asking(spark, directory, {"t": "groups"})
    print(f"\ngroups of {num_rows:,} rows")
    _compare(make, _GROUP_QUERIES, rounds, unchecked=frozenset({"q10"}))


def _run_clicks(spark: SparkSession, directory: Path, num_rows: int, rounds: int) -> None:
    _save(_clicks(spark, num_rows), directory, "clicks")
    make = _asking(spark, directory, {"views": "clicks"})
    print(f"\n{num_rows:,} page views")
    _compare(make, _texts_of("clicks.sql"), rounds)


def _run_tpch(spark: SparkSession, directory: Path, scale_factor: float, shuffled: bool, rounds: int) -> None:
    generated = directory / f"tpch-{scale_factor}"
    if not generated.exists():
        beside = Path(sys.executable).with_name("tpchgen-cli")
        program = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
        if program is None:
            raise SystemExit("tpchgen-cli is missing: pip install 'pyspark-lance[benchmarks]'")
        command = [program, "parquet", "-s", f"{scale_factor:g}", f"--output-dir={generated}"]
        subprocess.run(command, check=True)
    prefix = f"tpch-{scale_factor}-shuffled" if shuffled else f"tpch-{scale_factor}"
    for table in _TPCH_TABLES:
        rows = spark.read.parquet(f"{generated}/{table}.parquet")
        _save(rows.orderBy(rand(1)) if shuffled else rows, directory, f"{prefix}-{table}")

    make = _asking(spark, directory, {table: f"{prefix}-{table}" for table in _TPCH_TABLES})
    print(f"\nTPC-H at scale factor {scale_factor}, rows {'shuffled' if shuffled else 'in order'}")
    _compare(make, _texts_of("tpch.sql"), rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ["queries", "groups", "clicks", "tpch"]
    parser.add_argument("part", nargs="?", choices=parts, help="what to run; all by default")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--scale-factor", type=float, default=1.0)
    parser.add_argument("--shuffled", action="store_true", help="store the rows of TPC-H in random order")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="where the tables are kept from one run to the next")
    parser.add_argument("--sockets", choices=["unix", "tcp"], default="unix", help="between the JVM and Python")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = arguments.keep or Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        spark = _session(arguments.sockets)
        if arguments.part in (None, "queries"):
            _run_queries(spark, directory, arguments.rows, arguments.rounds)
        if arguments.part in (None, "groups"):
            _run_groups(spark, directory, arguments.rows, arguments.rounds)
        if arguments.part in (None, "clicks"):
            _run_clicks(spark, directory, arguments.rows, arguments.rounds)
        if arguments.part in (None, "tpch"):
            _run_tpch(spark, directory, arguments.scale_factor, arguments.shuffled, arguments.rounds)
        spark.stop()


if __name__ == "__main__":
    main()
