"""Operations that Spark's planner pushes to tables through the bridge, in DataFrames and SQL, and their results."""

from __future__ import annotations

import base64
import datetime
import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance as pylance
import pyarrow as pa
import pytest
from chispa import assert_df_equality
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import lance_format
from connector.planner import answers, install
from connector.planner.jars import class_names, find_jar
from connector.source.data_source import LanceDataSource
from tests.spark.conftest import PLANNER, append, load, overwrite


@pytest.fixture
def table(planner: SparkSession, path: str) -> str:
    """Two fragments of 500 rows, each in order."""
    numbers = planner.range(0, 1000, 1, 2).selectExpr(
        "id",
        "CAST(id AS string) AS text",
        "id % 10 AS digit",
        "IF(id % 7 = 0, NULL, named_struct('x', id, 'a.b', named_struct('y', 'y' || id, 'z', 1))) AS s",
    )
    append(numbers, path)
    return path


def plan(df: DataFrame) -> str:
    return str(df._jdf.queryExecution().executedPlan().toString())


def scan_line(df: DataFrame) -> str:
    (line,) = [line for line in plan(df).splitlines() if "BatchScan" in line]
    return line


class TestColumns:
    @pytest.mark.slow
    def test_those_that_a_query_needs(self, planner: SparkSession, table: str) -> None:
        df = load(planner, table).select("text")
        assert "reads: struct<text:string>" in scan_line(df)
        assert sorted(row.text for row in df.collect())[:3] == ["0", "1", "10"]

    def test_fields_of_structs(self, planner: SparkSession, table: str) -> None:
        df = load(planner, table).selectExpr("s.`a.b`.y", "id").where("id BETWEEN 6 AND 8")
        assert "struct<id:bigint,s:struct<a.b:struct<y:string>>>" in scan_line(df)
        assert sorted(df.collect(), key=str) == [("y6", 6), ("y8", 8), (None, 7)]

    def test_none_for_the_number_of_rows(self, planner: SparkSession, table: str) -> None:
        df = load(planner, table).where("digit = 3").selectExpr("count(*) AS n")
        assert "reads: struct<>" in scan_line(df)
        assert df.collect() == [(100,)]

    def test_of_a_join_with_itself(self, planner: SparkSession, table: str) -> None:
        df = load(planner, table)
        joined = df.where("id < 5").join(df.where("id > 2").withColumnRenamed("text", "other"), "id")
        assert sorted((row.id, row.text, row.other) for row in joined.collect()) == [(3, "3", "3"), (4, "4", "4")]


