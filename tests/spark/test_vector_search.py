"""Searches for nearest neighbours in Spark: `LanceTable.vectorSearch`, and the table function `vector_search`."""

from __future__ import annotations

from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lance_format
from lance_format import InvalidInputError
from pyspark_lance import LanceTable
from tests.spark.conftest import Catalog

QUERY = [0.3, -0.2, 1.0, 0.1]


def _rows(count: int, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    vectors = pa.FixedSizeListArray.from_arrays(
        pa.array(rng.normal(size=4 * count).astype(np.float32)), 4, mask=pa.array(rng.random(count) < 0.05)
    )
    return pa.table({"id": pa.array(range(count)), "v": vectors, "c": pa.array(rng.integers(0, 5, count))})


def _expected(path: str, filter: str | None = None, count: int = 10, **search: Any) -> list[tuple[Any, ...]]:
    nearest = {"column": "v", "q": QUERY, "k": count, "use_index": False, **search}
    found = lance_format.dataset(path).to_table(["id", "_distance"], filter, nearest=nearest, prefilter=True)
    return [(row["id"], pytest.approx(row["_distance"], rel=1e-5)) for row in found.to_pylist()]


@pytest.fixture
def table(path: str) -> str:
    lance_format.write_dataset(_rows(1000), path, max_rows_per_file=300)
    return path


def test_nearest_rows(spark: SparkSession, table: str, way: str) -> None:
    found = LanceTable.forPath(spark, table, {"split_size_bytes": "4000"})
    rows = found.vectorSearch("v", QUERY)
    assert rows.schema.names == ["id", "v", "c", "_distance"]
    assert [(row.id, row._distance) for row in rows.collect()] == _expected(table)
    assert rows.count() == 10
    assert rows.select("c").count() == 10
    few = found.vectorSearch("v", np.array(QUERY), 3, "cosine", "c < 2")
    assert [tuple(row) for row in few.select("id", "_distance").collect()] == _expected(
        table, "c < 2", 3, metric="cosine"
    )
    assert [tuple(row) for row in few.where("id % 2 = 0").select("id", "_distance").collect()] == [
        row for row in _expected(table, "c < 2", 3, metric="cosine") if row[0] % 2 == 0
    ]
    near = found.vectorSearch("v", QUERY, 100, distanceRange=(0.5, 0.8)).select("id", "_distance")
    assert [tuple(row) for row in near.collect()] == _expected(table, count=100, distance_range=(0.5, 0.8))
    assert found.alias("t").vectorSearch("v", QUERY, 2).select("t.id").count() == 2


def test_an_index_is_one_task(spark: SparkSession, table: str, way: str) -> None:
    lance.dataset(table).create_index("v", "IVF_FLAT", num_partitions=4)
    lance_format.write_dataset(_rows(300, seed=2), table, mode="append")
    found = LanceTable.forPath(spark, table, {"split_size_bytes": "4000"})
    rows = found.vectorSearch("v", QUERY, nprobes=4, refineFactor=2).select("id", "_distance")
    assert [tuple(row) for row in rows.collect()] == _expected(table)
    assert rows.rdd.getNumPartitions() == 1
    exact = found.vectorSearch("v", QUERY, useIndex=False).select("id", "_distance")
    assert [tuple(row) for row in exact.collect()] == _expected(table)


def test_versions(spark: SparkSession, table: str, way: str) -> None:
    before = _expected(table)
    lance_format.dataset(table).delete(f"id = {before[0][0]}")
    for options, expected in (({}, _expected(table)), ({"version": "1"}, before)):
        found = LanceTable.forPath(spark, table, options).vectorSearch("v", QUERY)
        assert [(row.id, row._distance) for row in found.collect()] == expected


def test_hidden_columns(planner: SparkSession, table: str) -> None:
    found = LanceTable.forPath(planner, table, {"metadata_columns": "_rowaddr"}).vectorSearch("v", QUERY, 3)
    assert found.schema.names == ["id", "v", "c", "_rowaddr", "_distance"]
    for row in found.select("id", "_rowaddr", "_rowid").collect():
        assert row._rowaddr == row._rowid == (row.id // 300 << 32 | row.id % 300)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("w", QUERY), "there is no column 'w'"),
        (("c", QUERY), "column 'c' has no vectors"),
        (("v", [1.0]), "q of nearest has 1 numbers, and the vectors of column 'v' have 4"),
        (("v", [QUERY, QUERY]), "a search in Spark is for one vector"),
        (("v", QUERY, 0), "k of nearest is 0"),
        (("v", QUERY, 5, "near"), "metric is 'near'"),
        (("v", QUERY, 5, "l2", "nothing > 3"), "nothing"),
    ],
    ids=str,
)
def test_wrong_arguments(planner: SparkSession, table: str, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(PySparkException, match=message):
        LanceTable.forPath(planner, table).vectorSearch(*arguments)


def test_arguments_that_cannot_be_sent(planner: SparkSession, table: str) -> None:
    with pytest.raises(InvalidInputError, match="no number, text or list"):
        LanceTable.forPath(planner, table).vectorSearch("v", object())  # type: ignore[arg-type]


def test_function_of_sql(planner: SparkSession, table: str) -> None:
    name = f"lance.`{table}`"
    vector = f"array({', '.join(map(str, QUERY))})"

    def run(arguments: str, **given: Any) -> list[tuple[Any, ...]]:
        text = f"SELECT id, _distance FROM vector_search({arguments})"
        return [tuple(row) for row in planner.sql(text, **given).collect()]

    assert run(f"'{name}', 'v', {vector}") == _expected(table)
    assert run(f"'{name}', 'v', {vector}, 3, metric => 'dot'") == _expected(table, count=3, metric="dot")
    named = f"num_results => 4, query_vector => :q, column => 'v', `table` => '{name}', filter => 'c = 1'"
    assert run(named, args={"q": QUERY}) == _expected(table, "c = 1", 4)
    ranged = f"'{name}', 'v', {vector}, 50, distance_range => array(0.5, CAST(NULL AS DOUBLE))"
    assert run(ranged) == _expected(table, count=50, distance_range=(0.5, None))
    (plan,) = planner.sql(f"EXPLAIN SELECT id FROM vector_search('{name}', 'v', {vector})").first()
    assert "10 rows by v, l2, without an index" in plan
    planner.sql(f"CREATE TEMPORARY VIEW near AS SELECT id FROM vector_search('{name}', 'v', {vector}, 2)")
    assert [row.id for row in planner.table("near").collect()] == [row[0] for row in _expected(table, count=2)]


def test_tables_of_catalogs(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t (id BIGINT, v ARRAY<FLOAT>) TBLPROPERTIES ('v.arrow.fixed-size-list.size' = '2')")
    catalog.sql("INSERT INTO @.t VALUES (1, array(0F, 0F)), (2, array(1F, 1F)), (3, array(5F, 5F))")
    catalog.sql(f"CALL {catalog.name}.system.create_branch('db.t', 'b')")
    nearest = "SELECT id FROM vector_search('@.t', 'v', array(2, 2.5), 2)"
    assert catalog.sql(nearest) == [(2,), (1,)]
    catalog.sql("INSERT INTO @.t VALUES (4, array(2F, 2F))")
    assert catalog.sql(nearest) == [(4,), (2,)]
    assert catalog.sql(nearest.replace("@.t", "@.t.branch_b")) == [(2,), (1,)]
    assert catalog.sql(
        "SELECT a.id, b.id FROM vector_search('@.t', 'v', array(2, 2), 1) a JOIN @.t b ON a.id = b.id"
    ) == [(4, 4)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'{0}', 'v'", "vector_search: the argument query_vector is missing"),
        ("'{0}', 'v', 5", "vector_search: query_vector is 5; an array is needed"),
        ("'{0}', 'v', array(1), 2, 'l2'", "vector_search: argument 5 has no name"),
        ("'{0}', 'v', array(1), near => 2", "vector_search: there is no argument near"),
        ("'{0}', 'v', array(1), column => 'w'", "vector_search: the argument column is given twice"),
        ("'{0}', 'v', array(rand())", "and no constant"),
        ("'{0}', 'v', array(1, 2, 3, 4), 99999999999", "vector_search: num_results is 99999999999; a whole number"),
        ("'{0}', 'v', array(1, 2)", "q of nearest has 2 numbers"),
        ("'{0}', 'v', array(1, 2, 3, 4), -1", "vector_search: num_results is -1; a whole number"),
        ("'{0}', 'v', array(1, 2, 3, 4), 2.7", "vector_search: num_results is 2.7; a whole number"),
        ("'{0}', 'v', array(1, 2, 3, 4), 2.5F", "vector_search: num_results is 2.5; a whole number"),
        ("'{0}', 'v', array(1, 2, 3, 4), 2.5D", "vector_search: num_results is 2.5; a whole number"),
        ("'{0}', 'v', array(1, 2, 3, 4), CAST(3 AS DECIMAL)", "vector_search: num_results is 3.0; a whole number"),
        ("'{0}', 'v', array(1, 2, 3, 4), '3'", "vector_search: num_results is 3; a whole number"),
        ("'{0}', 'v', array(1, 2, NULL, 4)", "q of nearest is not a vector of numbers"),
        ("'{0}', 'v', array(1, 2, 3, 4), nprobes => DATE'2020-01-01'", "nprobes is DATE '2020-01-01'; a number, text"),
        ("'{0}', 'v', array(1, 2, 3, 4), metric => INTERVAL '1' DAY", "metric is INTERVAL '1' DAY; a number, text"),
        ("'{0}', 'v', array(DATE'2020-01-01')", "query_vector is array.DATE '2020-01-01'.; a number, text"),
        ("'{0}', 'v', map(1, 2)", "query_vector is map.1, 2.; a number, text"),
        ("'{0}', 'v', X'0102'", "query_vector is X'0102'; a number, text"),
        ("'{0}', 'v', array(1, 2, 3, 4), nprobes => 2.5F", "nprobes of nearest is 2.5; a whole number"),
        ("'nowhere', 'v', array(1)", "TABLE_OR_VIEW_NOT_FOUND"),
        ("'others', 'v', array(1)", "vector_search: others is not a Lance table"),
        ("'filtered', 'v', array(1)", "vector_search: filtered is not a Lance table"),
    ],
    ids=str,
)
def test_wrong_arguments_of_the_function(planner: SparkSession, table: str, arguments: str, message: str) -> None:
    planner.range(3).createOrReplaceTempView("others")
    planner.sql(f"CREATE OR REPLACE TEMPORARY VIEW filtered AS SELECT * FROM lance.`{table}` WHERE id > 5")
    with pytest.raises(Exception, match=message):
        planner.sql(f"SELECT * FROM vector_search({arguments.format(f'lance.`{table}`')})")


def test_a_table_with_a_column_of_the_name(planner: SparkSession, path: str) -> None:
    lance_format.write_dataset(_rows(20).append_column("_distance", pa.array(range(20))), path)
    with pytest.raises(PySparkException, match="has a column '_distance', which a search adds"):
        LanceTable.forPath(planner, path).vectorSearch("v", QUERY)


def test_an_index_by_a_job(spark: SparkSession, table: str, way: str) -> None:
    found = LanceTable.forPath(spark, table)
    made = found.createIndex("v", "IVF_PQ", distanceType="cosine", numPartitions=4, numSubVectors=2)
    assert (made.name, made.fragments) == ("v_idx", 4)
    assert lance.dataset(table).stats.index_stats("v_idx")["index_type"] == "IVF_PQ"
    lance_format.write_dataset(_rows(300, seed=2), table, mode="append")
    found.refreshIndex("v_idx")
    rows = found.vectorSearch("v", QUERY, nprobes=4, refineFactor=200).select("id", "_distance")
    assert [tuple(row) for row in rows.collect()] == _expected(table, metric="cosine")


def test_an_index_by_sql(catalog: Catalog) -> None:
    lance_format.write_dataset(_rows(1000), catalog.path("t"), max_rows_per_file=300)
    catalog.sql("CREATE INDEX near ON @.t USING ivf_sq (v) OPTIONS (distance_type = 'dot', num_partitions = 3)")
    (row,) = catalog.sql("SELECT name, type FROM @.t.indices")
    assert row == ("near", "IVF_SQ")
    found = catalog.sql(
        f"SELECT id FROM vector_search('@.t', 'v', array{tuple(QUERY)}, 5, nprobes => 3, refine_factor => 50)"
    )
    assert found == [(row[0],) for row in _expected(catalog.path("t"), count=5, metric="dot")]
    catalog.refuses("CREATE INDEX i ON @.t USING ivf_pq (v) OPTIONS (num_bits = 5)", "num_bits is 5")
    catalog.refuses("CREATE INDEX i ON @.t USING ivf_pq (v) OPTIONS (column = 'w')", "which is a part of the statement")


def test_an_index_with_graphs(catalog: Catalog) -> None:
    lance_format.write_dataset(_rows(1000), catalog.path("t"), max_rows_per_file=300)
    catalog.sql(
        "CREATE INDEX near ON @.t USING ivf_hnsw_sq (v) OPTIONS (num_partitions = 2, m = 8, ef_construction = 40)"
    )
    statistics = lance.dataset(catalog.path("t")).stats.index_stats("near")
    assert statistics["index_type"] == "IVF_HNSW_SQ"
    assert statistics["indices"][0]["sub_index"]["params"]["m"] == 8
    expected = _expected(catalog.path("t"), count=5)
    search = f"SELECT id FROM vector_search('@.t', 'v', array{tuple(QUERY)}, 5, nprobes => 2, refine_factor => 50"
    for following in (")", ", ef => 1000)"):
        assert catalog.sql(search + following) == [(row[0],) for row in expected]
    table = LanceTable.forName(catalog.spark, f"{catalog.name}.db.t")
    rows = table.vectorSearch("v", QUERY, 5, nprobes=2, refineFactor=50, ef=1000).collect()
    assert [row["id"] for row in rows] == [row[0] for row in expected]
    nearest = {"column": "v", "q": QUERY, "k": 5, "nprobes": 2, "refine_factor": 50, "ef": 1000}
    assert lance.dataset(catalog.path("t")).to_table(["id"], nearest=nearest)["id"].to_pylist() == [
        x[0] for x in expected
    ]


def test_sessions_that_are_made_later(planner: SparkSession, table: str) -> None:
    search = f"SELECT id FROM vector_search('lance.`{table}`', 'v', array{tuple(QUERY)}, 2)"
    expected = [row[0] for row in _expected(table, count=2)]
    other = planner.newSession()
    other.conf.set("spark.lance.planner.enabled", "true")
    for session in (planner, other):
        assert [row.id for row in session.sql(search).collect()] == expected
    other.range(3).createOrReplaceTempView("near")
    search = "SELECT * FROM vector_search('near', 'v', array(1))"
    with pytest.raises(Exception, match="near is not a Lance table"):
        other.sql(search)
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        planner.sql(search)
