"""Small reads, whose rows the driver sends with the tasks: rows and partitions are those of tasks that read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from connector.planner.answers import Answers
from tests.spark.conftest import append, load

SETTING = "spark.lance.planner.smallReads.enabled"
SCHEMA = """id long, flag boolean, tiny byte, small short, number int, real float, double double, price decimal(20,4),
    day date, at timestamp, clock timestamp_ntz, name string, bytes binary, items array<string>,
    place struct<x: int, names: array<string>>, tags map<string, int>, took interval day to second"""


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[list[str] | None]:
    """Return a list that gets the rows of each read by the driver."""
    found: list[list[str] | None] = []
    apply = Answers.apply

    def noting(self: Answers, question: str) -> str:
        answer = apply(self, question)
        if json.loads(question)["ask"] == "rows":
            found.append(json.loads(answer).get("rows"))
        return answer

    monkeypatch.setattr(Answers, "apply", noting)
    return found


def row(number: int) -> tuple[Any, ...]:
    if number % 5 == 0:
        return (number, *[None] * 16)
    at = datetime(1900 + number, 1, 2, 3, 4, 5, 678)
    values = (number % 2 == 0, number, -number, number * 1000, number / 3, -number / 7, Decimal(number) / 8)
    texts = (f"é{number}" * (number % 4), bytes([number]) * 3, [None, "a", "b" * number])
    nested = ((number, ["x", None]), {"k": number, "l": None}, timedelta(days=number, microseconds=7))
    return (number, *values, date(1950, 1, 1) + timedelta(days=number), at, at, *texts, *nested)


def same(spark: SparkSession, frame: DataFrame) -> list[Any]:
    """Return the rows of a query, which are the same with and without reads of the driver."""
    with setting(spark, SETTING, "false"):
        expected = frame.sparkSession.sql("SELECT * FROM small_reads_query").collect()
    found = frame.sparkSession.sql("SELECT * FROM small_reads_query").collect()
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    return found


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM {table}",
        "SELECT id, name FROM {table} WHERE number > 30000",
        "SELECT * FROM {table} WHERE id < 0",
        "SELECT flag, count(*), sum(price), min(name) FROM {table} GROUP BY flag",
        "SELECT sum(number), max(at) FROM {table} WHERE id < 0",
        "SELECT sum(number), max(at) FROM {table} WHERE id > 7",
        "SELECT id FROM {table} ORDER BY number DESC LIMIT 3",
        "SELECT count(1) FROM {table} WHERE flag",
        "SELECT place.names[0], tags['k'], items FROM {table} WHERE place.x > 5",
    ],
)
def test_rows_are_those_of_tasks(planner: SparkSession, path: str, answers: list[list[str] | None], query: str) -> None:
    for first in (0, 30):
        rows = [row(number) for number in range(first, first + 30)]
        append(planner.createDataFrame(rows, SCHEMA).coalesce(1), path)
    load(planner, path).createOrReplaceTempView("small_reads")
    frame = planner.sql(query.format(table="small_reads"))
    frame.createOrReplaceTempView("small_reads_query")
    same(planner, frame)
    assert any(found is not None for found in answers)


def test_partitions_stay(planner: SparkSession, path: str, answers: list[list[str] | None]) -> None:
    append(planner.range(0, 40_000, 1, 2), path)
    counts = []
    for value in ("true", "false"):
        with setting(planner, SETTING, value):
            counts.append(load(planner, path).where("id % 1000 = 7").rdd.getNumPartitions())
    assert counts[0] == counts[1]
    assert [None if found is None else len(found) for found in answers] == [counts[0]]


@pytest.mark.parametrize(
    ("condition", "is_read"), [("id % 1000 = 7", True), ("id >= 0", None), ("true", False)], ids=["few", "many", "all"]
)
def test_large_results_are_left_to_tasks(
    planner: SparkSession, path: str, answers: list[list[str] | None], condition: str, is_read: bool | None
) -> None:
    """Unless a filter may leave few rows, their size is known without reading them."""
    append(planner.range(0, 100_000, 1, 1), path)
    expected = 100 if is_read else 100_000
    assert len(load(planner, path).where(condition).collect()) == expected
    assert [found is not None for found in answers] == ([] if is_read is False else [bool(is_read)])


def test_the_setting_of_jobs_is_a_limit(planner: SparkSession, path: str, answers: list[list[str] | None]) -> None:
    append(planner.range(100), path)
    with setting(planner, "spark.lance.job.minBytes", "0"):
        assert len(load(planner, path).collect()) == 100
    assert not answers


def test_damage_is_told_by_the_tasks(planner: SparkSession, path: str, tmp_path: Path) -> None:
    append(planner.range(0, 100, 1, 1), path)
    frame = load(planner, path)
    (data,) = (Path(path) / "data").iterdir()
    data.unlink()
    with pytest.raises(Exception, match=data.name):
        frame.collect()