class TestOlderFormats:
    """Tables of formats 0.1, which pylance writes, and 2.0."""

    @pytest.mark.slow
    @pytest.mark.parametrize("version", ["legacy", "2.0"])
    def test_get_all_that_is_pushed(self, planner: SparkSession, path: str, version: str) -> None:
        ids = range(40_000)
        structs = [{"x": row, "y": f"y{row}"} for row in ids]
        data = pa.table({"id": ids, "text": [f"{row:05}" for row in ids], "s": structs})
        write = (pylance if version == "legacy" else lance_format).write_dataset
        write(data, path, data_storage_version=version, max_rows_per_file=20_000)
        df = load(planner, path)
        for condition, expected in (
            ("id = 30000", [30_000]),
            ("text = '00007' OR s.x IN (8, 39999)", [7, 8, 39_999]),
            ("id >= 20005 AND s.y < 'y20007'", [20_005, 20_006]),
            ("text LIKE '3999%' AND id % 5 = 0", [39_990, 39_995]),
            ("s.y IS NULL", []),
        ):
            found = df.where(condition)
            assert sorted(row.id for row in found.select("id").collect()) == expected
            assert found.count() == len(expected)
        line = scan_line(df.where("id = 30000"))
        assert "id = 30000], fragments: 1 of 2" in line
        assert f"rows: {1024 if version == 'legacy' else 8192} of 40000" in line
        assert df.where("id = 30000").select("s.y").collect() == [("y30000",)]
        assert lance_format.dataset(path).count_rows() == df.count() == 40_000
        assert df.limit(7).count() == len(df.limit(7).collect()) == 7
        assert [row.id for row in df.orderBy(f.desc("id")).limit(2).collect()] == [39_999, 39_998]
        assert df.selectExpr("min(id)", "max(text)").collect() == [(0, "39999")]
        assert df.where("id = 30000").rdd.getNumPartitions() == 1

    def test_rows_of_the_first_one_change(self, planner: SparkSession, tmp_path: Path) -> None:
        path = str(tmp_path / "old")
        pylance.write_dataset(pa.table({"id": range(100), "n": range(100)}), path, data_storage_version="legacy")
        planner.sql(f"CREATE TABLE old_rows USING lance LOCATION '{path}'")
        planner.sql("UPDATE old_rows SET n = -1 WHERE id = 7")
        planner.sql("DELETE FROM old_rows WHERE id % 10 = 3")
        planner.sql(
            "MERGE INTO old_rows t USING (SELECT id + 95 AS id FROM range(10)) u ON t.id = u.id"
            " WHEN MATCHED THEN UPDATE SET n = 0 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (u.id, 0)"
        )
        expected = {row: -1 if row == 7 else 0 if row > 94 else row for row in range(105) if row % 10 != 3 or row > 99}
        for found in (pylance.dataset(path), lance_format.dataset(path)):
            assert dict(zip(*found.to_table().to_pydict().values(), strict=True)) == expected
        pylance.dataset(path).validate()
        with pytest.raises(PySparkException, match="compact_files"):
            planner.sql("INSERT INTO old_rows VALUES (1, 1)")
        planner.sql("DROP TABLE old_rows")


class TestFilters:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("condition", "pushed"),
        [
            ("id = 3 OR text = '7'", "(id = 3) OR (text = '7')"),
            ("s.`a.b`.y = 'y9'", "s.`a.b`.y = 'y9'"),
            ("text LIKE '99%' AND NOT digit IN (1, 2)", "NOT (digit IN (1, 2))"),
            ("s IS NULL AND ID < 20", "id < 20"),
            ("text <=> '5'", "text"),
            ("_rowid = 4294967300", "_rowid = 4294967300"),
        ],
    )
    def test_are_evaluated_by_the_reader(self, planner: SparkSession, table: str, condition: str, pushed: str) -> None:
        df = load(planner, table).where(condition)
        shown = plan(df)
        assert pushed in shown
        if "s IS NULL" not in condition:
            assert "Filter (" not in shown
        with plainly(planner):
            expected = load(planner, table, metadata_columns="_rowid").where(condition).select(df.columns)
            assert_df_equality(df, expected, ignore_row_order=True, ignore_nullable=True)
            assert expected.count() > 0

    @pytest.mark.slow
    def test_what_is_not_exactly_the_same_is_left_to_spark(self, planner: SparkSession, path: str) -> None:
        stored = pa.table(
            {
                "at": pa.array([1_000_000_001, 1_000_001_000], pa.timestamp("ns")),
                "text": ["a", "B"],
            }
        )
        lance_format.write_dataset(stored, path)
        found = load(planner, path)
        rounded = "at = TIMESTAMP_NTZ'1970-01-01 00:00:01'"
        assert found.where(rounded).count() == 1
        assert "filters: [at IS NOT NULL" not in scan_line(found.where(rounded))
        assert "filters: []" in scan_line(found.where("text COLLATE UTF8_LCASE = 'b'"))
        assert found.where("text COLLATE UTF8_LCASE = 'b'").count() == 1
        assert "filters: [text IS NOT NULL]" in scan_line(found.where("upper(text) = 'B'"))

    def test_queries_of_one_data_frame_do_not_share_them(self, planner: SparkSession, table: str) -> None:
        df = load(planner, table)
        assert df.where("id = 3").count() == 1
        assert df.where("id < 3").union(df.where("id > 997")).count() == 5

    @pytest.mark.slow
    def test_thousands_of_values(self, planner: SparkSession, table: str) -> None:
        values = [*range(0, 5000, 2)]
        df = load(planner, table).where(f.col("id").isin(values))
        assert "..." in scan_line(df)
        assert df.count() == 500

    def test_on_cached_frames_and_views(self, planner: SparkSession, table: str) -> None:
        cached = load(planner, table).where("digit = 1").cache()
        assert cached.count() == 100
        assert cached.where("id < 50").count() == 5
        assert load(planner, table).where("id < 50").count() == 50
        cached.unpersist()
        planner.sql(f"CREATE OR REPLACE TEMP VIEW numbers USING lance OPTIONS (path '{table}')")
        assert "filters: [id IS NOT NULL, id < 10]" in scan_line(planner.sql("SELECT text FROM numbers WHERE id < 10"))
        assert planner.sql("SELECT count(*) FROM numbers WHERE id < 10").collect() == [(10,)]


