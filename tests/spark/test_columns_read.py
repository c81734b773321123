"""Changes by `LanceTable`, and by SQL, read the columns that they name, and the others of replaced rows only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import lance_format
from connector.table_api.assigned_rows import TableColumns, Value
from connector.table_api.target import Target
from lance_format import InvalidInputError
from pyspark_lance import LanceTable
from tests.proxies import Proxy
from tests.servers import ObjectServer
from tests.spark.special_rows import special_rows
from tests.table.leftovers import leftovers

NUM_ROWS = 20_000
COLUMNS = [f"c{number}" for number in range(50)]


@dataclass
class CountedTable:
    """A table of 51 columns behind a proxy that counts what is read of its data files."""

    spark: SparkSession
    proxy: Proxy
    uri: str
    storage: dict[str, str]

    @property
    def dataset(self) -> lance_format.LanceDataset:
        return lance_format.dataset(self.uri, storage_options=self.storage)

    def open(self) -> LanceTable:
        through = {**self.storage, "aws_endpoint": self.proxy.endpoint}
        return LanceTable.forPath(
            self.spark, self.uri, {f"storage.{name}": value for name, value in through.items()}
        ).alias("t")

    def bytes_read(self, call: Callable[[], Any]) -> int:
        self.proxy.requests.clear()
        call()
        return sum(request.num_received for request in self.proxy.requests if self._is_data(request))

    def _is_data(self, request: Any) -> bool:
        return request.method == "GET" and "/data/" in request.key

    def rows(self) -> pa.Table:
        return self.dataset.to_table().sort_by("id")


@pytest.fixture(scope="module")
def contents() -> pa.Table:
    """Return 16 MB of columns that no encoding makes smaller."""
    return pa.table({"id": range(NUM_ROWS), **{name: _random_values() for name in COLUMNS}})


def _random_values() -> pa.Array:
    return pa.array(os.urandom(16) for _ in range(NUM_ROWS))


@pytest.fixture
def counted(spark: SparkSession, s3_server: ObjectServer, contents: pa.Table) -> Iterator[CountedTable]:
    proxy, uri = Proxy(s3_server.endpoint), f"{s3_server.new_root()}/t.lance"
    lance_format.write_dataset(
        contents, uri, storage_options=s3_server.options, max_rows_per_file=NUM_ROWS // 2, enable_stable_row_ids=True
    )
    with proxy.running():
        yield CountedTable(spark, proxy, uri, s3_server.options)


@pytest.fixture
def target(planner: SparkSession, counted: CountedTable) -> Iterator[CountedTable]:
    """Return a table that is `target` in SQL."""
    through = {**counted.storage, "aws_endpoint": counted.proxy.endpoint}
    options = ", ".join(f"'storage.{name}' '{value}'" for name, value in through.items())
    planner.sql(f"CREATE TABLE target USING lance OPTIONS ({options}) LOCATION '{counted.uri}'")
    yield counted
    planner.sql("DROP TABLE target")


@pytest.fixture
def scattered(spark: SparkSession) -> Iterator[None]:
    """Let joins shuffle all rows into 8 tasks."""
    values = {
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
    }
    former = {name: spark.conf.get(name) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    yield
    for name, value in former.items():
        spark.conf.set(name, str(value))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["sql", "columns"])
def test_of_a_merge(counted: CountedTable, contents: pa.Table, form: str) -> None:
    arrivals = counted.spark.range(-1, 200).selectExpr("id", "CAST('new' AS BINARY) AS c7").alias("s")
    table = counted.open()
    if form == "sql":
        merge = table.merge(arrivals, "t.id = s.id").whenMatchedUpdate("t.c9 <> s.c7", {"c7": "s.c7"})
    else:
        is_other = f.col("t.c9") != arrivals["c7"]
        merge = table.merge(arrivals, f.col("t.id") == f.col("s.id")).whenMatchedUpdate(is_other, {"c7": f.col("s.c7")})
    merge = merge.whenNotMatchedInsert(values={"id": "s.id", **dict.fromkeys(COLUMNS, "s.c7")})
    assert counted.bytes_read(merge.execute) < contents.nbytes / 8
    rows = counted.rows()
    assert rows.slice(0, 1).to_pylist() == [{"id": -1, **dict.fromkeys(COLUMNS, b"new")}]
    assert rows.slice(201) == contents.slice(200)
    assert rows.slice(1, 200).drop(["c7"]) == contents.slice(0, 200).drop(["c7"])
    assert set(rows["c7"].slice(1, 200).to_pylist()) == {b"new"}
    lance.dataset(counted.uri, storage_options=counted.storage).validate()


@pytest.mark.slow
def test_of_an_upsert(counted: CountedTable, contents: pa.Table) -> None:
    arrivals = counted.spark.range(-1, 200).selectExpr("id", *(f"CAST('new' AS BINARY) AS {name}" for name in COLUMNS))
    merge = counted.open().merge(arrivals.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    assert counted.bytes_read(merge.execute) < contents.nbytes / 20
    assert counted.rows().slice(201) == contents.slice(200)
    assert set(counted.rows()["c7"].slice(0, 201).to_pylist()) == {b"new"}


@pytest.mark.slow
@pytest.mark.usefixtures("scattered")
def test_of_a_merge_of_all_rows(counted: CountedTable, contents: pa.Table) -> None:
    """No task reads pages that another one reads, though the join scatters the rows over all of them."""
    arrivals = (
        counted.spark.range(0, NUM_ROWS, 1, 4).selectExpr("id", "CAST(CAST(id AS STRING) AS BINARY) AS v").alias("s")
    )
    merge = counted.open().merge(arrivals, "t.id = s.id").whenMatchedUpdate(set={"c7": "s.v"})
    assert counted.bytes_read(merge.execute) < contents.nbytes * 1.3
    assert counted.rows().drop(["c7"]) == contents.drop(["c7"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "condition",
    [lambda: "id < 200", lambda: f.expr("id < 200"), lambda: f.col("id") < 200],
    ids=["sql", "expr", "column"],
)
def test_of_an_update(counted: CountedTable, contents: pa.Table, condition: Callable[[], Value]) -> None:
    table = counted.open()
    assert counted.bytes_read(lambda: table.update(condition(), {"c7": "CAST('new' AS BINARY)"})) < contents.nbytes / 8
    assert counted.rows().drop(["c7"]) == contents.drop(["c7"])
    assert counted.rows().slice(200) == contents.slice(200)


@pytest.mark.slow
@pytest.mark.usefixtures("scattered")
def test_of_an_update_by_a_subquery(counted: CountedTable, contents: pa.Table) -> None:
    counted.spark.range(NUM_ROWS).createOrReplaceTempView("chosen")
    table, new = counted.open(), {"c7": "CAST('new' AS BINARY)"}
    assert counted.bytes_read(lambda: table.update("id IN (SELECT id FROM chosen)", new)) < contents.nbytes * 1.3
    assert counted.rows().drop(["c7"]) == contents.drop(["c7"])


@pytest.mark.parametrize("rest", ["", "AND t.c9 <> s.c7"], ids=["all matches", "some columns read"])
def test_of_a_merge_in_sql(target: CountedTable, contents: pa.Table, rest: str) -> None:
    target.spark.range(-1, 200).selectExpr("id", "CAST('new' AS BINARY) AS c7").createOrReplaceTempView("arrivals")
    values = ", ".join("s.c7" for _ in COLUMNS)
    merge = (
        f"MERGE INTO target t USING arrivals s ON t.id = s.id WHEN MATCHED {rest} THEN UPDATE SET c7 = s.c7"
        f" WHEN NOT MATCHED THEN INSERT (id, {', '.join(COLUMNS)}) VALUES (s.id, {values})"
    )
    assert target.bytes_read(lambda: target.spark.sql(merge)) < contents.nbytes / 8
    rows = target.rows()
    assert rows.slice(0, 1).to_pylist() == [{"id": -1, **dict.fromkeys(COLUMNS, b"new")}]
    assert rows.slice(201) == contents.slice(200)
    assert rows.slice(1, 200).drop(["c7"]) == contents.slice(0, 200).drop(["c7"])
    assert set(rows["c7"].slice(1, 200).to_pylist()) == {b"new"}
    lance.dataset(target.uri, storage_options=target.storage).validate()


def test_of_an_update_in_sql(target: CountedTable, contents: pa.Table) -> None:
    """Spark evaluates the condition, as Python does not know it."""
    update = "UPDATE target SET c7 = CAST('new' AS BINARY) WHERE CAST(conv(id, 10, 10) AS BIGINT) < 200"
    assert target.bytes_read(lambda: target.spark.sql(update)) < contents.nbytes / 8
    rows = target.rows()
    assert rows.drop(["c7"]) == contents.drop(["c7"])
    assert rows.slice(200) == contents.slice(200)
    assert set(rows["c7"].slice(0, 200).to_pylist()) == {b"new"}


@pytest.mark.slow
@pytest.mark.usefixtures("scattered")
@pytest.mark.parametrize(
    "statement",
    [
        "MERGE INTO target t USING arrivals s ON t.id = s.id WHEN MATCHED THEN UPDATE SET c7 = s.v",
        "MERGE INTO target t USING arrivals s ON t.id = s.id AND s.id < 9 WHEN MATCHED THEN UPDATE SET c7 = s.v"
        " WHEN NOT MATCHED BY SOURCE THEN UPDATE SET c7 = t.c7",
        "UPDATE target SET c7 = c8 WHERE id IN (SELECT id FROM arrivals)",
        "UPDATE target SET c7 = c8 WHERE id IN (SELECT id FROM arrivals) AND id NOT IN (SELECT -id - 1 FROM arrivals)",
    ],
    ids=["merge", "merge by source", "update", "update by two sources"],
)
def test_of_a_change_of_all_rows_in_sql(target: CountedTable, contents: pa.Table, statement: str) -> None:
    arrivals = target.spark.range(0, NUM_ROWS, 1, 4).selectExpr("id", "CAST(CAST(id AS STRING) AS BINARY) AS v")
    arrivals.createOrReplaceTempView("arrivals")
    assert target.bytes_read(lambda: target.spark.sql(statement)) < contents.nbytes * 1.3
    assert target.rows().drop(["c7"]) == contents.drop(["c7"])


@pytest.fixture
def birds(spark: SparkSession, path: str) -> LanceTable:
    """Return a table of ten rows in two fragments, with stable row ids."""
    rows = {"id": range(10), "k": range(10), "v": range(10), "a b": range(10), "other": [str(n) for n in range(10)]}
    lance_format.write_dataset(pa.table(rows), path, max_rows_per_file=5, enable_stable_row_ids=True)
    return LanceTable.forPath(spark, path).alias("t")


def content(path: str, *names: str) -> list[tuple[Any, ...]]:
    rows = lance_format.dataset(path).to_table().sort_by("id").select(list(names)).to_pylist()
    return [tuple(row.values()) for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    [
        lambda: "IDENTIFIER('t.' || 'v') + 1",
        lambda: "aggregate(array(t.v), 1L, (x, y) -> x + y)",
        lambda: "struct(t.*).v + 1",
        lambda: "s.id*1 + element_at(array(t.id, t.v), 2) - t . v + 1",
        lambda: "t.`v` + length('`')",
        lambda: "length('s.') + t. v - 1",
        lambda: "t /* s. */ . v + 1",
        lambda: "length('s.\n') + -- s.\n t.v - 2",
        lambda: "T.`A b` + length('``')-length('`')",
        lambda: f.col("t.`a b`") + 1,
        lambda: f.lit(2) * f.col("t.v") - f.col("s.id") + 1,
        lambda: f.expr("IDENTIFIER('t.' || 'v')") + 1,
        lambda: f.expr("try_add(t.v, 1)"),
        lambda: f.transform(f.array("t.id"), lambda x: x + f.col("t.v") - f.col("t.k") + 1)[0],
    ],
    ids=range(14),
)
def test_values_that_name_columns_in_any_form(
    spark: SparkSession, birds: LanceTable, path: str, value: Callable[[], Value]
) -> None:
    merge = birds.merge(spark.range(8, 12).alias("s"), "t.id = s.id").whenMatchedUpdate(set={"k": value()})
    result = merge.whenNotMatchedInsert(values={"id": "id"}).execute()
    assert (result.num_updated_rows, result.num_inserted_rows) == (2, 2)
    assert content(path, "id", "k", "v", "other") == [
        *((n, n, n, str(n)) for n in range(8)),
        *((n, n + 1, n, str(n)) for n in (8, 9)),
        *((n, None, None, None) for n in (10, 11)),
    ]


@pytest.mark.slow
def test_columns_that_no_text_names(birds: LanceTable, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that is needed but was not read is an error within Spark. The change starts again with all columns."""
    monkeypatch.setattr(TableColumns, "mentioned", lambda *_: set())
    commands = count_snapshots(monkeypatch)
    assert birds.delete("v = 1").num_deleted_rows == 1
    assert birds.update("v = 2", {"k": "v + 100"}).num_updated_rows == 1
    source = birds.toDF().selectExpr("id", "k AS x").alias("s")
    merge = birds.merge(source, "t.v = s.id").whenMatchedUpdate("t.v = 3", {"k": "t.v + s.x + 100"})
    merge = merge.whenMatchedDelete("t.v = 4").whenNotMatchedInsert(values={"id": "s.id"})
    assert merge.execute().num_deleted_rows == 1
    merge = birds.merge(source.where("s.id > 4"), "t.id = s.id").whenNotMatchedBySourceUpdate("v = 3", {"k": "v + 200"})
    assert merge.execute().num_updated_rows == 1
    assert commands == ["DELETE"] * 2 + ["UPDATE"] * 2 + ["MERGE"] * 4
    assert content(path, "id", "k", "v")[:4] == [(0, 0, 0), (2, 102, 2), (3, 203, 3), (5, 5, 5)]
    assert not leftovers(Path(path))


