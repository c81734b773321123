"""The version to read, by number, tag, branch and time; and writing to branches."""

from __future__ import annotations

import datetime
import time
from pathlib import Path

import lance
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lance_format
from tests.spark.conftest import append, load, overwrite


@pytest.fixture
def table(spark: SparkSession, path: str) -> lance_format.LanceDataset:
    """Version n holds the numbers below n; version 2 is called "two", branch "work" starts from it and has 100 more."""
    for number in range(3):
        append(spark.range(number, number + 1), path)
        time.sleep(0.01)
    lance.dataset(path).tags.create("two", 2)
    lance.dataset(path).create_branch("work", 2)
    append(spark.range(100, 200), path, branch="work")
    return lance_format.dataset(path)


def seconds(table: lance_format.LanceDataset, version: int) -> float:
    return float(table.versions()[version - 1]["timestamp"].timestamp())


@pytest.mark.slow
def test_what_options_name(spark: SparkSession, table: lance_format.LanceDataset) -> None:
    path = table.uri
    committed = round(seconds(table, 2) * 1e6)
    utc = datetime.datetime.fromtimestamp(committed / 1e6, datetime.UTC).isoformat(sep=" ")
    counts = {
        "latest": load(spark, path).count(),
        "version": load(spark, path, version=1).count(),
        "tag": load(spark, path, tag="two").count(),
        "branch": load(spark, path, branch="work").count(),
        "main": load(spark, path, branch="main").count(),
        "version of a branch": load(spark, path, branch="work", version=2).count(),
        "time of a branch": load(spark, path, branch="work", timestamp=committed + 3_600_000_000).count(),
        # The library's timestamps end in nanoseconds, which `versions` cuts off.
        "time of a commit": load(spark, path, timestamp=committed + 1).count(),
        "before a commit": load(spark, path, timestamp=committed - 1).count(),
        "timestamp": load(spark, path, timestamp=utc).count(),
    }
    assert counts == {
        "latest": 3,
        "version": 1,
        "tag": 2,
        "branch": 102,
        "main": 3,
        "version of a branch": 2,
        "time of a branch": 102,
        "time of a commit": 2,
        "before a commit": 1,
        "timestamp": 2,
    }


def test_a_branch_is_written(spark: SparkSession, table: lance_format.LanceDataset) -> None:
    path = table.uri
    overwrite(spark.range(5).selectExpr("cast(id AS string) AS name"), path, branch="work")
    assert load(spark, path, branch="work").columns == ["name"]
    assert load(spark, path).count() == 3
    assert lance.dataset(path).checkout_version(("work", None)).count_rows() == 5
    assert lance.dataset(path).version == 3


def test_a_dataframe_keeps_to_its_version(spark: SparkSession, table: lance_format.LanceDataset) -> None:
    path = table.uri
    frames = [load(spark, path, tag="two"), load(spark, path, branch="work"), load(spark, path, timestamp=10**16)]
    table.tags.update("two", 3)
    append(spark.range(5), path, branch="work")
    append(spark.range(5), path)
    assert [frame.count() for frame in frames] == [2, 102, 3]
    assert [frame.where("id < 3").count() for frame in frames] == [2, 2, 3]


def test_versions_in_sql(spark: SparkSession, table: lance_format.LanceDataset) -> None:
    for options, count in (("tag 'two'", 2), ("branch 'work', version 2", 2), ("timestamp '2100-01-01 UTC'", 3)):
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW versions USING lance OPTIONS (path '{table.uri}', {options})")
        assert spark.sql("SELECT count(*) FROM versions").first() == (count,)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"version": "9"}, "no version 9"),
        ({"tag": "three"}, "no tag 'three'; it has two"),
        ({"branch": "play"}, "no branch 'play'; it has work"),
        ({"branch": "work", "version": "9"}, "no version 9"),
        ({"timestamp": "2000-01-01 UTC"}, "no version of"),
        ({"branch": "../../etc"}, "branch name '../../etc'"),
    ],
)
def test_what_is_not_there(
    spark: SparkSession, table: lance_format.LanceDataset, options: dict[str, str], message: str
) -> None:
    with pytest.raises(PySparkException) as caught:
        load(spark, table.uri, **options)
    assert message in str(caught.value)


def test_a_branch_that_is_not_there_is_not_written(spark: SparkSession, table: lance_format.LanceDataset) -> None:
    with pytest.raises(PySparkException, match="no branch 'play'"):
        append(spark.range(3), table.uri, branch="play")
    with pytest.raises(PySparkException, match="DatasetNotFoundError"):
        append(spark.range(3), f"{table.uri}.new", branch="work")
    assert not Path(f"{table.uri}.new").exists()
