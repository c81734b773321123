"""DELETE, UPDATE and MERGE: they leave what queries say, and what cannot be done is refused before anything is done."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException, UnsupportedOperationException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import lance_format
from connector.write.commit_message import TaskMessage
from lance_format import CommitError, LanceDataset, LanceOperation, RowDeltaChanges
from pyspark_lance import LanceTable
from tests.spark.conftest import append, load
from tests.spark.dml_model import random_change, random_rows
from tests.spark.special_rows import special_rows
from tests.spark.test_jobs import jobs_of
from tests.table.leftovers import leftovers

DATABASE = "changes"
STABLE = pytest.mark.parametrize("stable", [False, True], ids=["", "stable row ids"])
SEEDS = 2
THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"
STATEMENTS = 6


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
    """Return the path of a table of ten rows in two fragments, with stable row ids."""
    rows = sql.range(0, 10, 1, 2).selectExpr("id", "concat('bird ', id) AS name", "id * 1.5D AS weight")
    rows.write.format("lance").option("enable_stable_row_ids", "true").saveAsTable("birds")
    return str(tmp_path / "managed" / "birds")


def content(spark: SparkSession, query: str) -> list[str]:
    return sorted(map(repr, spark.sql(query).collect()))


def ids(path: str) -> list[int]:
    return sorted(lance_format.dataset(path).to_table()["id"].to_pylist())


def last_operation(path: str) -> Any:
    dataset = lance_format.dataset(path)
    return dataset.read_transaction(dataset.version).operation


def refusal(spark: SparkSession, path: str, statement: str) -> str:
    """Return why a statement is refused; it leaves everything as it was."""
    version = lance_format.dataset(path).version
    with pytest.raises((PySparkException, UnsupportedOperationException)) as refused:
        spark.sql(statement).collect()
    assert lance_format.dataset(path).version == version
    assert not leftovers(Path(path))
    return str(refused.value)


@pytest.fixture(params=range(SEEDS))
def seed(request: pytest.FixtureRequest, sql: SparkSession) -> Iterator[int]:
    """Return a seed. With odd ones tables count as large, and are joined in the ways that large tables are."""
    if request.param % 2:
        sql.conf.set(THRESHOLD, "1000")
    yield request.param
    sql.conf.unset(THRESHOLD)


@pytest.mark.system
@STABLE
def test_random_statements(sql: SparkSession, tmp_path: Path, seed: int, stable: bool) -> None:
    rng = random.Random(seed)
    first = sql.sql(random_rows(rng, 0, 40)).repartition(3)
    first.write.format("lance").option("enable_stable_row_ids", stable).saveAsTable("things")
    path = str(tmp_path / "managed" / "things")
    lance_format.dataset(path).delete("id % 11 = 4")
    for number in range(STATEMENTS):
        source = sql.createDataFrame(sql.sql(random_rows(rng, rng.randrange(0, 60), 25)).collect(), first.schema)
        source.createOrReplaceTempView("source")
        model = sql.table("things").collect()
        sql.createDataFrame(model, first.schema).createOrReplaceTempView("model")
        change = random_change(rng, "things")
        wanted = content(sql, change.expected)
        before = lineage(path) if stable else {}
        sql.sql(change.statement)
        assert content(sql, "SELECT * FROM things") == wanted, (number, change.statement)
        dataset = lance_format.dataset(path)
        dataset.validate()
        if stable:
            after = lineage(path)
            assert all(before[row] == made for row, made in after.items() if row in before), change.statement
            assert len(after) == len(wanted)
        assert not leftovers(Path(path))
    theirs = lance.dataset(path)
    theirs.validate()
    order = [("id", "ascending"), ("s", "ascending"), ("k", "ascending")]
    assert str(theirs.to_table().sort_by(order).to_pylist()) == str(
        lance_format.dataset(path).to_table().sort_by(order).to_pylist()
    )


def lineage(path: str) -> dict[int, int]:
    """Return which version made each row, by its id."""
    table = lance_format.dataset(path).scanner(["_rowid", "_row_created_at_version"]).to_table()
    return dict(zip(table["_rowid"].to_pylist(), table["_row_created_at_version"].to_pylist(), strict=True))


class TestDelete:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("condition", "deleted"),
        [
            ("id = 3", {3}),  # by the driver
            ("hash(id) = hash(3L)", {3}),  # by tasks
            ("id IN (SELECT id + 1 FROM birds WHERE id > 6)", {8, 9}),
            ("id > (SELECT avg(id) FROM birds)", {5, 6, 7, 8, 9}),
            ("weight / 0D > 1", None),
            ("TRUE", set(range(10))),
            ("FALSE", set()),
        ],
    )
    def test_leaves_the_other_rows(
        self, sql: SparkSession, birds: str, condition: str, deleted: set[int] | None
    ) -> None:
        if deleted is None:
            assert "DIVIDE_BY_ZERO" in refusal(sql, birds, f"DELETE FROM birds WHERE {condition}")
            return
        sql.sql(f"DELETE FROM birds WHERE {condition}")
        assert ids(birds) == sorted(set(range(10)) - deleted)
        lance.dataset(birds).validate()

    def test_of_all_rows(self, sql: SparkSession, birds: str) -> None:
        sql.sql("DELETE FROM birds")
        assert sql.table("birds").count() == 0
        append(sql.sql("SELECT 1L AS id, 'new' AS name, 1D AS weight"), birds)
        sql.sql("TRUNCATE TABLE birds")
        assert sql.table("birds").count() == 0

    def test_is_a_job_only_if_the_driver_cannot_tell_the_rows(self, sql: SparkSession, birds: str) -> None:
        sql.sql("DELETE FROM birds WHERE id = 3 OR name LIKE '%4'")
        assert "id" in last_operation(birds).predicate
        sql.sql("DELETE FROM birds WHERE hash(id) = hash(5L)")
        assert last_operation(birds).predicate == "DELETE of Spark"

    def test_refreshes_what_is_cached(self, sql: SparkSession, birds: str) -> None:
        cached = load(sql, birds).cache()
        for condition in ("id = 3", "hash(id) = hash(4L)"):
            before = cached.count()
            sql.sql(f"DELETE FROM birds WHERE {condition}")
            assert load(sql, birds).count() == before - 1
        cached.unpersist()

    def test_through_a_view(self, sql: SparkSession, birds: str) -> None:
        load(sql, birds).createOrReplaceTempView("seen")
        sql.sql("DELETE FROM seen WHERE id = 3")
        assert ids(birds) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
        sql.catalog.dropTempView("seen")

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "view", ["SELECT * FROM birds WHERE id > 5", "SELECT * FROM birds LIMIT 3", "SELECT id + 1 AS id FROM birds"]
    )
    @pytest.mark.parametrize("condition", ["", "WHERE id = 7"])
    def test_through_a_view_of_some_rows_is_refused(
        self, sql: SparkSession, birds: str, view: str, condition: str
    ) -> None:
        sql.sql(view).createOrReplaceTempView("seen")
        assert "supported if the view shows all" in refusal(sql, birds, f"DELETE FROM seen {condition}")
        sql.catalog.dropTempView("seen")


class TestUpdate:
    @pytest.mark.slow
    def test_marks_only_what_it_assigns(self, sql: SparkSession, birds: str) -> None:
        sql.sql("UPDATE birds SET weight = weight + 1 WHERE hash(id) % 2 = 0")
        assert last_operation(birds).fields_rewritten == {2}
        sql.sql("UPDATE birds SET name = upper(name), id = id WHERE id IN (SELECT id FROM birds WHERE weight > 3)")
        assert last_operation(birds).fields_rewritten == {1}
        sql.sql("UPDATE birds SET name = CAST(id AS STRING), id = id + 1")
        assert last_operation(birds).fields_rewritten == {0, 1}

    def test_of_no_row_makes_no_version(self, sql: SparkSession, birds: str) -> None:
        version = lance_format.dataset(birds).version
        sql.sql("UPDATE birds SET weight = 0 WHERE id = 77")
        assert lance_format.dataset(birds).version == version

    @pytest.mark.slow
    def test_names_its_job(self, sql: SparkSession, birds: str) -> None:
        sql.sparkContext.setJobDescription("of the user")
        try:
            done = jobs_of(sql, lambda: sql.sql("UPDATE birds SET weight = 1 WHERE hash(id) = hash(3L)"))
            failed = "UPDATE birds SET name = raise_error('no such bird') WHERE id = 3"
            jobs = done + jobs_of(sql, lambda: refusal(sql, birds, failed))
        finally:
            sql.sparkContext.setJobDescription(None)
        assert [job.description for job in jobs] == [f"lance: UPDATE {birds}"] * 2

    @pytest.mark.slow
    @pytest.mark.parametrize("adaptive", ["true", "false"])
    def test_names_the_jobs_before_it(self, sql: SparkSession, birds: str, adaptive: str) -> None:
        """Those of a join, which Spark runs before it asks for the write. The name of the user is back in any case."""
        settings = {"spark.sql.adaptive.enabled": adaptive, THRESHOLD: "-1"}
        former = {name: sql.conf.get(name) for name in settings}
        merge = "MERGE INTO birds t USING {} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET weight = s.n"
        source = "(SELECT id, count(*) AS n FROM range(5) WHERE {} GROUP BY id)"
        failed = merge.format(source.format("raise_error(string(id)) IS NULL"))
        sql.sparkContext.setJobDescription("of the user")
        try:
            for name, value in settings.items():
                sql.conf.set(name, value)
            jobs = jobs_of(sql, lambda: sql.sql(merge.format(source.format("id > 1"))))
            with pytest.raises((PySparkException, Py4JJavaError), match="USER_RAISED_EXCEPTION"):
                jobs_of(sql, lambda: sql.sql(failed))
            assert sql.sparkContext.getLocalProperty("spark.job.description") == "of the user"
        finally:
            sql.sparkContext.setJobDescription(None)
            for name, value in former.items():
                sql.conf.set(name, str(value))
        assert len(jobs) >= (3 if adaptive == "true" else 1)
        assert {job.description for job in jobs} == {f"lance: MERGE {birds}"}

    @pytest.mark.slow
    def test_indices_go_on_covering_the_other_fragments(self, sql: SparkSession, birds: str) -> None:
        lance_format.dataset(birds).create_scalar_index("id", "ZONEMAP")
        sql.sql("UPDATE birds SET weight = 0 WHERE id = 9")
        (index,) = lance_format.dataset(birds).list_indices()
        assert set(index["fragment_ids"]) == {0, 1}
        found = sql.sql("SELECT weight FROM birds WHERE id >= 8 ORDER BY id").collect()
        assert [row.weight for row in found] == [12, 0]

    @pytest.mark.slow
    def test_of_every_type(self, sql: SparkSession, tmp_path: Path) -> None:
        path = str(tmp_path / "types")
        table = special_rows(
            price=pa.array([None, 2, 3], pa.decimal128(12, 3)), small=pa.array([255, 0, None], pa.uint8())
        )
        lance_format.write_dataset(table, path, data_storage_version="2.2")
        sql.sql(f"CREATE TABLE types USING lance LOCATION '{path}'")
        before = everything(path)
        sql.sql("UPDATE types SET id = id + 10")
        assert everything(path) == [{**row, "id": row["id"] + 10} for row in before]
        sql.sql(
            "MERGE INTO types t USING (SELECT id + 10 AS id, * EXCEPT (id) FROM types) s ON t.id + 11 = s.id"
            " WHEN MATCHED THEN UPDATE SET payload = s.payload, vector = s.vector, json = s.json"
            " WHEN NOT MATCHED THEN INSERT *"
        )
        values = {row["id"]: row for row in everything(path)}
        taken = ("payload", "vector", "json")
        wanted = {row["id"] + 10: {**row, "id": row["id"] + 10} for row in before}
        wanted[20] = {**wanted[10], "id": 20}
        for target, source in ((10, 11), (11, 12)):
            wanted[target] = {**wanted[target], **{name: before[source - 10][name] for name in taken}}
        assert values == wanted
        lance.dataset(path).validate()


def everything(path: str) -> list[dict[str, Any]]:
    """Return all rows by `id`, blobs as bytes, as pylance reads them too."""
    dataset = lance_format.dataset(path)
    rows: list[dict[str, Any]] = dataset.scanner(blob_handling="all_binary").to_table().sort_by("id").to_pylist()
    assert lance.dataset(path).to_table(columns=["id", "vector", "deep", "price"]).sort_by("id").to_pylist() == [
        {name: row[name] for name in ("id", "vector", "deep", "price")} for row in rows
    ]
    return rows


class TestValuesThatSparkRounds:
    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE {} SET id = id + 10 WHERE {}",
            "MERGE INTO {} t USING (SELECT 1L AS k) s ON t.id = s.k WHEN MATCHED AND {} THEN UPDATE SET id = 11"
            " WHEN NOT MATCHED THEN INSERT (id) VALUES (k)",
        ],
        ids=["update", "merge"],
    )
    def test_stay_if_nothing_is_assigned(self, sql: SparkSession, tmp_path: Path, statement: str) -> None:
        path = str(tmp_path / "times")
        ticks = pa.array([1_577_836_800_001])
        times = [
            ticks.view(kind) for kind in (pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.duration("ns"), pa.date64())
        ]
        columns = [*times, pa.ListArray.from_arrays([0, 1], times[0])]
        names = [f"c{place}" for place in range(len(columns))]
        lance.write_dataset(pa.table([pa.array([1]), *columns], names=["id", *names]), path)
        before = lance_format.dataset(path).to_table(names)
        sql.sql(statement.format(f"lance.`{path}`", " AND ".join(f"{name} IS NOT NULL" for name in names)))
        after = lance_format.dataset(path).to_table()
        assert after["id"].to_pylist() == [11]
        assert after.select(names) == before

    NESTED = (
        ("id", pa.int64()),
        ("s", pa.struct([("at", pa.timestamp("ns")), ("n", pa.int64()), ("day", pa.date64())])),
        ("at", pa.timestamp("ns", "UTC")),
        ("many", pa.list_(pa.struct([("at", pa.timestamp("ns")), ("x", pa.float64())]))),
        ("named", pa.map_(pa.string(), pa.duration("ns"))),
    )

    @pytest.fixture
    def times(self, tmp_path: Path) -> str:
        """Three rows, the second of which has nulls, with parts of times that Spark does not see."""
        tick = 1_577_836_800_000_000_001
        rows = [
            {
                "id": number,
                "s": None if number == 2 else {"at": tick, "n": number, "day": 86_400_001},
                "at": tick + number,
                "many": [{"at": tick, "x": float("nan")}, {"at": None, "x": 1.0}, None][:number],
                "named": [("k", 1001), ("l", None)][: number - 1],
            }
            for number in (1, 2, 3)
        ]
        schema = pa.schema([pa.field(*column) for column in self.NESTED])
        path = str(tmp_path / "times")
        lance_format.write_dataset(pa.Table.from_pylist(rows, schema), path, data_storage_version="2.2")
        return path

    @staticmethod
    def stored(path: str) -> dict[int, dict[str, str]]:
        """Return all values of rows by their `id`, as text with all digits."""
        table = lance.dataset(path).to_table()
        place = table.column_names.index("s")
        digits = pa.struct([("at", pa.timestamp("ns")), ("n", pa.int64()), ("day", pa.timestamp("ms"))])
        table = table.set_column(place, "s", table["s"].cast(digits))  # The text of `date64` is a day.
        columns = {name: [str(value) for value in table[name].combine_chunks()] for name in table.column_names}
        ids = table["id"].to_pylist()
        return {row: {name: values[place] for name, values in columns.items()} for place, row in enumerate(ids)}

    def test_stay_beside_a_field_that_is_assigned(self, sql: SparkSession, times: str) -> None:
        before = self.stored(times)
        sql.sql(f"UPDATE lance.`{times}` SET s.n = 7 WHERE id < 3")
        after = self.stored(times)
        assert after[1]["s"] == before[1]["s"].replace("('n', 1)", "('n', 7)") != before[1]["s"]
        assert after[2]["s"] == "[('at', None), ('n', 7), ('day', None)]"
        for row, values in before.items():
            assert {**after[row], "s": ""} == {**values, "s": ""}

    def test_stay_in_rows_that_a_condition_leaves(self, sql: SparkSession, times: str) -> None:
        before = self.stored(times)
        kept = ", ".join(
            f"{name} = CASE WHEN id = 3 THEN {new} ELSE {name} END"
            for name, new in (("at", "at + INTERVAL 1 DAY"), ("many", "filter(many, o -> true)"), ("named", "map()"))
        )
        sql.sql(f"UPDATE lance.`{times}` SET {kept}")
        after = self.stored(times)
        assert after[1] == before[1]
        assert after[2] == before[2]
        assert after[3] == {
            **before[3],
            "at": str(pa.scalar(1_577_923_200_000_000_000, pa.timestamp("ns", "UTC"))),
            "named": "[]",
        }

    @pytest.mark.parametrize("api", ["sql", "table"])
    def test_stay_in_rows_of_other_clauses(self, sql: SparkSession, times: str, api: str) -> None:
        before = self.stored(times)
        source = sql.sql("SELECT * FROM VALUES (1L), (2L), (4L) AS s(k)")
        if api == "sql":
            source.createOrReplaceTempView("ids")
            sql.sql(
                f"MERGE INTO lance.`{times}` t USING ids ON t.id = k"
                " WHEN MATCHED AND t.id = 1 THEN UPDATE SET at = TIMESTAMP'2021-01-01 00:00:00Z', s.n = 8"
                " WHEN MATCHED THEN UPDATE SET many = array()"
                " WHEN NOT MATCHED THEN INSERT (id) VALUES (k)"
                " WHEN NOT MATCHED BY SOURCE THEN UPDATE SET named = map()"
            )
        else:
            merge = LanceTable.forPath(sql, times).merge(source, "id = k")
            merge = merge.whenMatchedUpdate("id = 1", {"at": "TIMESTAMP'2021-01-01 00:00:00Z'", "s.n": "8"})
            merge = merge.whenMatchedUpdate(set={"many": "array()"})
            merge = merge.whenNotMatchedInsert(values={"id": "k"})
            merge.whenNotMatchedBySourceUpdate(set={"named": "map()"}).execute()
        after = self.stored(times)
        at = str(pa.scalar(1_609_459_200_000_000_000, pa.timestamp("ns", "UTC")))
        assert after.pop(4) == {name: "4" if name == "id" else "None" for name, _ in self.NESTED}
        assert after == {
            1: {**before[1], "at": at, "s": before[1]["s"].replace("('n', 1)", "('n', 8)")},
            2: {**before[2], "many": "[]"},
            3: {**before[3], "named": "[]"},
        }

    def test_go_where_all_of_a_column_is_assigned(self, sql: SparkSession, times: str) -> None:
        sql.sql("SELECT 1L AS id, TIMESTAMP'2020-01-01 00:00:00Z' AS at").createOrReplaceTempView("exact")
        sql.sql(f"MERGE INTO lance.`{times}` t USING exact e ON t.id = e.id WHEN MATCHED THEN UPDATE SET at = e.at")
        assert self.stored(times)[1]["at"] == str(pa.scalar(1_577_836_800_000_000_000, pa.timestamp("ns", "UTC")))


class TestMerge:
    ALL = (
        "MERGE INTO birds t USING source s ON t.id = s.id"
        " WHEN MATCHED AND s.op = 'd' THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET name = s.name"
        " WHEN NOT MATCHED AND s.op <> 'skip' THEN INSERT (id, name) VALUES (s.id, s.name)"
        " WHEN NOT MATCHED BY SOURCE AND t.id = 6 THEN UPDATE SET name = 'six'"
        " WHEN NOT MATCHED BY SOURCE AND t.id > 7 THEN DELETE"
    )

    @pytest.fixture(autouse=True)
    def source(self, sql: SparkSession) -> None:
        rows = [(4, "four", "u"), (5, "x", "d"), (100, "new", "u"), (101, "no", "skip")]
        sql.createDataFrame(rows, "id long, name string, op string").createOrReplaceTempView("source")

    def test_with_all_clauses(self, sql: SparkSession, birds: str) -> None:
        before = lineage(birds)
        sql.sql(self.ALL)
        assert content(sql, "SELECT * FROM birds") == content(
            sql,
            "SELECT * FROM VALUES (0L, 'bird 0', 0D), (1L, 'bird 1', 1.5D), (2L, 'bird 2', 3D), (3L, 'bird 3', 4.5D),"
            " (4L, 'four', 6D), (6L, 'six', 9D), (7L, 'bird 7', 10.5D), (100L, 'new', NULL) AS t(id, name, weight)",
        )
        assert last_operation(birds).fields_rewritten == {1}
        after = lineage(birds)
        assert {row: made for row, made in after.items() if row in before} == {row: 1 for row in range(8) if row != 5}

    def test_by_the_api_of_dataframes(self, sql: SparkSession, birds: str) -> None:
        rows = sql.createDataFrame([(4, "four", 4.0), (40, "forty", 4.5)], "id long, name string, weight double")
        merge = rows.alias("s").mergeInto("birds", f.expr("birds.id = s.id"))
        merge.whenMatched().updateAll().whenNotMatched().insertAll().merge()
        found = sql.sql("SELECT id, name, weight FROM birds WHERE id IN (4, 40) ORDER BY id").collect()
        assert list(map(tuple, found)) == [(4, "four", 4.0), (40, "forty", 4.5)]
        assert len(ids(birds)) == 11

    @pytest.mark.usefixtures("birds")
    def test_of_a_table_with_itself(self, sql: SparkSession) -> None:
        sql.sql(
            "MERGE INTO birds t USING birds s ON t.id = s.id + 5"
            " WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT *"
            " WHEN NOT MATCHED BY SOURCE THEN DELETE"
        )
        assert sorted((row.id, row.name) for row in sql.table("birds").collect()) == [
            (number, f"bird {name}") for number in range(5, 10) for name in (number - 5, number)
        ]

    @pytest.mark.usefixtures("birds")
    def test_scans_the_target_once(self, sql: SparkSession) -> None:
        statement = "MERGE INTO birds t USING source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name"
        plan = sql.sql(f"EXPLAIN {statement}").collect()[0][0]
        assert plan.count("BatchScan lance") == 1

    @pytest.mark.slow
    def test_several_rows_for_one_are_refused(self, sql: SparkSession, birds: str) -> None:
        message = refusal(
            sql,
            birds,
            "MERGE INTO birds t USING (SELECT id % 2 AS id FROM birds) s ON t.id = s.id"
            " WHEN MATCHED THEN UPDATE SET name = 'both'",
        )
        assert "MERGE_CARDINALITY_VIOLATION" in message

    def test_columns_with_names_of_changed_rows_are_refused(self, sql: SparkSession, tmp_path: Path) -> None:
        sql.sql("CREATE TABLE odd USING lance AS SELECT 1 AS id, 2 AS `__row_operation`")
        path = str(tmp_path / "managed" / "odd")
        for statement in (
            "UPDATE odd SET id = 3",
            "MERGE INTO odd t USING (SELECT 1 AS k) s ON t.id = s.k WHEN MATCHED THEN UPDATE SET id = 3",
        ):
            assert "its own column '__row_operation'" in refusal(sql, path, statement)
        sql.sql("DELETE FROM odd WHERE hash(id) = hash(1)")
        assert ids(path) == []

    def test_several_rows_may_delete_one(self, sql: SparkSession, birds: str) -> None:
        clauses = (
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
            " WHEN NOT MATCHED BY SOURCE THEN UPDATE SET name = 'left'"
        )
        sql.sql(f"MERGE INTO birds t USING (SELECT explode(array(3, 3, 4, 90)) AS id) s ON t.id = s.id {clauses}")
        assert ids(birds) == [*sorted(set(range(10)) - {3, 4}), 90]
        dataset = lance_format.dataset(birds)
        dataset.validate()
        assert dataset.count_rows("name = 'left'") == 8
        assert dataset.read_transaction(dataset.version).transaction_properties["num_deleted_rows"] == "2"

    def test_schema_evolution_is_not_for_the_session_catalog(self, sql: SparkSession, birds: str) -> None:
        statement = (
            "MERGE WITH SCHEMA EVOLUTION INTO birds t USING source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
        )
        assert "for tables of a catalog that alters them" in refusal(sql, birds, statement)


def committing(spark: SparkSession, birds: str, *conditions: str) -> None:
    """Register `colliding(id)`: each time it is called for 8, another writer deletes rows before the commit.

    The first condition says which rows the first time, and so on; none any more when there are no more conditions.
    """
    left = Path(birds).parent / "left"
    left.mkdir()
    for number, condition in enumerate(conditions):
        (left / f"{number:03}").write_text(condition)

    def colliding(number: int) -> float:
        if number == 8:
            for file in sorted(left.iterdir())[:1]:
                lance_format.dataset(birds).delete(file.read_text())
                file.unlink()
        return -1.0

    spark.udf.register("colliding", colliding, "double")


def weights(spark: SparkSession, condition: str) -> list[tuple[int, float]]:
    return sorted((row.id, row.weight) for row in spark.table("birds").where(condition).collect())


class TestCollisions:
    """A change of rows meets another writer's; it runs again on the version of that one."""

    @pytest.mark.slow
    def test_an_update_runs_again(self, sql: SparkSession, birds: str) -> None:
        committing(sql, birds, "id = 7", "id = 6")
        sql.sql("UPDATE birds SET weight = colliding(id) WHERE id > 5")
        assert weights(sql, "id > 4") == [(5, 7.5), (8, -1.0), (9, -1.0)]
        assert [last_operation(birds).name, lance_format.dataset(birds).version] == ["update", 4]
        assert not leftovers(Path(birds))
        lance.dataset(birds).validate()

    @pytest.mark.slow
    def test_a_merge_sees_the_latest_version_on_both_sides(self, sql: SparkSession, birds: str) -> None:
        committing(sql, birds, "id = 7")
        sql.sql(
            "MERGE INTO birds t USING (SELECT id, colliding(id) AS weight FROM birds WHERE id > 6"
            " AND weight < (SELECT count(*) + 10 FROM birds)) s ON t.id = s.id"
            " WHEN MATCHED THEN UPDATE SET weight = s.weight WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
        )
        assert weights(sql, "id > 5") == [(6, 9.0), (8, -1.0), (9, -1.0)]

    @pytest.mark.slow
    def test_a_delete_by_tasks_runs_again(self, sql: SparkSession, birds: str) -> None:
        committing(sql, birds, "id = 9")
        sql.sql("DELETE FROM birds WHERE id > 7 AND colliding(id) < 0")
        assert ids(birds) == list(range(8))
        lance.dataset(birds).validate()

    @pytest.mark.slow
    def test_of_tables_of_a_catalog(self, sql: SparkSession, birds: str) -> None:
        committing(sql, birds, "id = 7", "id = 2", "id = 3")
        sql.sql(f"UPDATE lance.`{birds}` SET weight = colliding(id) WHERE id > 6")
        sql.sql(
            f"INSERT INTO lance.`{birds}` REPLACE WHERE id < 4"
            f" SELECT id, name, colliding(id) FROM lance.`{birds}` WHERE id < 9"
        )
        assert weights(sql, "id < 4") == [(0, -1.0), (1, -1.0)]
        assert ids(birds) == [0, 1, 4, 4, 5, 5, 6, 6, 8, 8, 9]

    def test_gives_up_and_says_what_was_in_the_way(self, sql: SparkSession, birds: str) -> None:
        committing(sql, birds, "id = 7", "id = 6", "id = 5")
        sql.conf.set("spark.lance.commit.attempts", "2")
        try:
            with pytest.raises(PySparkException, match="RetryableCommitConflictError") as collision:
                sql.sql("UPDATE birds SET weight = colliding(id) WHERE id > 4 AND id <> 9")
        finally:
            sql.conf.unset("spark.lance.commit.attempts")
        message = str(collision.value)
        assert "the command ran 2 times" in message
        assert re.search(
            r"row 1 of fragment 1 of \S+ in version 3 \(delete\), as this update, planned on version 2", message
        )
        assert not sql.table("birds").where("weight < 0").count()
        assert not leftovers(Path(birds))

    def test_columns_that_are_gone(self, sql: SparkSession, birds: str) -> None:
        def dropping(number: int) -> float:
            if number == 8 and "name" in lance_format.dataset(birds).schema.names:
                lance_format.dataset(birds).delete("id = 9")
                lance_format.dataset(birds).drop_columns(["name"])
            return -1.0

        sql.udf.register("dropping", dropping, "double")
        with pytest.raises(PySparkException, match="'name'"):
            sql.sql(f"UPDATE lance.`{birds}` SET weight = dropping(id) WHERE id > 5")
        assert sorted(lance_format.dataset(birds).to_table()["weight"].to_pylist()) == [n * 1.5 for n in range(9)]

    def test_another_row(self, sql: SparkSession, birds: str) -> None:
        committing(sql, birds, "id = 5")
        sql.sql("UPDATE birds SET weight = colliding(id) WHERE id > 6")
        assert sorted(row.id for row in sql.table("birds").where("weight < 0").collect()) == [7, 8, 9]
        assert ids(birds) == [0, 1, 2, 3, 4, 6, 7, 8, 9]
        lance_format.dataset(birds).validate()

    @pytest.mark.slow
    def test_a_task_that_fails_leaves_nothing(self, sql: SparkSession, birds: str) -> None:
        assert "no such bird" in refusal(
            sql, birds, "UPDATE birds SET name = IF(id = 9, raise_error('no such bird'), name)"
        )
        assert ids(birds) == list(range(10))

    def test_malformed_messages(self) -> None:
        with pytest.raises(CommitError, match="malformed commit message"):
            TaskMessage(b"none").parse(RowDeltaChanges)