class TestLimits:
    def test_are_known_to_the_reader(self, planner: SparkSession, table: str) -> None:
        df = load(planner, table).limit(5)
        assert "limit: 5" in scan_line(df)
        assert df.count() == 5
        assert df.rdd.getNumPartitions() == 1
        assert load(planner, table).where("id > 700").limit(400).count() == 299

    def test_leave_out_rows(self, table: str) -> None:
        assert planned(table, limit=5) == [[(0, 0, 5)]]
        assert planned(table, limit=501) == [[(0, 0, 500), (1, 0, 1)]]
        whole = [[(0, 0, 500), (1, 0, 500)]]
        assert planned(table, limit=5, predicate='[">",["COLUMN","id"],["LITERAL","bigint","1"]]') == whole


class TestOffsets:
    def test_skip_rows_that_are_never_read(self, planner: SparkSession, table: str) -> None:
        df = load(planner, table)
        assert "offset: 498" in scan_line(df.offset(498).limit(4))
        assert [row.id for row in df.offset(498).limit(4).collect()] == [498, 499, 500, 501]
        assert [row.id for row in df.limit(500).offset(498).collect()] == [498, 499]
        assert df.offset(990).count() == 10
        assert df.agg(f.count("*")).offset(1).collect() == []
        assert [row[0] for row in df.agg(f.count("*")).limit(1).collect()] == [1000]
        assert df.offset(2000).collect() == []
        assert "GlobalLimit" not in plan(df.offset(498).limit(4))
        assert planned(table, limit=502, offset=498) == [[(0, 498, 500), (1, 0, 2)]]

    def test_of_rows_that_a_filter_lets_pass_are_counted_by_spark(self, planner: SparkSession, table: str) -> None:
        df = load(planner, table).where("digit = 3")
        assert "offset" not in scan_line(df.offset(98))
        assert sorted(row.id for row in df.offset(98).limit(5).collect()) == [983, 993]
        assert load(planner, table, filter="digit = 3").offset(98).count() == 2

    def test_deleted_rows_do_not_count(self, planner: SparkSession, table: str) -> None:
        lance_format.dataset(table).delete("id < 400 OR id = 501")
        assert [row.id for row in load(planner, table).offset(99).limit(3).collect()] == [499, 500, 502]


