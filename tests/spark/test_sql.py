"""SQL through temporary views, the options of a read, and filter pushdown on and off."""

from __future__ import annotations

import doctest
import functools
import os
import subprocess
import sys

import pytest
from chispa import assert_df_equality
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import connector
import connector.source.data_source
import lance_format
from tests.spark.conftest import ROOT, append, load, overwrite


@pytest.fixture
def birds(spark: SparkSession) -> DataFrame:
    rows = [(1, "owl", 0.6), (2, "emu", 40.0), (3, "wren", None), (4, None, 1.2)]
    return spark.createDataFrame(rows, "id int, name string, weight double").repartition(2)


@pytest.fixture
def view(spark: SparkSession, birds: DataFrame, path: str) -> str:
    append(birds, path)
    make_view(spark, path)
    return "birds"


FILTERS = {
    "id = 2": [2],
    "id <=> 2": [2],
    "id > 1 AND id <= 3": [2, 3],
    "id < 2 OR id >= 4": [1, 4],
    "id IN (1, 3)": [1, 3],
    "NOT id IN (1, 3)": [2, 4],
    "name IS NULL": [4],
    "name IS NOT NULL AND weight IS NULL": [3],
    "name LIKE 'e%'": [2],
    "name LIKE '%n'": [3],
    "name LIKE '%w%'": [1, 3],
    "name <> 'owl'": [2, 3],
    "name <=> NULL": [4],
    "weight > 1 AND name = 'emu'": [2],
    "false": [],
}


def ids_of_each(found: list[DataFrame]) -> dict[str, list[int]]:
    """Return the ids that each filter leaves, all of them found by one job, which has a scan per filter."""
    numbered = [df.withColumn("place", f.lit(place)) for place, df in enumerate(found)]
    rows = functools.reduce(DataFrame.unionAll, numbered).collect()
    return {condition: sorted(row.id for row in rows if row.place == place) for place, condition in enumerate(FILTERS)}


@pytest.mark.slow
def test_filters(spark: SparkSession, view: str, pushdown: str) -> None:
    found = [spark.table(view).where(condition).select("id") for condition in FILTERS]
    assert ids_of_each(found) == FILTERS


@pytest.mark.slow
def test_aggregates_and_joins(spark: SparkSession, view: str, pushdown: str) -> None:
    answer = spark.sql("""
        SELECT a.name, count(*) AS n, sum(b.weight) AS total
        FROM birds a JOIN birds b ON a.id < b.id WHERE a.name IS NOT NULL GROUP BY a.name ORDER BY a.name""")
    assert [tuple(row) for row in answer.collect()] == [("emu", 2, 1.2), ("owl", 3, 41.2), ("wren", 1, 1.2)]
    assert spark.sql("SELECT count(*), count(name), max(weight) FROM birds").first() == (4, 3, 40.0)


def make_view(spark: SparkSession, path: str) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW birds USING lance OPTIONS (path '{path}')")


def test_insert_into_a_view(spark: SparkSession, view: str, path: str, way: str) -> None:
    spark.sql("INSERT INTO birds VALUES (5, 'kea', 0.9)")
    make_view(spark, path)
    spark.sql("INSERT INTO birds (name, weight, id) SELECT name, weight, id + 10 FROM birds WHERE id = 5")
    make_view(spark, path)
    assert sorted(row.id for row in spark.table("birds").collect()) == [1, 2, 3, 4, 5, 15]
    assert lance_format.dataset(path).version == 3


def test_insert_overwrite_a_view(spark: SparkSession, view: str, path: str) -> None:
    spark.sql("INSERT OVERWRITE birds SELECT * FROM birds WHERE id > 2")
    make_view(spark, path)
    assert sorted(row.id for row in spark.table("birds").collect()) == [3, 4]


def test_the_options_of_a_view(spark: SparkSession, view: str, path: str) -> None:
    spark.sql("INSERT INTO birds VALUES (5, 'kea', 0.9)")
    spark.sql(f"CREATE OR REPLACE TEMP VIEW old USING lance OPTIONS (path '{path}', version 1, columns 'name,id')")
    assert spark.table("old").columns == ["name", "id"]
    assert spark.table("old").count() == 4


@pytest.mark.slow
def test_columns(spark: SparkSession, view: str, path: str, birds: DataFrame, pushdown: str) -> None:
    found = load(spark, path, columns="weight, id").where("id > 1")
    assert_df_equality(found, birds.select("weight", "id").where("id > 1"), ignore_nullable=True, ignore_row_order=True)