class TestRefusals:
    UPDATE = "UPDATE known SET name = 'x' WHERE hash(id) = 0"
    DELETE = "DELETE FROM known WHERE id = 1"
    DELETE_BY_TASKS = "DELETE FROM known WHERE hash(id) = 0"

    @pytest.mark.slow
    @pytest.mark.parametrize("statement", [UPDATE, DELETE, DELETE_BY_TASKS])
    @pytest.mark.parametrize(
        ("option", "value"), [("version", "1"), ("filter", "id > 3"), ("metadata_columns", "_rowid")]
    )
    def test_of_tables_declared_in_part(
        self, sql: SparkSession, birds: str, statement: str, option: str, value: str
    ) -> None:
        sql.sql(f"CREATE TABLE known USING lance OPTIONS ({option} '{value}') LOCATION '{birds}'")
        assert f"its option '{option}'" in refusal(sql, birds, statement)

    def test_of_a_catalog_that_lacks_columns(self, sql: SparkSession, birds: str) -> None:
        sql.sql(f"CREATE TABLE known (id BIGINT, name STRING) USING lance LOCATION '{birds}'")
        assert "column 'weight' is not known" in refusal(sql, birds, self.UPDATE)
        sql.sql("DELETE FROM known WHERE hash(id) = hash(1L)")
        assert ids(birds) == [0, 2, 3, 4, 5, 6, 7, 8, 9]

    def test_of_descriptions_of_blobs(self, sql: SparkSession, tmp_path: Path) -> None:
        path = str(tmp_path / "blobs")
        schema = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string()), lance_format.blob_field("b")])
        table = pa.Table.from_arrays([pa.array([1]), pa.array(["a"]), lance_format.blob_array([b"x"])], schema=schema)
        lance_format.write_dataset(table, path, data_storage_version="2.2")
        sql.sql(f"CREATE TABLE known USING lance OPTIONS (blob_handling 'blobs_descriptions') LOCATION '{path}'")
        assert "'blob_handling'" in refusal(sql, path, self.UPDATE)

    def test_of_branches_changes_the_branch_alone(self, sql: SparkSession, birds: str) -> None:
        branch: LanceDataset = lance_format.dataset(birds).create_branch("draft")
        sql.sql(f"CREATE TABLE known USING lance OPTIONS (branch 'draft') LOCATION '{birds}'")
        sql.sql("UPDATE known SET name = 'drafted' WHERE id < 3")
        sql.sql("DELETE FROM known WHERE id = 5")
        assert {row.name for row in sql.table("birds").collect()} == {f"bird {number}" for number in range(10)}
        assert ids(branch.uri) == [0, 1, 2, 3, 4, 6, 7, 8, 9]
        assert sql.sql("SELECT * FROM known WHERE name = 'drafted'").count() == 3
        assert isinstance(last_operation(branch.uri), LanceOperation.Delete)


