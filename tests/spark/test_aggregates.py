"""Groups and aggregates that tasks compute mean the same as those that Spark computes."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as t

import lance_format
from connector.source.data_source import LanceDataSource
from lance_format import InvalidInputError
from tests.spark.conftest import append, load, planning
from tests.spark.random_sql import (
    ANSI,
    FAR,
    GROUPED,
    PARTS,
    SAFE_NUMBERS,
    STEADY,
    declared,
    key,
    make_rows,
    number_of,
    predicate,
    rows_or_failure,
    setting,
)

AGGREGATES = "spark.lance.planner.aggregates.enabled"
NUM_QUERIES = 16


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the name of a view of a table of several fragments, one of them with deleted rows."""
    path = str(tmp_path_factory.mktemp("aggregates") / "table.lance")
    rows = make_rows(random.Random(5))
    with planning(spark):
        df = spark.createDataFrame(rows, declared())
        df = df.selectExpr("*", f"{FAR} AS far")
        append(df.coalesce(1), path, max_row_per_file=1000)
        lance_format.dataset(path).delete("few = 3 AND many < 0")
        load(spark, path, split_size_bytes=20_000).createOrReplaceTempView("aggregated")
        yield "aggregated"


def run(spark: SparkSession, query: str) -> tuple[list[Any], bool]:
    """Return the sorted rows of a query, or the failure, and whether tasks computed aggregates."""
    df = spark.sql(query)
    return rows_or_failure(df), "aggregates: [" in df._jdf.queryExecution().executedPlan().toString()


def aggregate(chance: random.Random) -> str:
    name = chance.choice(["sum", "sum", "avg", "min", "max", "count", "count(*)", "state"])
    if name == "count(*)":
        return name
    if name == "state":
        return state(chance)
    if name in ("sum", "avg") and chance.random() < 0.2:
        return f"{name}({chance.choice(['tiny', 'few'])} {chance.choice('+-')} {chance.choice([0, 1, 200])})"
    if name in ("sum", "avg"):
        return f"{name}({number_of(chance)})"
    return f"{name}({chance.choice(GROUPED) if chance.random() < 0.7 else number_of(chance)})"


def state(chance: random.Random) -> str:
    """Return an aggregate whose state has several parts; those of cubes and products cancel out digits."""
    one, other = chance.choice(STEADY), chance.choice(STEADY)
    name = chance.choice(
        ["stddev", "stddev_pop", "variance", "var_pop", "round(skewness", "round(kurtosis", "pair", "rank"]
    )
    if name == "rank":
        value, share = number_of(chance), chance.choice([0, 0.25, 0.5, 0.999, 1])
        return chance.choice([f"median({value})", f"percentile({value}, array({share}, 0.1))"])
    if name == "pair":
        return f"round({chance.choice(['corr', 'covar_pop', 'covar_samp', 'regr_r2'])}({one}, {other}), 5)"
    return f"{name}({one})" + (", 5)" if name.startswith("round") else "")


def distinct_aggregate(chance: random.Random) -> str:
    """Return an aggregate that equal rows do not change."""
    name, column = chance.choice(GROUPED), chance.choice(SAFE_NUMBERS)
    return chance.choice(
        [
            f"count(DISTINCT {name})",
            f"count(DISTINCT {name}, {chance.choice(GROUPED)})",
            f"count(DISTINCT {key(chance)})",
            f"count(DISTINCT {name}) FILTER (WHERE {predicate(chance)})",
            f"sum(DISTINCT {column})",
            f"avg(DISTINCT {column})",
            f"size(collect_list(DISTINCT {chance.choice(['few', 'tiny'])}))",
            f"approx_count_distinct({name})",
            f"bit_or({chance.choice(['few', 'tiny', 'many'])})",
            f"min({name})",
            f"max({number_of(chance)})",
        ]
    )