class TestTopRows:
    @pytest.mark.slow
    @pytest.mark.parametrize("order", ["value DESC", "value NULLS LAST", "text DESC NULLS FIRST, id", "digit, id DESC"])
    def test_are_found_by_the_tasks(self, planner: SparkSession, path: str, order: str) -> None:
        rows = planner.range(0, 1000, 1, 3).selectExpr(
            "id",
            "id % 10 AS digit",
            "CASE id % 50 WHEN 0 THEN NULL WHEN 1 THEN DOUBLE('NaN') WHEN 2 THEN DOUBLE('Infinity')"
            " ELSE cast(hash(id) AS double) END AS value",
            "IF(id % 40 = 5, NULL, string(hash(id) % 100)) AS text",
        )
        append(rows, path)
        keys = [part.split()[0] for part in order.split(", ")]
        for condition in ("true", "id % 3 = 1", "hash(id) % 3 = 1", "digit > 5"):
            top = f"SELECT * FROM {{df}} WHERE {condition} ORDER BY {order} LIMIT 70"
            df = planner.sql(top, df=load(planner, path, split_size_bytes=2000))
            assert ("order: [[" in scan_line(df)) == ("hash" not in condition)
            with plainly(planner):
                expected = planner.sql(top, df=rows)
                assert str(df.select(*keys).collect()) == str(expected.select(*keys).collect())
            assert sorted(df.select("id").collect())[0] is not None

    def test_read_other_columns_of_no_other_rows(self, planner: SparkSession, table: str) -> None:
        df = load(planner, table).orderBy(f.desc("id")).limit(2)
        assert [tuple(row)[:3] for row in df.collect()] == [(999, "999", 9), (998, "998", 8)]
        assert "order: " not in scan_line(load(planner, table).orderBy("s").limit(2))
        assert "order: " not in scan_line(load(planner, table).orderBy(f.length("text")).limit(2))


class TestTasks:
    @pytest.mark.slow
    def test_follow_the_size_asked_for_and_what_can_run_at_a_time(self, planner: SparkSession, path: str) -> None:
        append(
            planner.range(0, 600_000, 1, 2).selectExpr("id", "hash(id) AS code", "reverse(md5(string(id))) AS t"), path
        )
        assert len(planned(path, parallelism=1)) == 1
        assert len(planned(path, parallelism=4)) == 4
        assert len(planned(path, parallelism=1, split_size_bytes=2_000_000)) > 4
        df = load(planner, path, split_size_bytes=2_000_000)
        assert df.rdd.getNumPartitions() > 4
        assert df.selectExpr("count(id)", "sum(id)").collect() == [(600_000, 599_999 * 300_000)]
        assert [row.id for row in df.select("id").where("id % 100000 = 0").collect()] == [*range(0, 600_000, 100_000)]


class TestCounts:
    def test_come_from_the_manifest(self, planner: SparkSession, table: str) -> None:
        lance_format.dataset(table).delete("id < 10")
        for file in Path(table, "data").iterdir():
            file.rename(file.with_suffix(".gone"))
        df = load(planner, table)
        assert df.count() == 990
        planner.sql(f"CREATE OR REPLACE TEMP VIEW numbers USING lance OPTIONS (path '{table}')")
        assert planner.sql("SELECT count(*), count(1) + 1 FROM numbers").collect() == [(990, 991)]
        assert "LocalTableScan" in plan(df.groupBy().count())

    @pytest.mark.slow
    def test_and_bounds_come_from_statistics(self, planner: SparkSession, path: str) -> None:
        wanted = (
            "min(id), max(id), count(id), min(day), max(day), max(at), min(price), max(word), count(word), min(none),"
            " count(*), max(flag), min(real), max(tiny)"
        )
        rows = planner.range(0, 20_000, 1, 2).selectExpr(
            "id",
            "date_add(DATE'1969-01-01', int(id % 700)) AS day",
            "timestamp_seconds(id - 9999) AS at",
            "CAST(id - 7.25 AS decimal(12,2)) AS price",
            "IF(id % 3 = 0, NULL, 'word' || id) AS word",
            "CAST(NULL AS int) AS none",
            "id > 5 AS flag",
            "id + 0.5D AS real",
            "CAST(id % 100 AS byte) AS tiny",
        )
        append(rows, path)
        expected = rows.selectExpr(*split_terms(wanted)).collect()
        df = load(planner, path).selectExpr(*split_terms(wanted))
        assert "LocalTableScan" in plan(df)
        assert df.collect() == expected
        load(planner, path).createOrReplaceTempView("numbers")
        assert planner.sql("SELECT max(id) - min(id) AS width FROM numbers").collect() == [(19_999,)]
        for grouped in ("SELECT max(id) FROM numbers GROUP BY flag", "SELECT max(id) FROM numbers WHERE tiny < 5"):
            assert "BatchScan" in plan(planner.sql(grouped))
        lance_format.dataset(path).delete("id = 19999")
        later = load(planner, path).selectExpr("max(id)", "count(id)")
        assert "BatchScan" in plan(later)
        assert later.collect() == [(19_998, 19_999)]

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "values",
        [
            "DOUBLE('NaN'), 1.0D",
            "-0.0D, 0.0D",
            "DOUBLE('Infinity'), NULL",
            "repeat('x', 400), repeat('x', 401)",
            "TIMESTAMP'1900-01-01 00:00:00.000001', NULL",
            "X'00', X'FF'",
            "named_struct('x', 1), NULL",
            "FLOAT('1.1'), FLOAT('-Infinity')",
            "1e30BD, -1e30BD",
            "TIME'12:00:00', NULL",
        ],
    )
    def test_of_what_has_no_exact_bounds_are_the_same(self, planner: SparkSession, path: str, values: str) -> None:
        append(planner.sql(f"SELECT explode(array({values})) AS v FROM range(0, 9000, 1, 1)"), path)
        wanted = ("min(v)", "max(v)", "count(v)", "count(*)")
        found = load(planner, path).selectExpr(*wanted).collect()
        with plainly(planner):
            assert str(found) == str(load(planner, path).selectExpr(*wanted).collect())

    @pytest.mark.slow
    def test_of_some_rows_do_not(self, planner: SparkSession, table: str) -> None:
        assert load(planner, table, filter="digit = 2").count() == 100
        assert load(planner, table).groupBy("digit").count().count() == 10
        assert load(planner, table).limit(3).count() == 3
        assert load(planner, table).selectExpr("count(s)", "count(DISTINCT digit)").collect() == [(857, 10)]


