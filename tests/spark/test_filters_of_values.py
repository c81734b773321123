"""Filters of what Spark computes from columns mean the same to tasks and to Spark, which keeps those that may fail."""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import lance_format
from tests.spark.conftest import append, load, planning
from tests.spark.random_sql import (
    ANSI,
    DATES,
    FAR,
    PARTS,
    declared,
    make_rows,
    number_of,
    predicate,
    rows_or_failure,
    setting,
)

NUM_FILTERS = 30
OPERATORS = ["=", "<>", "<", "<=", ">", ">=", "<=>"]
PATTERNS = ["%a%e%", "a_%", "%_a%r_", "_", "__", "a%l%r%o%", "%é%", "\\\\%", "%\\\\_%a%", "%😀", "%%", "%", "%z%b%"]


@pytest.fixture(scope="module")
def names(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Return the names of views of the same rows: of a table of several fragments, and of Parquet."""
    folder = tmp_path_factory.mktemp("filters")
    path = str(folder / "table.lance")
    with planning(spark):
        df = spark.createDataFrame(make_rows(random.Random(7)), declared())
        df = df.selectExpr("*", f"{FAR} AS far").orderBy("day").coalesce(1)
        df.write.parquet(str(folder / "parquet"))
        spark.read.parquet(str(folder / "parquet")).createOrReplaceTempView("filtered_parquet")
        append(spark.table("filtered_parquet"), path, max_row_per_file=1000)
        load(spark, path).createOrReplaceTempView("filtered_lance")
        yield "filtered_lance", "filtered_parquet"


def condition(chance: random.Random, depth: int = 2) -> str:
    """Return a random filter in SQL."""
    if depth and chance.random() < 0.4:
        one, other = condition(chance, depth - 1), condition(chance, depth - 1)
        return chance.choice([f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})"])
    number, operator = number_of(chance), chance.choice(OPERATORS)
    constant = chance.choice(["0", "1", "-3", "1.5", "0.5D", "100000L", "10"])
    day = f"DATE'{chance.choice(['1969-01-01', '2024-01-01', '2024-02-29', '2024-02-26'])}'"
    return chance.choice(
        [
            f"{number} {operator} {constant}",
            f"{number} {operator} {number_of(chance)}",
            f"{number} IN ({constant}, 2, 7)",
            f"{number} IS NULL",
            f"substring(text, {chance.randint(0, 3)}, {chance.randint(0, 2)}) IN ('a', 'é', '', 'ab', NULL)",
            f"substring(text, 1, 1) {operator} 'a'",
            f"text {chance.choice(['', 'NOT '])}LIKE '{chance.choice(PATTERNS)}'",
            f"s.text LIKE '{chance.choice(PATTERNS)}'",
            f"length(text) {operator} {chance.randint(0, 3)}",
            f"coalesce({predicate(chance)}, {chance.choice(['true', 'false'])})",
            f"CASE WHEN {predicate(chance)} THEN {predicate(chance)} ELSE {number} > 0 END",
            f"{chance.choice(PARTS)}({chance.choice(DATES)}) {operator} {chance.choice([1, 4, 7, 1969, 2024])}",
            f"trunc(day, '{chance.choice(['year', 'quarter', 'month', 'week'])}') {operator} {day}",
            f"year(clock) * 100 + month(clock) {operator} 202412",
            f"coalesce(text, 'none') {operator} 'b'",
        ]
    )


def plan_of(df: DataFrame) -> str:
    return str(df._jdf.queryExecution().executedPlan().toString())


def is_filtered_by_spark(plan: str) -> bool:
    return re.search(r"\bFilter\b", plan) is not None


def check_filters(spark: SparkSession, names: tuple[str, str], ansi: str, seeds: range) -> None:
    pushed = 0
    with setting(spark, ANSI, ansi), setting(spark, "spark.sql.session.timeZone", "UTC"):
        for seed in seeds:
            text = condition(random.Random(seed))
            query = f"SELECT few, many, text, hash(struct(*)) FROM {{}} WHERE {text}"
            lance = spark.sql(query.format(names[0]))
            expected = rows_or_failure(spark.sql(query.format(names[1])))
            pushed += not is_filtered_by_spark(plan_of(lance))
            found = rows_or_failure(lance)
            # Rows that a filter of tasks excludes do not fail in one of Spark's.
            assert found == expected or expected == ["failure"], text
    assert pushed > len(seeds) * (0.4 if ansi == "true" else 0.3)


@pytest.mark.system
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_random_filters(spark: SparkSession, names: tuple[str, str], ansi: str) -> None:
    check_filters(spark, names, ansi, range(NUM_FILTERS))


@pytest.mark.nightly
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_many_random_filters(spark: SparkSession, names: tuple[str, str], ansi: str) -> None:
    check_filters(spark, names, ansi, range(1000, 1500))


def plan_with(spark: SparkSession, name: str, condition: str) -> str:
    return plan_of(spark.sql(f"SELECT * FROM {name} WHERE {condition}"))


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        ("year(day) = 2024", "EXTRACT(YEAR FROM day) = 2024"),
        ("substring(text, 1, 2) IN ('ab', 'ze')", "SUBSTRING(text, 1, 2) IN ('ab', 'ze')"),
        ("text LIKE '%lon%text%'", "text LIKE '%lon%text%'"),
        ("text NOT LIKE 'a_'", "NOT (text LIKE 'a_')"),
        ("text LIKE 'it\\'s%a%'", "text LIKE 'it''s%a%'"),
        ("few % 3 = 1", "(few % 3) = 1"),
        ("few + 1L > many", "(CAST(few AS long) + 1) > CAST(many AS long)"),
        ("price * (1 - rate) > 1", "(price * (1 - rate)) > 1"),
        ("real * 2 > odd / 3", "(real * 2.0) > (odd / 3.0)"),
        ("length(text) - 1 > 3", "(CHAR_LENGTH(text) - 1) > 3"),
        ("weekday(day) + 1 = 7", "= 7"),
        ("abs(many % 7) = 3", "ABS(many % 7) = 3"),
        ("if(flag, few % 5, 7L) = 2", "CASE WHEN flag"),
    ],
)
def test_what_tasks_filter(planner: SparkSession, names: tuple[str, str], condition: str, shown: str) -> None:
    plan = plan_with(planner, names[0], condition)
    assert shown in plan
    assert not is_filtered_by_spark(plan)


@pytest.mark.parametrize(
    "condition",
    [
        "few + 1 > 3",
        "many * few > 3",
        "-edge > 3",
        "abs(edge) > 3",
        "few % many = 1",
        "1 / real > 2",
        "real % 0D IS NULL",
        "wide * deep > 1",
        "cast(many AS tinyint) = 3",
        "cast(odd AS int) = 3",
        "if(flag, 1 % few, 3) = 1",
        "hour(moment) = 3",
        "text LIKE upper(text)",
        "text LIKE '%a!%%b%' ESCAPE '!'",
        "text ILIKE '%a%b%'",
        "upper(text) = 'A'",
    ],
)
def test_what_spark_filters(planner: SparkSession, names: tuple[str, str], condition: str) -> None:
    with setting(planner, "spark.sql.session.timeZone", "America/New_York"):
        assert is_filtered_by_spark(plan_with(planner, names[0], condition))


def test_a_filter_that_fails_is_computed_for_the_rows_that_others_leave(
    planner: SparkSession, names: tuple[str, str]
) -> None:
    query = "SELECT count(*) FROM {} WHERE few <> 0 AND length(text) > 1 AND 6 % few = 0"
    found, expected = (planner.sql(query.format(name)).collect() for name in names)
    assert found == expected


def test_invalid_patterns_fail_as_in_spark(planner: SparkSession, names: tuple[str, str]) -> None:
    for name in names:
        with pytest.raises(AnalysisException, match="ESC_IN_THE_MIDDLE"):
            planner.sql(f"SELECT * FROM {name} WHERE text LIKE '%a\\\\b%c%'").collect()


def test_long_patterns(planner: SparkSession, names: tuple[str, str]) -> None:
    for pattern in ("%a%" + "b" * 50_000 + "_%", "%a%" + "\\\\_" * 500 + "%c"):
        query = f"SELECT count(*) FROM {{}} WHERE text NOT LIKE '{pattern}'"
        found, expected = (planner.sql(query.format(name)) for name in names)
        assert not is_filtered_by_spark(plan_of(found))
        assert found.collect() == expected.collect()


def test_patterns_that_no_table_takes_are_those_of_spark(planner: SparkSession, names: tuple[str, str]) -> None:
    """A filter over a join's columns stays LIKE, for which Spark compiles code."""
    query = """SELECT count(*) FROM {0} a JOIN {0} b ON a.many = b.many AND concat(a.text, b.text) LIKE '%a%a%'
               WHERE (a.text LIKE '%o%r%' OR b.many > 5) AND coalesce(a.text LIKE '%a%x%', a.s.text LIKE '_', true)"""
    found, expected = (planner.sql(query.format(name)) for name in names)
    assert "lance.like" not in found._jdf.queryExecution().toString()
    assert found.collect() == expected.collect()


def test_numbers_that_are_stored_as_other_types_than_spark_sees(planner: SparkSession, path: str) -> None:
    rows = pa.table(
        {
            "id": pa.array(range(4), pa.int64()),
            "half": pa.array([2048.0, 0.1, 65504.0, None], pa.float16()),
            "tiny": pa.array([255, 1, 200, None], pa.uint8()),
            "word": pa.array([2**32 - 1, 1, 5, None], pa.uint32()),
            "full": pa.array([2**64 - 1, 1, 5, None], pa.uint64()),
            "wide": pa.array([Decimal("1.5"), Decimal("2.5"), Decimal(0), None], pa.decimal256(20, 2)),
            "short": pa.array([Decimal("1.5"), Decimal("2.5"), Decimal(0), None], pa.decimal256(12, 2)),
            "label": pa.array(["abc", "b", "abd", None], pa.string()).dictionary_encode(),
            "large": pa.array(["abc", "b", "abd", None], pa.large_string()),
            "at": pa.array([datetime.datetime(2024, 1, day) for day in (1, 2, 3, 4)], pa.timestamp("s")),
        }
    )
    lance_format.write_dataset(rows, path)
    load(planner, path).createOrReplaceTempView("stored")
    conditions = {
        "half + 1 > 2048": [0, 2],
        "half * 2 = 131008": [2],
        "cast(half AS double) = 0.0999755859375D": [1],
        "tiny * 2 > 300": [0, 2],
        "cast(tiny AS int) + 1 = 256": [0],
        "cast(word AS double) * 2 = 8589934590D": [0],
        "word % 10 = 5": [0, 2],
        "full * 2 > 10": [0],
        "greatest(full, 3) = 5": [2],
        "full + 1 > 10000000000000000000": [0],
        "wide * 2 = 3": [0],
        "cast(short AS double) = 2.5D": [1],
        "substring(label, 1, 2) = 'ab'": [0, 2],
        "label LIKE '%b%c%'": [0],
        "substring(large, 1, 2) = 'ab'": [0, 2],
        "large LIKE 'a_d'": [2],
        "length(large) = 1": [1],
        "coalesce(large, 'x') = 'x'": [3],
        "day(at) % 2 = 1": [0, 2],
        "if(half > 1, half, 0) = 2048": [0],
    }
    for condition, ids in conditions.items():
        df = planner.sql(f"SELECT id FROM stored WHERE {condition}")
        assert sorted(row.id for row in df.collect()) == ids, condition
        assert not is_filtered_by_spark(plan_of(df)), condition


def test_years_and_prefixes_skip_rows(planner: SparkSession, path: str) -> None:
    values = "date_add(DATE'2000-01-01', int(id / 10)) AS day, cast(100000 + id AS string) AS code"
    rows = f"SELECT id, {values} FROM range(0, 40000, 1, 4)"
    append(planner.sql(rows), path)
    load(planner, path).createOrReplaceTempView("ordered")
    for condition, fragments in {
        "year(day) = 2001": 1,
        "trunc(day, 'month') = DATE'2001-05-01'": 1,
        "substring(code, 1, 2) IN ('10', '13')": 2,
        "year(day) < 2000": 0,
    }.items():
        assert f"fragments: {fragments} of 4" in plan_with(planner, "ordered", condition), condition


def test_groups_and_changes_of_filtered_rows(planner: SparkSession, path: str, tmp_path: Path) -> None:
    rows = "SELECT id, id % 10 AS few, concat('n', id, '-', id % 7) AS text, id AS n FROM range(1000)"
    append(planner.sql(rows), path)
    load(planner, path).createOrReplaceTempView("changed")
    query = "SELECT few, count(*), sum(n) FROM changed WHERE text LIKE '%1%-3' AND length(text) > 4 GROUP BY few"
    assert "aggregates: [" in plan_of(planner.sql(query))
    matching = {n for n in range(1000) if "1" in str(n) and n % 7 == 3 and n > 99}
    matching |= {n for n in range(1000) if "1" in str(n) and n % 7 == 3 and len(f"n{n}-{n % 7}") > 4}
    expected = {(few, len(ns), sum(ns)) for few in range(10) if (ns := [n for n in matching if n % 10 == few])}
    assert {tuple(row) for row in planner.sql(query).collect()} == expected
    planner.sql(f"UPDATE lance.`{path}` SET n = -1 WHERE text LIKE '%1%-3' AND length(text) > 4")
    assert {row.id for row in load(planner, path).where("n = -1").collect()} == matching
    planner.sql(f"DELETE FROM lance.`{path}` WHERE id % 3 = 1 AND substring(text, 1, 2) = 'n1'")
    left = {row.id for row in load(planner, path).collect()}
    assert left == {n for n in range(1000) if not (n % 3 == 1 and str(n).startswith("1"))}