def make_distinct_query(chance: random.Random, table: str) -> str:
    keys = list(dict.fromkeys(key(chance) for _ in range(chance.choice([0, 1, 1, 2]))))
    chosen = [f"{name} AS key{index}" for index, name in enumerate(keys)]
    values = [distinct_aggregate(chance) for _ in range(chance.choice([1, 1, 2, 3]))]
    values += ["count(*)"] if chance.random() < 0.1 else []
    chosen += [f"{value} AS value{index}" for index, value in enumerate(values)]
    predicates = [predicate(chance), f"{number_of(chance)} > 1", "text RLIKE 'a.*b' OR few % 2 = 1"]
    where = f" WHERE {chance.choice(predicates)}" if chance.random() < 0.5 else ""
    groups = f" GROUP BY {', '.join(keys)}" if keys else ""
    if len(keys) > 1 and chance.random() < 0.3:
        groups = f" GROUP BY ROLLUP ({', '.join(keys)})"
    return f"SELECT {', '.join(chosen)} FROM {table}{where}{groups}"


def make_query(chance: random.Random, table: str) -> str:
    if chance.random() < 0.2:
        return make_distinct_query(chance, table)
    keys = list(dict.fromkeys(key(chance) for _ in range(chance.choice([0, 1, 1, 1, 2, 3]))))
    chosen = [f"{name} AS key{index}" for index, name in enumerate(keys)]
    chosen += [f"{aggregate(chance)} AS value{index}" for index in range(chance.choice([1, 2, 3, 4]))]
    where = f" WHERE {predicate(chance)}" if chance.random() < 0.5 else ""
    groups = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join(chosen)} FROM {table}{where}{groups}"


def compare(spark: SparkSession, query: str) -> bool:
    """Compare the rows of a query with those that Spark aggregates; return whether tasks computed aggregates."""
    found, is_pushed = run(spark, query)
    with setting(spark, AGGREGATES, "false"):
        expected, is_expected_pushed = run(spark, query)
    assert not is_expected_pushed
    assert found == expected, query
    return is_pushed


def check_queries(spark: SparkSession, table: str, ansi: str, seeds: range) -> None:
    pushed = 0
    with contextlib.ExitStack() as stack:
        # Queries are small, so they are not compiled.
        for name in ("spark.sql.codegen.wholeStage", "spark.sql.adaptive.enabled"):
            stack.enter_context(setting(spark, name, "false"))
        stack.enter_context(setting(spark, "spark.sql.codegen.factoryMode", "NO_CODEGEN"))
        stack.enter_context(setting(spark, "spark.sql.session.timeZone", "UTC"))
        stack.enter_context(setting(spark, ANSI, ansi))
        for seed in seeds:
            pushed += compare(spark, make_query(random.Random(seed), table))
    assert pushed > len(seeds) * (0.5 if ansi == "true" else 0.15)


@pytest.mark.system
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_random_aggregates(spark: SparkSession, table: str, ansi: str) -> None:
    check_queries(spark, table, ansi, range(NUM_QUERIES))


@pytest.mark.nightly
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_many_random_aggregates(spark: SparkSession, table: str, ansi: str) -> None:
    check_queries(spark, table, ansi, range(1000, 1300))


def rows_of(spark: SparkSession, query: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in spark.sql(query).collect()), key=repr)


def is_pushed(spark: SparkSession, query: str) -> bool:
    return "aggregates: [" in plan_of(spark, query)


def plan_of(spark: SparkSession, query: str) -> str:
    return str(spark.sql(query)._jdf.queryExecution().executedPlan().toString())


