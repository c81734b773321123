"""Commands on tables of the session catalog: nothing is lost or doubled, and what cannot be done is refused at once."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pytest
from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    PySparkException,
    SparkRuntimeException,
    UnsupportedOperationException,
)
from pyspark.sql import DataFrame, SparkSession

import lance_format
from tests.spark.conftest import PLANNER, append, files, load, overwrite

DATABASE = "trial"
FAILING = "SELECT raise_error('no such bird') AS id FROM birds"


@pytest.fixture
def sql(planner: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """Return a session with a database of its own, whose tables lie below the test's directory."""
    planner.sql(f"CREATE DATABASE {DATABASE} LOCATION '{tmp_path / 'managed'}'")
    planner.sql(f"USE {DATABASE}")
    yield planner
    planner.sql("USE default")
    planner.sql(f"DROP DATABASE {DATABASE} CASCADE")


@pytest.fixture
def birds(sql: SparkSession, tmp_path: Path) -> str:
    """Return the path of a table that the catalog keeps."""
    sql.range(0, 4, 1, 2).write.format("lance").saveAsTable("birds")
    return str(tmp_path / "managed" / "birds")


def ids(spark: SparkSession, name: str = "birds") -> list[int]:
    return sorted(row.id for row in spark.table(name).collect())


def rows_of(path: str, version: int | None = None) -> list[int]:
    return sorted(lance_format.dataset(path, version).to_table()["id"].to_pylist())


def tables(spark: SparkSession) -> list[str]:
    """Return the tables of the database; a session has the temporary views of other tests too."""
    return [row.tableName for row in spark.sql("SHOW TABLES").collect() if not row.isTemporary]


def is_known(spark: SparkSession, name: str) -> bool:
    return bool(spark.catalog.tableExists(name))


def table_identifier(spark: SparkSession, name: str) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.catalyst.TableIdentifier(name)


QUERIES = {
    "itself": "SELECT * FROM birds WHERE id > 1",
    "a join with itself": "SELECT a.id FROM birds a JOIN birds b ON a.id = b.id WHERE a.id > 1",
    "a subquery": "SELECT id FROM birds WHERE id > (SELECT count(*) / 4 FROM birds)",
    "a common table expression": "WITH few AS (SELECT id FROM birds WHERE id > 1) SELECT * FROM few",
    "a temporary view": "SELECT * FROM passing WHERE id > 1",
    "a view of the catalog": "SELECT * FROM lasting WHERE id > 1",
    "a view of its path": "SELECT * FROM files WHERE id > 1",
}


@pytest.fixture
def views(sql: SparkSession, birds: str) -> Iterator[str]:
    sql.table("birds").createOrReplaceTempView("passing")
    sql.sql("CREATE VIEW lasting AS SELECT * FROM birds")
    sql.sql(f"CREATE TEMPORARY VIEW files USING lance OPTIONS (path '{birds}')")
    yield birds
    for name in ("passing", "files"):
        sql.catalog.dropTempView(name)


class TestOverwritingATableWithItself:
    @pytest.mark.slow
    @pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
    @pytest.mark.parametrize("statement", ["CREATE OR REPLACE TABLE birds USING lance AS", "INSERT OVERWRITE birds"])
    def test_in_sql(self, sql: SparkSession, views: str, statement: str, query: str) -> None:
        sql.sql(f"{statement} {query}")
        assert ids(sql) == rows_of(views) == [2, 3]
        assert rows_of(views, 1) == [0, 1, 2, 3]
        assert lance_format.dataset(views).version == 2

    @pytest.mark.slow
    @pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
    def test_in_data_frames(self, sql: SparkSession, views: str, query: str) -> None:
        sql.sql(query).write.format("lance").mode("overwrite").saveAsTable("birds")
        assert ids(sql) == rows_of(views) == [2, 3]
        sql.table("birds").writeTo("birds").using("lance").createOrReplace()
        sql.table("birds").writeTo("birds").using("lance").replace()
        sql.table("birds").write.mode("overwrite").insertInto("birds")
        assert ids(sql) == rows_of(views) == [2, 3]
        assert lance_format.dataset(views).version == 5

    @pytest.mark.slow
    def test_by_its_path(self, planner: SparkSession, path: str) -> None:
        append(planner.range(4), path)
        left, right = load(planner, path), load(planner, path)
        overwrite(left.join(right, "id").where("id > 1"), path)
        assert rows_of(path) == [2, 3]
        with pytest.raises(SparkRuntimeException, match="no such bird"):
            overwrite(load(planner, path).selectExpr("raise_error('no such bird') AS id"), path)
        assert rows_of(path) == [2, 3]

    @pytest.mark.usefixtures("birds")
    def test_in_another_session(self, sql: SparkSession) -> None:
        other = sql.newSession()
        other.conf.set(PLANNER, "true")
        other.sql(
            f"CREATE OR REPLACE TABLE {DATABASE}.birds USING lance AS SELECT * FROM {DATABASE}.birds WHERE id = 1"
        )
        assert ids(sql) == [1]
        with pytest.raises(UnsupportedOperationException, match="ADD COLUMN"):
            other.sql(f"ALTER TABLE {DATABASE}.birds ADD COLUMN name STRING")

    def test_while_it_is_cached(self, sql: SparkSession, birds: str) -> None:
        sql.sql("CACHE TABLE birds")
        sql.sql("CREATE OR REPLACE TABLE birds USING lance AS SELECT id + 10 AS id FROM birds")
        assert ids(sql) == rows_of(birds) == [10, 11, 12, 13]


