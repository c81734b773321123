"""Rows that tasks drop because others are before them in their group are none that a query returns."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as t

import lance_format
from connector.source.data_source import LanceDataSource
from lance_format import InvalidInputError
from tests.spark.conftest import append, load, planning
from tests.spark.random_sql import COLUMNS, PREDICATES, comparable, make_rows, setting
from tests.spark.test_runtime_filters import NOT_COMPILED, using
from tests.spark.test_runtime_filters import SETTING as RUNTIME_FILTERS

GROUP_LIMITS = "spark.lance.planner.groupLimits.enabled"
NUM_QUERIES = 16
TOP = [name for name in COLUMNS if "." not in name]
LATEST = "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY {} ORDER BY {}) AS r FROM {}) WHERE r <= 2"


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Return the names of views of a table of several fragments with deleted rows, and of the same rows in Parquet."""
    directory = tmp_path_factory.mktemp("first_rows")
    rows = [(*row, number) for number, row in enumerate(make_rows(random.Random(8)))]
    fields = [f"`{name}` {COLUMNS[name].spark_type}" for name in TOP]
    with planning(spark):
        df = spark.createDataFrame(rows, ", ".join([*fields, "s struct<few: int, text: string>", "id long"])).coalesce(
            1
        )
        append(df, str(directory / "table.lance"), max_row_per_file=1000)
        lance_format.dataset(str(directory / "table.lance")).delete("id % 11 = 3")
        df.where("id % 11 <> 3").write.parquet(str(directory / "table.parquet"))
        load(spark, str(directory / "table.lance"), split_size_bytes=20_000).createOrReplaceTempView("first_lance")
        spark.read.parquet(str(directory / "table.parquet")).createOrReplaceTempView("first_parquet")
        yield "first_lance", "first_parquet"


def plan_of(spark: SparkSession, query: str) -> str:
    return str(spark.sql(query)._jdf.queryExecution().executedPlan().toString())


def rows_of(spark: SparkSession, query: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(map(comparable, row)) for row in spark.sql(query).collect()), key=repr)


def make_query(chance: random.Random) -> str:
    """Return a query whose rows do not depend on the order of rows that are equal in the order."""
    keys = chance.sample([*TOP, "id"], chance.choice([1, 1, 1, 2]))
    columns = chance.sample(TOP, chance.choice([1, 1, 2])) + (["id"] if chance.random() < 0.4 else [])
    directions = ["", " ASC NULLS LAST", " DESC", " DESC NULLS FIRST"]
    order = ", ".join(column + chance.choice(directions) for column in columns)
    function = chance.choice(["row_number", "rank", "dense_rank"])
    chosen = [*keys, *columns] if function == "row_number" and "id" not in columns else [*keys, *columns, "id", "text"]
    where = f" WHERE {chance.choice(PREDICATES)}" if chance.random() < 0.4 else ""
    window = f"{function}() OVER (PARTITION BY {', '.join(keys)} ORDER BY {order})"
    numbered = f"SELECT *, {window} AS r FROM {{}}{where}"
    return f"SELECT {', '.join(dict.fromkeys(chosen))}, r FROM ({numbered}) WHERE r <= {chance.choice([1, 2, 3])}"


def check_queries(spark: SparkSession, tables: tuple[str, str], seeds: range) -> None:
    pushed = 0
    with using(spark, {**NOT_COMPILED, "spark.sql.adaptive.enabled": "false"}):
        for seed in seeds:
            query = make_query(random.Random(seed))
            pushed += ", first: " in plan_of(spark, query.format(tables[0]))
            assert rows_of(spark, query.format(tables[0])) == rows_of(spark, query.format(tables[1])), (seed, query)
    assert pushed > 0.8 * len(seeds)


@pytest.mark.system
def test_random_queries(planner: SparkSession, tables: tuple[str, str]) -> None:
    check_queries(planner, tables, range(NUM_QUERIES))


@pytest.mark.nightly
def test_many_random_queries(planner: SparkSession, tables: tuple[str, str]) -> None:
    check_queries(planner, tables, range(1000, 1400))


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        (LATEST.format("few", "many DESC", "{}"), "first: 2 of each [few] by [many DESC]"),
        (
            LATEST.format("text, flag", "odd NULLS LAST, id", "{}"),
            "first: 2 of each [text, flag] by [odd ASC NULLS LAST]",
        ),
        (
            LATEST.format("odd", "day DESC", "{} WHERE few > 3"),
            "filters: [few IS NOT NULL, few > 3], first: 2 of each [odd]",
        ),
        (
            "SELECT a FROM (SELECT few AS a, rank() OVER (PARTITION BY few ORDER BY text) AS r FROM {}) WHERE r < 2",
            "first: 1 of each [few] by [text ASC]",
        ),
        (
            "SELECT many FROM {0} WHERE many IN (SELECT many FROM (SELECT many, dense_rank() OVER"
            " (PARTITION BY few ORDER BY day) AS r FROM {0}) WHERE r = 1)",
            "first: 1 of each [few] by [day ASC]",
        ),
    ],
)
def test_explain_shows_the_groups(planner: SparkSession, tables: tuple[str, str], query: str, shown: str) -> None:
    assert shown in plan_of(planner, query.format(tables[0]))
    with setting(planner, GROUP_LIMITS, "false"):
        assert "first: " not in plan_of(planner, query.format(tables[0]))