@pytest.mark.slow
def test_explain_shows_what_tasks_compute(planner: SparkSession, table: str) -> None:
    query = f"SELECT few, sum(price), count(*) FROM {table} WHERE many > 5 GROUP BY few"
    plan = plan_of(planner, query)
    assert "reads: struct<few:int,price:decimal(9,2)>, groups: [few], aggregates: [SUM(price), COUNT(*)]" in plan
    assert "filters: [many IS NOT NULL, many > 5]" in plan
    states = f"SELECT few, corr(many, real), avg(count), sum(price), count(*) FROM {table} GROUP BY few"
    shown = "CORRELATION(CAST(many AS double), real), SUM(count), COUNT(count), SUM(price), COUNT(*)"
    assert f"groups: [few], aggregates: [{shown}]" in plan_of(planner, states)
    with setting(planner, AGGREGATES, "false"):
        assert not is_pushed(planner, query)


def test_functions_of_constants_alone_leave_one_row(planner: SparkSession, table: str) -> None:
    """Spark plans an aggregation without keys and functions."""
    query = "SELECT min(text) FILTER (WHERE 'a' <=> 'b'), count(*) FILTER (WHERE 1 = 2) FROM {} WHERE text IS NOT NULL"
    assert planner.sql(query.format(table)).collect() == [(None, 0)]
    query = "SELECT min(text) FILTER (WHERE 'a' <=> 'b') FROM {} WHERE text IS NOT NULL"
    assert planner.sql(query.format(table)).collect() == [(None,)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(DISTINCT real) FROM {}",
        "SELECT count(DISTINCT few) FROM (SELECT few, rand() AS chance FROM {}) WHERE chance > 0.5",
        "SELECT count(DISTINCT few) FROM (SELECT few FROM {} LIMIT 10)",
        "SELECT few, count(*) FILTER (WHERE flag) FROM {} GROUP BY few",
        "SELECT text COLLATE UTF8_LCASE, count(*) FROM {} GROUP BY 1",
        "SELECT few, count(*) FROM {} WHERE text RLIKE 'a.*b.*c' GROUP BY few",
        "SELECT few, count(*) FROM {} GROUP BY ROLLUP (few)",
        "SELECT few, stddev(many) FILTER (WHERE flag) FROM {} GROUP BY few",
        "SELECT few, corr(many, sqrt(real)) FROM {} GROUP BY few",
        "SELECT few, count(many, real), stddev(many) FROM {} GROUP BY few",
        "SELECT few, first(text), stddev(many) FROM {} GROUP BY few",
        "SELECT few, percentile(many, 0.5, tiny + 200) FROM {} GROUP BY few",
        "SELECT few, median(wide) FROM {} GROUP BY few",
        "SELECT few, median(many) FILTER (WHERE flag) FROM {} GROUP BY few",
        "SELECT single, stddev(many) FROM {} GROUP BY single",
        "SELECT few, stddev(many) FROM (SELECT * FROM {} LIMIT 10) GROUP BY few",
        "SELECT CASE WHEN 1 / few > 2 THEN 1 ELSE 2 END, count(*) FROM {} WHERE few <> 0 GROUP BY 1",
        "SELECT coalesce(few, 1 % many), count(*) FROM {} GROUP BY 1",
        "SELECT cast(wide AS int), count(*) FROM {} GROUP BY 1",
        "SELECT try_cast(digits AS int), count(*) FROM {} GROUP BY 1",
        "SELECT cast(real AS bigint), count(*) FROM {} GROUP BY 1",
    ],
)
def test_what_spark_aggregates_itself(planner: SparkSession, table: str, query: str) -> None:
    assert not is_pushed(planner, query.format(table))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(DISTINCT few), count(*) FROM {}",
        "SELECT few, sum(DISTINCT many), sum(many), corr(many, real) FROM {} GROUP BY few",
        "SELECT tiny, count(DISTINCT few), avg(price), sum(rate), avg(wide), min(text) FROM {} GROUP BY tiny",
        "SELECT few, stddev(many), var_pop(real), round(skewness(many), 6) FROM {} GROUP BY few",
        "SELECT text, round(kurtosis(many), 6), sum(small) FROM {} GROUP BY text",
        "SELECT corr(many, few), covar_pop(few, real), covar_samp(price, rate), count(*) FROM {} WHERE flag",
        "SELECT corr(many, few), stddev(tiny), sum(price), avg(count) FROM {} WHERE many > 100000",
        "SELECT few, sum(small), avg(small), sum(digits), sum(deep), avg(deep) FROM {} GROUP BY few",
        "SELECT few, avg(count * 2), avg(huge), sum(single), avg(single), max(odd) FROM {} GROUP BY few",
        "SELECT text, regr_sxx(few, many), regr_avgx(few, many), count(few), count(1) FROM {} GROUP BY text",
        "SELECT k, stddev(n) FROM (SELECT few % 2 AS k, many * 2 AS n FROM {}) GROUP BY k HAVING count(*) > 1",
        "SELECT few, stddev(odd), corr(odd, few), var_samp(single) FROM {} GROUP BY few",
        "SELECT few, median(many), percentile(real, array(0.0, 0.31, 1.0)), stddev(many) FROM {} GROUP BY few",
        "SELECT text, median(single), percentile(tiny, 0.9), median(rate), median(odd) FROM {} GROUP BY text",
        "SELECT tiny, median(few), count(DISTINCT few), median(price) FROM {} GROUP BY tiny",
        "SELECT percentile_disc(0.4) WITHIN GROUP (ORDER BY small DESC), median(many), median(few) FROM {}",
        "SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY price DESC), max(text) FROM {} WHERE flag",
        "SELECT many, median(few), median(odd) FROM {} GROUP BY many",
    ],
)
def test_states_of_functions_that_sources_are_not_offered(planner: SparkSession, table: str, query: str) -> None:
    assert compare(planner, query.format(table))