@pytest.mark.slow
def test_a_change_that_fails_for_another_reason_starts_once(
    birds: LanceTable, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = count_snapshots(monkeypatch)
    with pytest.raises(PySparkException, match="no such bird"):
        birds.update("v = 2", {"k": "raise_error('no such bird')"})
    assert commands == ["UPDATE"]
    assert not leftovers(Path(path))


def count_snapshots(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the command of each snapshot."""
    commands: list[str] = []
    snapshot = Target.snapshot

    def counting(target: Target, command: str, reads: Any = None) -> Any:
        commands.append(command)
        return snapshot(target, command, reads)

    monkeypatch.setattr(Target, "snapshot", counting)
    return commands


@pytest.mark.slow
@pytest.mark.parametrize("form", ["sql", "calls"])
def test_kept_columns_of_all_types(spark: SparkSession, path: str, way: str, form: str) -> None:
    """Replaced rows keep their values, ids and versions, and inserted rows have those of the source."""
    if (way, form) == ("no planner", "sql"):
        pytest.skip("SQL changes tables by the planner only")
    pairs = pa.array([[("x", 1)], None, []], pa.map_(pa.string(), pa.int32()))
    table = special_rows(pairs=pairs, n=pa.array([0, 1, 2]), **{"a.b`c": pa.array([255, 0, None], pa.uint8())})
    lance_format.write_dataset(
        table, path, data_storage_version="2.2", allow_unportable_names=True, enable_stable_row_ids=True
    )
    names = [*table.schema.names, "_rowid", "_row_created_at_version"]

    def rows() -> dict[int, dict[str, Any]]:
        scanner = lance_format.dataset(path).scanner(names, blob_handling="all_binary")
        return {row["id"]: row for row in scanner.to_table().to_pylist()}

    before = rows()
    source = spark.createDataFrame([(1, b"one"), (2, b"two"), (3, b"three")], "id long, p binary").alias("s")
    if form == "sql":
        source.createOrReplaceTempView("arrivals")
        statement = (
            f"MERGE INTO lance.`{path}` t USING arrivals s ON t.id = s.id"
            " WHEN MATCHED AND s.id = 2 THEN UPDATE SET n = t.n + 10 WHEN MATCHED THEN UPDATE SET when = NULL"
            " WHEN NOT MATCHED THEN INSERT (id, payload, json) VALUES (s.id, s.p, '[3]')"
            " WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = -1"
        )
        (plan,) = spark.sql(f"EXPLAIN {statement}").collect()
        assert "reads: struct<id:bigint,when:timestamp,n:bigint,_rowaddr:bigint>" in plan[0]
        spark.sql(statement)
    else:
        merge = LanceTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
        merge = merge.whenMatchedUpdate("s.id = 2", {"n": "t.n + 10"}).whenMatchedUpdate(set={"when": "NULL"})
        merge = merge.whenNotMatchedInsert(values={"id": "s.id", "payload": "s.p", "json": "'[3]'"})
        result = merge.whenNotMatchedBySourceUpdate(set={"n": "-1"}).execute()
        assert (result.num_updated_rows, result.num_inserted_rows, result.num_deleted_rows) == (3, 1, 0)
    after = rows()
    assert after[0] == {**before[0], "n": -1}
    assert after[1] == {**before[1], "when": None}
    assert after[2] == {**before[2], "n": 12}
    wanted = {**dict.fromkeys(names), "id": 3, "payload": b"three", "json": "[3]"}
    assert {name: after[3][name] for name in table.schema.names} == {name: wanted[name] for name in table.schema.names}
    dataset = lance_format.dataset(path)
    fields = {field.name(): field.id() for field in lance.dataset(path).lance_schema.fields()}
    changed = dataset.read_transaction(dataset.version).operation.fields_rewritten
    assert changed == {fields["n"], fields["when"]}


@pytest.mark.slow
def test_kept_columns_that_the_merge_adds(spark: SparkSession, birds: LanceTable, path: str, way: str) -> None:
    arrivals = spark.range(8, 12).selectExpr("id", "'new' AS seen").alias("s")
    merge = birds.merge(arrivals, "t.id = s.id").whenMatchedUpdate(set={"k": "t.k + 1"}).whenNotMatchedInsertAll()
    assert merge.withSchemaEvolution().execute().num_updated_rows == 2
    assert content(path, "id", "k", "other", "seen")[7:] == [
        (7, 7, "7", None),
        (8, 9, "8", None),
        (9, 10, "9", None),
        (10, None, None, "new"),
        (11, None, None, "new"),
    ]
    merge = birds.merge(arrivals, "t.id = s.id").whenMatchedUpdateAll("s.id = 8").whenMatchedUpdate(set={"k": "0"})
    assert merge.withSchemaEvolution().execute().num_updated_rows == 4
    assert content(path, "id", "k", "other", "seen")[8:] == [
        (8, 9, "8", "new"),
        (9, 0, "9", None),
        (10, 0, None, "new"),
        (11, 0, None, "new"),
    ]
    lance.dataset(path).validate()


def test_a_merge_that_assigns_columns_to_themselves(spark: SparkSession, birds: LanceTable, path: str) -> None:
    before = lance_format.dataset(path).to_table().sort_by("id")
    merge = birds.merge(spark.range(8, 12).alias("s"), "t.id = s.id").whenMatchedUpdate(set={"k": "t.k"})
    assert merge.execute().num_updated_rows == 2
    assert lance_format.dataset(path).to_table().sort_by("id") == before


@pytest.mark.slow
def test_source_rows_that_match_one_row_in_several_tasks(
    spark: SparkSession, birds: LanceTable, path: str, scattered: None
) -> None:
    twice = spark.createDataFrame([(8, 1), (8, 2), (9, 1)], "id long, n long").repartition(3).alias("s")
    with pytest.raises(InvalidInputError, match="several rows of the source match one row"):
        birds.merge(twice, "t.id >= s.id").whenMatchedUpdate(set={"k": "s.n"}).execute()
    assert lance_format.dataset(path).version == 1
    assert not leftovers(Path(path))
