"""`lance.SessionCatalog`: Lance tables of the session catalog are altered like those of others; the rest is as ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lance_format
from pyspark_lance import LanceTable
from tests.spark.conftest import PLANNER

CATALOG = "spark.sql.catalog.spark_catalog"


@pytest.fixture
def session(planner: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """Return a session of its own with the catalog, and a database `kept`."""
    other = planner.newSession()
    other.conf.set(PLANNER, "true")
    other.conf.set(CATALOG, "lance.SessionCatalog")
    other.sql(f"CREATE DATABASE kept LOCATION '{tmp_path / 'kept'}'")
    yield other
    other.sql("DROP DATABASE kept CASCADE")


def rows(session: SparkSession, query: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in session.sql(query).collect())


@pytest.mark.slow
def test_lance_tables(session: SparkSession, tmp_path: Path) -> None:
    session.sql("CREATE TABLE kept.t USING lance AS SELECT id, id * 2 AS n FROM range(4)")
    path = str(tmp_path / "kept" / "t")
    session.sql("ALTER TABLE kept.t ADD COLUMNS (name STRING, s STRUCT<a: INT>)")
    session.sql("ALTER TABLE kept.t ADD COLUMN s.b STRING")
    session.sql("ALTER TABLE kept.t RENAME COLUMN n TO m")
    assert lance.dataset(path).schema.names == ["id", "m", "name", "s"]
    assert session._jsparkSession.sessionState().catalog().listTables("kept").size() == 1
    session.sql("UPDATE kept.t SET name = 'x', s.b = 'y' WHERE id = 1")
    session.sql("DELETE FROM kept.t WHERE id = 3")
    assert rows(session, "SELECT id, m, name, s.b FROM kept.t WHERE id < 2") == [(0, 0, None, None), (1, 2, "x", "y")]
    assert rows(session, "SELECT * FROM kept.t VERSION AS OF 1") == [(n, 2 * n) for n in range(4)]
    lance_format.dataset(path).tags.create("first", 1)
    assert session.sql("SELECT * FROM kept.t VERSION AS OF 'first'").count() == 4
    session.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO kept.t t USING (SELECT 1L AS id, 'e' AS extra) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET *"
    )
    session.sql("CREATE OR REPLACE TABLE kept.t USING lance AS SELECT id, extra FROM kept.t")
    assert rows(session, "SELECT id FROM kept.t WHERE extra = 'e'") == [(1,)]
    session.sql("ALTER TABLE kept.t SET TBLPROPERTIES ('k' = 'v')")
    assert rows(session, "SHOW TBLPROPERTIES kept.t") == [("k", "v")]
    with pytest.raises(PySparkException, match="FIRST or AFTER"):
        session.sql("ALTER TABLE kept.t ADD COLUMN z INT FIRST")
    session.sql("INSERT OVERWRITE kept.t SELECT 9L, 'nine'")
    session.sql("INSERT INTO kept.t REPLACE WHERE id = 9 SELECT 10L, 'ten'")
    session.range(1).selectExpr("id", "'df' AS extra").write.insertInto("kept.t")
    session.sql("ALTER TABLE kept.t RENAME TO kept.u")
    assert rows(session, "SELECT * FROM kept.u") == [(0, "df"), (10, "ten")]
    lance.dataset(str(tmp_path / "kept" / "u")).validate()
    session.sql("DROP TABLE kept.u")
    assert not (tmp_path / "kept" / "u").exists()


def listed(session: SparkSession) -> list[str]:
    """Return the columns that Spark's own catalog lists."""
    metadata = session._jsparkSession.sessionState().catalog()
    found = metadata.externalCatalog().getTable("kept", "t")
    return list(found.schema().fieldNames())


