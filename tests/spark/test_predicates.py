"""Random predicates over random tables mean the same to Lance with and without the planner, and to Parquet."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tests.spark.conftest import append, load, planning

pytestmark = pytest.mark.system

NUM_DISTINCT = 500
NUM_ROWS = 40 * NUM_DISTINCT
NUM_FRAGMENTS = 2
"""Of more than 8,192 rows, so that statistics are asked which of them can match."""
NUM_PREDICATES = 30
UTC = datetime.UTC


@dataclass(frozen=True)
class Kind:
    """A type, values of it, SQL to compare it with, and types to cast it to, without and with failures."""

    spark_type: str
    values: list[Any]
    constants: list[str]
    safe_casts: tuple[str, ...] = ()
    risky_casts: tuple[str, ...] = ()

    @property
    def casts(self) -> tuple[str, ...]:
        return self.safe_casts + self.risky_casts


KINDS = [
    Kind("boolean", [True, False], ["true", "false"]),
    Kind(
        "byte",
        [-128, -1, 0, 1, 127],
        ["0", "1Y", "-1", "127", "128", "300L", "1.5"],
        ("int", "long", "float", "double", "decimal(12,2)", "decimal(3,0)", "string"),
    ),
    Kind(
        "int",
        [-(2**31), -7, 0, 7, 8, 2**31 - 1],
        ["7", "8L", "-7.0D", "7.5D", "2147483648L", "0.0BD", "'7'"],
        ("long", "float", "double", "decimal(12,2)", "string"),
    ),
    Kind(
        "long",
        [-(2**63), -1, 0, 2**53 + 1, 2**63 - 1],
        ["0", "-1", "9007199254740993L", "9007199254740992D"],
        ("float", "double", "decimal(20,0)", "decimal(21,1)", "string"),
        ("int", "decimal(20,5)"),
    ),
    Kind(
        "float",
        [0.1, -0.0, 0.0, 1.5, float("nan"), float("inf"), float("-inf")],
        ["0.1F", "0.1D", "0.0D", "-0.0F", "FLOAT('NaN')", "DOUBLE('Infinity')", "1.5", "1"],
        ("double", "string"),
    ),
    Kind(
        "double",
        [0.1, -0.0, 0.0, 2.0**53, float("nan"), float("inf"), float("-inf")],
        ["0.1D", "0.1F", "0.0D", "-0.0D", "DOUBLE('NaN')", "DOUBLE('-Infinity')", "0.1BD", "9007199254740993L"],
        ("string",),
        ("float", "long", "decimal(20,2)"),
    ),
    Kind(
        "decimal(9,2)",
        [Decimal("1.50"), Decimal("-0.01"), Decimal("0.00"), Decimal("9999999.99")],
        ["1.5BD", "1.505BD", "1.50D", "1", "-0.01BD", "1e10BD", "99999999999.123BD"],
        ("decimal(20,5)", "decimal(38,2)", "double", "string"),
    ),
    Kind(
        "decimal(38,10)",
        [Decimal("-9999999999999999999999999999.9999999999"), Decimal("0.0000000001"), Decimal(7), Decimal(0)],
        ["7", "7L", "0.0000000001BD", "7.0D", "9999999999999999999999999999.9BD"],
        ("double", "string"),
    ),
    Kind(
        "string",
        ["", "a", "b", "ab", "A", "50%", "5_0", "x\\y", "żółw", "\U00010000", "\uffff", "a" * 50, "a" * 3000, "\0"],
        ["'a'", "''", "'50%'", "'żółw'", "'\U00010000'", "'x\\\\\\\\y'", "'7'", f"'{'a' * 2999}b'"],
    ),
    Kind("binary", [b"", b"\x00", b"\x7f", b"\x80", b"ab"], ["X''", "X'80'", "X'7f'", "CAST('ab' AS binary)"]),
    Kind(
        "date",
        [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(2024, 2, 29), datetime.date(9999, 12, 31)],
        [
            "DATE'1969-12-31'",
            "DATE'2024-02-29'",
            "TIMESTAMP_NTZ'2024-02-29 00:00:00'",
            "TIMESTAMP'2024-02-29 05:00:00'",
        ],
        ("timestamp", "timestamp_ntz", "string"),
    ),
    Kind(
        "timestamp",
        [
            datetime.datetime(1900, 1, 1, tzinfo=UTC),
            datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            datetime.datetime(2024, 3, 10, 7, 30, tzinfo=UTC),
        ],
        ["TIMESTAMP'2024-03-10 03:30:00'", "TIMESTAMP'1969-12-31 18:59:59.999999'", "DATE'2024-03-10'"],
        ("timestamp_ntz", "date", "string"),
    ),
    Kind(
        "timestamp_ntz",
        [datetime.datetime(1, 1, 1), datetime.datetime(1969, 12, 31, 23, 59), datetime.datetime(2024, 3, 10, 2, 30)],
        ["TIMESTAMP_NTZ'2024-03-10 02:30:00'", "DATE'2024-03-10'", "TIMESTAMP_NTZ'1969-12-31 23:59:00'"],
        ("timestamp", "date", "string"),
    ),
    Kind(
        "time(6)",
        [datetime.time(0), datetime.time(12, 34, 56, 1), datetime.time(23, 59, 59, 999999)],
        ["TIME'12:34:56.000001'", "TIME'00:00:00'", "TIME'23:59:59'"],
    ),
    Kind("string collate UTF8_LCASE", ["a", "A", "b"], ["'a'", "'B'"]),
]
(TEXT,) = [kind for kind in KINDS if kind.spark_type == "string"]
NAMES = ["a", "x y", "a.b", "select", "ż", "C", "d_1", "`e"]
PATTERNS = ["'a%'", "'%b'", "'%a%'", "'50\\\\%'", "'5\\\\_%'", "'%_'", "'%'", "''", "'a_'", "'%\\\\\\\\%'"]

Fields = dict[str, "Kind | Fields"]
Choice = random.Random


def fields(chosen: Choice, count: int, depth: int) -> Fields:
    """Make up columns, or the fields of a struct."""
    made: Fields = {}
    for place in range(count):
        nested = depth > 0 and chosen.random() < 0.25
        name = f"{chosen.choice(NAMES)}{place}"
        made[name] = fields(chosen, chosen.randint(1, 3), depth - 1) if nested else chosen.choice(KINDS)
    return made


def leaves(made: Fields, path: str = "") -> dict[str, Kind]:
    """Return all columns and fields that have values, by their names in SQL."""
    found: dict[str, Kind] = {}
    for name, kind in made.items():
        here = f"{path}{quoted(name)}"
        found.update({here: kind} if isinstance(kind, Kind) else leaves(kind, f"{here}."))
    return found


def structs(made: Fields, path: str = "") -> list[str]:
    """Return all structs, by their names in SQL."""
    found = []
    for name, kind in made.items():
        if not isinstance(kind, Kind):
            found += [f"{path}{quoted(name)}", *structs(kind, f"{path}{quoted(name)}.")]
    return found


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def declared(made: Fields) -> str:
    """Return the fields of a struct in SQL."""
    types = {n: k.spark_type if isinstance(k, Kind) else f"struct<{declared(k)}>" for n, k in made.items()}
    return ", ".join(f"{quoted(name)}: {spark_type}" for name, spark_type in types.items())


def row(chosen: Choice, made: Fields, null_structs: bool) -> tuple[Any, ...]:
    return tuple(value(chosen, kind, null_structs) for kind in made.values())


def value(chosen: Choice, kind: Kind | Fields, null_structs: bool) -> Any:
    if chosen.random() < 0.2 and (null_structs or isinstance(kind, Kind)):
        return None
    return chosen.choice(kind.values) if isinstance(kind, Kind) else row(chosen, kind, null_structs)


def make(spark: SparkSession, chosen: Choice, made: Fields, *, null_structs: bool) -> DataFrame:
    """Make rows with similar ones in each fragment, so that bounds distinguish fragments."""
    order = chosen.choice(list(leaves(made)))
    rows = [(number, *row(chosen, made, null_structs)) for number in range(NUM_DISTINCT)]
    df = spark.createDataFrame(rows, f"struct<id: long, {declared(made)}>")
    df = df.crossJoin(spark.range(NUM_ROWS // NUM_DISTINCT).withColumnRenamed("id", "copy"))
    df = df.withColumn("id", f.expr(f"id + {NUM_DISTINCT} * copy")).drop("copy")
    return df.repartitionByRange(NUM_FRAGMENTS, order).sortWithinPartitions(order)


class Predicates:
    """Makes up predicates over some columns."""

    def __init__(self, chosen: Choice, made: Fields) -> None:
        self.chosen = chosen
        self.made = made
        self.leaves = leaves(made)
        self.texts = [name for name, kind in self.leaves.items() if kind is TEXT]
        self.shapes: list[Callable[[], str]] = [
            self.comparison,
            self.comparison,
            self.membership,
            self.cast,
            self.null,
            self.null_struct,
            self.row_column,
            self.truth,
        ]
        if self.texts:
            self.shapes += [self.like, self.part, self.function]

    def make(self, depth: int = 3) -> str:
        if depth == 0 or self.chosen.random() < 0.3:
            return self.chosen.choice(self.shapes)()
        if self.chosen.random() < 0.2:
            return f"NOT ({self.make(depth - 1)})"
        parts = [f"({self.make(depth - 1)})" for _ in range(self.chosen.choice([2, 2, 3]))]
        return self.chosen.choice([" AND ", " OR "]).join(parts)

    def operator(self) -> str:
        return self.chosen.choice(["=", "<>", "<", "<=", ">", ">=", "<=>"])

    def comparison(self) -> str:
        name = self.chosen.choice(list(self.leaves))
        kind = self.leaves[name]
        same = [other for other, found in self.leaves.items() if found.spark_type == kind.spark_type]
        other = self.chosen.choice([*kind.constants, *kind.constants, self.chosen.choice(same)])
        sides = [name, other]
        self.chosen.shuffle(sides)
        return f"{sides[0]} {self.operator()} {sides[1]}"

    def membership(self) -> str:
        name = self.chosen.choice(list(self.leaves))
        kind = self.leaves[name]
        constants = (
            kind.constants if kind.spark_type not in ("date", "timestamp", "timestamp_ntz") else kind.constants[:2]
        )
        if kind.spark_type == "timestamp_ntz":
            constants = constants[:1]
        some = self.chosen.choices(constants, k=self.chosen.choice([1, 2, 5]))
        if self.chosen.random() < 0.3:
            some.append("NULL")
        if kind.spark_type == "int" and self.chosen.random() < 0.5:
            some += [str(number) for number in range(30)]
        return f"{name} {self.chosen.choice(['', 'NOT '])}IN ({', '.join(some)})"

    def cast(self) -> str:
        castable = [name for name, kind in self.leaves.items() if kind.casts]
        if not castable:
            return self.comparison()
        name = self.chosen.choice(castable)
        kind = self.leaves[name]
        target = self.chosen.choice(kind.casts)
        call = self.chosen.choice(["CAST", "TRY_CAST"]) if target in kind.safe_casts else "TRY_CAST"
        constant = f"TRY_CAST({self.chosen.choice(kind.constants)} AS {target})"
        return f"{call}({name} AS {target}) {self.operator()} {constant}"

    def null(self) -> str:
        return f"{self.chosen.choice(list(self.leaves))} IS {self.chosen.choice(['', 'NOT '])}NULL"

    def null_struct(self) -> str:
        names = structs(self.made)
        return f"{self.chosen.choice(names)} IS {self.chosen.choice(['', 'NOT '])}NULL" if names else self.null()

    def row_column(self) -> str:
        return f"id {self.operator()} {self.chosen.randrange(NUM_ROWS)}"

    def truth(self) -> str:
        flags = [name for name, kind in self.leaves.items() if kind.spark_type == "boolean"]
        return self.chosen.choice([*flags, *(f"NOT {flag}" for flag in flags), "true", "false", "id IS NULL"])

    def like(self) -> str:
        return f"{self.chosen.choice(self.texts)} {self.chosen.choice(['', 'NOT '])}LIKE {self.chosen.choice(PATTERNS)}"

    def part(self) -> str:
        called = self.chosen.choice(["startswith", "endswith", "contains"])
        return f"{called}({self.chosen.choice(self.texts)}, {self.chosen.choice(TEXT.constants)})"

    def function(self) -> str:
        called = self.chosen.choice(["length({}) = 1", "upper({}) = 'A'", "concat({}, 'b') = 'ab'"])
        return called.format(self.chosen.choice(self.texts))


@pytest.mark.parametrize(("seed", "version"), [(1, "2.2"), (2, "2.0")])
def test_pushed_unpushed_and_parquet_agree(
    spark: SparkSession, path: str, tmp_path: Path, seed: int, version: str
) -> None:
    chosen = random.Random(seed)
    made = fields(chosen, chosen.randint(4, 8), 2)
    df = make(spark, chosen, made, null_structs=version != "2.0")
    df.write.parquet(str(tmp_path / "parquet"))
    parquet = spark.read.parquet(str(tmp_path / "parquet"))
    append(parquet, path, allow_unportable_names=True, file_format_version=version)
    predicates = Predicates(chosen, made)
    texts = [predicates.make() for _ in range(NUM_PREDICATES)]
    texts += [shape() for shape in predicates.shapes for _ in range(2)]
    expected = dict(zip(texts, together(parquet, texts), strict=True))

    unpushed = load(spark, path)
    assert dict(zip(texts, together(unpushed, texts), strict=True)) == expected
    some = chosen.sample(texts, 5)
    assert dict(zip(some, one_by_one(unpushed, some), strict=True)) == {text: expected[text] for text in some}
    with planning(spark):
        pushed = load(spark, path)
        assert dict(zip(texts, one_by_one(pushed, texts), strict=True)) == expected
        for text in some:
            name = chosen.choice(list(leaves(made)))
            rows = pushed.where(text).selectExpr("id", name).collect()
            assert (len(rows), sum(row.id for row in rows)) == expected[text], text


def together(df: DataFrame, predicates: list[str]) -> list[tuple[int, int]]:
    """Return how many rows each predicate holds for, and the sum of their ids, from one scan of all rows."""
    terms = [term for text in predicates for term in (f"count_if({text})", f"sum(IF({text}, id, 0))")]
    (found,) = df.selectExpr(*terms).collect()
    return list(zip(found[::2], found[1::2], strict=True))


def one_by_one(df: DataFrame, predicates: list[str]) -> list[tuple[int, int]]:
    """Return the same from a query each, in SQL."""
    df.createOrReplaceTempView("compared")
    terms = [
        f"SELECT {place} AS place, count(*) AS n, coalesce(sum(id), 0) AS total FROM compared WHERE {text}"
        for place, text in enumerate(predicates)
    ]
    rows = df.sparkSession.sql(" UNION ALL ".join(terms)).collect()
    return [(row.n, row.total) for row in sorted(rows)]
