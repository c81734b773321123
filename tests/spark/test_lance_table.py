"""`LanceTable`: Delta's verbs without the planner: their results, and no traces of refused changes."""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ArithmeticException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

import lance_format
from connector.table_api.row_changes import DELETE, Delta, RowChangeResult, change_rows, operation
from connector.table_api.target import ADDRESS, Snapshot, Target
from lance_format import (
    CommitConflictError,
    InvalidInputError,
    LanceError,
    NotSupportedError,
    RetryableCommitConflictError,
    last_batches,
)
from pyspark_lance import LanceTable
from tests.spark import merge_model
from tests.spark.conftest import append, planning
from tests.spark.merge_model import AmbiguousMergeError, Merge, random_rows
from tests.spark.special_rows import special_rows
from tests.spark.test_types import MAX_TIME_PRECISION
from tests.table.leftovers import leftovers

MERGES = 24


@pytest.fixture
def birds(spark: SparkSession, path: str) -> LanceTable:
    """Return a table of ten rows in two fragments, with stable row ids."""
    rows = spark.range(0, 10, 1, 2).selectExpr(
        "id", "concat('bird ', id) AS name", "id * 1.5D AS weight", "named_struct('a', CAST(id AS INT), 'b', 'x') AS p"
    )
    append(rows, path, enable_stable_row_ids="true")
    return LanceTable.forPath(spark, path)


def content(table: LanceTable) -> list[tuple[Any, ...]]:
    """Return the ids, names and weights of birds, by id."""
    return [tuple(row) for row in table.toDF().select("id", "name", "weight").orderBy("id").collect()]


def ids(path: str) -> list[int]:
    return sorted(lance_format.dataset(path).to_table()["id"].to_pylist())


def last_operation(path: str) -> Any:
    dataset = lance_format.dataset(path)
    return dataset.read_transaction(dataset.version).operation


def refusal(path: str, call: Any, *kinds: type[Exception]) -> str:
    """Return why a call is refused; it leaves everything as it was."""
    version = lance_format.dataset(path).version
    with pytest.raises(kinds or (LanceError,)) as refused:
        call()
    assert lance_format.dataset(path).version == version
    assert not leftovers(Path(path))
    return str(refused.value)


def lineage(path: str) -> dict[int, int]:
    """Return which version made each row, by its id."""
    table = lance_format.dataset(path).scanner(["_rowid", "_row_created_at_version"]).to_table()
    return dict(zip(table["_rowid"].to_pylist(), table["_row_created_at_version"].to_pylist(), strict=True))


def counts(result: Any) -> tuple[int, int, int]:
    return result.num_updated_rows, result.num_inserted_rows, result.num_deleted_rows


