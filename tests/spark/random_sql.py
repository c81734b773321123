"""Random rows of columns of many types, and values and predicates over them in SQL."""

from __future__ import annotations

import contextlib
import datetime
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

ANSI = "spark.sql.ansi.enabled"
NUM_ROWS = 3000
DAYS = [datetime.date.fromisoformat(day) for day in ("0001-01-01", "1969-12-31", "2024-02-29", "9999-12-31")]
TIMES = [datetime.datetime(1960, 1, 1, 1, 2, 3, 5), datetime.datetime(2024, 12, 31, 23, 59, 59, 999999)]
FAILURES = (
    "has no value for some row",
    "ARITHMETIC_OVERFLOW",
    "CAST_OVERFLOW",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "BY_ZERO",
)
"""Parts of the messages of values that cannot be computed, by tasks and by Spark."""


@dataclass(frozen=True)
class Kind:
    """A type of columns, and their values."""

    spark_type: str
    values: list[Any]

    @property
    def is_integer(self) -> bool:
        return self.spark_type in ("byte", "short", "int", "long")

    @property
    def is_number(self) -> bool:
        return self.is_integer or self.spark_type in ("float", "double") or self.spark_type.startswith("decimal")


COLUMNS = {
    "flag": Kind("boolean", [True, False]),
    "tiny": Kind("byte", [-128, -1, 0, 1, 127]),
    "few": Kind("int", list(range(-3, 10))),
    "many": Kind("int", list(range(-1000, 1000))),
    "edge": Kind("int", [-(2**31), -7, 0, 7, 2**31 - 1]),
    "count": Kind("long", [0, 1, 5, 10**6, -(10**6)]),
    "huge": Kind("long", [-(2**63), -1, 0, 2**53 + 1, 2**63 - 1]),
    "single": Kind("float", [0.1, -0.0, 0.0, 1.5, -2.5, float("nan")]),
    "real": Kind("double", [0.1, -0.0, 0.0, 1.5, 1e6, -3.25]),
    "odd": Kind("double", [0.5, -0.0, 0.0, float("nan"), float("inf"), float("-inf")]),
    "price": Kind("decimal(9,2)", [Decimal("1.50"), Decimal("-0.01"), Decimal("0.00"), Decimal("9999999.99")]),
    "rate": Kind("decimal(15,4)", [Decimal("0.0500"), Decimal("1.0000"), Decimal("0.3333")]),
    "wide": Kind("decimal(38,10)", [Decimal("1.5"), Decimal("-12345678901234567890.0000000001"), Decimal("9" * 27)]),
    "deep": Kind("decimal(38,25)", [Decimal("1." + "9" * 25), Decimal("-0." + "9" * 25), Decimal("127.5")]),
    "digits": Kind("decimal(10,0)", [Decimal(9999999999), Decimal(-5), Decimal(0)]),
    "small": Kind("decimal(4,1)", [Decimal("1.5"), Decimal("-999.9"), Decimal("0.0")]),
    "text": Kind("string", ["", "a", "ab", "é", "zebra", "a longer text than others", "😀", "A"]),
    "data": Kind("binary", [b"", b"\x00", b"\xff", b"abc"]),
    "day": Kind("date", DAYS),
    "moment": Kind("timestamp", [time.replace(tzinfo=datetime.UTC) for time in TIMES]),
    "clock": Kind("timestamp_ntz", TIMES),
    "s.few": Kind("int", [1, 2, 3]),
    "s.text": Kind("string", ["x", "y"]),
}  # fmt: skip


CASTS = ["long", "double", "decimal(20,3)", "int", "float", "decimal(6,1)", "short"]
PARTS = ["year", "month", "day", "quarter", "weekofyear", "dayofyear", "dayofweek", "weekday"]
KEYS = [
    "few % 3",
    "year(day)",
    "trunc(day, 'MM')",
    "trunc(day, 'week')",
    "cast(clock AS date)",
    "cast(moment AS date)",
    "substring(text, 1, 1)",
    "length(text)",
    "flag AND few > 2",
    "price * 2",
    "coalesce(text, 'none')",
    "CASE WHEN few > 3 THEN text ELSE 'other' END",
    "-real",
    "cast(single AS double)",
    "cast(few AS decimal(12,2))",
    "greatest(few, tiny)",
    "many & 3",
]
PREDICATES = [
    "flag",
    "few > 3",
    "many <= 0",
    "text = 'ab'",
    "text LIKE 'a%'",
    "day IS NULL",
    "real > 0 AND few <> 2",
    "NOT flag OR price > 1",
    "few IN (1, 2, 3)",
    "odd = 0",
    "s.few = 2",
    "text > 'a' OR data = X'00'",
]