class TestStatistics:
    def test_small_tables_are_broadcast(self, planner: SparkSession, table: str, tmp_path: Path) -> None:
        small = str(tmp_path / "small.lance")
        append(planner.range(10).withColumnRenamed("id", "digit"), small)
        joined = load(planner, table).join(load(planner, small), "digit")
        assert "BroadcastHashJoin" in plan(joined)
        assert joined.count() == 1000

    def test_follow_the_columns(self, planner: SparkSession, table: str) -> None:
        columns = (["id"], ["id", "digit"], ["id", "digit", "text"])
        plans = [load(planner, table).select(*names)._jdf.queryExecution().optimizedPlan() for names in columns]
        sizes = [int(optimized.stats().sizeInBytes()) for optimized in plans]
        assert sizes == [16_000, 24_000, 44_000]

    def test_values_without_a_width_share_the_bytes_of_the_files(self, path: str) -> None:
        rows = pa.table({"id": range(100), "text": ["x" * 5000 + str(n) for n in range(100)], "v": [[1.0, 2.0]] * 100})
        rows = rows.cast(pa.schema([("id", pa.int64()), ("text", pa.string()), ("v", pa.list_(pa.float32(), 2))]))
        written = lance_format.write_dataset(rows, path, column_encoding={"text": {"compression": "none"}})
        sizes = answers.describe(written, load_schema(path), exact=True, blob_handling="all_binary")["sizes"]
        assert (sizes["id"], sizes["v"]) == (800, 800)
        assert 500_000 < sizes["text"] < 520_000