def test_without_the_planner_spark_refuses(sql: SparkSession, birds: str) -> None:
    sql.conf.set("spark.lance.planner.enabled", "false")
    with pytest.raises((AnalysisException, UnsupportedOperationException), match="does not support"):
        sql.sql("DELETE FROM birds WHERE id = 1")
    assert ids(birds) == list(range(10))


class TestOtherNames:
    """Tables of a catalog of Lance tables, and paths."""

    STATEMENTS = (
        "DELETE FROM {name} WHERE id = 1",
        "DELETE FROM {name} WHERE hash(id) = hash(2L)",
        "UPDATE {name} SET name = 'three' WHERE id = 3",
        "MERGE INTO {name} t USING (SELECT 4L AS id UNION SELECT 40L) s ON t.id = s.id WHEN MATCHED THEN DELETE"
        " WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'forty')",
    )

    @pytest.mark.slow
    def test_paths(self, sql: SparkSession, birds: str) -> None:
        for statement in self.STATEMENTS:
            sql.sql(statement.format(name=f"lance.`{birds}`"))
        assert ids(birds) == [0, 3, 5, 6, 7, 8, 9, 40]
        assert {row.name for row in sql.table("birds").where("id IN (3, 40)").collect()} == {"three", "forty"}


class TestJoinOfMerge:
    """A small source is made a hash table, and its keys find the rows of the target that are shuffled."""

    MERGE = (
        "MERGE INTO lance.`{path}` t USING ({source}) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
    )
    SOURCE = "SELECT id * 50 AS id, 'new' AS name FROM range(60)"

    @pytest.fixture
    def many(self, sql: SparkSession, path: str) -> str:
        """Return the path of 2,000 rows in four fragments, in the order of their ids."""
        append(sql.range(0, 2000, 1, 4).selectExpr("id", "'old' AS name"), path)
        return path

    @pytest.fixture
    def threshold(self, sql: SparkSession) -> Iterator[None]:
        """Let the target count as too large to be shuffled as a whole."""
        sql.conf.set(THRESHOLD, "20000")
        yield
        sql.conf.unset(THRESHOLD)

    def plan(self, spark: SparkSession, path: str, source: str, more: str = "") -> str:
        text: str = spark.sql(f"EXPLAIN {self.MERGE.format(path=path, source=source)} {more}").collect()[0][0]
        return text

    def run(self, spark: SparkSession, path: str, source: str, more: str = "") -> str:
        """Run the statement, and return the plan in its last form."""
        spark.sql(f"{self.MERGE.format(path=path, source=source)} {more}").collect()
        executions = spark._jsparkSession.sharedState().statusStore().executionsList()  # type: ignore[attr-defined]
        return str(executions.last().physicalPlanDescription())

    def shown(self, spark: SparkSession, metric: str) -> set[str]:
        """Return the values of a metric of the last statement: it ran in one execution, and its result is another."""
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # type: ignore[attr-defined]
        store = spark._jsparkSession.sharedState().statusStore()  # type: ignore[attr-defined]
        executions, found = store.executionsList(), set()
        for one in (executions.apply(executions.size() - number) for number in (1, 2)):
            values = store.executionMetrics(one.executionId())
            metrics = [one.metrics().apply(index) for index in range(one.metrics().length())]
            ids = [each.accumulatorId() for each in metrics if each.name() == metric]
            found |= {values.apply(number) for number in ids if values.contains(number)}
        return found

    def new_ids(self, path: str) -> list[int]:
        return sorted(lance.dataset(path).to_table(filter="name = 'new'")["id"].to_pylist())

    @pytest.mark.parametrize("more", ["", "WHEN NOT MATCHED BY SOURCE AND t.id % 2 = 1 THEN DELETE"])
    def test_hashes_the_source(self, sql: SparkSession, many: str, more: str) -> None:
        assert "ShuffledHashJoin" in self.run(sql, many, self.SOURCE, more)
        assert self.new_ids(many) == list(range(0, 3000, 50))
        assert lance.dataset(many).count_rows() == (1020 if more else 2020)

    def test_hashes_a_source_whose_size_is_known_once_it_is_shuffled(self, sql: SparkSession, many: str) -> None:
        rows = [(number * 50, "new") for number in range(60)]
        sql.createDataFrame(sql.sparkContext.parallelize(rows), "id long, name string").createOrReplaceTempView("given")
        assert "ShuffledHashJoin" not in self.plan(sql, many, "SELECT * FROM given")
        assert "ShuffledHashJoin" in self.run(sql, many, "SELECT * FROM given")
        assert self.new_ids(many) == list(range(0, 3000, 50))

    @pytest.mark.usefixtures("threshold")
    def test_shuffles_only_matched_rows(self, sql: SparkSession, many: str) -> None:
        evaluated = sql.sparkContext.accumulator(0)
        count = f.udf(lambda number: (evaluated.add(1), number)[1], "long")
        sql.udf.register("counted", count)
        source = "SELECT counted(id * 50) AS id, 'new' AS name FROM range(0, 60, 1, 2)"
        assert "LeftSemi" in self.run(sql, many, source)
        assert evaluated.value == 60  # once: what it returns may differ
        assert self.new_ids(many) == list(range(0, 3000, 50))
        assert lance.dataset(many).count_rows() == 2020

    @pytest.mark.slow
    @pytest.mark.usefixtures("threshold")
    def test_without_dynamic_pruning(self, sql: SparkSession, many: str) -> None:
        sql.conf.set("spark.sql.optimizer.dynamicPartitionPruning.enabled", "false")
        try:
            assert "dynamicpruning" not in self.plan(sql, many, self.SOURCE)
            assert "LeftSemi" in self.run(sql, many, self.SOURCE)
        finally:
            sql.conf.unset("spark.sql.optimizer.dynamicPartitionPruning.enabled")
        assert self.new_ids(many) == list(range(0, 3000, 50))

    @pytest.mark.slow
    @pytest.mark.usefixtures("threshold")
    def test_reads_the_fragments_that_have_keys(self, sql: SparkSession, many: str) -> None:
        lance_format.dataset(many).create_scalar_index("id", "ZONEMAP")
        source = "SELECT IF(id > 57, id * 25, 1200 + id) AS id, 'new' AS name FROM range(60)"
        self.run(sql, many, source)
        assert "3" in self.shown(sql, "fragments left out by the plan")
        assert self.new_ids(many) == [*range(1200, 1258), 1450, 1475]
        matched = f"{self.MERGE.format(path=many, source=self.SOURCE)}".partition(" WHEN NOT")[0]
        assert "dynamicpruning" in sql.sql(f"EXPLAIN {matched}").collect()[0][0]

    @pytest.mark.slow
    @pytest.mark.usefixtures("threshold")
    @pytest.mark.parametrize(
        ("condition", "matches"),
        [
            ("t.id <=> s.id", 2),
            ("t.id = s.id AND t.name = s.name", 0),
            ("t.id = s.id AND t.id > 100", 1),
            ("t.id + 1 = s.id", 2),
            ("t.id > s.id AND t.id < s.id + 2", 2),
        ],
    )
    def test_conditions(self, sql: SparkSession, many: str, condition: str, matches: int) -> None:
        sql.sql(
            f"MERGE INTO lance.`{many}` t USING (SELECT * FROM VALUES (50L, 'new'), (1500L, 'new'), (NULL, 'new')"
            f" AS given(id, name)) s ON {condition} WHEN MATCHED THEN UPDATE SET name = s.name"
            " WHEN NOT MATCHED THEN INSERT *"
        ).collect()
        table = lance.dataset(many)
        assert (table.count_rows(), table.count_rows("name = 'new'")) == (2003 - matches, 3)

    def test_leaves_other_joins_to_spark(self, sql: SparkSession, many: str) -> None:
        assert "SortMergeJoin" in self.plan(sql, many, "SELECT id, 'new' AS name FROM range(2000)")
        matched = self.MERGE.partition(" WHEN NOT")[0].format(path=many, source=self.SOURCE)
        assert "BroadcastHashJoin" in sql.sql(f"EXPLAIN {matched}").collect()[0][0]
        deleted = f"DELETE FROM lance.`{many}` WHERE id IN (SELECT /*+ MERGE(r) */ id * 50 FROM range(60) r)"
        assert "SortMergeJoin" in sql.sql(f"EXPLAIN {deleted}").collect()[0][0]
