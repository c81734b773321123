"""Scans that skip the rows without a key of another table: the rows of a query are the same, and fewer are read."""

from __future__ import annotations

import contextlib
import random
import re
import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connector.planner.answers import Answers
from tests.spark.conftest import append, load, planning

SETTING = "spark.lance.planner.runtimeFilters.enabled"
DRIVER = "spark.lance.planner.runtimeFilters.driver"
SMALL_READS = "spark.lance.planner.smallReads.enabled"
PARTS = re.compile(r"parts\.lance version \d+, reads")
"""A scan of the parts, not of the sales whose parts are among these."""

NUM_QUERIES = 10
KEYS = ("k", "i", "t", "d", "x", "day")
"""Columns of every table: a number, a smaller one, a string, a decimal, a floating-point number and a day."""
SCHEMA = "k bigint, i int, t string, d decimal(9,2), x double, day date, v int"
SETTINGS = {
    "spark.sql.adaptive.enabled": ["true", "true", "false"],
    "spark.sql.autoBroadcastJoinThreshold": ["-1", "10MB", "2000"],
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": ["true", "true", "true", "false"],
}

NOT_COMPILED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Queries are small."""


@contextlib.contextmanager
def using(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def make_rows(rng: random.Random, num_rows: int, span: int) -> list[tuple[Any, ...]]:
    """Return rows whose keys are of a span, and null now and then."""

    def number() -> int | None:
        return None if rng.random() < 0.05 else rng.randrange(span)

    odd = [0.0, -0.0, float("nan"), 1.5, -7.25]
    rows = []
    for _ in range(num_rows):
        k, i, t, d = number(), number(), number(), number()
        text, price = None if t is None else f"{t % 7} é", None if d is None else Decimal(d) / 4
        day = None if rng.random() < 0.05 else f"2024-01-{1 + rng.randrange(28):02}"
        rows.append((k, i, text, price, rng.choice(odd), day, rng.randrange(100)))
    return rows


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Make tables of several sizes, one of Parquet among them, as views."""
    rng = random.Random(7)
    directory = tmp_path_factory.mktemp("joined")
    sizes = {"a": (900, 300), "b": (400, 300), "c": (60, 90), "e": (9, 300)}
    schema = SCHEMA.replace("day date", "day string")
    with planning(spark):
        for name, (num_rows, span) in sizes.items():
            frame = spark.createDataFrame(make_rows(rng, num_rows, span), schema).selectExpr(
                *KEYS[:-1], "cast(day as date) day", "v"
            )
            path = str(directory / f"{name}.lance")
            for part in frame.randomSplit([1.0, 1.0], 3):
                append(part, path)
            load(spark, path).createOrReplaceTempView(f"joined_{name}")
        frame.write.parquet(str(directory / "p"))
        spark.read.parquet(str(directory / "p")).createOrReplaceTempView("joined_p")
    return [*(f"joined_{name}" for name in sizes), "joined_p"]


