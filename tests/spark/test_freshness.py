"""All scans of a query see the latest version before it, unless a version is requested."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import connector.source.data_source as source
import lance_format
from tests.spark.conftest import append, load, overwrite


def commit(path: str, number: int) -> None:
    """Append a row without Spark."""
    lance_format.write_dataset(pa.table({"id": pa.array([number])}), path, mode="append")


def ids(df: DataFrame) -> list[int]:
    return sorted(row.id for row in df.select("id").collect())


@pytest.fixture
def table(planner: SparkSession, path: str) -> str:
    """Return the path of a table of the ids 0, 1 and 2."""
    append(planner.range(3), path)
    return path


@pytest.fixture
def catalog_table(planner: SparkSession, table: str) -> Iterator[str]:
    """Return the name of a table of the session's catalog."""
    planner.sql(f"CREATE TABLE fresh USING lance LOCATION '{table}'")
    yield "fresh"
    planner.sql("DROP TABLE fresh")


def test_a_view_shows_what_is_inserted_through_it(planner: SparkSession, table: str) -> None:
    planner.sql(f"CREATE OR REPLACE TEMPORARY VIEW birds USING lance OPTIONS (path '{table}')")
    assert ids(planner.table("birds")) == [0, 1, 2]
    planner.sql("INSERT INTO birds VALUES (3)")
    assert ids(planner.sql("SELECT id FROM birds WHERE id > 1")) == [2, 3]
    assert planner.sql("SELECT count(*), max(id) FROM birds").first() == (4, 3)
    planner.sql("INSERT OVERWRITE birds VALUES (7)")
    assert ids(planner.table("birds")) == [7]


def test_a_dataframe_sees_what_is_appended(planner: SparkSession, table: str) -> None:
    df = load(planner, table)
    some = df.where("id > 1")
    assert df.count() == 3
    append(planner.range(3, 5), table)
    assert df.count() == 5
    assert ids(some) == [2, 3, 4]
    commit(table, 5)
    assert df.count() == 6
    df.createOrReplaceTempView("appended")
    commit(table, 6)
    assert planner.sql("SELECT max(id) FROM appended").first() == (6,)


def test_what_was_collected_stays(planner: SparkSession, table: str) -> None:
    """A DataFrame is executed once, as with Spark's own tables; DataFrames made from it are executed again."""
    df = load(planner, table)
    assert len(df.collect()) == 3
    commit(table, 3)
    assert len(df.collect()) == 3
    assert len(df.select("*").collect()) == 4


def test_a_dataframe_that_is_written_twice_is_read_twice(planner: SparkSession, table: str, tmp_path: Path) -> None:
    df = load(planner, table)
    for number in (3, 4):
        df.write.mode("overwrite").parquet(str(tmp_path / "copy"))
        assert planner.read.parquet(str(tmp_path / "copy")).count() == number
        commit(table, number)