@pytest.mark.system
@pytest.mark.parametrize("stable", [False, True], ids=["", "stable row ids"])
def test_random_merges(spark: SparkSession, path: str, stable: bool) -> None:
    rng = random.Random(f"merges {stable}")
    rows: Counter[Any] = Counter(random_rows(rng, 20))
    frame = spark.createDataFrame(list(rows.elements()), merge_model.SCHEMA).repartition(3)
    append(frame, path, enable_stable_row_ids=str(stable).lower())
    table = LanceTable.forPath(spark, path)
    for number in range(MERGES // 2):
        merge = Merge.random(rng)
        target = list(rows.elements())
        is_self = rng.random() < 0.15
        given = target if is_self else random_rows(rng, rng.choice([0, 1, 3, 8]))
        source = table.toDF() if is_self else spark.createDataFrame(given, merge_model.SCHEMA)
        builder = merge.add_to(table.alias("t").merge(source.alias("s"), merge.on.sql))
        before, version = lineage(path), lance_format.dataset(path).version
        try:
            expected = merge.apply(target, given)
        except AmbiguousMergeError:
            assert "several rows of the source match one row" in refusal(path, builder.execute), (number, merge)
            continue
        result = builder.execute()
        dataset = lance_format.dataset(path)
        assert counts(result) == expected.counts, (number, merge)
        assert result.version == dataset.version == version + any(expected.counts)
        rows = expected.rows
        assert Counter(tuple(row.values()) for row in dataset.to_table().to_pylist()) == rows, (number, merge)
        assert not leftovers(Path(path))
        if stable:
            after = lineage(path)
            assert all(before[row] == made for row, made in after.items() if row in before)
            assert len(after) == rows.total()
            assert len(set(before) - set(after)) == expected.counts[2]
    theirs = lance.dataset(path)
    theirs.validate()
    assert Counter(tuple(row.values()) for row in theirs.to_table().to_pylist()) == rows


class TestDelete:
    def test_of_rows(self, birds: LanceTable, path: str) -> None:
        assert birds.delete("id = 3 OR name LIKE '%4'").num_deleted_rows == 2
        result = birds.delete(f.col("weight") > 12)
        assert (result.version, counts(result)) == (3, (0, 0, 1))
        assert ids(path) == [0, 1, 2, 5, 6, 7, 8]
        lance.dataset(path).validate()

    def test_of_no_row_makes_no_version(self, birds: LanceTable) -> None:
        result = birds.delete("id = 77")
        assert (result.version, counts(result)) == (1, (0, 0, 0))

    def test_of_all_rows(self, birds: LanceTable, path: str) -> None:
        result = birds.delete()
        assert (result.version, counts(result)) == (2, (0, 0, 10))
        assert ids(path) == []
        assert birds.delete().num_deleted_rows == 0

    @pytest.mark.parametrize(
        ("condition", "left"),
        [
            ("`weight` >= 3 AND NAME <> 'bird 7'", [0, 1, 7]),
            ("hash(*) = 0 OR p.a = 2", [0, 1, 3, 4, 5, 6, 7, 8, 9]),
            ("b.p.b = 'y' OR 1 > 2", list(range(10))),
            ("length('weight') > 5", []),
            ("TRUE", []),
        ],
    )
    def test_reads_the_columns_that_the_condition_names(
        self, birds: LanceTable, path: str, condition: str, left: list[int]
    ) -> None:
        birds.alias("b").delete(condition)
        assert ids(path) == left

    def test_with_a_subquery_and_an_alias(self, birds: LanceTable, path: str) -> None:
        birds.toDF().createOrReplaceTempView("seen")
        birds.alias("b").delete("b.id IN (SELECT id + 1 FROM seen WHERE id > 6) OR b.p.a = 0")
        assert ids(path) == [1, 2, 3, 4, 5, 6, 7]
        birds.toDF().sparkSession.catalog.dropTempView("seen")

    @pytest.mark.slow
    def test_refusals(self, birds: LanceTable, path: str) -> None:
        assert "`nope`" in refusal(path, lambda: birds.delete("nope = 1"), AnalysisException)
        assert "must be SQL in a string, or a column" in refusal(path, lambda: birds.delete(5))  # type: ignore[arg-type]
        assert "DIVIDE_BY_ZERO" in refusal(path, lambda: birds.delete("id / (id - 7) > 1"), PySparkException)


def bytes_scanned(spark: SparkSession, path: str, call: Callable[[], Any]) -> int:
    """Return how many bytes of a table the scans of a call read, by the logs of the workers."""

    def total() -> int:
        logged = spark.tvf.python_worker_logs().where(f"msg LIKE '%{path}%'").collect()
        return sum(int(found[1]) for row in logged if (found := re.search(r" bytes=(\d+)", row.msg)))

    spark.conf.set("spark.sql.pyspark.worker.logging.enabled", "true")
    try:
        before = total()
        call()
        return total() - before
    finally:
        spark.conf.unset("spark.sql.pyspark.worker.logging.enabled")


class TestUpdate:
    @pytest.mark.slow
    def test_of_some_columns(self, birds: LanceTable, path: str) -> None:
        before = lineage(path)
        result = birds.update("id >= 8", {"weight": "weight + id", "Name": f.upper("name")})
        assert (result.version, counts(result)) == (2, (2, 0, 0))
        assert content(birds)[7:] == [(7, "bird 7", 10.5), (8, "BIRD 8", 20.0), (9, "BIRD 9", 22.5)]
        assert lineage(path) == before
        assert last_operation(path).fields_rewritten == {1, 2}
        lance.dataset(path).validate()

    def test_of_all_rows(self, birds: LanceTable) -> None:
        assert birds.update(set={"weight": "0"}).num_updated_rows == 10
        assert {row[2] for row in content(birds)} == {0.0}

    def test_of_fields_of_structs(self, birds: LanceTable, path: str) -> None:
        birds.update("id = 1", {"p": "NULL"})
        birds.update("id < 3", {"p.b": "name"})
        rows = birds.toDF().where("id < 4").orderBy("id").select("p").collect()
        assert [row.p for row in rows] == [(0, "bird 0"), (None, "bird 1"), (2, "bird 2"), (3, "x")]
        assert last_operation(path).fields_rewritten == {3, 4, 5}

    def test_indices_go_on_covering_the_other_columns(self, birds: LanceTable, path: str) -> None:
        lance_format.dataset(path).create_scalar_index("id", "ZONEMAP")
        birds.update("id = 9", {"weight": "0"})
        (index,) = lance_format.dataset(path).list_indices()
        assert set(index["fragment_ids"]) == {0, 1}
        assert lance_format.dataset(path).to_table(filter="id >= 8", columns=["weight"])["weight"].to_pylist() == [
            12,
            0,
        ]

    def test_outer_spaces_belong_to_names(self, spark: SparkSession, path: str) -> None:
        """They are ignored where no column has them; a message spells names as they are understood."""
        table = pa.table({"id": [0, 1], "id ": [0, 1], "p": [{" x": 0}, {" x": 1}], "a.b": [0, 1]})
        lance_format.write_dataset(table, path, allow_unportable_names=True)
        changed = LanceTable.forPath(spark, path)
        changed.update("id = 1", {"id ": "5"})
        changed.update("id = 1", {"p. x": "6"})
        changed.update("id = 1", {" `a.b` ": "7"})
        found = lance_format.dataset(path).to_table().sort_by("id").to_pylist()
        assert found[1] == {"id": 1, "id ": 5, "p": {" x": 6}, "a.b": 7}
        changed.update("id = 1", {" id": "2"})
        assert sorted(lance_format.dataset(path).to_table()["id"].to_pylist()) == [0, 2]
        known = "there is no column 'a.b' in the table, which has 'id', '`id `', 'p', '`a.b`'"
        assert known in refusal(path, lambda: changed.update("id = 1", {"a.b": "1"}))

    @pytest.mark.parametrize(
        ("values", "reason"),
        [
            ({"nope": "1"}, "there is no column 'nope' in the table, which has 'id', 'name', 'weight', 'p'"),
            ({"p.c": "1"}, "there is no column 'p.c'"),
            ({"p": "p", "p.a": "1"}, "assigns to 'p' twice"),
            ({"ID": "1", "id": "1"}, "assigns to 'id' twice"),
            ({}, "needs a mapping from columns to values"),
            ({"id": 5}, "the value of 'id' in 'set' must be SQL"),
            ({"id": "name"}, "column 'id' is bigint, and values of type string cannot be stored"),
            ({"id": "current_date()"}, "values of type date cannot be stored"),
            ({"p": "named_struct('a', 1)"}, "lacks the field 'b'"),
            ({"p": "named_struct('a', 1, 'b', 'x', 'c', 1)"}, "has no field 'c'"),
            ({"`": "1"}, "is not the name of a column"),
        ],
    )
    def test_refusals(self, birds: LanceTable, path: str, values: Any, reason: str) -> None:
        assert reason in refusal(path, lambda: birds.update("id = 1", values))

    def test_needs_values(self, birds: LanceTable, path: str) -> None:
        assert "needs the argument 'set'" in refusal(path, lambda: birds.update("id = 1"))

    @pytest.mark.slow
    def test_values_are_stored_as_in_sql(self, spark: SparkSession, path: str) -> None:
        builder = LanceTable.create(spark).location(path).addColumn("i", "INT").addColumn("s", "STRING")
        builder = builder.addColumn("v", "VARCHAR(3)").addColumn("c", "CHAR(3)").addColumn("d", "DATE")
        builder = builder.addColumn("x", "DECIMAL(5,2)").addColumn("p", "STRUCT<a: INT, b: ARRAY<STRUCT<c: INT>>>")
        table = builder.execute()
        append(spark.sql("SELECT 1 AS i, '' AS s, 'a' AS v"), path)
        values = {
            "i": "CAST(7 AS BIGINT)",
            "s": "DATE'2024-02-03'",
            "v": "'abc  '",
            "c": "'a'",
            "d": "TIMESTAMP'2024-02-03 04:05:06'",
            "x": "1.005D",
            "p": "named_struct('B', array(named_struct('c', 3L)), 'a', 2.9D)",
        }
        table.update(set=values)
        (row,) = table.toDF().collect()
        assert str(row) == (
            "Row(i=7, s='2024-02-03', v='abc', c='a  ', d=datetime.date(2024, 2, 3), x=Decimal('1.01'),"
            " p=Row(a=2, b=[Row(c=3)]))"
        )
        assert "more than 3 characters" in refusal(path, lambda: table.update(set={"v": "'abcd'"}), PySparkException)

    @pytest.mark.slow
    def test_lengths_inside_of_columns_are_enforced(self, spark: SparkSession, path: str) -> None:
        builder = LanceTable.create(spark).location(path).addColumn("p", "STRUCT<c: CHAR(3), v: VARCHAR(2), n: INT>")
        table = builder.addColumn("a", "ARRAY<VARCHAR(2)>").addColumn("m", "MAP<STRING, CHAR(2)>").execute()
        append(spark.sql("SELECT named_struct('c', 'x  ', 'v', 'y', 'n', 1) AS p"), path)
        table.update(set={"p.v": "'ab '", "p.c": "'z'", "a": "array('q', NULL)", "m": "map('k', 'w')"})
        (row,) = table.toDF().collect()
        assert str(row) == "Row(p=Row(c='z  ', v='ab', n=1), a=['q', None], m={'k': 'w '})"
        for values in (
            {"p.v": "'abc'"},
            {"p": "named_struct('c', 'abcd', 'v', '', 'n', 1)"},
            {"a": "array('abc')"},
            {"m": "map('k', 'abc')"},
        ):
            assert "characters" in refusal(path, lambda given=values: table.update(set=given), PySparkException)

    @pytest.mark.slow
    @pytest.mark.parametrize("ansi", ["true", "false"])
    def test_a_value_that_does_not_fit_is_an_error(self, spark: SparkSession, path: str, ansi: str) -> None:
        append(spark.sql("SELECT 1 AS i, named_struct('a', array(1)) AS p"), path)
        table = LanceTable.forPath(spark, path)
        former = spark.conf.get("spark.sql.ansi.enabled")
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        try:
            for values in (
                {"i": "3000000000L"},
                {"p": "named_struct('a', array(3000000000L))"},
                {"p.a": "array(1e30D)"},
            ):
                refusal(path, lambda values=values: table.update(set=values), ArithmeticException, PySparkException)
            table.update(set={"i": "5L"})
        finally:
            spark.conf.set("spark.sql.ansi.enabled", former)
        assert lance_format.dataset(path).to_table().to_pylist() == [{"i": 5, "p": {"a": [1]}}]

    @pytest.mark.slow
    def test_null_where_the_column_allows_none(self, spark: SparkSession, path: str) -> None:
        lance_format.write_dataset(
            pa.table([pa.array([1, 2])], schema=pa.schema([pa.field("id", pa.int64(), False)])), path
        )
        table = LanceTable.forPath(spark, path)
        reason = refusal(path, lambda: table.update("id = 2", {"id": "NULL"}))
        assert "column 'id' holds nulls, but the table declares it as not nullable" in reason
        source = spark.sql("SELECT 1 AS k")
        merge = table.merge(source, "id = 7").whenNotMatchedInsert(values={"id": "nullif(k, 1)"})
        assert "holds nulls" in refusal(path, merge.execute)

    def test_times_are_kept_where_spark_computes_none(self, spark: SparkSession, path: str) -> None:
        """Spark reads and writes times, but refuses expressions of them unless `spark.sql.timeType.enabled` is set."""
        at = pa.array([1_000_000_001, None, 3, 4], pa.time64("ns"))
        nested = pa.StructArray.from_arrays([pa.array([1, 2, None, 4], pa.time32("ms"))], ["t"])
        lance.write_dataset(pa.table({"id": [0, 1, 2, 3], "at": at, "p": nested, "v": [0, 0, 0, 0]}), path)
        spark.conf.set("spark.sql.timeType.enabled", "false")
        try:
            table = LanceTable.forPath(spark, path)
            table.delete("id = 3")
            table.update("id = 0", {"v": "5"})
            source = spark.range(1, 2).alias("s")
            table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdate(set={"v": "6"}).execute()
        finally:
            spark.conf.set("spark.sql.timeType.enabled", "true")
        left = lance_format.dataset(path).to_table().sort_by("id")
        assert left["v"].to_pylist() == [5, 6, 0]
        assert left["at"].combine_chunks() == at[:3]
        assert left["p"].to_pylist() == nested[:3].to_pylist()

    @pytest.mark.skipif(MAX_TIME_PRECISION < 9, reason="Spark does not read times in such sessions")
    def test_nulls_of_times_where_spark_computes_none(self, spark: SparkSession, path: str) -> None:
        at = pa.array([1_000_000_001, None], pa.time64("ns"))
        nested = pa.StructArray.from_arrays([pa.array([1, 2], pa.time32("ms"))], ["t"])
        pairs = pa.array([[(1, 2)], None], pa.map_(pa.time64("us"), pa.time64("us")))
        table = pa.table({"id": [0, 1], "at": at, "p": nested, "m": pairs})
        lance_format.write_dataset(table, path, data_storage_version="2.2")
        spark.conf.unset("spark.sql.timeType.enabled")
        try:
            changed = LanceTable.forPath(spark, path)
            merge = changed.alias("t").merge(spark.range(1, 3).alias("s"), "t.id = s.id")
            merge.whenMatchedUpdate(set={"p.t": "null"}).whenNotMatchedInsert(values={"id": "s.id"}).execute()
            changed.update("id = 0", {"at": "null", "m": f.lit(None)})
            source = changed.toDF().selectExpr("id + 2 AS id", "at AS later").where("id = 3").alias("s")
            merge = changed.alias("t").merge(source, "t.id = s.id").withSchemaEvolution()
            merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        finally:
            spark.conf.set("spark.sql.timeType.enabled", "true")
        found = lance_format.dataset(path).to_table().sort_by("id")
        assert found.column_names == ["id", "at", "p", "m", "later"]
        assert found["id"].to_pylist() == [0, 1, 2, 3]
        assert found["p"].to_pylist() == [nested[0].as_py(), {"t": None}, None, None]
        assert all(found[name].null_count == 4 for name in ("at", "m", "later"))


class TestMerge:
    @pytest.fixture
    def arrivals(self, spark: SparkSession) -> DataFrame:
        rows = [(8, "new 8", 1.0), (9, "new 9", None), (20, "new 20", 3.0), (None, "lost", None)]
        return spark.createDataFrame(rows, "id long, name string, weight double").alias("s")

    def test_upsert(self, birds: LanceTable, arrivals: DataFrame, path: str) -> None:
        before = lineage(path)
        builder = birds.alias("b").merge(arrivals, "b.id = s.id")
        builder = builder.whenMatchedUpdate(set={"b.name": "s.name", "weight": f.col("b.weight") + f.col("s.weight")})
        result = builder.whenNotMatchedInsert("id IS NOT NULL", {"id": "id", "name": "name"}).execute()
        assert (result.version, counts(result)) == (2, (2, 1, 0))
        assert content(birds)[8:] == [(8, "new 8", 13.0), (9, "new 9", None), (20, "new 20", None)]
        assert last_operation(path).fields_rewritten == {1, 2}
        after = lineage(path)
        assert {row: after[row] for row in before} == before
        lance.dataset(path).validate()

    @pytest.mark.slow
    def test_clauses_see_the_columns_of_their_rows(self, birds: LanceTable, arrivals: DataFrame) -> None:
        builder = birds.alias("t").merge(arrivals, "t.id = s.id").whenMatchedDelete("t.id = 8")
        builder = builder.whenMatchedUpdate(set={"name": "concat(s.name, t.name)"})
        builder = builder.whenNotMatchedInsert(values={"id": "id", "name": "concat(name, '!')"})
        builder = builder.whenNotMatchedBySourceUpdate("id = 7", {"name": "upper(name)", "p.a": "t.id + 1"})
        builder = builder.whenNotMatchedBySourceDelete("t.id < 6")
        assert counts(builder.execute()) == (2, 2, 6 + 1)
        assert [row[:2] for row in content(birds)] == [
            (None, "lost!"),
            (6, "bird 6"),
            (7, "BIRD 7"),
            (9, "new 9bird 9"),
            (20, "new 20!"),
        ]

    def test_names_that_may_mean_two_columns_are_refused(
        self, birds: LanceTable, arrivals: DataFrame, path: str
    ) -> None:
        merge = birds.merge(arrivals, "id = s.id").whenMatchedDelete()
        assert "AMBIGUOUS_REFERENCE" in refusal(path, merge.execute, AnalysisException)
        merge = birds.alias("t").merge(arrivals, "t.id = s.id").whenNotMatchedInsert(values={"id": "t.id"})
        assert "t`.`id" in refusal(path, merge.execute, AnalysisException)
        merge = birds.alias("t").merge(arrivals, "t.id = s.id").whenNotMatchedBySourceDelete("s.id = 1")
        assert "s`.`id" in refusal(path, merge.execute, AnalysisException)

    def test_all_columns(self, birds: LanceTable, arrivals: DataFrame, path: str) -> None:
        merge = birds.alias("t").merge(arrivals, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
        reason = refusal(path, merge.execute)
        assert (
            "whenMatchedUpdateAll() takes all columns of the table from the source, which has no column 'p'" in reason
        )
        whole = arrivals.withColumnRenamed("name", "NAME").withColumn("p", f.expr("named_struct('b', 'y', 'a', 5L)"))
        merge = birds.alias("t").merge(whole, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll("id > 0")
        assert counts(merge.execute()) == (2, 1, 0)
        assert [tuple(row.p) for row in birds.toDF().where("id > 7").collect()] == [(5, "y")] * 3

    @pytest.mark.slow
    def test_schema_evolution(self, spark: SparkSession, birds: LanceTable, arrivals: DataFrame, path: str) -> None:
        source = arrivals.withColumn("seen", f.lit("2024-01-01").cast("date")).drop("weight")
        merge = birds.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll("s.id = 8").whenNotMatchedInsertAll()
        wrong = merge.whenNotMatchedBySourceUpdate(set={"id": "name"}).withSchemaEvolution()
        assert "values of type string" in refusal(path, wrong.execute)
        broken = source.withColumn("seen", f.expr("CAST(raise_error('no such bird') AS DATE)"))
        failing = birds.alias("t").merge(broken, "t.id = s.id").whenNotMatchedInsertAll().withSchemaEvolution()
        with pytest.raises(PySparkException, match="no such bird"):
            failing.execute()
        assert lance.dataset(path).schema.names == birds.toDF().columns
        result = merge.withSchemaEvolution().execute()
        assert (result.version, counts(result)) == (2, (1, 2, 0))
        changed = LanceTable.forPath(spark, path).toDF().where("seen IS NOT NULL").orderBy("id")
        assert [tuple(row) for row in changed.drop("p", "seen").collect()] == [
            (None, "lost", None),
            (8, "new 8", 12.0),
            (20, "new 20", None),
        ]
        assert counts(merge.withSchemaEvolution().execute()) == (1, 1, 0)
        lance.dataset(path).validate()

    @pytest.mark.slow
    def test_several_source_rows_for_one_target_row(self, birds: LanceTable, arrivals: DataFrame, path: str) -> None:
        twice = arrivals.union(arrivals).alias("s")
        merge = birds.alias("t").merge(twice, "t.id = s.id")
        reason = refusal(path, merge.whenMatchedUpdate(set={"name": "s.name"}).execute)
        assert "several rows of the source match one row of the table" in reason
        assert "several rows" in refusal(path, merge.whenMatchedDelete("s.weight IS NULL").execute)
        assert counts(merge.whenMatchedDelete().whenNotMatchedInsert(values={"id": "id"}).execute()) == (0, 4, 2)

    def test_inserts_of_a_table_into_itself(self, birds: LanceTable) -> None:
        merge = birds.alias("t").merge(birds.toDF().alias("s"), "t.id = s.id + 100")
        assert counts(merge.whenNotMatchedInsertAll("id < 3").execute()) == (0, 3, 0)
        assert [row[0] for row in content(birds)] == sorted([*range(10), 0, 1, 2])

    @pytest.mark.parametrize(
        ("clauses", "reason"),
        [
            ((), "a merge needs a clause"),
            ((("whenMatchedDelete",), ("whenMatchedUpdateAll",)), "no row reaches the clauses after whenMatchedDelete"),
            ((("whenNotMatchedInsert", None, {"nope": "1"}),), "there is no column 'nope'"),
            ((("whenMatchedUpdate", None, {"id": "s.name"}),), "values of type string cannot be stored"),
        ],
    )
    def test_refusals(self, birds: LanceTable, arrivals: DataFrame, path: str, clauses: Any, reason: str) -> None:
        builder = birds.alias("t").merge(arrivals, "t.id = s.id")
        for name, *arguments in clauses:
            builder = getattr(builder, name)(*arguments)
        assert reason in refusal(path, builder.execute)

    def test_refuses_what_is_not_given(self, birds: LanceTable, arrivals: DataFrame, path: str) -> None:
        builder = birds.merge(arrivals, "TRUE")
        assert "whenMatchedUpdate needs the argument 'set'" in refusal(path, builder.whenMatchedUpdate)
        assert "whenNotMatchedInsert needs the argument 'values'" in refusal(path, builder.whenNotMatchedInsert)
        reserved = birds.merge(arrivals.withColumn("__lance_x", f.lit(1)), "TRUE").whenMatchedDelete()
        assert "names that start with '__lance_'" in refusal(path, reserved.execute)

    def test_a_task_that_fails_leaves_nothing(self, spark: SparkSession, birds: LanceTable, path: str) -> None:
        source = spark.range(0, 40, 1, 4).selectExpr("id", "IF(id = 35, raise_error('bad row'), 'ok') AS name")
        merge = birds.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"name": "s.name"})
        merge = merge.whenNotMatchedInsert(values={"id": "id", "name": "name"})
        assert "bad row" in refusal(path, merge.execute, PySparkException)


def test_columns_of_all_types(spark: SparkSession, path: str) -> None:
    pairs = pa.array([[("x", 1)], None, []], pa.map_(pa.string(), pa.int32()))
    table = special_rows(pairs=pairs, **{"a.b`c": pa.array([255, 0, None], pa.uint8())})
    lance_format.write_dataset(table, path, data_storage_version="2.2", allow_unportable_names=True)
    before = {row["id"]: row for row in lance_format.dataset(path).to_table(blob_handling="all_binary").to_pylist()}
    lance_table = LanceTable.forPath(spark, path).alias("t")
    source = spark.createDataFrame([(2, bytearray(b"new"), '{"b": 2}'), (5, None, None)], "id long, p binary, j string")
    merge = lance_table.merge(source.alias("s"), "t.id = s.id")
    merge = merge.whenMatchedUpdate(set={"payload": "p", "json": "j", "vector": "array(7.0D, 8.0D, 9.0D)"})
    assert counts(merge.whenNotMatchedInsert(values={"id": "s.id", "`a.b``c`": "3"}).execute()) == (1, 1, 0)
    assert lance_table.update("id = 0", {"id": "id + 10"}).num_updated_rows == 1
    dataset = lance_format.dataset(path)
    rows = {row["id"]: row for row in dataset.to_table(blob_handling="all_binary").to_pylist()}
    assert rows[10] == {**before[0], "id": 10}
    assert rows[1] == before[1]
    assert rows[2] == {**before[2], "payload": b"new", "json": '{"b":2}', "vector": [7.0, 8.0, 9.0]}
    assert rows[5] == {**dict.fromkeys(table.schema.names), "id": 5, "a.b`c": 3}
    assert dataset.schema.field("vector").type == pa.list_(pa.float32(), 3)


@pytest.mark.slow
def test_of_a_branch(spark: SparkSession, birds: LanceTable, path: str) -> None:
    birds.createBranch("b")
    branch = LanceTable.forPath(spark, path, {"branch": "b"})
    assert branch.delete("id > 2").num_deleted_rows == 7
    merge = branch.alias("t").merge(birds.toDF().alias("s"), "t.id = s.id").whenMatchedUpdate(set={"name": "'main'"})
    assert counts(merge.whenNotMatchedInsertAll("id = 9").execute()) == (3, 1, 0)
    assert [row[0] for row in content(branch)] == [0, 1, 2, 9]
    assert [row[0] for row in content(birds)] == list(range(10))
    assert [tuple(row)[:3] for row in birds.branches().collect()] == [("b", None, 1)]
    assert branch.detail().first()["branch"] == "b"
    birds.deleteBranch("b")
    assert birds.branches().count() == 0


@pytest.mark.parametrize("option", ["version", "tag", "filter", "columns", "metadata_columns"])
def test_refuses_to_change_what_options_show_in_part(
    spark: SparkSession, birds: LanceTable, path: str, option: str
) -> None:
    birds.createTag("first")
    values = {"version": 1, "tag": "first", "filter": "id > 1", "columns": "id", "metadata_columns": "_rowid"}
    table = LanceTable.forPath(spark, path, {option: str(values[option])})
    merge = table.merge(birds.toDF(), "TRUE").whenMatchedDelete()
    for call in (table.delete, lambda: table.update(set={"id": "1"}), merge.execute):
        assert f"its option {option!r}" in refusal(path, call, NotSupportedError)


def test_refuses_tables_with_columns_of_its_own_names(spark: SparkSession, path: str) -> None:
    append(spark.sql("SELECT 1 AS id, 2 AS __lance_x"), path)
    table = LanceTable.forPath(spark, path)
    assert "'__lance_x'" in refusal(path, lambda: table.delete("id = 1"), NotSupportedError)


@pytest.mark.slow
def test_a_thread_without_a_session(spark: SparkSession, path: str) -> None:
    """Spark looks for the data source of a write in the session of the thread."""
    append(spark.range(4), path)
    with ThreadPoolExecutor(1) as pool:
        table = LanceTable.forPath(spark, path)
        assert pool.submit(table.update, "id = 1", {"id": "7"}).result().num_updated_rows == 1
        pool.submit(table.optimize().executeZOrderBy, "id").result()
        assert pool.submit(SparkSession.getActiveSession).result() is None
    assert lance.dataset(path).to_table()["id"].to_pylist() == [0, 2, 3, 7]


@pytest.mark.slow
def test_concurrent_changes_lose_nothing(spark: SparkSession, path: str) -> None:
    append(spark.createDataFrame([(number, 0) for number in range(4)], "id long, n long").repartition(2), path)
    errors: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            table = LanceTable.forPath(spark, path).alias("t")
            for turn in range(3):
                source = spark.createDataFrame([(0,), (1,), (100 * worker + turn + 10,)], "id long").alias("s")
                merge = table.merge(source, "t.id = s.id").whenMatchedUpdate(set={"n": "t.n + 1"})
                result = merge.whenNotMatchedInsert(values={"id": "s.id", "n": "0"}).execute()
                assert counts(result) == (2, 1, 0)
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in (1, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not errors
    rows = {row["id"]: row["n"] for row in lance_format.dataset(path).to_table().to_pylist()}
    assert rows == {0: 6, 1: 6, 2: 0, 3: 0, **dict.fromkeys((110, 111, 112, 210, 211, 212), 0)}
    assert not leftovers(Path(path))
    lance.dataset(path).validate()


def test_a_change_gives_up_after_some_conflicts(spark: SparkSession, birds: LanceTable, path: str) -> None:
    attempts = 0

    def plan(snapshot: Snapshot) -> Delta:
        nonlocal attempts
        attempts += 1
        birds_elsewhere = lance_format.dataset(path)
        birds_elsewhere.update({"name": f"'attempt {attempts}'"}, "id = 1")
        return Delta(snapshot.rows.where("id < 3").select(operation(DELETE), ADDRESS))

    spark.conf.set("spark.lance.commit.attempts", "2")
    try:
        with pytest.raises(RetryableCommitConflictError, match="this delete, planned on version 2, meets version 3"):
            change_rows(Target(spark, path, {}), "DELETE", plan)
        assert attempts == 2
        spark.conf.set("spark.lance.commit.attempts", "none")
        with pytest.raises(InvalidInputError, match="from 1 to 99999"):
            birds.delete("id = 1")
    finally:
        spark.conf.unset("spark.lance.commit.attempts")
    assert content(birds)[1] == (1, f"attempt {attempts}", 1.5)
    assert lance_format.dataset(path).version == attempts + 1
    assert not leftovers(Path(path))


@pytest.mark.slow
def test_a_merge_finds_the_primary_keys_that_others_insert(spark: SparkSession, path: str) -> None:
    key = pa.field("id", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"})
    schema = pa.schema([key, pa.field("n", pa.int64())])
    lance_format.write_dataset(pa.table({"id": [1], "n": [0]}, schema=schema), path)
    table = LanceTable.forPath(spark, path).alias("t")
    source = spark.createDataFrame([(1, 1), (2, 1), (3, 1)], "id long, n long").alias("s")
    merge = table.merge(source, "t.id = s.id").whenMatchedUpdate(set={"n": "t.n + s.n"}).whenNotMatchedInsertAll()
    attempts = 0

    def plan(snapshot: Snapshot) -> Delta:
        nonlocal attempts
        attempts += 1
        delta = merge._plan(snapshot)
        if attempts == 1:
            lance_format.dataset(path).insert(pa.table({"id": [2], "n": [10]}, schema=schema))
        return delta

    assert counts(change_rows(Target(spark, path, {}, "t"), "MERGE", plan)) == (2, 1, 0)
    assert attempts == 2
    rows = lance_format.dataset(path).to_table().to_pylist()
    assert sorted((row["id"], row["n"]) for row in rows) == [(1, 1), (2, 11), (3, 1)]
    assert not leftovers(Path(path))


class TestVersions:
    def test_history(self, birds: LanceTable, path: str) -> None:
        birds.delete("id = 1")
        birds.update("id > 7", {"name": "''"})
        rows = birds.history().collect()
        assert [(row.version, row.operation, row.readVersion) for row in rows][:2] == [
            (3, "update", 2),
            (2, "delete", 1),
        ]
        assert rows[0].operationMetrics == {"num_updated_rows": "2", "num_inserted_rows": "0", "num_deleted_rows": "0"}
        assert rows[1].operationParameters == {"predicate": "DELETE of Spark"}
        assert rows[0].timestamp >= rows[1].timestamp
        assert [row.version for row in birds.history(1).collect()] == [3]
        assert "whole number from 1" in refusal(path, lambda: birds.history(0))
        theirs = lance.dataset(path).read_transaction(3)
        assert theirs.transaction_properties["num_updated_rows"] == "2"

    def test_detail(self, birds: LanceTable, path: str) -> None:
        (row,) = birds.detail().collect()
        assert (row.format, row.location, row.numFiles, row.numRows, row.version) == ("lance", path, 2, 10, 1)
        assert row.hasStableRowIds
        assert row.sizeInBytes == sum(file.stat().st_size for file in (Path(path) / "data").iterdir())

    def test_restore(self, birds: LanceTable, path: str) -> None:
        birds.delete("id > 3")
        made = birds.history(1).first()["timestamp"]
        birds.delete("id > 1")
        result = birds.restoreToVersion(1)
        assert (result.version, result.restored_version) == (4, 1)
        assert ids(path) == list(range(10))
        result = birds.restoreToTimestamp(made)
        assert (result.version, result.restored_version) == (5, 2)
        assert ids(path) == [0, 1, 2, 3]
        assert "has no version 77" in refusal(path, lambda: birds.restoreToVersion(77))
        assert "no version" in refusal(path, lambda: birds.restoreToTimestamp("1999-01-01"))
        assert "restoreToTimestamp" in refusal(path, lambda: birds.restoreToVersion("1"))  # type: ignore[arg-type]

    def test_tags(self, birds: LanceTable, path: str) -> None:
        birds.createTag("whole")
        birds.delete("id > 3")
        birds.createTag("less", 2)
        assert [tuple(row)[:3] for row in birds.tags().orderBy("name").collect()] == [
            ("less", None, 2),
            ("whole", None, 1),
        ]
        assert LanceTable.forPath(birds.toDF().sparkSession, path, {"tag": "whole"}).toDF().count() == 10
        birds.replaceTag("whole", 2)
        birds.deleteTag("less")
        assert [tuple(row)[:3] for row in birds.tags().collect()] == [("whole", None, 2)]
        assert "whole" in refusal(path, lambda: birds.createTag("whole"))
        assert "nothing" in refusal(path, lambda: birds.deleteTag("nothing"))


class TestFinding:
    def test_by_path(self, spark: SparkSession, birds: LanceTable, path: str) -> None:
        assert LanceTable.isLanceTable(spark, path)
        assert not LanceTable.isLanceTable(spark, f"{path}/nothing")
        assert content(LanceTable.forName(spark, f"lance.`{path}`")) == content(birds)
        assert repr(birds) == f"LanceTable({path!r})"
        with pytest.raises(lance_format.DatasetNotFoundError, match="no Lance table"):
            LanceTable.forPath(spark, f"{path}/nothing")
        with pytest.raises(InvalidInputError, match="did you mean 'branch'"):
            LanceTable.forPath(spark, path, {"brunch": "b"})
        with pytest.raises(InvalidInputError, match="argument of forPath"):
            LanceTable.forPath(spark, path, {"Path": path})

    @pytest.mark.parametrize("installed", [False, True], ids=["", "installed and off"])
    def test_names_take_the_planner(self, spark: SparkSession, installed: bool) -> None:
        if installed:
            with planning(spark):
                pass
        with pytest.raises(lance_format.DatasetNotFoundError, match="requires the planner"):
            LanceTable.forName(spark, "lance.zoo.nothing")
        with pytest.raises(lance_format.DatasetNotFoundError, match="`a; DROP TABLE b`"):
            LanceTable.forName(spark, "a; DROP TABLE b")
        with pytest.raises(InvalidInputError, match="is not the name of a table"):
            LanceTable.forName(spark, "a.")

    def test_by_name(self, planner: SparkSession) -> None:
        planner.sql("CREATE NAMESPACE lance.zoo")
        planner.sql("CREATE TABLE lance.zoo.birds AS SELECT id, name FROM range(3), (SELECT 'x' AS name)")
        try:
            table = LanceTable.forName(planner, "lance.zoo.birds")
            table.createBranch("b")
            assert LanceTable.forName(planner, "lance.zoo.birds.branch_b").delete("id = 1").num_deleted_rows == 1
            assert table.update("id = 2", {"name": "'y'"}).num_updated_rows == 1
            assert [tuple(row) for row in planner.sql("SELECT * FROM lance.zoo.birds ORDER BY id").collect()] == [
                (0, "x"),
                (1, "x"),
                (2, "y"),
            ]
            assert planner.sql("SELECT id FROM lance.zoo.birds.branch_b ORDER BY id").collect() == [(0,), (2,)]
        finally:
            planner.sql("DROP NAMESPACE lance.zoo CASCADE")

    def test_by_name_in_the_session_catalog(self, planner: SparkSession, birds: LanceTable, path: str) -> None:
        birds.createBranch("b")
        planner.sql(f"CREATE TABLE of_birds USING lance LOCATION '{path}'")
        planner.sql(f"CREATE TABLE of_branch USING lance OPTIONS (branch 'b') LOCATION '{path}'")
        planner.sql(f"CREATE TABLE of_old USING lance OPTIONS (version 1) LOCATION '{path}'")
        planner.sql("CREATE TABLE of_parquet (id INT) USING parquet")
        birds.toDF().createOrReplaceTempView("of_view")
        try:
            assert LanceTable.forName(planner, "of_branch").delete("id < 9").num_deleted_rows == 9
            assert LanceTable.forName(planner, "default.of_birds").delete("id = 9").num_deleted_rows == 1
            assert ids(path) == list(range(9))
            for name, reason in {
                "of_old": "options that show a part",
                "of_parquet": "is not a Lance table, but parquet",
                "of_view": "is not a Lance table",
            }.items():
                with pytest.raises(InvalidInputError, match=reason):
                    LanceTable.forName(planner, name)
        finally:
            for name in ("of_birds", "of_branch", "of_old", "of_parquet"):
                planner.sql(f"DROP TABLE {name}")
            planner.catalog.dropTempView("of_view")


class TestCreating:
    def test_by_location(self, spark: SparkSession, path: str) -> None:
        builder = LanceTable.create(spark).location(path).comment("of birds")
        builder = builder.addColumn("id", "BIGINT", nullable=False).addColumn("name", "STRING", comment="in English")
        builder = builder.addColumn("at", t.ArrayType(t.FloatType())).property("at.arrow.fixed-size-list.size", 2)
        table = builder.property("enable_stable_row_ids", "true").property("mine", "yes").execute()
        dataset = lance_format.dataset(path)
        assert dataset.has_stable_row_ids
        assert dataset.config() == {"comment": "of birds", "mine": "yes"}
        assert not dataset.schema.field("id").nullable
        assert dataset.schema.field("at").type == pa.list_(pa.float32(), 2)
        assert table.toDF().schema["name"].metadata["comment"] == "in English"
        theirs = lance.dataset(path)
        assert theirs.count_rows() == 0
        theirs.validate()
        append(spark.sql("SELECT 1L AS id, 'owl' AS name, array(1F, 2F) AS at"), path)
        with pytest.raises(lance_format.DatasetExistsError, match="createIfNotExists or createOrReplace"):
            builder.execute()
        assert LanceTable.createIfNotExists(spark).location(path).addColumn("x", "INT").execute().toDF().count() == 1
        replaced = LanceTable.replace(spark).location(path).addColumns([t.StructField("x", t.IntegerType())]).execute()
        assert replaced.toDF().columns == ["x"]
        assert lance_format.dataset(path).version == 3

    def test_refusals(self, spark: SparkSession, path: str) -> None:
        builder = LanceTable.create(spark)
        with pytest.raises(NotSupportedError, match=r"partitionedBy\('id',\).*zone maps"):
            builder.partitionedBy("id")
        with pytest.raises(NotSupportedError, match="clusterBy"):
            builder.clusterBy("id")
        with pytest.raises(NotSupportedError, match="do not generate columns"):
            builder.addColumn("id", "INT", generatedAlwaysAs="1")
        with pytest.raises(InvalidInputError, match="needs a type"):
            builder.addColumn("id")
        with pytest.raises(InvalidInputError, match="where others read it: use option"):
            builder.property("storage.aws_secret_access_key", "x")
        with pytest.raises(InvalidInputError, match="no option of the storage"):
            builder.option("branch", "x")
        builder = builder.addColumn("id", "INT")
        with pytest.raises(InvalidInputError, match="for tables by their location"):
            builder.option("storage.aws_region", "x").tableName("lance.t").execute()
        with pytest.raises(InvalidInputError, match="either a name or a location"):
            builder.execute()
        with pytest.raises(InvalidInputError, match="either a name or a location"):
            builder.location(path).tableName("lance.t").execute()
        with pytest.raises(InvalidInputError, match="needs columns"):
            LanceTable.create(spark).location(path).execute()
        with pytest.raises(lance_format.DatasetNotFoundError, match="to be replaced"):
            LanceTable.replace(spark).location(path).addColumn("id", "INT").execute()
        with pytest.raises(LanceError):
            builder.location(path).property("file_format_version", "9").execute()
        assert not Path(path).exists()

    def test_by_name(self, planner: SparkSession, path: str) -> None:
        fields = [
            t.StructField("a`b", t.IntegerType(), False, {"comment": "it's \\ one"}),
            t.StructField("c", t.DateType()),
        ]
        nested = t.StructType(
            [
                t.StructField("l", t.ArrayType(t.StructType(fields))),
                t.StructField("m", t.MapType(t.StringType(), t.LongType())),
            ]
        )
        builder = LanceTable.createOrReplace(planner).tableName("lance.made").addColumn("id", "BIGINT", nullable=False)
        builder = builder.addColumn("p", nested, comment="deep").property("it's", "a 'text'")
        try:
            for _ in range(2):
                table = builder.execute()
            assert not lance_format.dataset(table.detail().first()["location"]).schema.field("id").nullable
            assert table.toDF().schema["p"].dataType.simpleString() == nested.simpleString()
            assert planner.table("lance.made").schema["p"].metadata["comment"] == "deep"
            assert table.detail().first()["properties"] == {"it's": "a 'text'"}
            with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
                LanceTable.create(planner).tableName("lance.made").addColumn("id", "INT").execute()
        finally:
            planner.sql("DROP TABLE lance.made PURGE")
        named = LanceTable.create(planner).tableName(f"lance.`{path}`").addColumn("id", "INT").execute()
        assert named.toDF().columns == ["id"]


@pytest.mark.usefixtures("planner")
class TestWithThePlanner:
    @pytest.mark.slow
    def test_changes_refresh_what_is_cached(self, birds: LanceTable) -> None:
        cached = birds.toDF().cache()
        try:
            assert cached.count() == 10
            birds.update("id = 3", {"name": "'new'"})
            birds.delete("id = 4")
            assert birds.toDF().where("name = 'new'").count() == 1
            assert birds.toDF().count() == 9
        finally:
            cached.unpersist()

    @pytest.mark.slow
    def test_merge(self, birds: LanceTable, path: str) -> None:
        source = birds.toDF().where("id > 7").withColumn("weight", f.lit(0)).alias("s")
        merge = birds.alias("t").merge(source, "t.id = s.id").whenMatchedUpdate(set={"weight": "s.weight"})
        merge = merge.whenNotMatchedBySourceDelete("id < 5")
        assert counts(merge.execute()) == (2, 0, 5)
        assert content(birds) == [
            (5, "bird 5", 7.5),
            (6, "bird 6", 9.0),
            (7, "bird 7", 10.5),
            (8, "bird 8", 0),
            (9, "bird 9", 0),
        ]
        assert last_operation(path).fields_rewritten == {2}


class TestReadChanges:
    def changes(self, table: LanceTable, *versions: int) -> list[tuple[Any, ...]]:
        """Return commit version, type, id and name of changes, in order."""
        rows = table.readChanges(*versions).orderBy("_commit_version", "id", "_change_type").collect()
        return [(row._commit_version, row._change_type, row.id, row.name) for row in rows]

    @pytest.mark.slow
    def test_of_every_kind(self, birds: LanceTable, path: str) -> None:
        birds.delete("id IN (3, 4, 5, 6)")
        merge = birds.alias("t").merge(birds.toDF().where("id > 7").alias("s"), "t.id = s.id AND s.id = 9")
        merge = merge.whenMatchedUpdate(set={"name": "'new'"}).whenNotMatchedInsert(values={"id": "id + 100"})
        merge.whenNotMatchedBySourceDelete("id = 0").execute()
        lance_format.dataset(path).optimize.compact_files()
        birds.update("id = 108", {"name": "'twice'"})
        birds.restoreToVersion(3)
        third = [
            (3, "delete", 0, "bird 0"),
            (3, "update_postimage", 9, "new"),
            (3, "update_preimage", 9, "bird 9"),
            (3, "insert", 108, None),
        ]
        assert self.changes(birds, 2, 3) == [(2, "delete", number, f"bird {number}") for number in (3, 4, 5, 6)] + third
        assert self.changes(birds, 4, 4) == []
        assert self.changes(birds, 4) == [
            (5, "update_postimage", 108, "twice"),
            (5, "update_preimage", 108, None),
            (6, "update_postimage", 108, None),
            (6, "update_preimage", 108, "twice"),
        ]
        assert [change[1] for change in self.changes(birds, 1, 1)] == ["insert"] * 10
        frame = birds.readChanges(3, 3)
        made = {row.version: row.timestamp for row in birds.history().collect()}
        assert [row._commit_timestamp for row in frame.where("id = 108").collect()] == [made[3]]
        assert frame.schema.names[-3:] == ["_change_type", "_commit_version", "_commit_timestamp"]

    @pytest.mark.slow
    def test_replaying_changes_gives_the_later_version(self, birds: LanceTable) -> None:
        first = sorted(map(tuple, birds.toDF().collect()))
        birds.update("id % 2 = 0", {"weight": "weight + 1"})
        birds.delete("id % 3 = 0")
        birds.update("id = 2", {"p.a": "77"})
        rows = Counter(first)
        for change in birds.readChanges(2).orderBy("_commit_version", "_change_type").collect():
            values = tuple(change)[:-3]
            rows[values] += 1 if change._change_type in ("insert", "update_postimage") else -1
        assert +rows == Counter(map(tuple, birds.toDF().collect()))
        assert min(rows.values()) == 0

    def test_of_a_table_without_stable_row_ids(self, spark: SparkSession, path: str) -> None:
        append(spark.range(0, 6, 1, 2).selectExpr("id", "CAST(id AS STRING) AS name"), path)
        table = LanceTable.forPath(spark, path)
        table.update("id = 2", {"name": "'new'"})
        table.delete("id = 5")
        lance_format.dataset(path).optimize.compact_files()
        lance_format.write_dataset({"id": [7], "name": ["7"]}, path, mode="overwrite")
        assert self.changes(table, 2, 4) == [
            (2, "delete", 2, "2"),
            (2, "insert", 2, "new"),
            (3, "delete", 5, "5"),
        ]
        fifth = [(5, "delete", number, "new" if number == 2 else str(number)) for number in range(5)]
        assert self.changes(table, 5) == [*fifth, (5, "insert", 7, "7")]

    def test_of_versions_with_other_columns(self, birds: LanceTable, path: str) -> None:
        dataset = lance_format.dataset(path)
        dataset.add_columns({"more": "id * 2"})
        dataset.drop_columns(["weight"])
        birds = LanceTable.forPath(birds.toDF().sparkSession, path)
        birds.delete("id > 0")
        frame = birds.readChanges(1)
        assert frame.schema.names == ["id", "name", "p", "more", "_change_type", "_commit_version", "_commit_timestamp"]
        found = Counter((row._commit_version, row._change_type, row.id, row.more) for row in frame.collect())
        assert found == Counter(
            [(1, "insert", n, None) for n in range(10)]
            + [(2, "update_preimage", n, None) for n in range(10)]  # a column that is filled updates all rows
            + [(2, "update_postimage", n, 2 * n) for n in range(10)]
            + [(4, "delete", n, 2 * n) for n in range(1, 10)]
        )

    def test_refusals(self, birds: LanceTable, path: str) -> None:
        birds.delete("id = 1")
        assert "the number of a version is needed" in refusal(path, lambda: birds.readChanges(0))
        assert "later than endingVersion" in refusal(path, lambda: birds.readChanges(2, 1))
        assert "has no version 7" in refusal(path, lambda: birds.readChanges(1, 7))
        lance_format.dataset(path).cleanup_old_versions(retain_versions=1)
        assert "has no version 1" in refusal(path, lambda: birds.readChanges(2))


class TestUpkeep:
    @pytest.mark.slow
    def test_compaction(self, spark: SparkSession, birds: LanceTable, path: str) -> None:
        append(spark.range(20, 26, 1, 3).selectExpr("id"), path)
        birds.delete("id = 1")
        birds.createIndex("id")  # It finds the fragments for a condition.
        before = content(birds)
        result = birds.optimize().where("id >= 20").executeCompaction(target_rows_per_fragment=1000)
        assert (result.version, result.fragments_removed, result.fragments_added) == (6, 3, 1)
        result = birds.optimize().executeCompaction()
        assert (result.version, result.fragments_removed, result.fragments_added) == (8, 3, 1)
        assert content(birds) == before
        lance.dataset(path).validate()

    @pytest.mark.slow
    def test_z_order(self, spark: SparkSession, path: str) -> None:
        append(spark.range(0, 64, 1, 2).selectExpr("id % 8 AS x", "CAST(id / 8 AS INT) AS y", "id"), path)
        table = LanceTable.forPath(spark, path)
        result = table.optimize().executeZOrderBy("x", "y")
        assert (result.version, result.fragments_removed, result.fragments_added) == (2, 2, 1)
        rows = lance_format.dataset(path).to_table().to_pylist()
        assert sorted(row["id"] for row in rows) == list(range(64))
        assert all(len({row[name] for row in rows[:16]}) < 8 for name in "xy")  # 16 rows by id have all of x
        assert "needs the names of columns" in refusal(path, table.optimize().executeZOrderBy)
        assert "nope" in refusal(path, lambda: table.optimize().executeZOrderBy(["nope"]))

    def test_vacuum(self, birds: LanceTable, path: str) -> None:
        birds.createTag("first")
        for number in range(3):
            birds.delete(f"id = {number}")
        assert birds.vacuum().old_versions == 0
        assert birds.vacuum(0).old_versions == 2
        assert sorted(row.version for row in birds.history().collect()) == [1, 4]
        assert "a number of hours from 0" in refusal(path, lambda: birds.vacuum(-1))

    def test_indices(self, spark: SparkSession, birds: LanceTable, path: str) -> None:
        made = birds.createIndex("id", name="ids")
        assert (made.name, made.column, made.fragments, made.version) == ("ids", "id", 2, 2)
        append(spark.range(20, 22).selectExpr("id"), path)
        (refreshed,) = birds.refreshIndex("ids")
        assert refreshed.fragments == len(lance_format.dataset(path).get_fragments())
        assert {row["name"] for row in birds.indices().collect()} == {"ids"}
        birds.dropIndex("ids")
        assert birds.indices().count() == 0
        assert "nothing" in refusal(path, lambda: birds.dropIndex("nothing"))
        assert "nope" in refusal(path, lambda: birds.createIndex("nope"))

    def test_new_columns_by_address(self, spark: SparkSession, birds: LanceTable, path: str) -> None:
        rows = spark.read.format("lance").option("metadata_columns", "_rowaddr").load(path).where("id > 3")
        made = birds.addColumnsFrom(rows.selectExpr("_rowaddr", "id * 2 AS twice"))
        assert (made.columns, made.version) == (("twice",), 2)
        found = {row["id"]: row["twice"] for row in lance_format.dataset(path).to_table().to_pylist()}
        assert found == {number: None if number < 4 else number * 2 for number in range(10)}
        assert len(lance_format.dataset(path).get_fragments()[0].data_files()) == 2

    @pytest.mark.slow
    def test_new_columns_by_key(self, spark: SparkSession, birds: LanceTable, path: str) -> None:
        rows = spark.createDataFrame(
            [(1, "bird 1", 7), (2, "other", 8), (None, None, 9)], "ID long, name string, n int"
        )
        made = LanceTable.forPath(spark, path).addColumnsFrom(rows, ["id", "name"])
        assert (made.columns, made.version) == (("n",), 2)
        assert {row["id"]: row["n"] for row in lance_format.dataset(path).to_table().to_pylist() if row["n"]} == {1: 7}
        twice = rows.union(rows).selectExpr("ID AS id", "n AS m")
        assert "has several values" in refusal(path, lambda: birds.addColumnsFrom(twice, "id"))
        assert "no column 'nope' in the table" in refusal(path, lambda: birds.addColumnsFrom(rows, "nope"))
        assert "no column 'weight' in the DataFrame" in refusal(path, lambda: birds.addColumnsFrom(rows, "weight"))
        lance.dataset(path).validate()


@pytest.mark.slow
def test_changes_that_number_themselves_are_made_once(spark: SparkSession, birds: LanceTable, path: str) -> None:
    def numbered(version: int) -> LanceTable:
        return LanceTable.forPath(spark, path, {"txnAppId": "arrivals", "txnVersion": str(version)})

    def merge(version: int, name: str) -> RowChangeResult:
        source = birds.toDF().where("id IN (1, 2)").selectExpr("id + 8 AS id", f"'{name}' AS name", "weight", "p")
        merged = numbered(version).alias("t").merge(source.alias("s"), "t.id = s.id")
        return merged.whenMatchedUpdate(set={"name": "s.name"}).whenNotMatchedInsertAll().execute()

    first = merge(3, "once")
    assert (first.num_updated_rows, first.num_inserted_rows) == (1, 1)
    before = content(birds)
    lance.dataset(path).optimize.compact_files()
    version = lance_format.dataset(path).version
    for number in (3, 2):
        assert merge(number, "twice") == RowChangeResult(version)
    assert numbered(3).update("id = 1", {"name": "'twice'"}) == RowChangeResult(version)
    for condition in ("id = 1", None):
        assert numbered(3).delete(condition) == RowChangeResult(version)
    assert content(birds) == before
    assert numbered(4).update("id = 1", {"name": "'next'"}).num_updated_rows == 1
    assert numbered(4).delete() == RowChangeResult(version + 1)
    assert last_batches(lance.dataset(path).config()) == {"arrivals": 4}
    assert numbered(5).delete().num_deleted_rows == 11
    assert not leftovers(Path(path))


def test_of_two_changes_with_one_number_the_second_fails(spark: SparkSession, birds: LanceTable, path: str) -> None:
    def plan(snapshot: Snapshot) -> Delta:
        if lance_format.dataset(path).version == 1:
            numbered.delete("id = 7")
        return Delta(snapshot.rows.where("id < 2").select(operation(DELETE), ADDRESS))

    options = {"txnAppId": "arrivals", "txnVersion": "1"}
    numbered = LanceTable.forPath(spark, path, options)
    with pytest.raises(CommitConflictError, match="another writer committed batch 1 of 'arrivals'"):
        change_rows(Target(spark, path, options), "DELETE", plan)
    assert ids(path) == [0, 1, 2, 3, 4, 5, 6, 8, 9]
    assert not leftovers(Path(path))