def test_options_that_tables_do_not_have_are_refused(sql: SparkSession) -> None:
    for option in ("compresion 'zstd'", "max_row_per_file 'many'"):
        with pytest.raises(PySparkException, match=r"option 'max_row|unknown option 'compresion'"):
            sql.sql(f"CREATE TABLE birds (id long) USING lance OPTIONS ({option})")
        assert tables(sql) == []
    sql.sql("CREATE TABLE birds (id long) USING lance OPTIONS (max_row_per_file 2)")
    sql.sql("INSERT INTO birds VALUES (0), (1), (2)")
    assert ids(sql) == [0, 1, 2]


class TestReplacing:
    def test_columns_properties_and_comment_follow(self, sql: SparkSession, birds: str) -> None:
        sql.sql("ALTER TABLE birds SET TBLPROPERTIES (old = '1', both = '1')")
        sql.sql("""
            CREATE OR REPLACE TABLE birds USING lance OPTIONS (`name.lance.compression` = 'zstd')
            COMMENT 'with names' TBLPROPERTIES (both = '2', new = '3')
            AS SELECT 'b' || id AS name, id AS n FROM birds""")
        assert sql.table("birds").columns == ["name", "n"]
        assert sql.table("birds").where("n = 2").collect() == [("b2", 2)]
        metadata = lance_format.dataset(birds).schema.field("name").metadata
        assert metadata == {b"lance-encoding:compression": b"zstd"}
        entry = sql._jsparkSession.sessionState().catalog().getTableMetadata(table_identifier(sql, "birds"))
        assert [entry.properties().contains(name) for name in ("old", "new")] == [False, True]
        assert entry.properties().apply("both") == "2"
        assert entry.comment().get() == "with names"

    def test_vectors_stay_vectors(self, sql: SparkSession, tmp_path: Path) -> None:
        path = str(tmp_path / "vectors.lance")
        rows = sql.createDataFrame([([1.0, 2.0],)], "v array<float>")
        overwrite(rows, path, **{"v.arrow.fixed-size-list.size": 2})
        sql.sql(f"CREATE TABLE vectors USING lance LOCATION '{path}'")
        for _ in range(2):
            sql.table("vectors").write.format("lance").mode("overwrite").saveAsTable("vectors")
        assert str(lance_format.dataset(path).schema.field("v").type) == "fixed_size_list<item: float>[2]"

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "statement",
        [
            f"CREATE OR REPLACE TABLE birds USING lance AS {FAILING}",
            f"REPLACE TABLE birds USING lance AS {FAILING}",
            "CREATE OR REPLACE TABLE birds USING lance AS SELECT INTERVAL '1' YEAR AS id",
            "REPLACE TABLE birds (id INTERVAL YEAR) USING lance",
            "CREATE OR REPLACE TABLE birds USING lance OPTIONS (compresion 'zstd') AS SELECT 1 AS id",
            "CREATE OR REPLACE TABLE birds USING lance OPTIONS (enable_stable_row_ids 'true') AS SELECT 1 AS id",
            "CREATE OR REPLACE TABLE birds USING lance PARTITIONED BY (id) AS SELECT 1 AS id",
            "REPLACE TABLE birds (id INT) USING lance CLUSTER BY (id)",
        ],
    )
    def test_what_fails_leaves_the_old_table(self, sql: SparkSession, birds: str, statement: str) -> None:
        before = files(birds)
        with pytest.raises(PySparkException):
            sql.sql(statement)
        assert ids(sql) == [0, 1, 2, 3]
        assert files(birds) == before
        assert tables(sql) == ["birds"]

    def test_a_table_with_a_location_stays_there(self, sql: SparkSession, path: str) -> None:
        append(sql.range(4), path)
        sql.sql(f"CREATE TABLE birds USING lance LOCATION '{path}'")
        sql.sql("CREATE OR REPLACE TABLE birds USING lance AS SELECT id FROM birds WHERE id > 2")
        assert ids(sql) == rows_of(path) == [3]
        sql.sql("DROP TABLE birds")
        assert rows_of(path) == [3]

    def test_by_one_at_another_location(self, sql: SparkSession, birds: str, path: str) -> None:
        sql.table("birds").write.format("lance").option("path", path).mode("overwrite").saveAsTable("birds")
        assert ids(sql) == rows_of(path) == [0, 1, 2, 3]
        assert files(birds) == set()
        sql.table("birds").where("id > 1").write.format("lance").option("path", path).mode("overwrite").saveAsTable(
            "birds"
        )
        assert ids(sql) == rows_of(path) == [2, 3]
        assert rows_of(path, 1) == [0, 1, 2, 3]

    def test_not_by_one_below_it(self, sql: SparkSession, birds: str) -> None:
        writer = sql.table("birds").write.format("lance").mode("overwrite")
        with pytest.raises(IllegalArgumentException, match="choose another location"):
            writer.option("path", f"{birds}/new").saveAsTable("birds")
        assert ids(sql) == [0, 1, 2, 3]

    @pytest.mark.slow
    def test_of_another_format(self, sql: SparkSession, tmp_path: Path) -> None:
        sql.range(4).write.format("parquet").saveAsTable("birds")
        with pytest.raises(SparkRuntimeException, match="no such bird"):
            sql.sql(f"CREATE OR REPLACE TABLE birds USING lance AS {FAILING}")
        assert ids(sql) == [0, 1, 2, 3]
        sql.sql("CREATE OR REPLACE TABLE birds USING lance AS SELECT * FROM birds WHERE id > 1")
        assert ids(sql) == rows_of(str(tmp_path / "managed" / "birds")) == [2, 3]
        assert tables(sql) == ["birds"]

    def test_of_another_format_not_where_its_files_are(self, sql: SparkSession, path: str) -> None:
        sql.range(4).write.format("parquet").option("path", path).saveAsTable("birds")
        with pytest.raises(IllegalArgumentException, match="which is parquet: choose another location"):
            sql.sql(f"CREATE OR REPLACE TABLE birds USING lance LOCATION '{path}' AS SELECT 1 AS id")
        assert ids(sql) == [0, 1, 2, 3]

    @pytest.mark.usefixtures("birds")
    def test_not_of_a_view(self, sql: SparkSession) -> None:
        sql.sql("CREATE VIEW seen AS SELECT * FROM birds")
        with pytest.raises(IllegalArgumentException, match=r"seen is a view: drop it first"):
            sql.sql("CREATE OR REPLACE TABLE seen USING lance AS SELECT * FROM seen")
        assert ids(sql, "seen") == [0, 1, 2, 3]

    def test_without_a_query(self, sql: SparkSession, birds: str) -> None:
        sql.sql("REPLACE TABLE birds (n INT NOT NULL, name VARCHAR(3)) USING lance")
        assert sql.table("birds").collect() == []
        for values, problem in {"(1, 'heron')": "EXCEED_LIMIT_LENGTH", "(NULL, 'owl')": "NOT_NULL"}.items():
            with pytest.raises(SparkRuntimeException, match=problem):
                sql.sql(f"INSERT INTO birds VALUES {values}")
        sql.sql("INSERT INTO birds VALUES (1, 'owl')")
        assert sql.table("birds").collect() == [(1, "owl")]
        assert rows_of(birds, 1) == [0, 1, 2, 3]

    def test_of_what_is_missing(self, sql: SparkSession, path: str) -> None:
        with pytest.raises(AnalysisException, match="birds"):
            sql.sql("REPLACE TABLE birds USING lance AS SELECT 1 AS id")
        append(sql.range(4), path)
        sql.sql(f"CREATE OR REPLACE TABLE birds USING lance LOCATION '{path}' AS SELECT 7L AS id")
        assert ids(sql) == [7]
        assert rows_of(path, 1) == [0, 1, 2, 3]

    @pytest.mark.usefixtures("birds")
    def test_not_while_the_planner_is_off(self, sql: SparkSession) -> None:
        sql.conf.set(PLANNER, "false")
        with pytest.raises(UnsupportedOperationException, match=r"set it to true, or save to a path"):
            sql.sql("CREATE OR REPLACE TABLE birds USING lance AS SELECT 1 AS id")
        sql.conf.set(PLANNER, "true")
        assert ids(sql) == [0, 1, 2, 3]