@pytest.mark.parametrize(
    "query",
    [
        LATEST.format("few", "many + 1", "{}"),
        LATEST.format("few + 1", "many", "{}"),
        LATEST.format("s.few", "many", "{}"),
        LATEST.format("text COLLATE UTF8_LCASE", "many", "{}"),
        LATEST.format("few", "many", "{} WHERE few + many > 3"),
        LATEST.format("few", "many", "(SELECT * FROM {} LIMIT 100)"),
        LATEST.format("few", "many", "(SELECT few, max(many) AS many FROM {} GROUP BY few)"),
        LATEST.format("few", "chance", "(SELECT *, rand() AS chance FROM {})"),
        LATEST.format("few", "many", "{}").replace("<= 2", "<= 100"),
        LATEST.format("few", "many", "{}").replace("<= 2", ">= 2"),
        LATEST.replace("PARTITION BY {} ", "").format("many", "{}"),
    ],
)
def test_all_rows_are_returned(planner: SparkSession, tables: tuple[str, str], query: str) -> None:
    assert "first: " not in plan_of(planner, query.format(tables[0]))


@pytest.mark.parametrize("broadcast", ["-1", "10MB"])
@pytest.mark.parametrize("runtime_filters", ["always", "false"])
@pytest.mark.parametrize("key", ["few", "many"])
def test_keys_of_joins(
    planner: SparkSession, tables: tuple[str, str], tmp_path: Any, key: str, runtime_filters: str, broadcast: str
) -> None:
    """Those of the groups may choose rows before they are numbered, and no others."""
    query = f"""SELECT few, many, id, r FROM (
        SELECT *, rank() OVER (PARTITION BY few ORDER BY many DESC, id) AS r FROM {{}}
    ) JOIN first_keys ON {key} = first_keys.k WHERE r <= 3 AND name LIKE '%a%c%'"""
    keys = planner.range(0, 1000, 1, 1).selectExpr("cast(id AS int) AS k", "if(id % 3 = 0, 'abc', 'xyz') AS name")
    keys.write.parquet(str(tmp_path / "keys"))
    planner.read.parquet(str(tmp_path / "keys")).createOrReplaceTempView("first_keys")
    expected = rows_of(planner, query.format(tables[1]))
    with using(planner, {RUNTIME_FILTERS: runtime_filters, "spark.sql.autoBroadcastJoinThreshold": broadcast}):
        plan = plan_of(planner, query.format(tables[0]))
        (scan,) = [line for line in plan.split("\n") if "BatchScan" in line]
        assert "first: 3 of each [few]" in scan
        assert ("dynamicpruning" in scan) == (key == "few")
        assert rows_of(planner, query.format(tables[0])) == expected
    assert expected


@pytest.mark.slow
def test_other_parts_of_a_query_read_all_rows(planner: SparkSession, tables: tuple[str, str]) -> None:
    latest = (
        "SELECT few, many, id FROM (SELECT *, rank() OVER (PARTITION BY few ORDER BY id DESC) r FROM {0}) WHERE r = 1"
    )
    for query in (
        f"SELECT a.few, count(*) FROM {{0}} a JOIN ({latest}) b ON a.few = b.few GROUP BY 1",
        f"SELECT few, count(*) FROM (SELECT few, many, id FROM {{0}} UNION ALL {latest}) GROUP BY 1",
        f"SELECT count(DISTINCT many) FROM ({latest})",
        f"WITH t AS (SELECT few, many, id FROM {{0}}) SELECT t.id FROM t JOIN ({latest.format('t')}) USING (few, many)",
    ):
        with using(planner, {RUNTIME_FILTERS: "always"}):
            found = rows_of(planner, query.format(tables[0]))
            assert "first: 1 of each [few]" in plan_of(planner, query.format(tables[0]))
        assert found == rows_of(planner, query.format(tables[1])), query


def test_tasks_return_few_rows(path: str) -> None:
    num_rows = 100_000
    rows = pa.table({"k": [row % 10 for row in range(num_rows)], "v": range(num_rows), "name": ["a"] * num_rows})
    lance_format.write_dataset(rows, path)
    form = {"keys": ["k"], "order": ["v", True, True], "limit": 3, "distinct": False, "drops_ties": True}
    source = LanceDataSource({"path": path, "__lance.first": json.dumps(form)})
    reader: Any = source.reader(t.StructType().add("k", "long").add("v", "long").add("name", "string"))
    found = [sum(batch.num_rows for batch in reader.read(partition)) for partition in reader.partitions()]
    assert found == [30] * len(found)


@pytest.mark.parametrize(
    "form", ["", "[]", "{}", '{"keys": ["k"], "order": ["x"], "limit": 1, "distinct": 0, "drops_ties": 0}']
)
def test_groups_that_cannot_be_read(path: str, form: str) -> None:
    lance_format.write_dataset(pa.table({"k": [1, 2], "v": [3, 4]}), path)
    source = LanceDataSource({"path": path, "__lance.first": form})
    with pytest.raises(InvalidInputError, match=r"the groups .* cannot be read"):
        source.reader(t.StructType().add("k", "long").add("v", "long"))