def test_all_scans_of_a_query_see_one_version(
    planner: SparkSession, table: str, catalog_table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever the planner looks at the table, somebody commits to it right before."""
    one, two, batched = load(planner, table), load(planner, f"{table}/"), load(planner, table, batch_size=2)
    describe, commits = source.describe, iter(range(3, 1000))

    def racing(dataset: Any, *arguments: Any, **options: Any) -> dict[str, Any]:
        found = describe(dataset, *arguments, **options)
        commit(table, next(commits))
        return found

    monkeypatch.setattr(source, "describe", racing)
    for name, df in {"one": one, "two": two, "batched": batched}.items():
        df.createOrReplaceTempView(name)
    found = planner.sql(
        "SELECT count(*), count(o.id), count(t.id), count(b.id), (SELECT count(id) FROM one WHERE id >= 0),"
        " (SELECT count(*) FROM one)"
        " FROM one AS o FULL JOIN two AS t ON o.id = t.id FULL JOIN batched AS b ON o.id = b.id"
    ).first()
    assert found is not None
    assert len(set(found)) == 1
    with_catalog = planner.sql(f"SELECT (SELECT count(*) FROM {catalog_table}), (SELECT count(*) FROM one)").first()
    assert with_catalog is not None
    assert len(set(with_catalog)) == 1
    assert with_catalog[0] > found[0]


def test_a_query_keeps_its_version_while_it_runs(planner: SparkSession, table: str) -> None:
    df = load(planner, table).where("id >= 0").selectExpr("id + 0 AS id")
    df._jdf.queryExecution().executedPlan()
    overwrite(planner.range(100, 200), table)
    assert sorted(row.id for row in df.collect()) == [0, 1, 2]


def test_what_names_a_version_stays_pinned(planner: SparkSession, table: str, catalog_table: str) -> None:
    lance_format.dataset(table).tags.create("first", 1)
    frames = [
        load(planner, table, version=1),
        load(planner, table, tag="first"),
        load(planner, table, timestamp="2200-01-01 00:00:00 UTC"),
        load(planner, table, branch="main", version=1),
    ]
    planner.sql(f"CREATE OR REPLACE TEMPORARY VIEW pinned USING lance OPTIONS (path '{table}', version 1)")
    commit(table, 3)
    lance_format.dataset(table).tags.update("first", 2)
    assert [frame.count() for frame in frames] == [3, 3, 3, 3]
    assert planner.table("pinned").where("id >= 0").count() == 3
    assert planner.sql(f"SELECT count(*) FROM {catalog_table} WITH (version = 1)").first() == (3,)
    assert planner.sql(f"SELECT count(*) FROM {catalog_table}").first() == (4,)


def test_a_branch_is_read_at_its_latest(planner: SparkSession, table: str) -> None:
    lance_format.dataset(table).create_branch("work")
    df = load(planner, table, branch="work")
    append(planner.range(10, 20), table, branch="work")
    assert df.count() == 13
    assert load(planner, table).count() == 3


def test_a_table_may_be_overwritten_with_what_is_read_from_it(planner: SparkSession, table: str) -> None:
    df = load(planner, table)
    commit(table, 3)
    overwrite(df.where("id > 1"), table)
    assert ids(df) == [2, 3]


def test_columns_that_come_and_go(planner: SparkSession, table: str) -> None:
    df = load(planner, table)
    append(planner.sql("SELECT 3L AS id, 'owl' AS name"), table, mergeSchema=True)
    assert df.columns == ["id"]
    assert ids(df) == [0, 1, 2, 3]
    wide = load(planner, table)
    lance_format.dataset(table).drop_columns(["name"])
    assert df.count() == 4
    with pytest.raises(AnalysisException) as caught:
        wide.select("id").collect()
    assert "COLUMNS_MISMATCH" in (caught.value.getCondition() or "")
    assert "column 'name' is not in the table" in str(caught.value)


def test_tables_of_the_catalog(planner: SparkSession, table: str, catalog_table: str) -> None:
    df = planner.table(catalog_table)
    view = planner.sql(f"SELECT * FROM {catalog_table} WHERE id > 1")
    view.createOrReplaceTempView("over_catalog")
    assert df.count() == 3
    planner.sql(f"INSERT INTO {catalog_table} VALUES (3)")
    commit(table, 4)
    assert df.count() == 5
    assert ids(view) == [2, 3, 4]
    assert ids(planner.table("over_catalog")) == [2, 3, 4]


@pytest.mark.slow
def test_what_is_cached_is_read_again_after_writes(planner: SparkSession, table: str) -> None:
    planner.sql(f"CREATE OR REPLACE TEMPORARY VIEW birds USING lance OPTIONS (path '{table}')")
    cached = [load(planner, table).cache(), load(planner, table, batch_size=2).where("id > 0").cache()]
    planner.sql("CACHE TABLE birds")
    try:
        assert [df.count() for df in cached] == [3, 2]
        commit(table, 3)
        assert [df.count() for df in cached] == [3, 2]
        assert planner.table("birds").count() == 3
        assert "InMemoryRelation" in plan(load(planner, table))
        planner.sql("REFRESH TABLE birds")
        assert planner.table("birds").count() == 4
        append(planner.range(4, 5), table, max_row_per_file=2)
        assert [df.count() for df in cached] == [5, 4]
        planner.sql("INSERT INTO birds VALUES (5)")
        assert [df.count() for df in [*cached, planner.table("birds")]] == [6, 5, 6]
        overwrite(planner.range(1).selectExpr("'owl' AS name"), table)
        with pytest.raises(AnalysisException, match="COLUMNS_MISMATCH"):
            cached[0].count()
    finally:
        planner.catalog.clearCache()


@pytest.mark.slow
def test_what_is_cached_of_a_table_of_the_catalog(planner: SparkSession, table: str, catalog_table: str) -> None:
    planner.sql(f"CACHE TABLE {catalog_table}")
    try:
        assert planner.table(catalog_table).count() == 3
        assert "InMemoryRelation" in plan(planner.table(catalog_table))
        planner.sql(f"INSERT INTO {catalog_table} VALUES (3)")
        assert planner.table(catalog_table).count() == 4
        append(planner.range(4, 5), table)
        assert planner.table(catalog_table).count() == 5
    finally:
        planner.catalog.clearCache()


def plan(df: DataFrame) -> str:
    return str(df._jdf.queryExecution().executedPlan().toString())