class TestMetrics:
    @pytest.fixture
    def clustered(self, path: str) -> str:
        rows = pa.table({"id": range(200_000)})
        lance_format.write_dataset(rows, path, max_rows_per_file=50_000)
        return path

    def test_say_what_a_plan_leaves_out(self, planner: SparkSession, clustered: str) -> None:
        df = planner.read.format("lance").load(clustered).where("id BETWEEN 60000 AND 60009")
        assert "fragments: 1 of 4, rows: 8192 of 200000" in plan(df)
        assert len(df.collect()) == 10
        ((_, counts),) = scan_metrics(df)
        assert {name: counts[name] for name in counts if name.startswith(("fragments", "rows"))} == {
            "fragmentsPlanned": 1,
            "fragmentsSkipped": 3,
            "rowsPlanned": 8192,
            "rowsSkipped": 191_808,
        }

    def test_are_shown_by_the_user_interface(self, planner: SparkSession, clustered: str) -> None:
        planner.read.format("lance").load(clustered).where("id = 7").collect()
        planner.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        store = planner._jsparkSession.sharedState().statusStore()
        last = store.executionsList().last()
        shown = store.executionMetrics(last.executionId())
        metrics = [last.metrics().apply(index) for index in range(last.metrics().length())]
        found = {metric.name(): shown.apply(metric.accumulatorId()) for metric in metrics}
        assert found["fragments to look at"] == "1"
        assert found["fragments left out by the plan"] == "3"
        assert found["rows left out by the plan"] == "191808"

    @pytest.mark.slow
    def test_of_tasks_are_in_the_log_that_spark_keeps(self, planner: SparkSession, clustered: str) -> None:
        planner.conf.set("spark.sql.pyspark.worker.logging.enabled", "true")
        planner.conf.set("spark.lance.planner.smallReads.enabled", "false")
        try:
            planner.read.format("lance").load(clustered).where("id = 7").collect()
            logged = planner.tvf.python_worker_logs().where(f"msg LIKE '%{clustered}%'").collect()
        finally:
            planner.conf.unset("spark.sql.pyspark.worker.logging.enabled")
            planner.conf.unset("spark.lance.planner.smallReads.enabled")
        assert [row.logger for row in logged] == ["lance_format.scan"]
        assert "rows=8192 of 8192" in logged[0].msg
        assert "returned=1," in logged[0].msg


class TestJoins:
    def test_tell_a_scan_the_keys_that_they_have_found(self, planner: SparkSession, table: str, tmp_path: Path) -> None:
        planner.range(0, 100).selectExpr("id * 9 AS id", "id % 10 AS kind").write.parquet(str(tmp_path / "small"))
        small = planner.read.parquet(str(tmp_path / "small")).where("kind = 3")
        joined = load(planner, table).join(small, "id")
        assert "dynamicpruning" in plan(joined)
        assert sorted(row.id for row in joined.collect()) == [n * 9 for n in range(3, 100, 10)]
        (scanned,) = [counts for scan, counts in scan_metrics(joined) if "dynamicpruning" in scan]
        assert scanned["numOutputRows"] == 10

    def test_leave_limits_alone(self, planner: SparkSession, table: str, tmp_path: Path) -> None:
        planner.range(0, 1000).selectExpr("id", "id % 10 AS kind").write.parquet(str(tmp_path / "small"))
        small = planner.read.parquet(str(tmp_path / "small")).where("kind = 3")
        joined = load(planner, table).limit(30).join(small.hint("broadcast"), "id")
        assert "dynamicpruning" not in plan(joined)
        assert sorted(row.id for row in joined.collect()) == [3, 13, 23]


class TestMetadataColumns:
    NAMES = ("_rowid", "_rowaddr", "_fragid", "_row_created_at_version", "_row_last_updated_at_version")

    def test_are_hidden_until_named(self, planner: SparkSession, table: str) -> None:
        df = load(planner, table)
        assert df.columns == ["id", "text", "digit", "s"]
        found = df.select("id", *self.NAMES).where("id IN (1, 501)").orderBy("id")
        assert found.collect() == [(1, 1, 1, 0, 1, 1), (501, 2**32 + 1, 2**32 + 1, 1, 1, 1)]
        assert df.where("_fragid = 1").count() == 500

    def test_in_sql(self, planner: SparkSession, table: str) -> None:
        planner.sql(f"CREATE TABLE numbered USING lance LOCATION '{table}'")
        try:
            assert planner.sql("SELECT max(_rowaddr) FROM numbered WHERE _fragid = 0").collect() == [(499,)]
        finally:
            planner.sql("DROP TABLE numbered")

    def test_columns_of_the_table_go_before(self, planner: SparkSession, path: str) -> None:
        append(planner.sql("SELECT 5 AS _fragid"), path)
        assert load(planner, path).select("_fragid").collect() == [(5,)]
        assert load(planner, path, metadata_columns="_rowid").select("_rowid").collect() == [(0,)]