def test_new_columns_come_with_the_rows(session: SparkSession, tmp_path: Path) -> None:
    session.sql("CREATE TABLE kept.t USING lance AS SELECT id FROM range(4)")
    path = str(tmp_path / "kept" / "t")
    merge = (
        "MERGE WITH SCHEMA EVOLUTION INTO kept.t t USING (SELECT id, {} AS extra FROM range(3, 5)) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    with pytest.raises(PySparkException, match="no such bird"):
        session.sql(merge.format("CAST(raise_error('no such bird') AS STRING)"))
    assert lance_format.dataset(path).version == 1
    assert listed(session) == session.table("kept.t").columns == ["id"]
    session.sql(merge.format("'x'"))
    assert lance_format.dataset(path).version == 2
    assert listed(session) == session.table("kept.t").columns == ["id", "extra"]
    assert rows(session, "SELECT * FROM kept.t WHERE id > 1") == [(2, None), (3, "x"), (4, "x")]


def test_a_table_without_rows_is_declared(session: SparkSession) -> None:
    session.sql("CREATE TABLE kept.t (id INT, name STRING) USING lance")
    session.sql("INSERT INTO kept.t VALUES (1, 'owl')")
    assert rows(session, "SELECT * FROM kept.t") == [(1, "owl")]


def test_default_values(session: SparkSession) -> None:
    session.sql("CREATE TABLE kept.t (id INT, name STRING DEFAULT 'owl') USING lance")
    session.sql("INSERT INTO kept.t (id) VALUES (1)")
    session.sql("ALTER TABLE kept.t ALTER COLUMN name SET DEFAULT 'emu'")
    session.sql("ALTER TABLE kept.t ADD COLUMN n INT DEFAULT 7")
    session.sql("INSERT INTO kept.t (id) VALUES (2)")
    assert rows(session, "SELECT * FROM kept.t") == [(1, "owl", 7), (2, "emu", 7)]


@pytest.mark.slow
def test_declared_lengths_are_those_of_the_table(session: SparkSession, tmp_path: Path) -> None:
    session.sql("CREATE TABLE kept.t (id INT, c CHAR(3) COMMENT 'short', s STRUCT<v: VARCHAR(2)>) USING lance")
    session.sql("INSERT INTO kept.t VALUES (1, 'a', named_struct('v', 'b'))")
    session.sql("UPDATE kept.t SET c = 'd'")
    assert rows(session, "SELECT concat(c, '.'), s.v FROM kept.t") == [("d  .", "b")]
    for change in ("c = 'four'", "s.v = 'many'"):
        with pytest.raises(PySparkException, match="EXCEED_LIMIT_LENGTH"):
            session.sql(f"UPDATE kept.t SET {change}")
    with pytest.raises(PySparkException, match="'c' has more than 3 characters"):
        LanceTable.forPath(session, str(tmp_path / "kept" / "t")).update(set={"c": "'four'"})
    session.sql("CREATE TABLE kept.u USING lance AS SELECT * FROM kept.t")
    entries = session.table("kept.u").schema["c"].metadata
    assert (entries["comment"], entries["__CHAR_VARCHAR_TYPE_STRING"]) == ("short", "char(3)")


@pytest.mark.slow
def test_columns_that_change_during_a_statement(session: SparkSession, tmp_path: Path) -> None:
    session.sql("CREATE TABLE kept.t USING lance AS SELECT id, id AS n FROM range(4)")
    path = str(tmp_path / "kept" / "t")

    def change(number: Any) -> Any:
        dataset = lance_format.dataset(path)
        if "more" not in dataset.schema.names:
            dataset.add_columns(pa.schema([("more", pa.string())]))
        return number

    session.udf.register("changing", change, "long")
    with pytest.raises(PySparkException, match=r"column 'more' is not known.*run the statement again"):
        session.sql("UPDATE kept.t SET n = changing(id) + 1")
    session.sql("UPDATE kept.t SET n = changing(id) + 1")
    assert rows(session, "SELECT * FROM kept.t") == [(number, number + 1, None) for number in range(4)]


def test_tables_of_other_formats_are_left_alone(session: SparkSession) -> None:
    session.sql("CREATE TABLE kept.p USING parquet PARTITIONED BY (part) AS SELECT 1 AS id, 'a' AS part")
    session.sql("CREATE VIEW kept.v AS SELECT * FROM kept.p")
    session.range(2).createOrReplaceTempView("passing")
    session.sql("INSERT INTO kept.p VALUES (2, 'b')")
    session.sql("ALTER TABLE kept.p ADD COLUMN x INT")
    assert (
        rows(session, "SELECT id, x FROM kept.p")
        == rows(session, "SELECT id, NULL FROM kept.v")
        == [(1, None), (2, None)]
    )
    assert rows(session, "SHOW PARTITIONS kept.p") == [("part=a",), ("part=b",)]
    assert session.table("passing").count() == 2
    with pytest.raises(PySparkException, match="DELETE"):
        session.sql("DELETE FROM kept.p WHERE id = 1")
    session.sql("ANALYZE TABLE kept.p COMPUTE STATISTICS")
    assert "parquet" in str(session.sql("DESCRIBE EXTENDED kept.p").collect())
    session.sql("DROP TABLE kept.p")
    session.catalog.dropTempView("passing")
