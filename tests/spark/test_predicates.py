"""Random predicates over random rows mean the same to Lance with and without the planner, and to Parquet."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.conftest import append, load, planning

NUM_ROWS = 600
NUM_PREDICATES = 60
UTC = datetime.UTC

VALUES: dict[str, tuple[str, list[Any], list[str]]] = {
    "flag": ("boolean", [True, False], ["true", "false"]),
    "tiny": ("byte", [-128, -1, 0, 1, 127], ["0", "1Y", "-1", "127", "128", "300L", "1.5"]),
    "number": ("int", [-(2**31), -7, 0, 7, 8, 2**31 - 1], ["7", "8L", "-7.0D", "7.5D", "2147483648L", "0.0BD", "'7'"]),
    "big": ("long", [-(2**63), -1, 0, 2**53 + 1, 2**63 - 1], ["0", "-1", "9007199254740993L", "9007199254740992D"]),
    "small": (
        "float",
        [0.1, -0.0, 0.0, 1.5, float("nan"), float("inf"), float("-inf")],
        ["0.1F", "0.1D", "0.0D", "-0.0F", "FLOAT('NaN')", "DOUBLE('Infinity')", "1.5", "1"],
    ),
    "real": (
        "double",
        [0.1, -0.0, 0.0, 2.0**53, float("nan"), float("inf"), float("-inf")],
        ["0.1D", "0.1F", "0.0D", "-0.0D", "DOUBLE('NaN')", "DOUBLE('-Infinity')", "0.1BD", "9007199254740993L"],
    ),
    "price": (
        "decimal(9,2)",
        [Decimal("1.50"), Decimal("-0.01"), Decimal("0.00"), Decimal("9999999.99")],
        ["1.5BD", "1.505BD", "1.50D", "1", "-0.01BD", "1e10BD", "99999999999.123BD"],
    ),
    "text": (
        "string",
        ["", "a", "b", "ab", "A", "50%", "5_0", "x\\y", "żółw", "\U00010000", "\uffff", "a" * 50],
        ["'a'", "''", "'50%'", "'żółw'", "'\U00010000'", "'x\\\\\\\\y'", "'7'"],
    ),
    "bytes": ("binary", [b"", b"\x00", b"\x7f", b"\x80", b"ab"], ["X''", "X'80'", "X'7f'", "CAST('ab' AS binary)"]),
    "day": (
        "date",
        [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)],
        [
            "DATE'1969-12-31'",
            "DATE'2024-02-29'",
            "TIMESTAMP_NTZ'2024-02-29 00:00:00'",
            "TIMESTAMP'2024-02-29 05:00:00'",
        ],
    ),
    "at": (
        "timestamp",
        [
            datetime.datetime(1900, 1, 1, tzinfo=UTC),
            datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            datetime.datetime(2024, 3, 10, 7, 30, tzinfo=UTC),
        ],
        ["TIMESTAMP'2024-03-10 03:30:00'", "TIMESTAMP'1969-12-31 18:59:59.999999'", "DATE'2024-03-10'"],
    ),
    "wall": (
        "timestamp_ntz",
        [datetime.datetime(1, 1, 1), datetime.datetime(1969, 12, 31, 23, 59), datetime.datetime(2024, 3, 10, 2, 30)],
        ["TIMESTAMP_NTZ'2024-03-10 02:30:00'", "DATE'2024-03-10'", "TIMESTAMP_NTZ'1969-12-31 23:59:00'"],
    ),
    "clock": (
        "time(6)",
        [datetime.time(0), datetime.time(12, 34, 56, 1), datetime.time(23, 59, 59, 999999)],
        ["TIME'12:34:56.000001'", "TIME'00:00:00'", "TIME'23:59:59'"],
    ),
    "word": ("string collate UTF8_LCASE", ["a", "A", "b"], ["'a'", "'B'"]),
    "s.x": ("int", [-1, 0, 1], ["0", "1L", "0.5D"]),
    "s.`a.b`": ("string", ["x", "y"], ["'x'", "'z'"]),
}
PATTERNS = ["'a%'", "'%b'", "'%a%'", "'50\\\\%'", "'5\\\\_%'", "'%_'", "'%'", "''", "'a_'", "'%\\\\\\\\%'"]


def make(spark: SparkSession, chosen: random.Random) -> Any:
    def pick(name: str) -> Any:
        return None if chosen.random() < 0.2 else chosen.choice(VALUES[name][1])

    plain = [name for name in VALUES if not name.startswith("s.")]
    rows = [
        (row, *map(pick, plain), None if chosen.random() < 0.2 else (pick("s.x"), pick("s.`a.b`")))
        for row in range(NUM_ROWS)
    ]
    columns = ", ".join(f"{name} {VALUES[name][0]}" for name in plain)
    return spark.createDataFrame(rows, f"id long, {columns}, s struct<x: int, `a.b`: string>").repartition(2)


def comparison(chosen: random.Random) -> str:
    name = chosen.choice(list(VALUES))
    spark_type, _, constants = VALUES[name]
    same_type = [other for other in VALUES if VALUES[other][0] == spark_type]
    other = chosen.choice([*constants, *constants, chosen.choice(same_type)])
    return f"{name} {chosen.choice(['=', '<>', '<', '<=', '>', '>=', '<=>'])} {other}"


def membership(chosen: random.Random) -> str:
    name = chosen.choice([name for name in VALUES if name not in ("day", "at", "wall")])
    constants = chosen.choices(VALUES[name][2], k=chosen.choice([1, 2, 5]))
    if chosen.random() < 0.3:
        constants.append("NULL")
    if name == "number" and chosen.random() < 0.5:
        constants += [str(number) for number in range(30)]
    return f"{name} {chosen.choice(['', 'NOT '])}IN ({', '.join(constants)})"


def cast(chosen: random.Random) -> str:
    casts = [
        "CAST(tiny AS int) = 1",
        "CAST(tiny AS double) < 0.5D",
        "CAST(number AS decimal(12,2)) > 7.5BD",
        "CAST(number AS double) >= big",
        "CAST(number AS long) < big",
        "CAST(small AS double) = 0.1D",
        "CAST(small AS double) = real",
        "CAST(price AS decimal(20,5)) = 1.5BD",
        "price = number",
        "CAST(price AS double) = 1.5D",
        "CAST(day AS timestamp) < at",
        "CAST(day AS timestamp_ntz) <= wall",
        "CAST(text AS int) IS NULL",
        "TRY_CAST(text AS int) = 7",
        "CAST(number AS string) = '7'",
        "real = number",
        "CAST(big AS double) = real",
    ]
    return chosen.choice([term for term in casts if not term.startswith("CAST(text")])


SHAPES: list[Callable[[random.Random], str]] = [
    comparison,
    comparison,
    membership,
    cast,
    lambda chosen: f"{chosen.choice(list(VALUES))} IS {chosen.choice(['', 'NOT '])}NULL",
    lambda chosen: f"text {chosen.choice(['', 'NOT '])}LIKE {chosen.choice(PATTERNS)}",
    lambda chosen: f"{chosen.choice(['startswith', 'endswith', 'contains'])}(text, {chosen.choice(VALUES['text'][2])})",
    lambda chosen: f"s.`a.b` LIKE {chosen.choice(PATTERNS)}",
    lambda chosen: chosen.choice(["flag", "NOT flag", "s IS NULL", "length(text) = 1", "upper(text) = 'A'", "true"]),
]


def predicate(chosen: random.Random, depth: int = 3) -> str:
    if depth == 0 or chosen.random() < 0.3:
        return chosen.choice(SHAPES)(chosen)
    if chosen.random() < 0.2:
        return f"NOT ({predicate(chosen, depth - 1)})"
    parts = [f"({predicate(chosen, depth - 1)})" for _ in range(chosen.choice([2, 2, 3]))]
    return chosen.choice([" AND ", " OR "]).join(parts)


def matches(spark: SparkSession, source: str, predicates: list[str]) -> list[tuple[int, int]]:
    """Count the rows for which each predicate holds, and add up their ids."""
    terms = [
        f"SELECT {place} AS place, count(*) AS n, coalesce(sum(id), 0) AS total FROM {source} WHERE {text}"
        for place, text in enumerate(predicates)
    ]
    rows = spark.sql(" UNION ALL ".join(terms)).collect()
    return [(row.n, row.total) for row in sorted(rows)]


@pytest.mark.parametrize("seed", [1, 2])
def test_pushed_unpushed_and_parquet_agree(spark: SparkSession, path: str, tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    df = make(spark, chosen).cache()
    append(df, path)
    df.write.parquet(str(tmp_path / "parquet"))
    spark.read.parquet(str(tmp_path / "parquet")).createOrReplaceTempView("of_parquet")
    predicates = [predicate(chosen) for _ in range(NUM_PREDICATES)]
    predicates += [shape(chosen) for shape in SHAPES for _ in range(3)]
    expected = matches(spark, "of_parquet", predicates)
    load(spark, path).createOrReplaceTempView("unpushed")
    assert dict(zip(predicates, matches(spark, "unpushed", predicates), strict=True)) == dict(
        zip(predicates, expected, strict=True)
    )
    with planning(spark):
        load(spark, path).createOrReplaceTempView("pushed")
        found = matches(spark, "pushed", predicates)
        assert dict(zip(predicates, found, strict=True)) == dict(zip(predicates, expected, strict=True))
        some = chosen.sample(predicates, 5)
        for text in some:
            rows = sorted(row.id for row in load(spark, path).where(text).select("id", "text").collect())
            assert (len(rows), sum(rows)) == expected[predicates.index(text)], text
    df.unpersist()