class TestCatalogTables:
    @pytest.fixture(autouse=True)
    def drop(self, planner: SparkSession) -> Iterator[None]:
        yield
        planner.sql("DROP TABLE IF EXISTS birds")

    def test_options_and_paths_reach_reader_and_writer(self, planner: SparkSession, path: str) -> None:
        path = f"{path} of birds"
        planner.sql(
            f"CREATE TABLE birds (id long, name string) USING lance OPTIONS (path '{path}', max_row_per_file 2)"
            " TBLPROPERTIES (owner_team = 'zoo') COMMENT 'all of them'"
        )
        planner.sql("INSERT INTO birds SELECT id, 'owl' FROM range(0, 5, 1, 1)")
        assert len(lance_format.dataset(path).get_fragments()) == 3
        assert planner.sql("SELECT count(*), max(id) FROM birds").collect() == [(5, 4)]
        planner.sql("INSERT OVERWRITE birds VALUES (7, 'emu')")
        assert planner.table("birds").collect() == [(7, "emu")]
        assert planner.sql("SELECT count(*) FROM birds WITH (version = 1)").collect() == [(5,)]

    def test_columns_are_those_of_the_table_at_the_location(self, planner: SparkSession, table: str) -> None:
        planner.sql(f"CREATE TABLE birds USING lance LOCATION '{table}'")
        assert planner.table("birds").columns == ["id", "text", "digit", "s"]
        assert planner.table("birds").where("digit = 4").count() == 100

    def test_tables_of_the_warehouse(self, planner: SparkSession) -> None:
        planner.sql("CREATE TABLE birds USING lance AS SELECT 1 AS id")
        planner.sql("INSERT INTO birds VALUES (2)")
        assert planner.sql("SELECT sum(id) FROM birds").collect() == [(3,)]
        planner.sql("DROP TABLE birds")
        planner.range(4).write.format("lance").saveAsTable("birds")
        assert planner.table("birds").count() == 4


class TestVersions:
    def test_a_data_frame_keeps_to_the_version_that_it_names(self, planner: SparkSession, table: str) -> None:
        df = load(planner, table, version=lance_format.dataset(table).version)
        overwrite(planner.range(3), table)
        assert df.where("digit = 1").count() == 100
        assert load(planner, table).count() == 3

    def test_timestamps_are_of_the_time_zone_of_the_session(self, planner: SparkSession, table: str) -> None:
        overwrite(planner.range(3), table)
        future = (datetime.datetime.now() + datetime.timedelta(days=2)).strftime("%Y-%m-%d %H:%M:%S")
        assert load(planner, table, timestamp=future).count() == 3
        with pytest.raises(PySparkException, match="VersionNotFoundError"):
            load(planner, table, timestamp="2020-01-31")


def test_equal_scans_run_once(planner: SparkSession, table: str) -> None:
    counts = load(planner, table).where("id > 10").groupBy("digit").count()
    again = load(planner, table).where("id > 10").groupBy("digit").count()
    joined = counts.hint("merge").join(again.withColumnRenamed("count", "n"), "digit")
    assert joined.where("n = count").count() == 10
    joined.collect()
    assert "ReusedExchange" in plan(joined)


def test_errors_are_those_of_the_library(planner: SparkSession, path: str) -> None:
    with pytest.raises(PySparkException, match="there is no Lance table at"):
        load(planner, path)
    with pytest.raises(PySparkException, match="unknown option 'versoin': did you mean 'version'"):
        load(planner, path, versoin=3)
    append(planner.range(1), path)
    with pytest.raises(PySparkException, match="there is no column 'b'"):
        load(planner, path, filter="b = 1").collect()
    with pytest.raises(PySparkException, match="is read as int but is bigint"):
        planner.read.schema("id int").format("lance").load(path).collect()


