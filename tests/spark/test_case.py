"""Columns whose names differ in case only."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import lance_format
from tests.spark.conftest import append, load, overwrite, planning

CASE = "spark.sql.caseSensitive"


@contextlib.contextmanager
def case_sensitive(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(CASE, "true")
    try:
        yield
    finally:
        spark.conf.unset(CASE)


@pytest.fixture
def alike(spark: SparkSession) -> DataFrame:
    """Return rows of two columns, `a` and `A`."""
    with case_sensitive(spark):
        return spark.createDataFrame([(1, 3), (2, 4)], "a long, A long")


@pytest.fixture
def table(path: str) -> str:
    """Return the path of a table with the columns `a`, `A` and `b`."""
    lance_format.write_dataset(pa.table({"a": [1, 2], "A": [3, 4], "b": [5, 6]}), path)
    return path


@pytest.mark.slow
def test_tables_with_such_columns_are_read(spark: SparkSession, table: str, pushdown: str) -> None:
    df = load(spark, table)
    df.createOrReplaceTempView("alike")
    assert sorted(df.collect()) == [(1, 3, 5), (2, 4, 6)]
    assert df.where("b > 5").collect() == [(2, 4, 6)]
    # Spark takes the other side for selective because of the filter that it keeps, and asks for filter attributes.
    few = "SELECT b FROM alike WHERE length(CAST(b AS STRING)) = 1 AND b % 2 = 1"
    assert spark.sql(f"SELECT * FROM alike JOIN ({few}) AS few USING (b)").collect() == [(5, 1, 3)]
    with case_sensitive(spark):
        assert df.select("A").where("a = 2").collect() == [(4,)]
        assert spark.sql("SELECT min(a), max(A), count(A) FROM alike").collect() == [(1, 4, 2)]
        few = "SELECT A FROM alike WHERE A % 2 = 1"
        assert spark.sql(f"SELECT * FROM alike JOIN ({few}) AS few USING (A)").collect() == [(3, 1, 5)]


def test_such_columns_are_refused_as_by_parquet(
    planner: SparkSession, alike: DataFrame, path: str, tmp_path: Path
) -> None:
    for mode in ("append", "overwrite", "errorifexists", "ignore"):
        for source in ("parquet", "lance"):
            with pytest.raises(AnalysisException) as caught:
                alike.write.format(source).mode(mode).save(str(tmp_path / f"{source}.{mode}"))
            assert caught.value.getCondition() == "COLUMN_ALREADY_EXISTS"
    assert not Path(path).exists()
    with case_sensitive(planner):
        append(alike, path)
        overwrite(alike, path)
        append(alike, path)
        assert load(planner, path).select("A").distinct().count() == 2


def test_such_columns_are_refused_where_spark_tells_nothing(spark: SparkSession, alike: DataFrame, path: str) -> None:
    for write in (append, overwrite):
        with pytest.raises(PySparkException, match=r"columns 'a' and 'A' differ in case only.*register\(spark\)"):
            write(alike, path)
    assert not Path(path).exists()


def test_tables_with_such_columns_are_appended_to(spark: SparkSession, table: str) -> None:
    with case_sensitive(spark):
        rows = spark.createDataFrame([(3, 5, 7)], "a long, A long, b long")
        append(rows, table)
        with planning(spark):
            append(rows, table)
        assert load(spark, table).where("a = 3").select("A").collect() == [(5,), (5,)]
    with pytest.raises(PySparkException, match="columns 'c' and 'C' differ in case only"), case_sensitive(spark):
        append(spark.createDataFrame([(3, 5)], "c long, C long"), table, mergeSchema=True)