FAR = "date_add(day, 40000000 * few)"
"""Dates that Python does not have; queries return parts of them."""
DATES = ["day", "far", "trunc(far, 'MM')", "cast(clock AS date)"]
NUMBERS = [name for name, kind in COLUMNS.items() if kind.is_number]
SAFE_NUMBERS = ["few", "many", "count", "real", "price", "rate", "s.few", "tiny"]
STEADY = ["few", "many", "price", "rate", "s.few", "tiny"]
"""Numbers of like sizes."""
GROUPED = list(COLUMNS)


def make_rows(number: random.Random) -> list[tuple[Any, ...]]:
    def value(name: str) -> Any:
        return None if number.random() < 0.1 else number.choice(COLUMNS[name].values)

    top = [name for name in COLUMNS if "." not in name]
    rows = []
    for _ in range(NUM_ROWS):
        struct = None if number.random() < 0.1 else (value("s.few"), value("s.text"))
        rows.append((*map(value, top), struct))
    return rows


def declared() -> str:
    """Return the columns with their types in SQL."""
    fields = [f"`{name}` {kind.spark_type}" for name, kind in COLUMNS.items() if "." not in name]
    return ", ".join([*fields, "s struct<few: int, text: string>"])


def number_of(chance: random.Random, depth: int = 2) -> str:
    """Return a random number in SQL."""
    if depth == 0 or chance.random() < 0.3:
        return chance.choice(SAFE_NUMBERS if chance.random() < 0.8 else NUMBERS)
    one, other = number_of(chance, depth - 1), number_of(chance, depth - 1)
    return chance.choice(
        [
            f"({one} + {other})",
            f"({one} - {other})",
            f"({one} * {other})",
            f"(price * (1 - rate) * ({chance.choice(['1', 'rate', 'few'])} + rate))",
            f"({one} * 2)",
            f"(-{one})",
            f"abs({one})",
            f"({chance.choice(['few', 'many', 'tiny', 'count'])} % {chance.choice(['7', '10', 'few'])})",
            f"(real / {chance.choice(['2', '0.5D', 'real'])})",
            "(many & 15)",
            "(few | tiny)",
            "(many ^ few)",
            f"CASE WHEN {predicate(chance)} THEN {one} ELSE {other} END",
            f"CASE WHEN {predicate(chance)} THEN {one} WHEN flag THEN 1 END",
            f"if({predicate(chance)}, 1, 0)",
            f"coalesce({chance.choice(SAFE_NUMBERS)}, 0)",
            f"greatest({one}, {other})",
            f"least({one}, {other})",
            f"cast({one} AS {chance.choice(CASTS)})",
            f"cast({predicate(chance)} AS int)",
            "length(text)",
            f"{chance.choice(PARTS)}({chance.choice(DATES)})",
            f"{chance.choice(['year', 'hour', 'minute', 'month'])}({chance.choice(['clock', 'moment'])})",
        ]
    )


def predicate(chance: random.Random) -> str:
    return chance.choice(PREDICATES)


def key(chance: random.Random) -> str:
    if chance.random() < 0.6:
        return chance.choice(GROUPED)
    return chance.choice([*KEYS, number_of(chance)])


@contextlib.contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name) if before is None else spark.conf.set(name, before)


def rows_or_failure(df: DataFrame) -> list[Any]:
    """Return the sorted rows of a query; one word if a value cannot be computed."""
    try:
        found = [tuple(map(comparable, row)) for row in df.collect()]
    except PySparkException as error:
        if not any(text in str(error) for text in FAILURES):
            raise
        return ["failure"]
    return sorted(found, key=repr)


def comparable(value: Any) -> Any:
    """Return a value to compare: sums of floats depend on their order in the last digits, and zeros have no sign."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else f"{value + 0.0:.9g}"
    if isinstance(value, bytearray):
        return bytes(value)
    return value