@pytest.mark.parametrize("constants", ["NULL, 1, 2", "NULL, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12"])
def test_null_among_the_constants_of_a_list(planner: SparkSession, table: str, constants: str) -> None:
    for query in (
        f"SELECT DISTINCT CASE WHEN few IN ({constants}) THEN text ELSE 'other' END FROM {table}",
        f"SELECT text, count_if(few IN ({constants})), var_pop(many) FROM {table} GROUP BY text",
    ):
        assert compare(planner, query)


def test_tasks_make_the_first_step(planner: SparkSession, table: str) -> None:
    for query, steps in (
        ("SELECT few, sum(many) FROM {} GROUP BY few", 1),
        ("SELECT few, min(text), count(*) FROM {} GROUP BY few", 1),
        ("SELECT few, count(DISTINCT tiny) FROM {} GROUP BY few", 3),
        ("SELECT few, corr(many, tiny) FROM {} GROUP BY few", 1),
        ("SELECT sum(many) FROM {}", 2),
        ("SELECT tiny, bit_or(few) FROM {} GROUP BY tiny", 2),
    ):
        assert plan_of(planner, query.format(table)).count("Aggregate(key") == steps, query


@pytest.mark.parametrize(
    ("query", "groups"),
    [
        ("SELECT count(DISTINCT few) FROM {}", "few"),
        ("SELECT tiny, sum(DISTINCT few), max(few) FROM {} GROUP BY tiny", "tiny, few"),
        ("SELECT count(DISTINCT few), count(DISTINCT tiny) FROM {}", "tiny, few"),
        ("SELECT approx_count_distinct(few) FROM {}", "few"),
        ("SELECT count(DISTINCT few % 7 * 2) FROM {} WHERE few % 2 = 1", "few"),
        ("SELECT few FROM {} GROUP BY ROLLUP (few)", "few"),
        ("SELECT few FROM {} WHERE few < (SELECT count(DISTINCT tiny) FROM {})", "tiny"),
    ],
)
def test_distinct_rows(planner: SparkSession, table: str, query: str, groups: str) -> None:
    assert f"groups: [{groups}], aggregates: []" in plan_of(planner, query.replace("{}", table))
    assert compare(planner, query.replace("{}", table))


