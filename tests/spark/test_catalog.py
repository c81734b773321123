"""SQL on a catalog of Lance tables, which are in a directory as pylance's directory namespace has them."""

from __future__ import annotations

import re
from pathlib import Path

import lance
import lance.namespace
import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, expr
from pyspark.util import VersionUtils

import lance_format
from pyspark_lance import LanceTable
from tests.spark.conftest import PLANNER, Catalog, catalog_of, data_files
from tests.spark.test_jobs import job_from, jobs_of
from tests.table.leftovers import leftovers


def version(spark: SparkSession) -> tuple[int, int]:
    major, minor = spark.version.split(".")[:2]
    return int(major), int(minor)


def test_a_session_has_a_catalog_called_lance(planner: SparkSession) -> None:
    planner.sql("CREATE NAMESPACE lance.given")
    planner.sql("CREATE TABLE lance.given.t AS SELECT 1 AS id")
    try:
        another = planner.newSession()
        another.conf.set(PLANNER, "true")
        assert another.table("lance.given.t").count() == 1
        location = planner.sql("DESCRIBE NAMESPACE lance.given").collect()[-1][1]
        assert location.endswith("/lance.catalog/given")
    finally:
        planner.sql("DROP NAMESPACE lance.given CASCADE")
    assert planner.sql("SHOW NAMESPACES IN lance").collect() == []