class Queries:
    """Random queries of joins.

    Parameters
    ----------
    rng : random.Random
    tables : list of str
    """

    def __init__(self, rng: random.Random, tables: list[str]) -> None:
        self._rng, self._tables, self._count = rng, tables, 0

    def make(self) -> str:
        """Return a query whose output tells all rows apart that matter."""
        source, columns = self._joined(self._rng.randint(1, 4))
        chosen = [
            f"{column} AS o{index}" for index, column in enumerate(self._rng.sample(columns, min(4, len(columns))))
        ]
        if self._rng.random() < 0.4:
            keys = [text.split(" AS ")[0] for text in chosen[:2]]
            return f"SELECT {', '.join(chosen[:2])}, count(*) n FROM {source} GROUP BY {', '.join(keys)}"
        return f"SELECT {', '.join(chosen)} FROM {source}"

    def _name(self) -> str:
        self._count += 1
        return f"n{self._count}"

    def _filter(self, columns: list[str]) -> str:
        rng = self._rng
        column = rng.choice([name for name in columns if name.endswith((".v", ".k", ".i"))] or ["1"])
        return rng.choice(
            [
                f"{column} < {rng.randrange(100)}",
                f"{column} = {rng.randrange(60)}",
                f"{column} % 3 = 1",
                "true",
                f"{column} IS NOT NULL",
            ]
        )

    def _leaf(self) -> tuple[str, list[str]]:
        name, table, rng = self._name(), self._rng.choice(self._tables), self._rng
        columns = [f"{name}.{column}" for column in (*KEYS, "v")]
        kind = rng.random()
        if kind < 0.35:
            return f"{table} {name}", columns
        inner = [f"{table}.{column}" for column in (*KEYS, "v")]
        if kind < 0.75:
            return f"(SELECT * FROM {table} WHERE {self._filter(inner)}) {name}", columns
        if kind < 0.9:
            having = rng.choice(
                ["", f" HAVING sum(v) > {rng.randrange(200)}", f" HAVING count(*) = {rng.randint(1, 4)}"]
            )
            return f"(SELECT k, i, max(v) v FROM {table} GROUP BY k, i{having}) {name}", [
                f"{name}.k",
                f"{name}.i",
                f"{name}.v",
            ]
        window = "row_number() OVER (PARTITION BY k ORDER BY i, t, d, x, day, v)"
        return f"(SELECT k, i, {window} v FROM {table}) {name}", [f"{name}.k", f"{name}.i", f"{name}.v"]

    def _joined(self, depth: int) -> tuple[str, list[str]]:
        if depth == 0:
            return self._leaf()
        rng = self._rng
        left, left_columns = self._joined(depth - 1)
        right, right_columns = self._joined(rng.choice([0, 0, 0, 1]) if depth > 1 else 0)
        kind = rng.choice(["INNER", "INNER", "LEFT OUTER", "RIGHT OUTER", "FULL OUTER", "LEFT SEMI", "LEFT ANTI"])
        both = [(one, other) for one in left_columns for other in right_columns if self._kind(one) == self._kind(other)]
        terms = [
            f"{one} {rng.choice(['=', '=', '=', '=', '<=>'])} {other}"
            for one, other in rng.sample(both, min(len(both), rng.choice([1, 1, 2])))
        ]
        if rng.random() < 0.3:
            one, other = rng.choice(left_columns), rng.choice(right_columns)
            terms.append(f"{one}" + " IS NOT NULL" if rng.random() < 0.5 else f"{other} IS NOT NULL")
        right = f"({right})" if " JOIN " in right else right
        joined = f"{left} {kind} JOIN {right} ON {' AND '.join(terms) or 'true'}"
        columns = left_columns if kind in ("LEFT SEMI", "LEFT ANTI") else left_columns + right_columns
        if rng.random() < 0.2:
            name = self._name()
            kept = rng.sample(columns, min(len(columns), 4))
            outer = [f"{name}.{self._kind(column)}{place}" for place, column in enumerate(kept)]
            listed = ", ".join(f"{column} AS {self._kind(column)}{place}" for place, column in enumerate(kept))
            where = f" WHERE {self._filter(kept)}" if rng.random() < 0.5 else ""
            return f"(SELECT {listed} FROM {joined}{where}) {name}", outer
        return joined, columns

    @staticmethod
    def _kind(column: str) -> str:
        return column.rsplit(".", 1)[1].rstrip("0123456789")


def rows(spark: SparkSession, query: str, settings: dict[str, str]) -> list[str]:
    with using(spark, settings):
        return sorted(map(repr, spark.sql(query).collect()))


def check(spark: SparkSession, tables: list[str], seed: int) -> tuple[int, int]:
    """Compare a query with and without filters; return of how many Spark and the driver find the keys."""
    rng = random.Random(seed)
    query = Queries(rng, tables).make()
    settings = {name: rng.choice(values) for name, values in SETTINGS.items()} | NOT_COMPILED
    with planning(spark):
        expected = rows(spark, query, {**settings, SETTING: "false"})
        counts = []
        for driver, sign in (("false", "dynamicpruning"), ("true", r" IN \w+ of ")):
            chosen = {**settings, SETTING: "always", DRIVER: driver, SMALL_READS: driver}
            assert rows(spark, query, chosen) == expected, (seed, query, chosen)
            with using(spark, chosen):
                plan = spark.sql(query)._jdf.queryExecution().executedPlan().toString()
            counts.append(len(re.findall(sign, plan)))
        return counts[0], counts[1]