@pytest.mark.slow
def test_no_rows(planner: SparkSession, table: str, path: str) -> None:
    functions = "count(*), count(few), sum(few), avg(price), min(text), max(odd)"
    nothing = [(0, 0, None, None, None, None)]
    for where in ("count > 10000000", "text = 'nowhere'", "few = 3 AND many < 0"):
        query = f"SELECT {functions} FROM {table} WHERE {where}"
        assert is_pushed(planner, query)
        assert rows_of(planner, query) == nothing
        assert rows_of(planner, f"SELECT few, {functions} FROM {table} WHERE {where} GROUP BY few") == []
    append(planner.table(table).limit(0), path)
    load(planner, path).createOrReplaceTempView("aggregated_empty")
    assert rows_of(planner, f"SELECT {functions} FROM aggregated_empty") == nothing
    assert rows_of(planner, f"SELECT few, {functions} FROM aggregated_empty GROUP BY few") == []


@pytest.mark.slow
def test_sums_that_overflow(planner: SparkSession, path: str) -> None:
    rows = [
        (1, 2**63 - 1, "99999"),
        (1, 2**63 - 1, "99999"),
        (2, 2**63 - 1, "-99999"),
        (2, 5, "-99999"),
        (2, -7, "-99999"),
    ]
    df = planner.createDataFrame(rows, "g int, n long, d string").selectExpr("g", "n", "cast(d AS decimal(5,0)) AS d")
    append(df.coalesce(1), path)
    load(planner, path).createOrReplaceTempView("aggregated_sums")
    query = "SELECT g, sum(n) FROM aggregated_sums GROUP BY g"
    with setting(planner, ANSI, "true"):
        with pytest.raises(PySparkException, match="ARITHMETIC_OVERFLOW"):
            planner.sql(query).collect()
        # Spark fails if it adds 5 before -7, even though the sum is in range.
        assert rows_of(planner, f"{query} HAVING g = 2") == [(2, 2**63 - 3)]
        assert rows_of(planner, "SELECT g, try_sum(n) FROM aggregated_sums GROUP BY g") == [(1, None), (2, 2**63 - 3)]
    with setting(planner, ANSI, "false"):
        assert rows_of(planner, query) == [(1, -2), (2, 2**63 - 3)]
    for ansi in ("true", "false"):
        with setting(planner, ANSI, ansi):
            sums = "SELECT g, sum(d), avg(d), count(d) FROM aggregated_sums GROUP BY g"
            assert is_pushed(planner, sums)
            assert rows_of(planner, sums) == [
                (1, Decimal(199998), Decimal(99999), 2),
                (2, Decimal(-299997), Decimal(-99999), 3),
            ]
            averages = "SELECT g, avg(n) FROM aggregated_sums GROUP BY g"
            assert is_pushed(planner, averages)
            assert rows_of(planner, averages) == [(1, 2.0**63), (2, 2.0**63 / 3)]
            states = "SELECT g, sum(n), stddev(n) FROM aggregated_sums WHERE g = 1 GROUP BY g"
            assert is_pushed(planner, states)
            if ansi == "true":
                with pytest.raises(PySparkException, match="ARITHMETIC_OVERFLOW"):
                    planner.sql(states).collect()
            else:
                assert rows_of(planner, states) == [(1, -2, 0.0)]


def test_averages_of_decimals_whose_sum_overflows(planner: SparkSession, path: str) -> None:
    number = "CAST(if(id % 2 = 0, '2', '9999999999999999999999999999') AS decimal(38,10)) AS d"
    append(planner.range(4).selectExpr("id % 2 AS g", number).coalesce(1), path)
    load(planner, path).createOrReplaceTempView("aggregated_averages")
    query = "SELECT g, {}(d) FROM aggregated_averages GROUP BY g"
    expected = [(0, Decimal(2)), (1, None)]
    with setting(planner, ANSI, "false"):
        assert rows_of(planner, query.format("avg")) == expected
        planner.sql(query.format("avg")).createOrReplaceTempView("averages_without_ansi")
    with setting(planner, ANSI, "true"):
        assert is_pushed(planner, query.format("try_avg"))
        assert rows_of(planner, query.format("try_avg")) == expected
        assert rows_of(planner, "SELECT * FROM averages_without_ansi") == expected
        with pytest.raises(PySparkException, match="ARITHMETIC_OVERFLOW"):
            planner.sql(query.format("avg")).collect()