class TestCreatingOverWhatIsThere:
    @pytest.fixture
    def present(self, sql: SparkSession, path: str) -> str:
        append(sql.range(4), path)
        return path

    def test_as_select_refuses(self, sql: SparkSession, present: str) -> None:
        before = files(present)
        with pytest.raises(IllegalArgumentException, match=rf"a Lance table at file:{present} already: .*LOCATION"):
            sql.sql(f"CREATE TABLE birds USING lance LOCATION '{present}' AS SELECT 7L AS id")
        with pytest.raises(IllegalArgumentException, match="already"):
            sql.sql(f"CREATE TABLE birds USING lance OPTIONS (path '{present}') AS SELECT 7L AS id")
        with pytest.raises(IllegalArgumentException, match="already"):
            sql.range(1).writeTo("birds").using("lance").option("path", present).tableProperty(
                "location", present
            ).create()
        assert files(present) == before
        assert not is_known(sql, "birds")

    @pytest.mark.parametrize("mode", [None, "error", "errorifexists", "append"])
    def test_saving_refuses(self, sql: SparkSession, present: str, mode: str | None) -> None:
        before = files(present)
        with pytest.raises(IllegalArgumentException, match="already"):
            sql.range(3).write.format("lance").option("path", present).saveAsTable("birds", mode=mode)
        assert files(present) == before
        assert not is_known(sql, "birds")

    def test_ignoring_leaves_it_alone(self, sql: SparkSession, present: str) -> None:
        before = files(present)
        for _ in range(2):
            sql.range(3).write.format("lance").option("path", present).mode("ignore").saveAsTable("birds")
            sql.sql(f"CREATE TABLE IF NOT EXISTS birds USING lance LOCATION '{present}' AS SELECT 'x' AS other")
        assert files(present) == before
        assert ids(sql) == [0, 1, 2, 3]

    def test_overwriting_replaces_its_rows(self, sql: SparkSession, present: str) -> None:
        sql.range(2).write.format("lance").option("path", present).mode("overwrite").saveAsTable("birds")
        assert ids(sql) == rows_of(present) == [0, 1]
        assert lance_format.dataset(present).version == 2

    def test_where_a_dropped_catalog_left_it(self, sql: SparkSession, tmp_path: Path) -> None:
        append(sql.range(4), str(tmp_path / "managed" / "birds"))
        with pytest.raises(SparkRuntimeException, match="LOCATION_ALREADY_EXISTS"):
            sql.sql("CREATE TABLE birds USING lance AS SELECT 7L AS id")
        assert rows_of(str(tmp_path / "managed" / "birds")) == [0, 1, 2, 3]

    def test_columns_have_to_be_those_of_the_table(self, sql: SparkSession, present: str) -> None:
        with pytest.raises(
            IllegalArgumentException, match=r"'name' is not in the table\. CREATE TABLE without columns"
        ):
            sql.sql(f"CREATE TABLE birds (id BIGINT, name STRING) USING lance LOCATION '{present}'")
        with pytest.raises(IllegalArgumentException, match=r"'id' is read as string but is bigint"):
            sql.catalog.createTable("birds", present, "lance", sql.sql("SELECT '' AS id").schema)
        assert not is_known(sql, "birds")
        sql.sql(f"CREATE TABLE birds (id BIGINT) USING lance LOCATION '{present}'")
        assert ids(sql) == [0, 1, 2, 3]

    @pytest.mark.slow
    @pytest.mark.parametrize("location", ["", "LOCATION '{path}'"])
    def test_a_query_that_fails_leaves_nothing(
        self, sql: SparkSession, path: str, tmp_path: Path, location: str
    ) -> None:
        with pytest.raises(SparkRuntimeException, match="no such bird"):
            sql.sql(
                f"CREATE TABLE birds USING lance {location.format(path=path)} AS SELECT raise_error('no such bird')"
            )
        assert not is_known(sql, "birds")
        assert files(str(tmp_path)) == set()

    def test_of_two_that_create_a_table_one_does(self, sql: SparkSession, path: str) -> None:
        failures: list[Exception] = []

        def create(name: str) -> None:
            try:
                sql.sql(f"CREATE TABLE {DATABASE}.{name} USING lance LOCATION '{path}' AS SELECT 7L AS id")
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=create, args=(name,)) for name in ("one", "other")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(failures) == 1
        assert rows_of(path) == [7]
        assert is_known(sql, "one") != is_known(sql, "other")


