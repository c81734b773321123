"""Random queries over dates and times at the ends of their ranges, compared with Parquet."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from connector import register
from tests.spark.conftest import PUSHDOWN, append, load

DATES = ("0001-01-02", "1582-10-15", "1969-12-31", "1970-01-01", "9999-12-30")
FAR_DATES = ("-0044-03-15", "0001-01-01", "9999-12-31", "+10000-01-01", "+290000-06-01")
"""Dates that Python's `datetime` does not have, in UTC or in the zone of the session."""
CLOCKS = ("00:00:00", "12:30:00.000001", "23:59:59.999999")
NANOSECONDS = ("00:00:00", "00:00:00.000000001", "00:00:00.000000999", "00:00:00.000001001", "23:59:59.999999999")
MICROSECONDS = ("00:00:00", "00:00:00.000001", "00:00:00.000999", "00:00:00.001001", "23:59:59.999999")
SHOWN = {
    "d": "unix_date({})",
    "t": "unix_micros({})",
    "n": "unix_micros(CAST({} AS TIMESTAMP))",
    "c": "CAST({} AS STRING)",
}
"""For each column, its values in a form that Python can hold."""
COPIES = 40
FORMS = [
    *(f"{{}} {operator} {{}}" for operator in ("=", "<>", "<", "<=", ">", ">=", "<=>")),
    *(
        "{0} IN ({1}, {2})",
        "{0} NOT IN ({1}, {2})",
        "{0} BETWEEN {1} AND {2}",
        "{0} IS NULL",
        "CAST({0} AS STRING) > '1'",
    ),
]


def digits(spark: SparkSession) -> int:
    """Return how many digits of a second Spark's times have."""
    return 9 if tuple(map(int, spark.version.split(".")[:2])) >= (4, 3) else 6


def constants(spark: SparkSession, dates: tuple[str, ...]) -> dict[str, list[str]]:
    """Return constants of each column, as SQL."""
    moments = [f"{date} {clock}" for date in dates for clock in CLOCKS]
    clocks = NANOSECONDS if digits(spark) == 9 else MICROSECONDS
    return {
        "d": [f"DATE'{date}'" for date in dates],
        "t": [f"TIMESTAMP'{moment}'" for moment in moments],
        "n": [f"TIMESTAMP_NTZ'{moment}'" for moment in moments],
        "c": [f"CAST('{clock}' AS TIME({digits(spark)}))" for clock in clocks],
    }


def rows(spark: SparkSession, seed: int) -> DataFrame:
    """Return rows whose values are such constants, or null."""
    chooser, known = random.Random(seed), constants(spark, DATES + FAR_DATES)
    values = [
        "(" + ", ".join([str(row), *(chooser.choice([*known[name], "NULL"]) for name in known)]) + ")"
        for row in range(COPIES)
    ]
    types = {"d": "DATE", "t": "TIMESTAMP", "n": "TIMESTAMP_NTZ", "c": f"TIME({digits(spark)})"}
    columns = ", ".join(f"CAST({name} AS {spark_type}) AS {name}" for name, spark_type in types.items())
    return spark.sql(f"SELECT id, {columns} FROM VALUES {', '.join(values)} AS v(id, d, t, n, c)")


def predicate(chooser: random.Random, known: dict[str, list[str]], depth: int = 2) -> str:
    if depth and chooser.random() < 0.5:
        terms = [predicate(chooser, known, depth - 1) for _ in range(2)]
        return chooser.choice(["({}) AND ({})", "({}) OR ({})", "NOT (({}) OR ({}))"]).format(*terms)
    name = chooser.choice(list(known))
    first, second = chooser.choices(known[name], k=2)
    form = chooser.choice(FORMS)
    return form.format(name, first, second)


def queries(chooser: random.Random, known: dict[str, list[str]]) -> Iterator[str]:
    """Yield queries whose results are integers and text."""
    shown = ", ".join(form.format(name) for name, form in SHOWN.items())
    for _ in range(8):
        yield f"SELECT id, {shown} FROM {{}} WHERE {predicate(chooser, known)}"
    for name, form in SHOWN.items():
        yield f"SELECT {form.format(f'min({name})')}, {form.format(f'max({name})')}, count({name}) FROM {{}}"
        yield f"SELECT {form.format(name)} FROM {{}} ORDER BY {name} DESC NULLS LAST LIMIT 3"
        few = f"SELECT {name} FROM {{}} WHERE id < 5 AND {predicate(chooser, known, 0)}"
        yield f"SELECT count(*) FROM {{}} JOIN ({few}) AS few USING ({name})"


@contextlib.contextmanager
def configured(spark: SparkSession, **settings: str) -> Iterator[None]:
    names = {name: "spark.sql." + name.replace("__", ".") for name in settings}
    before = {name: spark.conf.get(names[name]) for name in settings}
    for name, value in settings.items():
        spark.conf.set(names[name], value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(names[name], value or "")


@pytest.mark.system
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_extreme_dates_and_times_are_filtered_as_by_parquet(
    spark: SparkSession, path: str, pushdown: str, zone: str, tmp_path: Path
) -> None:
    # Spark's own worker cannot read the others, and fails before it asks the data source.
    known = constants(spark, DATES if pushdown == "filters" else DATES + FAR_DATES)
    with configured(spark, session__timeZone=zone, parquet__datetimeRebaseModeInWrite="CORRECTED"):
        given = rows(spark, seed=1).repartition(3, "id")
        append(given, path, max_row_per_file=7)
        given.write.parquet(str(tmp_path / "parquet"))
        load(spark, path).createOrReplaceTempView("extreme_lance")
        spark.read.parquet(str(tmp_path / "parquet")).createOrReplaceTempView("extreme_parquet")
        for query in queries(random.Random(zone), known):
            lance, parquet = (
                sorted(map(repr, spark.sql(query.format(name, name)).collect()))
                for name in ("extreme_lance", "extreme_parquet")
            )
            assert lance == parquet, query


@pytest.mark.slow
def test_times_are_told_apart_to_the_nanosecond(spark: SparkSession, path: str, pushdown: str) -> None:
    clocks = NANOSECONDS if digits(spark) == 9 else MICROSECONDS
    values = ", ".join(f"({row}, TIME'{clock}')" for row, clock in enumerate(clocks))
    append(spark.sql(f"SELECT * FROM VALUES {values} AS v(id, c)"), path)
    table = load(spark, path)
    for row, clock in enumerate(clocks):
        assert [found.id for found in table.where(f"c = TIME'{clock}'").collect()] == [row]


def test_the_end_of_time_is_a_bound(planner: SparkSession, path: str) -> None:
    append(planner.sql("SELECT id, TIMESTAMP'9999-12-31 23:59:59' - make_interval(id) AS until FROM range(3)"), path)
    until = load(planner, path)
    assert until.where("until <= TIMESTAMP'9999-12-31 23:59:59'").count() == 3
    assert until.where("until < TIMESTAMP'9999-12-31 23:59:59'").count() == 2
    assert until.where("until < TIMESTAMP'-0044-03-15 12:00:00'").count() == 0
    assert until.where("CAST(until AS DATE) < DATE'+10000-01-01'").count() == 3


def test_registering_leaves_filters_to_spark(spark: SparkSession, path: str) -> None:
    """Spark's own worker fails over constants that Python's `datetime` does not have, and nothing is gained by it."""
    spark.conf.unset(PUSHDOWN)
    register(spark)
    assert spark.conf.get(PUSHDOWN) == "false"
    append(spark.sql("SELECT DATE'+10000-01-01' AS d"), path)
    assert load(spark, path).where("d >= DATE'+10000-01-01'").count() == 1