def compare_with_parquet(spark: SparkSession, rows: pa.Table, path: str, queries: list[str]) -> None:
    """Compare what tasks aggregate with what Spark aggregates of the same rows in Parquet, in ANSI mode."""
    lance_format.write_dataset(rows, path)
    pq.write_table(rows, f"{path}.parquet")
    load(spark, path).createOrReplaceTempView("aggregated_lance")
    spark.read.parquet(f"{path}.parquet").createOrReplaceTempView("aggregated_parquet")
    with setting(spark, ANSI, "true"):
        for query in queries:
            assert is_pushed(spark, query.format("aggregated_lance")), query
            found, expected = (spark.sql(query.format(f"aggregated_{name}")).toArrow() for name in ("lance", "parquet"))
            assert sorted(found.to_pylist(), key=repr) == sorted(expected.to_pylist(), key=repr), query


def test_strings_that_files_hold_as_dictionaries(planner: SparkSession, path: str) -> None:
    """Tasks read keys of them, and compute groups, filters and arguments for their items."""
    chance = random.Random(5)
    places = [None, "", "north", "south", "a place with a long name"]
    size = 70_000
    rows = pa.table(
        {
            "place": pa.array([chance.choice(places) for _ in range(size)]),
            "code": pa.array([f"{chance.randrange(300)}" for _ in range(size)]),
            "various": pa.array([f"{row} {chance.random()}" for row in range(size)]),
            "number": pa.array([chance.randrange(1000) for _ in range(size)]),
        }
    )
    compare_with_parquet(
        planner,
        rows,
        path,
        [
            "SELECT place, code, sum(number), count(*) FROM {} GROUP BY place, code",
            "SELECT place, count(code), min(code), max(place), count(place) FROM {} GROUP BY place",
            "SELECT substring(place, 1, 3), sum(number) FROM {} WHERE place <> 'x' GROUP BY substring(place, 1, 3)",
            "SELECT substring(various, 1, 1), max(place) FROM {} GROUP BY substring(various, 1, 1)",
            "SELECT place = code, place < 'o', count(*) FROM {} GROUP BY place = code, place < 'o'",
            "SELECT sum(CASE WHEN place = 'south' THEN number ELSE 0 END), max(substring(place, 2, 3)) FROM {}",
            "SELECT count(*) FROM {} WHERE code LIKE '%7' AND place IN ('north', 'south') AND number < 900",
            "SELECT code, avg(number) FROM {} WHERE number < 800 AND (place > 'n' OR place IS NULL) GROUP BY code",
        ],
    )


def test_spark_rounds_long_decimals_that_it_negates(planner: SparkSession, path: str) -> None:
    long = [Decimal("-12345678901234567890123456789012345678"), Decimal("-42534926445391317751399269815157063876")]
    rows = pa.table({"long": pa.array(long, pa.decimal128(38, 0)), "short": pa.array([1, -2], pa.decimal128(34, 2))})
    lance_format.write_dataset(rows, path)
    load(planner, path).createOrReplaceTempView("numbers")
    rounded = [row[0] for row in rows_of(planner, "SELECT -long FROM numbers")]
    assert rounded == [
        Decimal(f"{digits}0000")
        for digits in ("1234567890123456789012345678901235", "4253492644539131775139926981515706")
    ]
    assert rows_of(planner, "SELECT min(-long), max(abs(long)) FROM numbers") == [tuple(rounded)]
    assert rows_of(planner, f"SELECT count(*) FROM numbers WHERE -long = {rounded[0]}") == [(1,)]
    assert is_pushed(planner, "SELECT min(-short), max(abs(short)) FROM numbers")