def test_random_joins(spark: SparkSession, tables: list[str]) -> None:
    counts = [check(spark, tables, seed) for seed in range(NUM_QUERIES)]
    by_spark, by_driver = (sum(map(bool, found)) for found in zip(*counts, strict=True))
    assert by_spark > NUM_QUERIES // 3
    assert by_driver > NUM_QUERIES // 5


@pytest.mark.nightly
def test_many_random_joins(spark: SparkSession, tables: list[str]) -> None:
    counts = [check(spark, tables, 1000 + seed) for seed in range(40 * NUM_QUERIES)]
    by_spark, by_driver = (sum(map(bool, found)) for found in zip(*counts, strict=True))
    assert by_spark > 15 * NUM_QUERIES
    assert by_driver > 8 * NUM_QUERIES


class TestFilters:
    @pytest.fixture
    def sales(self, planner: SparkSession, path: str) -> str:
        """Return the name of a view of 4,000 rows of 400 parts."""
        append(planner.range(0, 4000, 1, 2).selectExpr("id AS sale", "id % 400 AS part"), path)
        load(planner, path).createOrReplaceTempView("joined_sales")
        return "joined_sales"

    def scanned(self, spark: SparkSession, query: str, driver: str) -> tuple[int, int]:
        """Return how many rows a query has, and how many rows of the sales its scan returned."""
        frame = spark.sql(query)
        found = len(frame.collect())
        plan = frame._jdf.queryExecution().executedPlan().toString().partition("Initial Plan")[0]
        (line,) = {line for line in plan.split("\n") if "BatchScan" in line and not PARTS.search(line)}
        expected = "keys: [part IN id of " if driver == "true" else "RuntimeFilters: [dynamicpruningexpression(part"
        assert expected in line
        metrics = spark._jsparkSession.sharedState().statusStore()  # type: ignore[attr-defined]
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # type: ignore[attr-defined]
        last = metrics.executionsList().last()
        graph = metrics.planGraph(last.executionId()).allNodes()
        nodes = [graph.apply(index) for index in range(graph.size())]
        (scan,) = [node for node in nodes if node.name().startswith("BatchScan") and not PARTS.search(node.desc())]
        ids = [scan.metrics().apply(index) for index in range(scan.metrics().size())]
        (rows,) = [metric.accumulatorId() for metric in ids if metric.name() == "number of output rows"]
        return found, int(metrics.executionMetrics(last.executionId()).apply(rows).replace(",", ""))

    @pytest.mark.slow
    @pytest.mark.parametrize("driver", ["true", "false"])
    @pytest.mark.parametrize("broadcast", ["-1", "10MB"])
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("SELECT sale FROM {sales} JOIN (SELECT id FROM joined_parts WHERE kind > -3) ON part = id", 30),
            ("SELECT sale FROM {sales} WHERE part IN (SELECT id FROM joined_parts WHERE kind IN (-7, -500))", 10),
            ("SELECT id, sale FROM (SELECT id FROM joined_parts WHERE kind > -3) LEFT JOIN {sales} ON part = id", 30),
            ("SELECT id FROM (SELECT id FROM joined_parts WHERE kind > -3) LEFT ANTI JOIN {sales} ON part = id", 30),
            (
                "SELECT part, s FROM (SELECT part, sum(sale) s FROM {sales} WHERE upper(sale) < 'A' GROUP BY part)"
                " JOIN (SELECT id FROM joined_parts WHERE kind > -3) ON part = id",
                30,
            ),
            (
                "SELECT part, s FROM (SELECT part, sum(sale) s FROM {sales} GROUP BY part)"
                " JOIN (SELECT id FROM joined_parts WHERE kind > -3) ON part = id",
                3,
            ),
        ],
        ids=["inner", "semi", "outer", "anti", "below groups", "groups of the tasks"],
    )
    def test_rows_without_a_key_stay_in_the_tasks(
        self, planner: SparkSession, sales: str, tmp_path: Path, query: str, expected: int, broadcast: str, driver: str
    ) -> None:
        append(planner.range(600).selectExpr("id", "-id AS kind"), str(tmp_path / "parts.lance"))
        load(planner, str(tmp_path / "parts.lance")).createOrReplaceTempView("joined_parts")
        settings = {SETTING: "always", DRIVER: driver, "spark.sql.autoBroadcastJoinThreshold": broadcast}
        text = query.format(sales=sales)
        with using(planner, {**settings, SETTING: "false"}):
            num_rows = planner.sql(text).count()
        with using(planner, settings):
            assert self.scanned(planner, text, driver) == (num_rows, expected)

    @pytest.mark.slow
    @pytest.mark.parametrize("mode", ["true", "always"])
    def test_many_tables_of_one_key(
        self, planner: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
    ) -> None:
        """Keys that are known by one table are not described by way of every other."""
        sizes: list[int] = []
        apply = Answers.apply

        def sized(self: Answers, question: str) -> str:
            sizes.append(len(question))
            return apply(self, question)

        monkeypatch.setattr(Answers, "apply", sized)
        names = [f"alike{number}" for number in range(10)]
        rows = {
            name: planner.range(50000).selectExpr("id", f"id % 50 AS {name}", f"id + 9 AS o{name}") for name in names
        }
        rows["large"] = planner.range(2000000).selectExpr("id AS other")
        for name, some in rows.items():
            append(some, str(tmp_path / name))
            load(planner, str(tmp_path / name)).createOrReplaceTempView(name)
        joins = " ".join(f"JOIN {name} USING (id)" for name in names[1:])
        query = f"SELECT count(*), min(other) FROM alike0 {joins} JOIN large ON oalike9 = other WHERE alike0 = 7"
        with using(planner, {SETTING: mode}):
            plan = planner.sql(query)._jdf.queryExecution().executedPlan().toString()
            assert " IN oalike9 of " in plan or mode == "always"
            assert planner.sql(query).head() == (1000, 16)
        assert max(sizes) < 200_000

    @pytest.mark.slow
    def test_too_many_keys(self, planner: SparkSession, path: str, tmp_path: Path) -> None:
        """Those that were found are not all, so none may be left out."""
        append(planner.range(0, 600_000, 1, 2).selectExpr("id", "-id AS kind"), str(tmp_path / "parts.lance"))
        append(planner.range(0, 700_000, 1, 2).selectExpr("id AS sale", "id AS part"), path)
        load(planner, str(tmp_path / "parts.lance")).createOrReplaceTempView("joined_parts")
        load(planner, path).createOrReplaceTempView("joined_sales")
        query = "SELECT sale FROM joined_sales JOIN (SELECT id FROM joined_parts WHERE kind <> -5) ON part = id"
        with using(planner, {SETTING: "always", "spark.sql.autoBroadcastJoinThreshold": "-1"}):
            assert self.scanned(planner, query, "false") == (599_999, 700_000)

    @pytest.mark.parametrize("driver", ["true", "false"])
    def test_groups_are_filtered_by_their_columns_only(
        self, planner: SparkSession, path: str, tmp_path: Path, driver: str
    ) -> None:
        """Columns of groups may have the names of results, and be computed."""
        columns = "id % 50 AS group_0", "id % 7 AS aggregate_0", "id % 50 + 1 AS Part", "id AS v"
        append(planner.range(0, 4000, 1, 2).selectExpr(*columns), path)
        load(planner, path).createOrReplaceTempView("joined_sales")
        append(planner.range(60).selectExpr("id", "-id AS kind"), str(tmp_path / "parts.lance"))
        load(planner, str(tmp_path / "parts.lance")).createOrReplaceTempView("joined_parts")
        groups = [
            "group_0",
            "aggregate_0",
            "part",
            "group_0 + 1",
            "-part",
            "group_0, part",
            "part, group_0 + aggregate_0",
        ]
        values = ["max(aggregate_0)", "min(part)", "sum(v)"]
        settings = {DRIVER: driver, "spark.sql.autoBroadcastJoinThreshold": "-1"}
        for group in groups:
            for key in ("x", "y"):
                query = (
                    f"SELECT * FROM (SELECT {group.split(',')[0]} x, {values[0]} y, {values[1]} a, {values[2]} b"
                    f" FROM joined_sales GROUP BY {group}) JOIN (SELECT id FROM joined_parts WHERE kind > -3) "
                    f" ON {key} = id"
                )
                expected = rows(planner, query, {**settings, SETTING: "false"})
                assert rows(planner, query, {**settings, SETTING: "always"}) == expected
                with using(planner, {**settings, SETTING: "always"}):
                    plan = planner.sql(query)._jdf.queryExecution().executedPlan().toString()
                scan = next((line for line in plan.split("\n") if "groups: [" in line), "")
                assert bool(re.search(r"dynamicpruningexpression\(|keys: \[", scan)) == (
                    key == "x" and group.startswith("part")
                )

    def test_keys_of_keys(self, planner: SparkSession, sales: str, tmp_path: Path) -> None:
        """The driver reads those of the regions first, then those of the parts in these."""
        append(planner.range(400).selectExpr("id", "id % 20 AS region"), str(tmp_path / "parts.lance"))
        append(planner.range(20).selectExpr("id AS region", "-id AS kind"), str(tmp_path / "regions.lance"))
        for name in ("parts", "regions"):
            load(planner, str(tmp_path / f"{name}.lance")).createOrReplaceTempView(f"joined_{name}")
        query = (
            f"SELECT sale FROM {sales} JOIN (SELECT id, region FROM joined_parts) ON part = id"
            " JOIN (SELECT region r FROM joined_regions WHERE kind = -7) ON region = r"
        )
        with using(planner, {SETTING: "always"}):
            frame = planner.sql(query)
            assert len(frame.collect()) == 200
        plan = frame._jdf.queryExecution().executedPlan().toString()
        assert "keys: [part IN id of " in plan
        assert "keys: [region IN region of " in plan
        assert "dynamicpruning" not in plan

    def test_the_keys_are_those_of_the_version_that_the_query_reads(
        self, planner: SparkSession, sales: str, tmp_path: Path
    ) -> None:
        """A table that is made anew has the same number of its version."""
        path = str(tmp_path / "parts.lance")
        query = f"SELECT sale FROM {sales} JOIN (SELECT id FROM joined_parts WHERE kind = 1) ON part = id"
        with using(planner, {SETTING: "always"}):
            for wanted in (3, 5, 7):
                shutil.rmtree(path, ignore_errors=True)
                append(planner.range(600).selectExpr("id", f"int(id = {wanted}) AS kind"), path)
                load(planner, path).createOrReplaceTempView("joined_parts")
                assert {row.sale % 400 for row in planner.sql(query).collect()} == {wanted}
                load(planner, path).createOrReplaceTempView("joined_parts")
                assert planner.sql(query).count() == 10

    def test_keys_that_cannot_be_read_are_left_to_the_query(
        self, planner: SparkSession, sales: str, tmp_path: Path
    ) -> None:
        path = tmp_path / "parts.lance"
        append(planner.range(0, 600, 1, 1).selectExpr("id", "-id AS kind"), str(path))
        load(planner, str(path)).createOrReplaceTempView("joined_parts")
        query = f"SELECT sale FROM {sales} JOIN (SELECT id FROM joined_parts WHERE kind > -3) ON part = id"
        (data,) = (path / "data").iterdir()
        data.rename(tmp_path / "elsewhere")
        with using(planner, {SETTING: "always"}):
            frame = planner.sql(query)
            assert "keys: [part IN id of " in frame._jdf.queryExecution().executedPlan().toString()
            with pytest.raises(Exception, match=re.escape(data.name)):
                frame.collect()
            (tmp_path / "elsewhere").rename(data)
            assert len(planner.sql(query).collect()) == 30

    def test_small_tables_are_not_worth_it(self, planner: SparkSession, sales: str) -> None:
        query = f"SELECT a.sale FROM {sales} a JOIN {sales} b ON a.part = b.sale WHERE b.part = 3"
        for value in ("true", "false"):
            with using(planner, {SETTING: value}):
                assert "dynamicpruning" not in planner.sql(query)._jdf.queryExecution().optimizedPlan().toString()

    @pytest.mark.parametrize("value", ["true", "always"])
    def test_groups_do_not_filter_the_scan_that_makes_them(
        self, planner: SparkSession, sales: str, tmp_path: Path, value: str
    ) -> None:
        append(planner.range(600).selectExpr("id"), str(tmp_path / "parts.lance"))
        load(planner, str(tmp_path / "parts.lance")).createOrReplaceTempView("joined_parts")
        query = f"""SELECT id, most FROM joined_parts
            JOIN (SELECT part, max(sale) most FROM {sales} GROUP BY part HAVING max(sale) = 3999) ON id = part"""
        with using(planner, {SETTING: value}):
            frame = planner.sql(query)
            assert [tuple(row) for row in frame.collect()] == [(399, 3999)]
            plan = frame._jdf.queryExecution().executedPlan().toString()
        scans = [line for line in plan.split("\n") if "groups: [part]" in line]
        assert scans
        assert not any("pruningexpression(part" in scan or "keys: [" in scan for scan in scans)

    @pytest.mark.parametrize(
        ("value", "threshold", "join"),
        [
            ("true", "200KB", "BroadcastHashJoin"),
            ("true", "20KB", "SortMergeJoin"),
            ("false", "200KB", "SortMergeJoin"),
        ],
    )
    def test_samples_tell_what_may_be_broadcast(
        self, planner: SparkSession, sales: str, tmp_path: Path, value: str, threshold: str, join: str
    ) -> None:
        """They are trusted to an eighth of the size."""
        parts = planner.range(0, 20_000, 1, 1).selectExpr("id", "id * 7919 % 20000 AS kind", "'a part' AS name")
        append(parts, str(tmp_path / "parts.lance"))
        load(planner, str(tmp_path / "parts.lance")).createOrReplaceTempView("joined_parts")
        query = f"SELECT sale FROM {sales} LEFT SEMI JOIN joined_parts ON part = id AND name > 'a' AND kind < 20"
        with using(planner, {SETTING: value, "spark.sql.autoBroadcastJoinThreshold": threshold}):
            assert join in planner.sql(query)._jdf.queryExecution().sparkPlan().toString()

    @pytest.mark.slow
    def test_a_broadcast_input_is_read_once(self, planner: SparkSession, sales: str, tmp_path: Path) -> None:
        """Although Spark offers to prune it by the rest of the query."""
        append(planner.range(600).selectExpr("id", "-id AS kind"), str(tmp_path / "parts.lance"))
        append(planner.sql("SELECT 5L AS lost, 'cable' AS why"), str(tmp_path / "losses.lance"))
        for name in ("parts", "losses"):
            load(planner, str(tmp_path / f"{name}.lance")).createOrReplaceTempView(f"joined_{name}")
        query = f"""SELECT sale FROM {sales} JOIN joined_parts ON part = id
            WHERE kind > -3 AND sale NOT IN (SELECT lost FROM joined_losses WHERE why LIKE '%a%b%')"""
        with using(planner, {SETTING: "always", DRIVER: "false"}):
            frame = planner.sql(query)
            assert len(frame.collect()) == 30
        plan = frame._jdf.queryExecution().executedPlan().toString()
        assert "SubqueryBroadcast dynamicpruning" in plan
        assert " Subquery dynamicpruning" not in plan