class TestAltering:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("clause", "shown"),
        [
            ("ADD COLUMN name STRING", "ADD COLUMN"),
            ("ADD COLUMNS (name STRING, n INT)", "ADD COLUMN"),
            ("RENAME COLUMN id TO key", "RENAME COLUMN"),
            ("DROP COLUMN id", "DROP COLUMN"),
            ("ALTER COLUMN id COMMENT 'key'", "ALTER COLUMN"),
            ("REPLACE COLUMNS (key BIGINT)", "DROP COLUMN"),
        ],
    )
    @pytest.mark.usefixtures("birds")
    def test_columns_are_not_the_catalogs(self, sql: SparkSession, clause: str, shown: str) -> None:
        cure = (
            rf"ALTER TABLE {DATABASE}.birds {shown} .* CREATE OR REPLACE TABLE {DATABASE}.birds USING lance AS SELECT"
        )
        with pytest.raises(UnsupportedOperationException, match=cure):
            sql.sql(f"ALTER TABLE birds {clause}")
        assert ids(sql) == [0, 1, 2, 3]
        assert sql.table("birds").columns == ["id"]

    @pytest.mark.usefixtures("birds")
    def test_the_cure(self, sql: SparkSession) -> None:
        sql.sql(f"CREATE OR REPLACE TABLE {DATABASE}.birds USING lance AS SELECT id AS key, 'owl' AS name FROM birds")
        assert sql.table("birds").where("key = 3").collect() == [(3, "owl")]

    @pytest.mark.usefixtures("birds")
    def test_properties_are(self, sql: SparkSession) -> None:
        sql.sql("ALTER TABLE birds SET TBLPROPERTIES (k = 'v')")
        sql.sql("ALTER TABLE birds UNSET TBLPROPERTIES (k)")
        sql.sql("COMMENT ON TABLE birds IS 'seen'")
        sql.sql("ALTER TABLE birds RENAME TO seen")
        assert ids(sql, "seen") == [0, 1, 2, 3]

    def test_a_catalog_out_of_step(self, sql: SparkSession, birds: str) -> None:
        overwrite(sql.sql("SELECT 1 AS key"), birds)
        cure = r"'id' is not in the table\. .*ALTER TABLE.*overwrite.*saveAsTable"
        with pytest.raises(IllegalArgumentException, match=cure):
            sql.table("birds").collect()
        load(sql, birds).write.format("lance").mode("overwrite").saveAsTable("birds")
        assert sql.table("birds").collect() == [(1,)]