@pytest.mark.slow
def test_dates_of_all_years(planner: SparkSession, path: str) -> None:
    days = [-(2**31) + 400, 2**31 - 1, 40_000_000, -12_687_795, 11_248_738, 0, None]
    moments = [-(2**63), 2**63 - 1, -(2**62), 2**62, 0, -1, None]
    rows = pa.table(
        {"day": pa.array(days, pa.int32()).cast(pa.date32()), "clock": pa.array(moments).cast("timestamp[us]")}
    )
    queries = [f"SELECT {part}(day), {part}(clock), count(*) FROM {{}} GROUP BY ALL" for part in PARTS]
    queries += [
        f"SELECT datediff(k, DATE'2000-01-01') FROM (SELECT trunc(day, '{unit}') k FROM {{}} GROUP BY 1)"
        for unit in ("year", "quarter", "month", "week")
    ]
    compare_with_parquet(planner, rows, path, queries)


@pytest.mark.slow
def test_operands_that_spark_does_not_compute(planner: SparkSession, path: str) -> None:
    rows = pa.table({"n": pa.array([None, 3], pa.int32()), "most": pa.array([2**31 - 1, 2], pa.int32())})
    queries = ["SELECT n + most * 2, count(*) FROM {} GROUP BY 1", "SELECT most * 2 % n, count(*) FROM {} GROUP BY 1"]
    compare_with_parquet(planner, rows, path, queries)


@pytest.mark.parametrize("zone", ["PST", "+8:00", "Z", "Etc/UTC"])
def test_time_zones_by_all_their_names(planner: SparkSession, table: str, zone: str) -> None:
    with setting(planner, "spark.sql.session.timeZone", zone):
        query = f"SELECT hour(moment), count(*) FROM {table} GROUP BY 1"
        assert is_pushed(planner, query) == (zone in ("Z", "Etc/UTC"))


@pytest.mark.parametrize("function", ["count(*)", "stddev(many)"])
@pytest.mark.parametrize("key", ["hour(moment)", "cast(moment AS date)"])
def test_dataframes_and_views_keep_their_time_zone(planner: SparkSession, table: str, key: str, function: str) -> None:
    """Whatever that of the session is when they run."""
    with setting(planner, "spark.sql.session.timeZone", "Asia/Tokyo"):
        made = planner.sql(f"SELECT {key}, {function} FROM {table} GROUP BY 1")
        planner.sql(f"CREATE OR REPLACE TEMP VIEW aggregated_view AS SELECT {key} AS key, many FROM {table}")
        expected = sorted(
            map(tuple, planner.sql(f"SELECT {key}, {function} FROM {table} GROUP BY 1").collect()), key=repr
        )
    with setting(planner, "spark.sql.session.timeZone", "UTC"):
        assert sorted(map(tuple, made.collect()), key=repr) == expected
        assert rows_of(planner, f"SELECT key, {function} FROM aggregated_view GROUP BY key") == expected
        assert rows_of(planner, f"SELECT {key}, {function} FROM {table} GROUP BY 1") != expected


@pytest.mark.parametrize("setting_made", ["true", "false"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT rate * rate * rate, count(*) FROM {} GROUP BY 1",
        "SELECT few, max(cast(rate * rate * rate AS decimal(38,12))), stddev(many) FROM {} GROUP BY few",
    ],
)
def test_dataframes_keep_the_types_of_decimals(
    planner: SparkSession, table: str, query: str, setting_made: str
) -> None:
    with setting(planner, "spark.sql.decimalOperations.allowPrecisionLoss", setting_made):
        made = planner.sql(query.format(table))
        with setting(planner, AGGREGATES, "false"):
            expected = rows_of(planner, query.format(table))
        assert is_pushed(planner, query.format(table))
    other = "false" if setting_made == "true" else "true"
    with setting(planner, "spark.sql.decimalOperations.allowPrecisionLoss", other):
        assert sorted(map(tuple, made.collect()), key=repr) == expected