def test_workers_answer_where_the_driver_does_not(
    planner: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers.Answers, "apply", lambda *_: 1 / 0)
    df = load(planner, table).where("id > 10 AND text LIKE '9%'")
    assert "filters: [id IS NOT NULL" in scan_line(df)
    assert df.count() == 110
    assert load(planner, table).count() == 1000


def test_sessions_may_do_without(planner: SparkSession, table: str) -> None:
    with plainly(planner):
        df = load(planner, table).where("id > 10")
        assert "Filter (" in plan(df)
        assert df.count() == 989
        assert not install(planner, LanceDataSource)


def test_the_classes_come_from_a_jar_that_later_drivers_find(planner: SparkSession) -> None:
    context: Any = planner.sparkContext
    loader = context._jvm.Thread.currentThread().getContextClassLoader()
    jar = Path(loader.loadClass("lance.Python").getField("jar").get(None))
    key = jar.stem.removeprefix("lance-planner-").split("-")[0]
    assert find_jar(key) == jar
    assert "lance.DefaultSource" in class_names(jar)


def test_what_stands_in_the_way_is_logged(
    spark: SparkSession,
    path: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Classes of Spark that have moved, a session without a JVM: neither keeps anyone from reading."""
    append(spark.range(3), path)
    (tmp_path / "Moved.java").write_text("package gone; import org.apache.spark.Moved; class Gone extends Moved {}")
    monkeypatch.setattr("connector.planner.installation._SOURCES", (tmp_path,))
    monkeypatch.setattr("connector.planner.installation._PACKAGE", "gone")
    with caplog.at_level(logging.WARNING):
        spark.conf.set(PLANNER, "true")
        try:
            assert not install(spark, LanceDataSource)
            remote: Any = SimpleNamespace(conf=spark.conf)
            assert not install(remote, LanceDataSource)
        finally:
            spark.conf.set(PLANNER, "false")
    assert [record.message.split(":")[0] for record in caplog.records] == [
        "Spark plans Lance tables without pushdown"
    ] * 2
    assert load(spark, path).where("id = 1").collect() == [(1,)]


def plainly(spark: SparkSession) -> Any:
    """Turn the planner off for a while."""
    import contextlib

    @contextlib.contextmanager
    def turned_off() -> Iterator[None]:
        spark.conf.set(PLANNER, "false")
        try:
            yield
        finally:
            spark.conf.set(PLANNER, "true")

    return turned_off()


def split_terms(text: str) -> list[str]:
    return text.split(", ")


def scan_metrics(df: DataFrame) -> list[tuple[str, dict[str, int]]]:
    """Return the scans of a query that has run, and what Spark has counted of each."""
    found = []
    pending = [df._jdf.queryExecution().executedPlan()]
    while pending:
        node = pending.pop()
        if hasattr(node, "executedPlan") and "AdaptiveSparkPlan" in node.nodeName():
            pending.append(node.executedPlan())
            continue
        if "QueryStage" in node.nodeName():
            pending.append(node.plan())
            continue
        if "BatchScan" in node.nodeName():
            names = node.metrics().keys().toList()
            counts = {name: node.metrics().apply(name).value() for name in map(names.apply, range(names.size()))}
            found.append((node.simpleString(1000), counts))
        children = node.children()
        pending += [children.apply(index) for index in range(children.size())]
    return found


def planned(path: str, **given: object) -> list[list[tuple[int, int, int]]]:
    """Return the ranges of rows that the tasks of a scan read."""
    user = {"split_size_bytes"}
    options = {name if name in user else f"__lance.{name}": str(value) for name, value in given.items()}
    found = answers._plan(LanceDataSource({"path": path, **options}), load_schema(path).json())
    return [list(pickle.loads(base64.b64decode(partition)).task.ranges) for partition in found["partitions"]]


def load_schema(path: str) -> Any:
    from connector.types.schemas import to_spark_schema

    return to_spark_schema(lance_format.dataset(path).schema)