DIVIDED = {
    "CREATE TABLE d (id INT, p INT) USING lance PARTITIONED BY (p)": r"PARTITIONED BY or partitionBy \(p\)",
    "CREATE TABLE d (id INT, p INT) USING lance CLUSTER BY (p, id)": r"CLUSTER BY or clusterBy \(p, id\)",
    "CREATE TABLE d (id INT, p INT) USING lance CLUSTERED BY (p) INTO 4 BUCKETS": r"BUCKETS or bucketBy \(p\)",
    "CREATE TABLE d (id INT, p INT) USING lance CLUSTERED BY (p) SORTED BY (id) INTO 4 BUCKETS": (
        r"bucketBy and sortBy \(p, id\)"
    ),
    "CREATE TABLE d USING lance PARTITIONED BY (p) AS SELECT 1 AS p": r"PARTITIONED BY or partitionBy \(p\)",
    "CREATE TABLE d USING lance PARTITIONED BY (days(p)) AS SELECT now() AS p": r"PARTITIONED BY or partitionBy \(p\)",
    "CREATE OR REPLACE TABLE d (p INT) USING lance PARTITIONED BY (p)": r"PARTITIONED BY or partitionBy \(p\)",
    "CREATE OR REPLACE TABLE d USING lance CLUSTER BY (p) AS SELECT 1 AS p": r"CLUSTER BY or clusterBy \(p\)",
    "CREATE TABLE d LIKE divided USING lance": r"LIKE divided, which is divided\..*\(p\)",
    "ALTER TABLE birds CLUSTER BY (id)": r"CLUSTER BY\..*id",
}