@pytest.mark.slow
def test_aggregates_of_subqueries(planner: SparkSession, table: str) -> None:
    for query in (
        f"SELECT count(*) FROM (SELECT DISTINCT few, text FROM {table})",
        f"SELECT a.few, n, m FROM (SELECT few, count(*) n FROM {table} GROUP BY few) a "
        f"JOIN (SELECT few, max(many) m FROM {table} WHERE flag GROUP BY few) b ON a.few = b.few",
        f"SELECT few, many FROM {table} WHERE many = (SELECT max(many) FROM {table} WHERE flag)",
        f"SELECT double, count(*) FROM (SELECT few * 2 AS double FROM {table}) GROUP BY double HAVING count(*) > 10",
        f"SELECT few, sum(many) AS total FROM {table} GROUP BY few ORDER BY total DESC NULLS LAST LIMIT 2",
    ):
        assert compare(planner, query)


@pytest.mark.slow
def test_metadata_tables_and_feeds_are_aggregated_by_spark(planner: SparkSession, path: str) -> None:
    append(planner.range(5), path)
    append(planner.range(3), path)
    for options, counts in (
        ({"metadata_table": "history"}, [(2,)]),
        ({"readChangeFeed": "true", "startingVersion": "1"}, [(8,)]),
    ):
        load(planner, path, **options).createOrReplaceTempView("aggregated_metadata")
        assert rows_of(planner, "SELECT count(*) FROM aggregated_metadata") == counts
    load(planner, path, filter="id > 1").createOrReplaceTempView("aggregated_metadata")
    assert rows_of(planner, "SELECT count(*), sum(id) FROM aggregated_metadata") == [(4, 11)]


def test_statistics_answer_for_whole_fragments(path: str) -> None:
    """Fragments without deleted rows, whose pages cannot be read here."""
    numbers = pa.array([*range(29_999), None], pa.int32())
    rows = pa.table({"n": numbers, "text": ["a", "b", "c"] * 10_000})
    dataset = lance_format.write_dataset(rows, path, max_rows_per_file=10_000)
    dataset.delete("n = 15000")
    functions = [["count_all"], ["count", ["COLUMN", "n"]], ["min", ["COLUMN", "n"]], ["max", ["COLUMN", "text"]]]
    columns = t.StructType().add("n", "integer").add("text", "string")
    form = {"groups": [], "functions": functions, "columns": columns.json()}
    result = t.StructType().add("a", "long").add("b", "long").add("c", "integer").add("d", "string")

    def read(form: Any, **options: str) -> list[Any]:
        reader = LanceDataSource({"path": path, "__lance.aggregates": json.dumps(form), **options}).reader(result)
        batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
        return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]

    known = [(10_000, 10_000, 0, "c"), (10_000, 9_999, 20_000, "c"), (9_999, 9_999, 10_000, "c")]
    assert read(form) == known
    assert read(form, filter="n < 12") == [(12, 12, 0, "c")]
    with_sum = {**form, "functions": [functions[0], ["sum", ["COLUMN", "n"]], *functions[2:]]}
    assert read(with_sum) == [(29_999, sum(range(29_999)) - 15_000, 0, "c")]
    for fragment in dataset.get_fragments():
        if fragment.fragment_id != 1:
            with Path(path, "data", fragment.metadata.files[0].path).open("r+b") as stream:
                stream.write(b"\xff" * 40)
    assert read(form) == known
    with pytest.raises(InvalidInputError, match=r"the aggregates .* cannot be read"):
        read({"groups": []})