def test_a_session_that_reads_tables_of_a_catalog_only_plans_them_as_others(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT id, id % 5 AS part FROM range(50)")
    other = catalog.spark.newSession()
    for option in ("", ".root"):
        setting = f"spark.sql.catalog.{catalog.name}{option}"
        other.conf.set(setting, catalog.spark.conf.get(setting))
    other.conf.set(PLANNER, "true")
    table = f"{catalog.name}.db.t"
    numbered = f"SELECT *, row_number() OVER (PARTITION BY part ORDER BY id) AS number FROM {table}"
    query = f"SELECT id FROM ({numbered}) WHERE number < 2"
    assert ", first: " in other.sql(query)._jdf.queryExecution().executedPlan().toString()
    assert sorted(row.id for row in other.sql(query).collect()) == [0, 1, 2, 3, 4]


def test_namespaces_are_directories(catalog: Catalog) -> None:
    catalog.sql("CREATE NAMESPACE IF NOT EXISTS @")
    catalog.sql("CREATE NAMESPACE @.inner")
    (catalog.root / "_others").mkdir()
    assert catalog.sql(f"SHOW NAMESPACES IN {catalog.name}") == [("db",)]
    assert catalog.sql("SHOW NAMESPACES IN @") == [("db.inner",)]
    catalog.refuses("CREATE NAMESPACE @", "already exists")
    catalog.refuses("CREATE NAMESPACE @.x COMMENT 'mine'", "keeps neither properties nor a comment")
    catalog.refuses("DROP NAMESPACE @", "not empty|CASCADE")
    catalog.refuses(f"CREATE NAMESPACE {catalog.name}.`..`", "cannot be the name of a namespace")
    catalog.sql("CREATE TABLE @.inner.t (id INT)")
    catalog.sql("DROP NAMESPACE @ CASCADE")
    assert catalog.sql(f"SHOW NAMESPACES IN {catalog.name}") == []
    assert sorted(path.name for path in catalog.root.iterdir()) == ["_others"]


def test_a_namespace_with_files_of_others_is_not_dropped(catalog: Catalog) -> None:
    (catalog.root / "db" / "notes.txt").write_text("mine")
    catalog.refuses("DROP NAMESPACE @ CASCADE", "notes.txt is neither a table nor a namespace")


def test_create_table_keeps_what_it_is_told(catalog: Catalog) -> None:
    catalog.sql(
        "CREATE TABLE @.t (id BIGINT NOT NULL, name STRING COMMENT 'who', v ARRAY<FLOAT>) USING lance COMMENT 'birds'"
        " TBLPROPERTIES ('team' = 'x', 'enable_stable_row_ids' = 'true', 'file_format_version' = '2.1',"
        " 'name.lance.compression' = 'zstd', 'v.arrow.fixed-size-list.size' = '2')"
    )
    assert catalog.sql("SELECT * FROM @.t") == []
    theirs = lance.dataset(catalog.path("t"))
    assert theirs.version == 1
    assert not theirs.schema.field("id").nullable
    assert theirs.schema.field("name").metadata[b"lance-encoding:compression"] == b"zstd"
    assert str(theirs.schema.field("v").type) == "fixed_size_list<item: float>[2]"
    assert theirs.data_storage_version == "2.1"
    assert theirs.has_stable_row_ids
    assert theirs.config()["team"] == "x"
    described = {row[0]: row[1:] for row in catalog.sql("DESCRIBE TABLE EXTENDED @.t")}
    assert described["name"] == ("string", "who")
    assert described["Location"][0] == catalog.path("t")
    assert described["Comment"][0] == "birds"
    properties = dict(catalog.sql("SHOW TBLPROPERTIES @.t"))
    assert properties["team"] == "x"
    assert properties["enable_stable_row_ids"] == "true"
    assert properties["name.lance.compression"] == "zstd"
    assert (properties["lance.version"], properties["lance.rows"]) == ("1", "0")


def test_show_create_table_makes_the_same_table(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t (id INT NOT NULL, s STRING COMMENT 'text') TBLPROPERTIES ('a' = 'b')")
    ((made,),) = catalog.sql("SHOW CREATE TABLE @.t")
    catalog.refuses(made.replace("db.t ", "db.u "), f"is where its name says, at {catalog.path('u')}")
    catalog.sql(made.replace("db.t ", "db.u ").replace(catalog.path("t"), f"file:{catalog.path('u')}"))
    assert lance.dataset(catalog.path("u")).schema == lance.dataset(catalog.path("t")).schema
    assert lance.dataset(catalog.path("u")).config() == {"a": "b"}


def test_not_null_is_enforced(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t (id BIGINT NOT NULL, name STRING)")
    catalog.sql("INSERT INTO @.t VALUES (1, NULL)")
    catalog.refuses("INSERT INTO @.t VALUES (NULL, 'a')", "NULL")
    catalog.refuses("INSERT INTO @.t (name) VALUES ('a')", "id")
    assert lance.dataset(catalog.path("t")).to_table().to_pylist() == [{"id": 1, "name": None}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE TABLE @.p (id INT) USING parquet", "has Lance tables only.*parquet"),
        ("CREATE TABLE @.p (id INT) PARTITIONED BY (id)", "PARTITIONED BY.*Zone maps"),
        ("CREATE TABLE @.p USING lance PARTITIONED BY (id) AS SELECT 1 AS id", "PARTITIONED BY"),
        ("CREATE TABLE @.p (id INT) LOCATION '/elsewhere'", "LOCATION"),
        ("CREATE TABLE @.p (id INT DEFAULT 'x')", "default value|DEFAULT value"),
        ("CREATE TABLE @.p (id INT, twice INT GENERATED ALWAYS AS (id + id))", "GENERATED|generated"),
        ("CREATE TABLE @.p (id INT) TBLPROPERTIES ('max_row_per_file' = '5')", "option of a write"),
        ("CREATE TABLE @.p (id INT) TBLPROPERTIES ('file_format_version' = '9')", "9"),
        ("CREATE TABLE @.p (id INTERVAL YEAR)", "months"),
        ("CREATE TABLE nowhere.p AS SELECT 1 AS id", "nowhere"),
        ("CREATE TABLE @.t (id INT)", "already exists"),
        ("CREATE TABLE @.t AS SELECT 1 AS id", "already exists"),
        ("REPLACE TABLE @.p AS SELECT 1 AS id", "cannot be found"),
        ("CREATE TABLE @.p AS SELECT raise_error('no') AS id", "no"),
        ("CREATE OR REPLACE TABLE @.t AS SELECT raise_error('no') AS id", "no"),
        ("DROP TABLE @.p", "cannot be found"),
        ("ALTER TABLE @.t ADD COLUMN x INT AFTER id", "ADD COLUMN FIRST or AFTER"),
        ("ALTER TABLE @.t ADD COLUMN x INT NOT NULL", "ADD COLUMN NOT NULL"),
        ("ALTER TABLE @.t ALTER COLUMN id FIRST", "FIRST or AFTER"),
        ("ALTER TABLE @.t DROP COLUMN id", "all columns would be dropped"),
        ("ALTER TABLE @.t SET TBLPROPERTIES ('enable_stable_row_ids' = 'true')", "settled when a table is created"),
        ("ALTER TABLE @.t SET TBLPROPERTIES ('lance.version' = '7')", "cannot be set"),
        ("ALTER TABLE @.t RENAME TO nowhere.t", "no namespace"),
        ("ALTER TABLE @.t RENAME TO db.t", "already exists"),
        ("CREATE TABLE @.`..` (id INT)", "cannot be the name of a table"),
    ],
)
def test_statements_are_refused_by_name(catalog: Catalog, statement: str, message: str) -> None:
    catalog.sql("CREATE TABLE @.t (id INT)")
    statement = statement.replace("TABLE nowhere", f"TABLE {catalog.name}.nowhere")
    catalog.refuses(statement, message)
    assert sorted(path.name for path in (catalog.root / "db").iterdir()) == ["t.lance"]


def test_tables_of_queries_are_one_version(catalog: Catalog) -> None:
    properties = "TBLPROPERTIES ('a' = '1', 'b' = '1', 'file_format_version' = '2.1')"
    catalog.sql(f"CREATE TABLE @.t {properties} AS SELECT 1 AS id")
    catalog.sql("CREATE TABLE IF NOT EXISTS @.t AS SELECT 2 AS id")
    catalog.sql("REPLACE TABLE @.t TBLPROPERTIES ('a' = '2') AS SELECT id + 1 AS next, 'x' AS s FROM @.t")
    theirs = lance.dataset(catalog.path("t"))
    assert theirs.version == 2
    assert theirs.to_table().to_pylist() == [{"next": 2, "s": "x"}]
    assert theirs.config() == {"a": "2", "b": "1"}
    assert theirs.data_storage_version == "2.1"
    catalog.sql("CREATE OR REPLACE TABLE @.t (z INT NOT NULL)")
    assert lance.dataset(catalog.path("t")).version == 3
    assert not lance.dataset(catalog.path("t")).schema.field("z").nullable
    assert catalog.sql("SELECT * FROM @.t") == []
    catalog.sql("CREATE OR REPLACE TABLE @.new AS SELECT 5 AS id")
    assert catalog.sql("SELECT * FROM @.new") == [(5,)]


def test_drop_keeps_the_files_until_they_are_purged(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT 1 AS id")
    catalog.sql("CREATE TABLE @.u AS SELECT 2 AS id")
    catalog.sql("DROP TABLE @.t")
    catalog.sql("DROP TABLE IF EXISTS @.t")
    assert catalog.sql("SHOW TABLES IN @") == [("db", "u", False)]
    assert catalog.pylance_tables() == ["u"]
    catalog.refuses("SELECT * FROM @.t", "cannot be found")
    catalog.refuses("CREATE TABLE @.t (id INT)", "files of a dropped table.*PURGE")
    by_path = f"{catalog.name}.`{catalog.path('t')}`"
    assert catalog.sql(f"SELECT * FROM {by_path}") == [(1,)]
    catalog.refuses(f"DROP TABLE {by_path}", "PURGE")
    catalog.sql(f"DROP TABLE {by_path} PURGE")
    assert not Path(catalog.path("t")).exists()
    catalog.sql("DROP TABLE @.u PURGE")
    assert catalog.sql("SHOW TABLES IN @") == []


def test_pylance_lists_the_same_tables(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.a AS SELECT 1 AS id")
    lance.write_dataset(lance.dataset(catalog.path("a")).to_table(), catalog.path("b"))
    catalog.sql("ALTER TABLE @.a RENAME TO db.c")
    assert [name for _, name, _ in catalog.sql("SHOW TABLES IN @")] == catalog.pylance_tables() == ["b", "c"]
    assert catalog.sql("SELECT id FROM @.b UNION ALL SELECT id FROM @.c") == [(1,), (1,)]


def test_properties_are_changed_in_one_version(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t (id INT) TBLPROPERTIES ('a' = '1')")
    catalog.sql("ALTER TABLE @.t SET TBLPROPERTIES ('a' = '2', 'b' = '3')")
    assert lance.dataset(catalog.path("t")).version == 2
    catalog.sql("ALTER TABLE @.t UNSET TBLPROPERTIES ('a')")
    assert lance.dataset(catalog.path("t")).config() == {"b": "3"}


def test_properties_that_change_nothing_make_no_version(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t (id INT) TBLPROPERTIES ('a' = '1')")
    catalog.sql("ALTER TABLE @.t UNSET TBLPROPERTIES IF EXISTS ('b')")
    catalog.sql("ALTER TABLE @.t SET TBLPROPERTIES ('a' = '1')")
    assert lance.dataset(catalog.path("t")).version == 1
    catalog.refuses("ALTER TABLE @.t SET LOCATION '/elsewhere'", "the location of a table of a catalog cannot be set")


def test_a_comment_of_a_column_with_a_backtick(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t (s STRUCT<`a``.b`: INT>) TBLPROPERTIES ('allow_unportable_names' = 'true')")
    catalog.sql("ALTER TABLE @.t ALTER COLUMN s.`a``.b` COMMENT 'key'")
    assert "'key'" in str(catalog.spark.table(f"{catalog.name}.db.t").schema.jsonValue())


def test_a_replaced_table_keeps_the_properties_that_are_not_named(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t (id INT COMMENT 'old') COMMENT 'birds' TBLPROPERTIES ('a' = '1', 'b' = '2')")
    catalog.sql("CREATE OR REPLACE TABLE @.t TBLPROPERTIES ('b' = '3') AS SELECT 1 AS id")
    assert lance.dataset(catalog.path("t")).config() == {"a": "1", "b": "3", "comment": "birds"}
    assert catalog.sql("DESCRIBE @.t") == [("id", "int", None)]
    catalog.sql("REPLACE TABLE @.t (name STRING)")
    catalog.sql("ALTER TABLE @.t UNSET TBLPROPERTIES ('a', 'b')")
    assert lance.dataset(catalog.path("t")).config() == {"comment": "birds"}
    lance.write_dataset(pa.table({"id": [1]}), catalog.path("t"), mode="overwrite")
    assert lance.dataset(catalog.path("t")).config() == {"comment": "birds"}


@pytest.mark.slow
def test_fields_keep_not_null(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t (s STRUCT<a: INT NOT NULL, b: ARRAY<STRUCT<c: INT NOT NULL>>, m: MAP<INT, INT>>)")
    stored = lance.dataset(catalog.path("t")).schema.field("s").type
    assert not stored.field("a").nullable
    assert stored.field("b").nullable
    assert not stored.field("b").type.value_type.field("c").nullable
    row = "named_struct('a', {}, 'b', array(named_struct('c', {})), 'm', map(1, 2))"
    catalog.sql(f"INSERT INTO @.t SELECT {row.format(1, 2)} UNION ALL SELECT null")
    for values in (("null", 2), (1, "null")):
        catalog.refuses(f"INSERT INTO @.t SELECT {row.format(*values)}", "(?i)null")
    assert catalog.sql("SELECT s.a, s.b[0].c FROM @.t ORDER BY 1") == [(None, None), (1, 2)]
    lance.dataset(catalog.path("t")).validate()
    catalog.sql("ALTER TABLE @.t ALTER COLUMN s.a DROP NOT NULL")
    catalog.sql(f"INSERT INTO @.t SELECT {row.format('null', 3)}")
    assert lance.dataset(catalog.path("t")).count_rows() == 3


@pytest.mark.slow
def test_columns_are_changed_in_one_version(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t (id INT NOT NULL, s STRUCT<a: INT>, t STRING)")
    catalog.sql("INSERT INTO @.t VALUES (1, struct(2), 'x')")
    statements = [
        ("ADD COLUMNS (x INT COMMENT 'new', s.b STRING, s.c INT)", "id, s.a, s.b, s.c, x", (1, 2, None, None, None)),
        ("RENAME COLUMN x TO y", "id, y", (1, None)),
        ("RENAME COLUMN s.b TO d", "s.d", (None,)),
        ("ALTER COLUMN id TYPE BIGINT", "id, t", (1, "x")),
        ("ALTER COLUMN id DROP NOT NULL", "id", (1,)),
        ("ALTER COLUMN id COMMENT 'key'", "id", (1,)),
        ("DROP COLUMNS (y, s.c, t)", "*", (1, (2, None))),
    ]
    for number, (clause, columns, row) in enumerate(statements, 3):
        catalog.sql(f"ALTER TABLE @.t {clause}")
        assert catalog.sql(f"SELECT {columns} FROM @.t") == [row]
        theirs = lance.dataset(catalog.path("t"))
        theirs.validate()
        assert theirs.version == number
    assert theirs.schema.field("id").metadata == {b"comment": b"key"}
    assert str(theirs.schema.field("id").type) == "int64"
    assert theirs.schema.field("id").nullable
    catalog.sql("INSERT INTO @.t VALUES (3, NULL)")
    assert catalog.sql("SELECT id FROM @.t ORDER BY id") == [(1,), (3,)]


def test_misspelt_properties_of_columns_are_refused(catalog: Catalog) -> None:
    name = "'id.lance.compresion' = 'zstd'"
    catalog.refuses(f"CREATE TABLE @.t (id INT) TBLPROPERTIES ({name})", "compresion' is unknown.*lance.compression,")
    catalog.sql("CREATE TABLE @.t (`a.b` INT) TBLPROPERTIES ('allow_unportable_names' = 'true', 'my.own' = 'x')")
    catalog.refuses(f"ALTER TABLE @.t SET TBLPROPERTIES ({name})", "compresion' is unknown")
    catalog.sql("INSERT INTO @.t VALUES (1)")
    assert catalog.sql("SELECT `a.b` FROM @.t") == [(1,)]
    assert "allow_unportable_names" not in dict(catalog.sql("SHOW TBLPROPERTIES @.t"))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("enable_stable_row_id", "enable_stable_row_ids"),
        ("enableStableRowIds", "enable_stable_row_ids"),
        ("file_format_versions", "file_format_version"),
        ("data_storage_version", "file_format_version"),
    ],
)
def test_misspelt_properties_of_tables_are_refused(catalog: Catalog, name: str, meant: str) -> None:
    catalog.refuses(f"CREATE TABLE @.t (id INT) TBLPROPERTIES ('{name}' = '2.1')", f"{name}' is unknown.*'{meant}'")
    path = catalog.path("t")
    lance_format.write_dataset(pa.table({"id": [1]}), path).update_config({name: "2.1"})
    catalog.refuses(f"ALTER TABLE @.t SET TBLPROPERTIES ('{name}' = '2.2')", f"Did you mean '{meant}'")
    catalog.sql(f"ALTER TABLE @.t UNSET TBLPROPERTIES ('{name}')")
    assert name not in lance_format.dataset(path).config()


@pytest.mark.slow
def test_a_type_changes_with_what_arrow_lacks_of_it(catalog: Catalog) -> None:
    catalog.sql(
        "CREATE TABLE @.t (c CHAR(2), v VARCHAR(2), w VARCHAR(2), l STRING, s STRUCT<c: CHAR(2), v: VARCHAR(2)>)"
    )
    catalog.sql("INSERT INTO @.t VALUES ('a', 'b', 'c', 'd', named_struct('c', 'e', 'v', 'f'))")
    for change in (
        "c TYPE VARCHAR(4)",
        "v TYPE VARCHAR(4)",
        "w TYPE STRING",
        "l TYPE STRING COLLATE UTF8_LCASE",
        "s.c TYPE STRING COLLATE UTF8_LCASE",
    ):
        catalog.sql(f"ALTER TABLE @.t ALTER COLUMN {change}")
    assert catalog.sql("SELECT c FROM @.t WHERE l = 'D'") == [("a ",)]
    catalog.sql("INSERT INTO @.t VALUES ('four', 'four', 'many', '', named_struct('c', 'many', 'v', 'vv'))")
    row = {"c": "''", "v": "''", "l": "''", "s": "named_struct('c', '', 'v', '')"}
    for name, value in {"c": "'fives'", "v": "'fives'", "s": "named_struct('c', '', 'v', 'vvv')"}.items():
        values = {**row, name: value}
        catalog.refuses(
            f"INSERT INTO @.t ({', '.join(values)}) VALUES ({', '.join(values.values())})", "EXCEED_LIMIT_LENGTH"
        )
    lance.dataset(catalog.path("t")).validate()


@pytest.mark.slow
def test_structs_with_lengths_change(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t (id INT, s STRUCT<c: CHAR(2), n: INT>)")
    catalog.sql("INSERT INTO @.t VALUES (1, named_struct('c', 'a', 'n', 1))")
    catalog.sql("ALTER TABLE @.t ADD COLUMNS (s.x INT, s.v VARCHAR(2))")
    assert catalog.sql("SELECT s FROM @.t") == [(("a ", 1, None, None),)]
    catalog.sql("ALTER TABLE @.t RENAME COLUMN s.c TO d")
    catalog.sql("ALTER TABLE @.t DROP COLUMN s.n")
    lance.dataset(catalog.path("t")).alter_columns({"path": "s.x", "name": "y"})
    catalog.sql("INSERT INTO @.t VALUES (2, named_struct('d', 'b', 'y', 3, 'v', 'vv'))")
    catalog.sql("UPDATE @.t SET s.y = 4 WHERE id = 1")
    assert catalog.sql("SELECT s, s.d, s.y FROM @.t ORDER BY id") == [
        (("a ", 4, None), "a ", 4),
        (("b ", 3, "vv"), "b ", 3),
    ]
    for values in ("'d', 'ccc', 'y', 1, 'v', ''", "'d', '', 'y', 1, 'v', 'vvv'"):
        catalog.refuses(f"INSERT INTO @.t VALUES (3, named_struct({values}))", "EXCEED_LIMIT_LENGTH")


@pytest.mark.slow
def test_values_of_another_type_are_those_of_cast(catalog: Catalog) -> None:
    names = "x DOUBLE, d DATE, t TIMESTAMP, u TIMESTAMP_NTZ, p DECIMAL(9,7), i INTERVAL DAY TO SECOND, n INT, b BOOLEAN"
    catalog.sql(f"CREATE TABLE @.t ({names})")
    values = "1e10, DATE'2024-07-01', TIMESTAMP'2024-07-01 12:00:00', TIMESTAMP_NTZ'2024-07-01 12:00:00', 1e-7BD"
    catalog.sql(f"INSERT INTO @.t VALUES ({values}, INTERVAL '1 00:00:00' DAY TO SECOND, 7, true)")
    for change in ("x TYPE STRING", "t TYPE STRING", "p TYPE STRING", "i TYPE STRING", "d TYPE STRING"):
        catalog.refuses(f"ALTER TABLE @.t ALTER COLUMN {change}", "Spark's own spelling.*CREATE OR REPLACE TABLE")
    for change in ("d TYPE TIMESTAMP", "t TYPE TIMESTAMP_NTZ", "u TYPE TIMESTAMP"):
        catalog.refuses(f"ALTER TABLE @.t ALTER COLUMN {change}", "time zone of the session.*CREATE OR REPLACE TABLE")
    same = {"n": "STRING", "b": "STRING", "d": "TIMESTAMP_NTZ", "p": "DECIMAL(20,10)"}
    wanted = catalog.sql(f"SELECT {', '.join(f'CAST({name} AS {kind})' for name, kind in same.items())} FROM @.t")
    for name, kind in same.items():
        catalog.sql(f"ALTER TABLE @.t ALTER COLUMN {name} TYPE {kind}")
    assert catalog.sql(f"SELECT {', '.join(same)} FROM @.t") == wanted


def test_dataframes_are_written_by_name(catalog: Catalog) -> None:
    spark, name = catalog.spark, f"{catalog.name}.db.t"
    rows = spark.range(3)
    rows.writeTo(name).using("lance").tableProperty("a", "b").create()
    rows.writeTo(name).append()
    rows.write.insertInto(name)
    rows.write.mode("append").saveAsTable(name)
    assert spark.table(name).count() == 12
    rows.write.mode("overwrite").saveAsTable(name)
    assert spark.table(name).count() == 3
    rows.write.mode("ignore").saveAsTable(name)
    rows.write.insertInto(name, overwrite=True)
    assert spark.read.table(name).count() == 3
    spark.range(1).write.option("max_row_per_file", "10").saveAsTable(f"{catalog.name}.db.u")
    with pytest.raises(PySparkException, match="already exists"):
        rows.write.saveAsTable(name)
    with pytest.raises(PySparkException, match="has Lance tables only"):
        rows.writeTo(f"{catalog.name}.db.v").using("parquet").create()
    rows.selectExpr("id + 5 AS id").writeTo(name).createOrReplace()
    assert sorted(row.id for row in spark.table(name).collect()) == [5, 6, 7]


def test_names_of_the_session(catalog: Catalog) -> None:
    spark = catalog.spark
    catalog.sql("CREATE TABLE @.t AS SELECT 1 AS id")
    assert spark.catalog.tableExists(f"{catalog.name}.db.t")
    assert not spark.catalog.tableExists(f"{catalog.name}.db.u")
    assert [table.name for table in spark.catalog.listTables(f"{catalog.name}.db")] == ["t"]
    catalog.sql("USE @")
    assert catalog.sql("SELECT * FROM t") == [(1,)]
    assert spark.catalog.currentCatalog() == catalog.name
    assert [column.name for column in spark.catalog.listColumns("t")] == ["id"]
    catalog.sql("REFRESH TABLE t")
    assert catalog.sql("SHOW COLUMNS IN t") == [("id",)]


def test_create_table_like(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t (id INT NOT NULL, s STRING DEFAULT 'x' COMMENT 'text') TBLPROPERTIES ('a' = 'b')")
    if version(catalog.spark) < (4, 2):
        catalog.refuses("CREATE TABLE @.u LIKE @.t", "")  # By Spark, before it asks a catalog.
        return
    catalog.sql("CREATE TABLE @.u LIKE @.t")
    assert lance.dataset(catalog.path("u")).schema == lance.dataset(catalog.path("t")).schema
    assert lance.dataset(catalog.path("u")).config() == {"a": "b"}


def test_a_table_by_its_path(catalog: Catalog, tmp_path: Path) -> None:
    path = f"{catalog.name}.`{tmp_path}/elsewhere/t.lance`"
    catalog.sql(f"CREATE TABLE {path} AS SELECT 1 AS id")
    catalog.sql(f"INSERT INTO {path} VALUES (2)")
    catalog.spark.range(3, 4).selectExpr("cast(id AS int) AS id").writeTo(path).append()
    assert sorted(catalog.sql(f"SELECT id FROM {path}")) == [(1,), (2,), (3,)]
    assert lance_format.dataset(tmp_path / "elsewhere" / "t.lance").count_rows() == 3


def test_percent_signs_in_a_uri_of_this_machine_are_codes(planner: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "a b%41+ü"
    uri = place.as_uri()
    for start, end in (("file:", ""), ("file://", "/")):
        name = f"lance.`{uri.replace('file://', start)}{end}`"
        planner.sql(f"CREATE TABLE {name} AS SELECT id FROM range(3)")
        planner.sql(f"DELETE FROM {name} WHERE id = 1")
        planner.range(5, 6).write.format("lance").mode("append").save(uri)
        assert sorted(planner.table(name).collect()) == [(0,), (2,), (5,)]
        assert LanceTable.forName(planner, name).toDF().count() == 3
        assert lance.dataset(uri).count_rows() == 3
        planner.sql(f"DROP TABLE {name} PURGE")
    with pytest.raises(PySparkException, match="its codes, as %41, are not those of a text in UTF-8"):
        planner.table(f"lance.`file://{tmp_path}/%ff`")
    with catalog_of(planner, place, {"root": uri}) as made:
        made.sql("CREATE TABLE @.t AS SELECT 1 AS id")
        assert lance.dataset(made.path("t")).count_rows() == 1
    assert [found.name for found in tmp_path.iterdir()] == [place.name]


def test_parts_of_a_table_of_the_current_namespace(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT 1 AS id")
    catalog.sql("USE @")
    catalog.sql(f"CALL {catalog.name}.system.create_branch('t', 'b')")
    catalog.sql("INSERT INTO t.branch_b VALUES (2)")
    assert catalog.sql("SELECT count(*) FROM t.branch_b") == [(2,)]
    assert catalog.sql("SELECT version FROM t.history") == [(1,)]
    assert catalog.sql("SELECT version FROM t.branch_b.history") == [(2,), (1,)]
    assert catalog.sql(f"CALL {catalog.name}.system.optimize('t.branch_b')") != []
    catalog.refuses("SELECT * FROM u.history", "TABLE_OR_VIEW_NOT_FOUND")
    catalog.sql(f"CREATE NAMESPACE {catalog.name}.t")
    catalog.refuses("SELECT * FROM t.history", "TABLE_OR_VIEW_NOT_FOUND")


def test_a_path_without_a_table(catalog: Catalog, tmp_path: Path) -> None:
    missing = f"{catalog.name}.`{tmp_path}/missing.lance`"
    statements = ("SELECT * FROM {}", "SELECT * FROM {} VERSION AS OF 2", "INSERT INTO {} VALUES (1)", "DELETE FROM {}")
    for statement in statements:
        catalog.refuses(statement.format(missing), "DatasetNotFoundError.*missing.lance")
    assert not catalog.spark.catalog.tableExists(missing)
    catalog.sql(f"DROP TABLE IF EXISTS {missing}")
    catalog.sql(f"CREATE TABLE IF NOT EXISTS {missing} AS SELECT 1 AS id")
    assert catalog.sql(f"SELECT * FROM {missing}") == [(1,)]
    assert len(catalog.sql(f"CALL {catalog.name}.system.history('lance.`{tmp_path}/missing.lance`')")) == 1


def test_a_query_sees_what_was_written_since(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT 1 AS id")
    kept = catalog.spark.table(f"{catalog.name}.db.t").cache()
    assert kept.count() == 1
    catalog.sql("INSERT INTO @.t VALUES (2)")
    assert catalog.spark.table(f"{catalog.name}.db.t").count() == 2
    lance.write_dataset(lance.dataset(catalog.path("t")).to_table(), catalog.path("t"), mode="append")
    catalog.sql("REFRESH TABLE @.t")  # Spark keeps to what is cached until then.
    assert catalog.spark.table(f"{catalog.name}.db.t").count() == 4
    catalog.spark.catalog.clearCache()


@pytest.fixture
def versions(catalog: Catalog) -> Catalog:
    """Return a catalog whose table `t` has three versions, the second one tagged, and a branch."""
    catalog.sql("CREATE TABLE @.t AS SELECT 1 AS id")
    catalog.sql("INSERT INTO @.t VALUES (2)")
    dataset = lance_format.dataset(catalog.path("t"))
    dataset.tags.create("second", 2)
    dataset.create_branch("b")
    catalog.sql("CREATE OR REPLACE TABLE @.t AS SELECT id, 'x' AS s FROM @.t")
    return catalog


@pytest.mark.parametrize("statement", ["SELECT * FROM lance.nothing", "DELETE FROM lance.nothing"])
def test_a_missing_table_is_not_taken_for_files(planner: SparkSession, statement: str) -> None:
    with pytest.raises(PySparkException, match=r"TABLE_OR_VIEW_NOT_FOUND.*lance\.nothing"):
        planner.sql(statement).collect()


def test_paths_below_the_home_directory(planner: SparkSession, catalog: Catalog) -> None:
    absent = rf"{re.escape(str(Path.home()))}/absent/t\.lance"
    for read in (
        lambda: planner.read.format("lance").load("~/absent/t.lance"),
        lambda: planner.sql("SELECT * FROM lance.`~/absent/t.lance`"),
        lambda: planner.sql("DELETE FROM lance.`~/absent/t.lance`"),
    ):
        with pytest.raises(PySparkException, match=f"no Lance table at {absent}"):
            read()
    here = rf"{re.escape(str(Path.cwd()))}/~/absent/t\.lance"
    for read in (
        lambda: planner.read.format("lance").load("./~/absent/t.lance"),
        lambda: planner.sql("SELECT * FROM lance.`./~/absent/t.lance`"),
    ):
        with pytest.raises(PySparkException, match=f"no Lance table at {here}"):
            read()
    planner.conf.set(f"spark.sql.catalog.{catalog.name}_home", "lance.Catalog")
    planner.conf.set(f"spark.sql.catalog.{catalog.name}_home.root", "~/absent")
    with pytest.raises(PySparkException, match=f"is where its name says, at {absent}"):
        planner.sql(f"CREATE TABLE {catalog.name}_home.t (a INT) LOCATION '/elsewhere'")


def test_versions_of_a_table(versions: Catalog) -> None:
    count = "SELECT count(*) FROM @.t"
    assert versions.sql(f"{count} VERSION AS OF 1") == [(1,)]
    assert versions.sql(f"{count} VERSION AS OF 'second'") == [(2,)]
    assert versions.sql(f"{count} FOR SYSTEM_VERSION AS OF 2") == [(2,)]
    assert versions.sql(f"{count} TIMESTAMP AS OF current_timestamp()") == [(2,)]
    assert versions.spark.sql("SELECT * FROM @.t VERSION AS OF 2".replace("@", f"{versions.name}.db")).columns == ["id"]
    by_path = f"{versions.name}.`{versions.path('t')}`"
    assert versions.sql(f"SELECT count(*) FROM {by_path} VERSION AS OF 1") == [(1,)]
    joined = "SELECT count(*) FROM @.t AS new LEFT ANTI JOIN @.t VERSION AS OF 1 AS old ON new.id = old.id"
    assert versions.sql(joined) == [(1,)]
    versions.refuses(f"{count} VERSION AS OF 99", "99")
    versions.refuses(f"{count} VERSION AS OF 'none'", "none")
    versions.refuses(f"{count} TIMESTAMP AS OF '2001-01-01'", "as old as the time given: the earliest, 1")
    versions.refuses("INSERT INTO @.t VERSION AS OF 1 VALUES (5)", "")


@pytest.mark.parametrize("time", ["current_timestamp()", "date_add(current_date(), 1)", "(SELECT max(now()))"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM {}",
        "WITH old AS (SELECT * FROM {}) SELECT count(*) FROM old JOIN old USING (id)",
        "SELECT count(*) FROM lance.`{path}` WHERE id IN (SELECT id FROM {})",
    ],
)
def test_times_that_spark_computes(versions: Catalog, query: str, time: str) -> None:
    path = versions.path("t")
    text = query.format(f"lance.`{path}` TIMESTAMP AS OF {time}", path=path)
    assert versions.sql(text) == [(2,)]
    versions.sql(f"CREATE TEMPORARY VIEW counted AS {text}")
    assert versions.sql("SELECT * FROM counted") == [(2,)]


def test_times_that_a_new_session_computes(versions: Catalog) -> None:
    other = versions.spark.newSession()
    other.conf.set(PLANNER, "true")
    text = f"SELECT count(*) FROM lance.`{versions.path('t')}` TIMESTAMP AS OF now()"
    assert other.sql(text).collect() == [(2,)]


@pytest.mark.parametrize("time", ["id", "rand()", "absent(1)"])
def test_times_that_are_none(versions: Catalog, time: str) -> None:
    message = "cannot refer to any columns|NON_DETERMINISTIC|Cannot resolve routine"
    with pytest.raises(PySparkException, match=message):
        versions.spark.sql(f"SELECT * FROM lance.`{versions.path('t')}` TIMESTAMP AS OF {time}")


def test_versions_as_options(versions: Catalog) -> None:
    read, table, path = versions.spark.read, f"{versions.name}.db.t", versions.path("t")
    committed = lance_format.dataset(path).versions()[1]["timestamp"].astimezone().isoformat(sep=" ")
    for wanted, rows in ({"versionAsOf": "1"}, 1), ({"versionAsOf": "second"}, 2), ({"timestampAsOf": committed}, 2):
        for named in wanted, {name.lower(): value for name, value in wanted.items()}:
            assert versions.spark.read.options(**named).table(table).count() == rows
            assert versions.spark.read.format("lance").options(**named).load(path).count() == rows
    with pytest.raises(PySparkException, match="contradict"):
        read.format("lance").options(versionAsOf="1", version="2").load(path)


def test_options_do_not_replace_what_a_name_says(versions: Catalog) -> None:
    versions.sql("CREATE TABLE @.other AS SELECT 99 AS id, 'y' AS s")
    other, count = versions.path("other"), "SELECT count(*) FROM @.t"
    read = versions.spark.read
    versions.refuses(f"SELECT * FROM @.t WITH (path = '{other}')", "option 'path' of the query is .*other.*contradict")
    versions.refuses(f"INSERT INTO @.t WITH (path = '{other}') VALUES (7, 'z')", "option 'path'")
    versions.refuses("SELECT * FROM @.t.branch_b WITH (branch = 'main')", "option 'branch' of the query is 'main'")
    versions.refuses("INSERT INTO @.t.branch_b WITH (branch = 'main') VALUES (7)", "option 'branch'")
    versions.refuses(f"{count} VERSION AS OF 1 WITH (version = 2)", "option 'version' of the query is '2'")
    versions.refuses(f"{count} WITH (metadata_table = 'files')", r"as t\.files")
    versions.refuses(
        "SELECT * FROM @.t WITH (columns = '[\"id\"]')", "option 'columns' is for paths: select the columns"
    )
    versions.refuses("SELECT * FROM @.t.files WITH (metadata_table = 'tags')", "option 'metadata_table'")
    versions.refuses(
        "SELECT * FROM @.t WITH (readChangeFeed = true, startingVersion = 1)",
        "'readChangeFeed' is for paths.*CHANGES FROM",
    )
    assert versions.sql(f"{count} WITH (readChangeFeed = false)") == [(2,)]
    assert versions.sql(f"{count} WITH (path = 'file:{versions.path('t')}/')") == [(2,)]
    assert versions.sql("SELECT count(*) FROM @.t.branch_b WITH (branch = 'b')") == [(2,)]
    with pytest.raises(PySparkException, match="option 'version'"):
        read.options(versionAsOf="1", version="2").table(f"{versions.name}.db.t").collect()
    with pytest.raises(PySparkException, match="option 'path'"):
        versions.spark.readStream.option("path", other).table(f"{versions.name}.db.t")
    with pytest.raises(PySparkException, match="option 'readChangeFeed' is for paths"):
        versions.spark.readStream.option("readChangeFeed", "true").table(f"{versions.name}.db.t")


def test_options_choose_versions_with_the_columns_of_now(versions: Catalog) -> None:
    versions.refuses("SELECT * FROM @.t WITH (version = 1)", "column 's' is not in the table.*VERSION AS OF")
    versions.refuses("SELECT * FROM @.t WITH (branch = 'b')", "column 's' is not in the table.*branch_b")
    versions.sql("INSERT INTO @.t VALUES (3, 'y')")
    assert versions.sql("SELECT count(*) FROM @.t WITH (version = 3)") == [(2,)]


def test_branches_have_names(versions: Catalog) -> None:
    assert versions.sql("SELECT * FROM @.t.branch_b ORDER BY id") == [(1,), (2,)]
    versions.sql("INSERT INTO @.t.branch_b VALUES (3)")
    assert versions.sql("SELECT count(*) FROM @.t.branch_b") == [(3,)]
    assert versions.sql("SELECT count(*) FROM @.t") == [(2,)]
    by_path = f"{versions.name}.`{versions.path('t')}`.branch_b"
    assert versions.sql(f"SELECT count(*) FROM {by_path}") == [(3,)]
    versions.refuses("SELECT * FROM @.t.branch_none", "has no branch 'none'; it has b")
    versions.refuses("INSERT INTO @.t.branch_none VALUES (1)", "has no branch 'none'")
    assert not versions.spark.catalog.tableExists(f"{versions.name}.db.t.branch_none")
    versions.refuses("DROP TABLE @.t.branch_b", "names a branch")
    versions.refuses("DROP TABLE @.t.branch_b PURGE", "names a branch")
    versions.refuses("CREATE OR REPLACE TABLE @.t.branch_b AS SELECT 1 AS id", "names a branch")
    versions.refuses("ALTER TABLE @.t.branch_b RENAME TO db.x", "names a branch")
    versions.sql("CREATE TABLE @.branch_b AS SELECT 7 AS id")
    assert versions.sql("SELECT * FROM @.branch_b") == [(7,)]


needs_ids = pytest.mark.skipif(
    VersionUtils.majorMinorVersion(pyspark.__version__) < (4, 2), reason="columns of Spark 4.1 have no ids"
)


@needs_ids
@pytest.mark.parametrize("column", ["name", "p.y"])
def test_a_column_of_the_same_name_is_another_column(catalog: Catalog, column: str) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT 1 AS id, 2 AS name, named_struct('x', 1, 'y', 2) AS p")
    table = catalog.spark.table(f"{catalog.name}.db.t")
    before = [table, table.select("id"), table.where("id > 0")]
    catalog.sql(f"ALTER TABLE @.t DROP COLUMN {column}")
    catalog.sql(f"ALTER TABLE @.t ADD COLUMN {column} INT")
    for frame in before:
        with pytest.raises(PySparkException, match=r"(?s)COLUMNS_MISMATCH.*field ID has changed"):
            frame.collect()
    assert catalog.spark.table(f"{catalog.name}.db.t").select("p.x", "id").collect() == [(1, 1)]


@needs_ids
def test_columns_stay_the_same_if_their_rows_are_replaced(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT 0 AS old, 1 AS id, named_struct('x', 1, 'y', 2) AS p")
    catalog.sql("ALTER TABLE @.t DROP COLUMN old")
    before = catalog.spark.table(f"{catalog.name}.db.t")
    catalog.sql("INSERT OVERWRITE @.t SELECT id + 1, p FROM @.t")
    assert before.select("*").collect() == [(2, (1, 2))]
    catalog.sql("CREATE OR REPLACE TABLE @.t AS SELECT p, id + 1 AS id FROM @.t")
    assert before.select("*").collect() == [(3, (1, 2))]
    catalog.sql("UPDATE @.t SET id = 7")
    catalog.sql("ALTER TABLE @.t ADD COLUMN more INT")
    assert before.select("*").collect() == [(7, (1, 2))]
    assert lance.dataset(catalog.path("t")).to_table(["id"]).to_pylist() == [{"id": 7}]


def test_ids_of_columns_are_not_stored_with_a_copy(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT 1 AS id, named_struct('x', 1) AS p, map('a', named_struct('y', 1)) AS m")
    catalog.sql("CREATE TABLE @.copy AS SELECT * FROM @.t")
    catalog.sql("CREATE TABLE @.renamed AS SELECT id AS key, p.x, m FROM @.t")
    catalog.spark.table(f"{catalog.name}.db.t").write.format("lance").save(catalog.path("saved"))
    for name in ("copy", "renamed", "saved"):
        assert "FIELD_ID" not in str(lance.dataset(catalog.path(name)).schema)


def test_a_table_of_the_same_name_is_another_table(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT 1L AS id")
    before = [catalog.spark.table(f"{catalog.name}.db.t") for _ in range(2)]
    catalog.sql("INSERT INTO @.t VALUES (2)")
    catalog.sql("CREATE OR REPLACE TABLE @.t AS SELECT id FROM @.t")
    assert before[0].count() == 2
    assert before[0].where("id > 1").count() == 1
    catalog.sql("DROP TABLE @.t PURGE")
    catalog.sql("CREATE TABLE @.t AS SELECT 7L AS id")
    for query in (before[1], before[0].where("id > 2")):
        with pytest.raises(PySparkException, match="TABLE_ID_MISMATCH"):
            query.collect()
    assert catalog.sql("SELECT * FROM @.t") == [(7,)]


def test_insert_by_column(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t (id BIGINT, name STRING, x INT)")
    catalog.sql("INSERT INTO @.t (name, id) VALUES ('owl', 1)")
    catalog.sql("INSERT INTO @.t BY NAME SELECT 'emu' AS name, 2 AS id")
    assert catalog.sql("SELECT * FROM @.t ORDER BY id") == [(1, "owl", None), (2, "emu", None)]
    catalog.sql("INSERT OVERWRITE @.t SELECT id + 1, name, x FROM @.t")
    assert catalog.sql("SELECT id FROM @.t ORDER BY id") == [(2,), (3,)]
    catalog.refuses("INSERT INTO @.t VALUES (1)", "")
    catalog.refuses("INSERT INTO @.t BY NAME SELECT 1 AS other", "other")
    catalog.sql("TRUNCATE TABLE @.t")
    assert catalog.sql("SELECT * FROM @.t") == []


@pytest.mark.slow
def test_replace_where_is_one_version(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT id, concat('n', id) AS name FROM range(10)")
    catalog.sql("INSERT INTO @.t VALUES (NULL, 'null')")
    catalog.sql("INSERT INTO @.t REPLACE WHERE id >= 3 AND id < 9 SELECT id * 100, name FROM @.t WHERE id = 4")
    expected = [(None, "null"), (0, "n0"), (1, "n1"), (2, "n2"), (9, "n9"), (400, "n4")]
    assert catalog.sql("SELECT * FROM @.t ORDER BY id") == expected
    theirs = lance.dataset(catalog.path("t"))
    theirs.validate()
    assert theirs.version == 3
    assert sorted(theirs.to_table()["name"].to_pylist()) == sorted(name for _, name in expected)
    table = catalog.spark.table(f"{catalog.name}.db.t")
    new = catalog.spark.createDataFrame([(1, "new")], table.schema)
    new.writeTo(f"{catalog.name}.db.t").overwrite(col("id").isNull() | col("name").startswith("n0"))
    assert [row.id for row in table.sort("id").collect()] == [1, 1, 2, 9, 400]
    catalog.sql("INSERT INTO @.t REPLACE WHERE id = 9 SELECT id, name FROM @.t WHERE false")
    assert catalog.sql("SELECT count(*) FROM @.t WHERE id = 9") == [(0,)]
    assert lance.dataset(catalog.path("t")).version == 5


@pytest.mark.slow
def test_rows_to_replace_are_found_by_a_job(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT id, concat('n', id) AS name FROM range(0, 4000, 1, 4)")
    with job_from(catalog.spark, 0):
        replace = "INSERT INTO @.t REPLACE WHERE upper(name) <> 'A' AND id >= 100 SELECT -1, 'new'"
        catalog.refuses(replace, "REPLACE WHERE")
        replace = "INSERT INTO @.t REPLACE WHERE id >= 100 SELECT -1, 'new'"
        jobs = jobs_of(catalog.spark, lambda: catalog.sql(replace))
        assert {job.description for job in jobs if job.description} == {
            f"lance: find rows to replace in {catalog.path('t')}",
            f"lance: REPLACE WHERE {catalog.path('t')}",
        }
        assert catalog.sql("SELECT count(*), min(id), max(id) FROM @.t") == [(101, -1, 99)]
        theirs = lance.dataset(catalog.path("t"))
        theirs.validate()
        assert theirs.version == 2
        catalog.sql("INSERT INTO @.t REPLACE WHERE id = 5000 SELECT 5000, 'none'")
        assert catalog.sql("SELECT count(*) FROM @.t") == [(102,)]
        catalog.sql("INSERT INTO @.t REPLACE WHERE id % 2 = 1 AND substring(name, 1, 1) = 'n' SELECT 7000, 'odd'")
        assert catalog.sql("SELECT count(*), sum(id) FROM @.t") == [(53, 2450 - 1 + 5000 + 7000)]
        assert not leftovers(Path(catalog.path("t")))


def test_the_driver_deletes_what_it_finds_sooner_than_a_job(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT id FROM range(100)")
    assert not jobs_of(catalog.spark, lambda: catalog.sql("DELETE FROM @.t WHERE id < 10"))
    with job_from(catalog.spark, 0):
        assert jobs_of(catalog.spark, lambda: catalog.sql("DELETE FROM @.t WHERE id >= 90"))
    assert catalog.sql("SELECT count(*) FROM @.t") == [(80,)]


@pytest.mark.slow
def test_replace_where_refuses_what_it_cannot_do(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT id, concat('n', id) AS name FROM range(10)")
    catalog.refuses("INSERT INTO @.t REPLACE WHERE upper(name) = 'N' SELECT 1, 'a'", "REPLACE WHERE|ilter")
    catalog.refuses("INSERT INTO @.t REPLACE WHERE id > 3 SELECT raise_error('no'), 'a'", "no")
    catalog.refuses("INSERT INTO @.t REPLACE WHERE nothing = 1 SELECT 1, 'a'", "nothing")
    catalog.sql("CREATE TABLE @.texts (name STRING COLLATE UTF8_LCASE)")
    for condition, shown in {
        "name LIKE 'o%'": "name LIKE 'o%'",
        "contains(name, 'o')": "name LIKE '%o%'",
        "startswith(name, '')": "name LIKE '%'",
        "name > 'owl'": "name > 'owl' is none",
    }.items():
        catalog.refuses(f"INSERT INTO @.texts REPLACE WHERE {condition} VALUES ('a')", f"and {shown}.* evaluates")
    with pytest.raises(PySparkException, match=r"dynamic.*REPLACE WHERE"):
        catalog.spark.range(1).selectExpr("id", "'x' AS name").writeTo(f"{catalog.name}.db.t").overwritePartitions()
    assert lance.dataset(catalog.path("t")).version == 1


def test_replace_where_keeps_concurrent_appends_and_not_concurrent_deletes(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t AS SELECT id FROM range(4)")
    path = catalog.path("t")
    seen = lance_format.dataset(path)
    write = lance_format.plan_write(path, seen.schema, mode="append")
    fragments = write.write_fragments(seen.to_batches(filter="id = 3"))
    catalog.sql("INSERT INTO @.t VALUES (2)")
    assert seen.replace_where("id = 2", fragments, uuid=write.uuid).num_deleted_rows == 1
    assert sorted(catalog.sql("SELECT * FROM @.t")) == [(0,), (1,), (2,), (3,), (3,)]
    lance_format.dataset(path, 1).replace_where("id = 2", fragments, uuid=write.uuid)
    assert lance_format.dataset(path).version == 3
    before = data_files(path)
    stale = lance_format.dataset(path)
    other = lance_format.plan_write(path, seen.schema, mode="append")
    written = other.write_fragments(seen.to_batches())
    lance_format.dataset(path).delete("id = 1")
    with pytest.raises(lance_format.RetryableCommitConflictError):
        stale.replace_where("id = 1", written, uuid=other.uuid)
    assert data_files(path) == before


@pytest.mark.slow
def test_rows_are_changed_by_name(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t (id BIGINT NOT NULL, s STRING) TBLPROPERTIES ('enable_stable_row_ids' = 'true')")
    catalog.sql("INSERT INTO @.t VALUES (1, 'owl'), (2, 'emu'), (3, 'auk'), (4, 'tit')")
    catalog.sql("CREATE TABLE @.u AS SELECT * FROM VALUES (2L, 'new emu'), (9L, 'jay') AS (id, s)")
    catalog.sql("DELETE FROM @.t WHERE id = 1")
    catalog.sql("UPDATE @.t SET s = upper(s) WHERE id > 2")
    assert catalog.sql("SELECT * FROM @.t ORDER BY id") == [(2, "emu"), (3, "AUK"), (4, "TIT")]
    catalog.sql(
        "MERGE INTO @.t t USING @.u u ON t.id = u.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        " WHEN NOT MATCHED BY SOURCE AND t.id = 4 THEN DELETE"
    )
    expected = [(2, "new emu"), (3, "AUK"), (9, "jay")]
    assert catalog.sql("SELECT * FROM @.t ORDER BY id") == expected
    found = lance.dataset(catalog.path("t")).to_table().sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in found] == expected
    catalog.sql("DELETE FROM @.t WHERE id IN (SELECT id FROM @.u)")
    assert catalog.sql("SELECT * FROM @.t") == [(3, "AUK")]
    assert catalog.sql("SELECT count(*) FROM @.t VERSION AS OF 2") == [(4,)]


@pytest.mark.slow
def test_rows_of_a_branch_are_changed(catalog: Catalog) -> None:
    catalog.sql(
        "CREATE TABLE @.t (id INT NOT NULL, v ARRAY<FLOAT>) TBLPROPERTIES ('v.arrow.fixed-size-list.size' = '2')"
    )
    catalog.sql("INSERT INTO @.t VALUES (1, array(1F, 2F))")
    branch = lance_format.dataset(catalog.path("t")).create_branch("b").uri
    catalog.sql("INSERT INTO @.t.branch_b (v, id) VALUES (array(3F, 4F), 2)")
    catalog.sql("UPDATE @.t.branch_b SET id = 3, v = array(v[1], v[0]) WHERE hash(id) = hash(2)")
    catalog.sql(
        "MERGE INTO @.t.branch_b t USING (SELECT 3 AS id UNION ALL SELECT 4) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = NULL WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    source = catalog.spark.sql("SELECT 4 AS id, array(5F, 6F) AS v").alias("s")
    merge = source.mergeInto(f"{catalog.name}.db.t.branch_b", expr("branch_b.id = s.id"))
    merge.whenMatched().updateAll().whenNotMatched().insertAll().merge()
    catalog.sql("INSERT INTO @.t.branch_b REPLACE WHERE id = 3 SELECT 7, NULL")
    catalog.sql("DELETE FROM @.t.branch_b WHERE id = 1")
    assert sorted(catalog.sql("SELECT * FROM @.t.branch_b")) == [(4, [5.0, 6.0]), (7, None)]
    assert catalog.sql("SELECT * FROM @.t") == [(1, [1.0, 2.0])]
    lance.dataset(catalog.path("t")).checkout_version(("b", None)).validate()
    assert str(lance_format.dataset(branch).schema.field("v").type) == "fixed_size_list<item: float>[2]"


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO @.t BY NAME SELECT CAST(NULL AS INT) AS id",
        "INSERT OVERWRITE @.t SELECT CAST(NULL AS INT)",
        "INSERT INTO @.t REPLACE WHERE id = 1 SELECT CAST(NULL AS INT)",
        "UPDATE @.t SET id = NULL WHERE id = 1",
        "MERGE INTO @.t t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = CAST(NULL AS INT)",
        "MERGE INTO @.t t USING (SELECT CAST(NULL AS INT) AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
    ],
)
def test_no_statement_brings_a_null_that_is_not_allowed(catalog: Catalog, statement: str) -> None:
    catalog.sql("CREATE TABLE @.t (id INT NOT NULL COMMENT 'key')")
    catalog.sql("INSERT OVERWRITE @.t SELECT 1")
    assert catalog.sql("DESCRIBE @.t")[0] == ("id", "int", "key")
    catalog.refuses(statement, "NULL")


def test_options_of_a_catalog_are_known(planner: SparkSession) -> None:
    planner.conf.set("spark.sql.catalog.odd", "lance.Catalog")
    planner.conf.set("spark.sql.catalog.odd.rot", "/x")
    with pytest.raises(PySparkException, match=r"spark\.sql\.catalog\.odd\.rot"):
        planner.sql("SHOW NAMESPACES IN odd")
    planner.conf.set("spark.sql.catalog.far", "lance.Catalog")
    planner.conf.set("spark.sql.catalog.far.root", "hdfs://host/x")
    with pytest.raises(PySparkException, match=r"hdfs.*s3://"):
        planner.sql("SHOW NAMESPACES IN far")


def test_without_the_planner_a_catalog_says_so(catalog: Catalog) -> None:
    catalog.spark.conf.set(PLANNER, "false")
    catalog.refuses("CREATE TABLE @.t (id INT)", "need the planner")


def test_fields_that_are_added_to_structs(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE @.t (id INT, r STRUCT<a: INT, b: STRING>, l ARRAY<STRUCT<a: INT>>)")
    catalog.sql(
        "INSERT INTO @.t VALUES (1, named_struct('a', 1, 'b', 'x'), array(named_struct('a', 1))), (2, null, null)"
    )
    catalog.sql("ALTER TABLE @.t ADD COLUMN r.c BIGINT")
    assert catalog.sql("SELECT id, r.c FROM @.t WHERE r IS NOT NULL") == [(1, None)]
    assert catalog.sql("SELECT id FROM @.t WHERE r IS NULL") == [(2,)]
    assert catalog.sql("SELECT r.c, count(*) FROM @.t WHERE r IS NOT NULL GROUP BY r.c") == [(None, 1)]
    catalog.sql("INSERT INTO @.t VALUES (3, named_struct('a', 3, 'b', 'y', 'c', 7L), null)")
    assert catalog.sql("SELECT id, r.c FROM @.t WHERE r IS NOT NULL ORDER BY id") == [(1, None), (3, 7)]
    later = pa.list_(pa.struct([("z", pa.int32())]))
    lance_format.dataset(catalog.path("t")).add_columns(pa.schema([("l", later)]))
    assert catalog.sql("SELECT id, l.z FROM @.t WHERE l IS NOT NULL") == [(1, [None])]
