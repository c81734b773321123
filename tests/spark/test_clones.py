"""Clones in Spark: made by `CALL` and `LanceTable`, read where their shared files are allowed."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lance_format
from pyspark_lance import LanceTable
from tests.spark.conftest import Catalog, append, load

_ALLOWED = "storage.allowed_base_paths"


@pytest.fixture
def source(spark: SparkSession, path: str) -> str:
    append(spark.range(10).selectExpr("id", "concat('bird ', id) AS name"), path)
    append(spark.range(10, 20).selectExpr("id", "concat('bird ', id) AS name"), path)
    return path


@pytest.mark.usefixtures("way")
def test_a_clone_is_read_where_it_is_allowed(spark: SparkSession, source: str, tmp_path: Path) -> None:
    clone = str(tmp_path / "clone")
    lance_format.dataset(source).shallow_clone(clone, 2)
    with pytest.raises(PySparkException, match="name the directory in the storage option 'allowed_base_paths'"):
        load(spark, clone).collect()
    options = {_ALLOWED: source}
    assert load(spark, clone, **options).where("id > 15").count() == 4
    spark.range(3).selectExpr("id", "'new' AS name").write.format("lance").options(**options).mode("append").save(clone)
    assert load(spark, clone, **options).groupBy("name").count().where("count > 1").collect() == [("new", 3)]
    assert load(spark, source).count() == 20


def test_tables_of_a_catalog(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT id, id * 2 AS twice FROM range(100)")
    catalog.sql("DELETE FROM @.t WHERE id = 7")
    catalog.sql(f"CALL {catalog.name}.system.create_tag('@.t', 'full', 1)")
    call = f"CALL {catalog.name}.system.clone('@.t', '{catalog.path('c')}', tag => 'full', shallow => true)"
    assert catalog.sql(call) == [(catalog.path("c"), 1, catalog.path("t"))]
    assert [row[1] for row in catalog.sql("SHOW TABLES IN @")] == ["c", "t"]
    catalog.refuses("SELECT * FROM @.c", "allowed_base_paths")
    allowing = f"{catalog.name}_allowing"
    settings = {"": "lance.Catalog", ".root": str(catalog.root), f".{_ALLOWED}": str(catalog.root)}
    for name, value in settings.items():
        catalog.spark.conf.set(f"spark.sql.catalog.{allowing}{name}", value)
    try:
        other = Catalog(catalog.spark, allowing, catalog.root)
        other.sql("MERGE INTO @.c USING @.t ON c.id = t.id WHEN MATCHED THEN UPDATE SET twice = -1")
        other.sql("UPDATE @.c SET twice = 5 WHERE id < 3")
        other.sql("DELETE FROM @.c WHERE id > 50")
        other.sql(f"CALL {allowing}.system.optimize('@.c')")
        assert other.sql("SELECT twice, count(*) FROM @.c GROUP BY twice ORDER BY twice") == [(-1, 47), (5, 3), (14, 1)]
        assert other.sql("SELECT sum(twice), count(*) FROM @.t") == [(9886, 99)]
        table = LanceTable.forName(catalog.spark, f"{allowing}.db.c")
        table.delete("id = 0")
        assert table.toDF().count() == 50
        other.sql("DROP TABLE @.c PURGE")
    finally:
        for name in settings:
            catalog.spark.conf.unset(f"spark.sql.catalog.{allowing}{name}")
    assert catalog.sql("SELECT count(*) FROM @.t") == [(99,)]


def test_a_deep_clone_by_a_procedure(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT id FROM range(100)")
    catalog.sql("INSERT INTO @.t VALUES (1000)")
    call = f"CALL {catalog.name}.system.clone('@.t', '{catalog.path('c')}', version => 1)"
    assert catalog.sql(call) == [(catalog.path("c"), 1, None)]
    assert catalog.sql("SELECT max(id) FROM @.c") == [(99,)]
    catalog.refuses(call, "DatasetExistsError: .* exists")
    catalog.refuses(call.replace("/c.lance", "/d.lance").replace("=> 1", "=> 0"), "0")
    catalog.refuses(call.replace("version => 1", "version => 1, tag => 't'"), "one of the arguments version and tag")
    for name in ("db.e", "e.lance", f"{catalog.name}.db.e"):
        catalog.refuses(call.replace(catalog.path("c"), name), "absolute path or a URI, not")
        assert not Path(name).exists()


def test_lance_table(spark: SparkSession, source: str, tmp_path: Path) -> None:
    table = LanceTable.forPath(spark, source)
    shallow = table.clone(f"{tmp_path}/shallow", isShallow=True)
    shallow.delete("id < 5")
    assert (shallow.toDF().count(), table.toDF().count()) == (15, 20)
    assert not list(Path(tmp_path, "shallow").glob("data/*.lance"))
    again = LanceTable.forPath(spark, f"{tmp_path}/shallow", {_ALLOWED: source})
    assert again.detail().first()["numRows"] == 15
    deep = table.cloneAtVersion(1, f"{tmp_path}/deep")
    assert LanceTable.forPath(spark, f"{tmp_path}/deep").toDF().count() == deep.toDF().count() == 10
    made = lance_format.dataset(source, 1).get_version()["timestamp"]
    between = table.cloneAtTimestamp(made, f"{tmp_path}/then", isShallow=True)
    assert between.toDF().count() in (0, 10)


def test_data_files_in_several_directories(planner: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    places = [lance.DatasetBasePath(str(tmp_path / name), name, is_dataset_root=False) for name in ("one", "two")]
    rows = pa.table({"id": range(1000)})
    lance.write_dataset(rows, path, initial_bases=places, target_bases=["one", "two"], max_rows_per_file=100)
    read = planner.read.format("lance").option(_ALLOWED, str(tmp_path))
    assert read.load(path).where("id % 2 = 0").count() == 500
    append(planner.range(1000, 1100), path, **{_ALLOWED: str(tmp_path)})
    assert lance.dataset(path).count_rows() == 1100