class TestDivisions:
    @pytest.mark.slow
    @pytest.mark.parametrize(("statement", "named"), DIVIDED.items())
    @pytest.mark.usefixtures("birds")
    def test_in_sql(self, sql: SparkSession, statement: str, named: str) -> None:
        sql.sql("CREATE TABLE divided (id INT, p INT) USING parquet PARTITIONED BY (p)")
        with pytest.raises(UnsupportedOperationException, match=f"leave out .*{named}") as caught:
            sql.sql(statement)
        assert "Zone maps" in str(caught.value)
        assert "sorted" in str(caught.value)
        assert not is_known(sql, "d")

    @pytest.mark.parametrize("mode", ["append", "overwrite", "ignore", "errorifexists"])
    def test_in_data_frames(self, sql: SparkSession, birds: str, mode: str) -> None:
        def rows() -> DataFrame:
            return sql.range(3).selectExpr("id", "id AS p")

        divided = {
            "partitionBy": rows().write.partitionBy("p"),
            "clusterBy": rows().write.clusterBy("p"),
            "bucketBy": rows().write.bucketBy(2, "p"),
            "sortBy": rows().write.bucketBy(2, "p").sortBy("id"),
        }
        for name, writer in divided.items():
            with pytest.raises(UnsupportedOperationException, match=f"leave out .*{name}.*Zone maps"):
                writer.format("lance").mode(mode).saveAsTable("d")
            if name in ("partitionBy", "clusterBy"):
                with pytest.raises(UnsupportedOperationException, match=f"leave out .*{name}.*Zone maps"):
                    writer.format("lance").mode(mode).save(f"{birds}2")
        with pytest.raises(UnsupportedOperationException, match="partitionBy"):
            rows().writeTo("d").using("lance").partitionedBy("p").createOrReplace()
        assert not is_known(sql, "d")

    @pytest.mark.usefixtures("birds")
    def test_of_an_append(self, sql: SparkSession) -> None:
        with pytest.raises(IllegalArgumentException, match="do not match the existing table"):
            sql.range(3).write.format("lance").partitionBy("id").mode("append").saveAsTable("birds")
        assert ids(sql) == [0, 1, 2, 3]


def test_a_name_is_not_moved_by_the_option_path(sql: SparkSession, birds: str, path: str) -> None:
    overwrite(sql.range(90, 91), path)
    seven = sql.range(7, 8)
    for act in (
        lambda: sql.read.option("path", path).table("birds").collect(),
        lambda: sql.sql(f"INSERT INTO birds WITH (path = '{path}') VALUES (7)"),
        lambda: seven.writeTo("birds").option("path", path).append(),
        lambda: seven.write.format("lance").option("path", path).insertInto("birds"),
        lambda: seven.write.format("lance").option("path", path).mode("append").saveAsTable("birds"),
    ):
        with pytest.raises(PySparkException, match="the option 'path' of the query is"):
            act()
    assert rows_of(birds) == [0, 1, 2, 3]
    assert rows_of(path) == [90]
    seven.write.format("lance").option("path", birds).mode("append").saveAsTable("birds")
    assert ids(sql) == [0, 1, 2, 3, 7]


@pytest.mark.parametrize("start", ["", "file:"])
def test_percent_signs_in_a_location_are_no_codes(planner: SparkSession, tmp_path: Path, start: str) -> None:
    for name in ("a%2541b", "sp ace%2541"):
        table, place = f"located_{len(start)}_{len(name)}", tmp_path / name
        try:
            planner.sql(f"CREATE TABLE {table} USING lance LOCATION '{start}{place}' AS SELECT id FROM range(3)")
            planner.sql(f"INSERT INTO {table} VALUES (3)")
            planner.sql(f"CREATE OR REPLACE TABLE {table} USING lance AS SELECT id, 1 AS n FROM {table}")
            planner.sql(f"DELETE FROM {table} WHERE id = 0")
            assert lance.dataset(str(place)).to_table()["id"].to_pylist() == [1, 2, 3]
            with pytest.raises(PySparkException, match="without columns takes those of the table"):
                planner.sql(f"CREATE TABLE misfit (x STRING) USING lance LOCATION '{start}{place}'")
            assert [found.name for found in tmp_path.iterdir() if found != place] == []
        finally:
            planner.sql(f"DROP TABLE IF EXISTS {table}")
        shutil.rmtree(place)