def test_a_schema_given_by_the_user_selects_columns(spark: SparkSession, view: str, path: str) -> None:
    found = spark.read.format("lance").schema("name string, id int").load(path)
    assert found.columns == ["name", "id"]
    assert found.where("id = 1").collect() == [("owl", 1)]


def test_a_schema_given_by_the_user_selects_fields(spark: SparkSession, path: str, pushdown: str) -> None:
    append(spark.sql("SELECT named_struct('x', 1, 'y', named_struct('z', 'a', 'w', 2L)) AS s, 3 AS n"), path)
    found = spark.read.format("lance").schema("s struct<y: struct<w: long>>").load(path)
    assert found.collect() == [(((2,),),)]
    assert found.where("s.y.w = 2").count() == 1


@pytest.mark.slow
def test_filters_as_an_option(spark: SparkSession, view: str, path: str, pushdown: str) -> None:
    assert ids_of_each([load(spark, path, filter=condition, columns="id") for condition in FILTERS]) == FILTERS
    asked = load(spark, path, filter="name LIKE '%w%'")
    assert [row.name for row in asked.where("weight IS NULL").collect()] == ["wren"]
    assert asked.count() == 2
    with pytest.raises(PySparkException, match="there is no column 'nane'; did you mean name"):
        load(spark, path, filter="nane = 'owl'").collect()


def test_versions(spark: SparkSession, path: str) -> None:
    append(spark.range(3), path)
    append(spark.range(3, 5), path)
    overwrite(spark.range(10, 11), path)
    ids = [sorted(row.id for row in load(spark, path, version=version).collect()) for version in (1, 2, 3)]
    assert ids == [[0, 1, 2], [0, 1, 2, 3, 4], [10]]
    assert load(spark, path).collect() == [(10,)]


@pytest.mark.slow
def test_the_planner_reads_the_latest_version_at_each_query(spark: SparkSession, path: str, way: str) -> None:
    append(spark.range(3), path)
    df = load(spark, path)
    make_view(spark, path)
    for first in (3, 5):
        append(spark.range(first, first + 2), path)
        expected = first + 2 if way == "planner" else 3
        for reader in (df, spark.table("birds")):
            assert reader.count() == expected
            assert reader.where("id >= 0").count() == expected
    assert load(spark, path).count() == 7


@pytest.mark.slow
def test_queries_of_one_data_frame_do_not_share_filters(spark: SparkSession, path: str, pushdown: str) -> None:
    append(spark.range(10), path)
    df = load(spark, path)
    three, four = df.where("id = 3"), df.where("id = 4")
    assert three.collect() == [(3,)]
    assert df.count() == 10
    assert sorted(three.union(four).collect()) == [(3,), (4,)]
    assert three.crossJoin(four.withColumnRenamed("id", "other")).collect() == [(3, 4)]


def test_a_table_may_be_overwritten_with_what_is_read_from_it(spark: SparkSession, path: str) -> None:
    append(spark.range(10), path)
    overwrite(load(spark, path).where("id > 6").select((f.col("id") * 2).alias("id")), path)
    assert sorted(row.id for row in load(spark, path).collect()) == [14, 16, 18]


def test_an_empty_table(spark: SparkSession, path: str, way: str) -> None:
    append(spark.range(0), path)
    assert load(spark, path).columns == ["id"]
    assert load(spark, path).where("id > 3").collect() == []
    assert load(spark, path).count() == 0
    append(spark.range(2), path)
    assert load(spark, path).count() == 2


@pytest.mark.slow
def test_a_table_with_more_rows_than_a_batch(spark: SparkSession, path: str, way: str) -> None:
    append(spark.range(0, 200_000, 1, 2), path)
    assert load(spark, path).selectExpr("count(*)", "sum(id)", "count(DISTINCT id)").first() == (
        200_000,
        199_999 * 100_000,
        200_000,
    )


def test_the_session_in_the_documentation_runs(spark: SparkSession) -> None:
    assert doctest.testmod(connector.source.data_source).failed == 0


def test_planning_imports_nothing_heavy() -> None:
    """Spark imports the data source again for every query that it plans."""
    heavy = ["numba", "pandas", "lance", "sqlglot", "obstore", "http.client"]
    program = f"import sys, connector.source.data_source; print([m for m in {heavy} if m in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "[]"
