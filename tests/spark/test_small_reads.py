"""Small reads, whose rows the driver sends with the tasks: rows and partitions are those of tasks that read."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connector.planner.answers import Answers
from tests.spark.conftest import append, load
from tests.spark.random_sql import setting

SETTING = "spark.lance.planner.smallReads.enabled"
SCHEMA = """id long, flag boolean, tiny byte, small short, number int, real float, double double, price decimal(20,4),
    day date, at timestamp, clock timestamp_ntz, name string, bytes binary, items array<string>,
    place struct<x: int, names: array<string>>, tags map<string, int>, took interval day to second"""


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
    text = query.format(table="small_reads")
    with setting(planner, SETTING, "false"):
        expected = planner.sql(text).collect()
    assert not answers
    assert sorted(map(repr, planner.sql(text).collect())) == sorted(map(repr, expected))
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
    ("condition", "num_rows", "reads"),
    [("id % 1000 = 7", 100, [True]), ("id >= 0", 100_000, [False]), ("true", 100_000, [])],
    ids=["few", "many", "all"],
)
def test_large_results_are_left_to_tasks(
    planner: SparkSession,
    path: str,
    answers: list[list[str] | None],
    condition: str,
    num_rows: int,
    reads: list[bool],
) -> None:
    """Unless a filter may leave few rows, their size is known without reading them."""
    append(planner.range(0, 100_000, 1, 1), path)
    assert len(load(planner, path).where(condition).collect()) == num_rows
    assert [found is not None for found in answers] == reads


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
