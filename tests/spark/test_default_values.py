"""Default values of columns: declared, altered, and filled in by statements, streams, merges and writes to a path."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.util import VersionUtils

import lance_format
from pyspark_lance import LanceTable
from tests.spark.conftest import Catalog, append

_LATEST = "SELECT * EXCEPT (id) FROM @.t ORDER BY id DESC LIMIT 1"


@pytest.fixture
def birds(catalog: Catalog) -> Catalog:
    """Return a catalog whose table `t` has default values for all columns but the first and the last."""
    catalog.sql(
        "CREATE TABLE @.t (id BIGINT NOT NULL, name STRING NOT NULL DEFAULT 'owl', `a b` DECIMAL(5, 2) DEFAULT 1 + 0.5,"
        " u STRUCT<x: INT> DEFAULT named_struct('x', 7), plain INT)"
    )
    return catalog


FILLED = ("owl", pytest.approx(1.5), (7,), None)


def latest(catalog: Catalog) -> tuple[object, ...]:
    """Return the row with the highest id, without it."""
    ((name, number, struct, *rest),) = catalog.sql(_LATEST)
    return (name, float(number), tuple(struct), *rest)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO @.t (id) VALUES (1)",
        "INSERT INTO @.t VALUES (1, DEFAULT, DEFAULT, DEFAULT, DEFAULT)",
        "INSERT INTO @.t BY NAME SELECT 1 AS id",
        "MERGE INTO @.t USING (SELECT 1 AS n) ON id = n WHEN NOT MATCHED THEN INSERT (id) VALUES (n)",
        "MERGE INTO @.t USING (SELECT 1 AS n) ON id = n WHEN NOT MATCHED THEN INSERT (id, name) VALUES (n, DEFAULT)",
    ],
    ids=["values", "keyword", "by name", "merge", "merge by keyword"],
)
def test_of_inserted_rows(birds: Catalog, statement: str) -> None:
    birds.sql(statement)
    assert latest(birds) == FILLED
    lance.dataset(birds.path("t")).validate()


@pytest.mark.skipif(
    VersionUtils.majorMinorVersion(pyspark.__version__) < (4, 2), reason="Spark 4.1 does not know the statements"
)
def test_of_rows_of_newer_statements(birds: Catalog) -> None:
    birds.sql("INSERT INTO @.t BY NAME REPLACE WHERE id = 1 SELECT 1 AS id")
    assert latest(birds) == FILLED
    birds.sql("INSERT WITH SCHEMA EVOLUTION INTO @.t BY NAME SELECT 2 AS id, 'x' AS more")
    assert latest(birds) == (*FILLED, "x")


def test_of_changed_rows(birds: Catalog) -> None:
    birds.sql("INSERT INTO @.t VALUES (1, 'emu', 9, NULL, 3)")
    birds.sql("UPDATE @.t SET name = DEFAULT, u = DEFAULT")
    birds.sql(
        "MERGE INTO @.t USING (SELECT 1 AS n) ON id = n WHEN MATCHED THEN UPDATE SET `a b` = DEFAULT, plain = NULL"
    )
    assert latest(birds) == FILLED


def test_of_rows_that_a_path_gets(birds: Catalog) -> None:
    append(birds.spark.range(1, 2), birds.path("t"))
    assert latest(birds) == FILLED
    append(birds.spark.sql("SELECT 2L AS id, 'emu' AS NAME"), birds.path("t"))
    assert latest(birds) == ("emu", *FILLED[1:])
    lance.dataset(birds.path("t")).validate()


@pytest.mark.parametrize("given", [{"id": "s.id"}, {"id": "s.id", "name": "'owl'"}], ids=["id", "id and name"])
def test_of_rows_that_a_merge_inserts(birds: Catalog, given: dict[str, str]) -> None:
    source = birds.spark.range(1, 2).alias("s")
    merge = LanceTable.forName(birds.spark, f"{birds.name}.db.t").alias("t").merge(source, "t.id = s.id")
    merge.whenNotMatchedInsert(values=given).execute()
    assert latest(birds) == FILLED


def test_of_rows_of_a_stream(birds: Catalog, tmp_path: Path) -> None:
    birds.spark.range(1, 2).write.parquet(str(tmp_path / "source"))
    rows = birds.spark.readStream.schema("id long").parquet(str(tmp_path / "source"))
    sink = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    assert sink.toTable(f"{birds.name}.db.t").awaitTermination(60)
    assert latest(birds) == FILLED


def test_that_are_altered(birds: Catalog) -> None:
    birds.sql("ALTER TABLE @.t ALTER COLUMN plain SET DEFAULT 2 * 4")
    birds.sql("ALTER TABLE @.t ALTER COLUMN `a b` DROP DEFAULT")
    birds.sql("INSERT INTO @.t (id, u) VALUES (1, NULL)")
    assert birds.sql(_LATEST) == [("owl", None, None, 8)]
    ((made,),) = birds.sql("SHOW CREATE TABLE @.t")
    assert "plain INT DEFAULT 2 * 4" in made
    assert "`a b` DECIMAL(5,2),\n" in made
    birds.refuses("ALTER TABLE @.t ALTER COLUMN plain SET DEFAULT 'x'", "DEFAULT value|default value")
    birds.sql("ALTER TABLE @.t ALTER COLUMN plain TYPE BIGINT")
    birds.sql("ALTER TABLE @.t RENAME COLUMN plain TO simple")
    birds.sql("INSERT INTO @.t (id, u) VALUES (2, NULL)")
    assert birds.sql(_LATEST) == [("owl", None, None, 8)]


def test_of_new_columns(birds: Catalog) -> None:
    """Rows that are there get the value of the time of the statement; later ones, that of their own."""
    birds.sql("INSERT INTO @.t (id) VALUES (1), (2)")
    birds.sql("INSERT INTO @.t (id) VALUES (3)")
    birds.sql("DELETE FROM @.t WHERE id = 2")
    version = lance.dataset(birds.path("t")).version
    birds.sql(
        "ALTER TABLE @.t ADD COLUMNS (late INT COMMENT 'x' DEFAULT 3, more ARRAY<STRING> DEFAULT array('a'), no INT)"
    )
    assert lance.dataset(birds.path("t")).version == version + 1
    assert birds.sql("SELECT id, late, more, no FROM @.t ORDER BY id") == [(1, 3, ["a"], None), (3, 3, ["a"], None)]
    birds.sql("ALTER TABLE @.t ALTER COLUMN late SET DEFAULT 4")
    birds.sql("INSERT INTO @.t (id) VALUES (4)")
    assert birds.sql("SELECT late, more FROM @.t ORDER BY id") == [(3, ["a"]), (3, ["a"]), (4, ["a"])]
    theirs = lance.dataset(birds.path("t"))
    theirs.validate()
    assert theirs.to_table(["late"]).column(0).to_pylist() == [3, 3, 4]


def test_of_new_columns_of_an_empty_table(birds: Catalog) -> None:
    birds.sql("ALTER TABLE @.t ADD COLUMN late INT DEFAULT 3")
    birds.sql("INSERT INTO @.t (id) VALUES (1)")
    assert birds.sql("SELECT late FROM @.t") == [(3,)]


def test_of_fields_of_structs_are_refused(birds: Catalog) -> None:
    birds.refuses("ALTER TABLE @.t ADD COLUMN u.y INT DEFAULT 3", "DEFAULT")
    birds.refuses("ALTER TABLE @.t ALTER COLUMN u.x SET DEFAULT 3", "DEFAULT")


def test_are_copied_with_the_columns(birds: Catalog) -> None:
    """As Spark copies those of its own tables."""
    birds.sql("CREATE TABLE @.copy AS SELECT * FROM @.t")
    birds.sql("INSERT INTO @.copy (id) VALUES (1)")
    assert birds.sql("SELECT name FROM @.copy") == [("owl",)]


def test_are_metadata_for_other_writers(birds: Catalog) -> None:
    path = birds.path("t")
    rows = pa.table({"id": pa.array([1, 2]), "name": ["emu", "auk"]})
    schema = lance.dataset(path).schema
    lance.write_dataset(rows.cast(pa.schema([schema.field("id"), schema.field("name")])), path, mode="append")
    lance_format.write_dataset(rows, path, mode="append")
    assert birds.sql("SELECT count(*), count(u) FROM @.t") == [(4, 0)]
    birds.sql("INSERT INTO @.t (id) VALUES (3)")
    assert latest(birds) == FILLED


def test_need_the_planner(birds: Catalog, spark: SparkSession) -> None:
    """Without it, a process that has no session plans the write."""
    spark.conf.set("spark.lance.planner.enabled", "false")
    try:
        with pytest.raises(PySparkException, match="has a default value, which needs a session with the planner"):
            append(spark.sql("SELECT 1L AS id, 'emu' AS name"), birds.path("t"))
        rows = spark.sql("SELECT 1L AS id, 'emu' AS name, CAST(1 AS DECIMAL(5, 2)) AS `a b`, named_struct('x', 1) AS u")
        append(rows, birds.path("t"))
    finally:
        spark.conf.unset("spark.lance.planner.enabled")
    assert birds.sql("SELECT name, plain FROM @.t") == [("emu", None)]
