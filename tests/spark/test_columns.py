"""With the planner bridge, Spark's own operators work on the batches that Python sends, and keep nothing of them."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import lance_format
from tests.spark.conftest import PLANNER

_NUM_ROWS = 6_000
_BATCH_ROWS = 512


_LEAF = pa.struct(
    [
        ("flags", pa.list_(pa.bool_())),
        ("amount", pa.decimal128(10, 2)),
        ("wide", pa.decimal128(30, 1)),
        ("days", pa.map_(pa.string(), pa.date32())),
        ("data", pa.binary()),
    ]
)
_TREE = pa.struct([("leaves", pa.list_(_LEAF)), ("weights", pa.list_(pa.list_(pa.float32()))), ("n", pa.int16())])


def _leaf(number: int) -> dict[str, Any] | None:
    if number % 13 == 0:
        return None
    return {
        "flags": None if number % 3 == 0 else [None, number % 2 == 0] * (number % 4),
        "amount": None if number % 7 == 0 else Decimal(number) / 100,
        "wide": Decimal(number) * 10**20 if number % 2 else None,
        "days": [("é", date(2000, 1, 1) + timedelta(number)), (str(number), None)][: number % 3],
        "data": None if number % 5 == 0 else b"x" * (number % 6),
    }


def _tree(number: int) -> dict[str, Any] | None:
    if number % 6 == 0:
        return None
    return {
        "leaves": None if number % 10 == 1 else [_leaf(number + i) for i in range(number % 5)],
        "weights": [[number / 8, None], None, []][: number % 4],
        "n": None if number % 8 == 3 else number % 1000,
    }


def _bag(number: int) -> list[tuple[int, list[bool | None] | None]] | None:
    return [(i, [None, True, i == 1][: number % 4] if i else None) for i in range(number % 4)] if number % 9 else None


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Values that do not lie in the rows that Spark makes but somewhere else: strings, wide decimals, nested ones.

    The columns with gaps are those that the bridge reads from memory without Arrow's accessors.
    """
    path = str(tmp_path_factory.mktemp("columns") / "t")
    rng = np.random.default_rng(11)
    order = rng.permutation(_NUM_ROWS)
    texts = [f"{number:05d}" + "x" * (number % 60) for number in order.tolist()]
    decimals = pa.array(order * 1000 + 7).cast(pa.decimal128(19, 0)).cast(pa.decimal128(38, 5))
    gaps = order % 5 == 0
    rows = pa.table(
        {
            "id": range(_NUM_ROWS),
            "part": pa.array(order % 7, pa.int32()),
            "text": texts,
            "data": pa.array([text.encode() for text in texts]),
            "wide": decimals,
            "list": [[text, None, text[:5]] for text in texts],
            "map": pa.array([[(text, number)] for number, text in enumerate(texts)], pa.map_(pa.string(), pa.int64())),
            "int": pa.array(order - 9, pa.int32(), mask=gaps),
            "long": pa.array(order * 10**12, mask=np.roll(gaps, 1)),
            "float": pa.array(order.astype(np.float32) / 7, mask=np.roll(gaps, 2)),
            "double": pa.array(order / 7, mask=np.roll(gaps, 3)),
            "day": pa.array(order.astype(np.int32) - 5000, mask=np.roll(gaps, 4)).cast(pa.date32()),
            "time": pa.array(order * 10**9, mask=gaps).cast(pa.timestamp("us", "UTC")),
            "local": pa.array(order * 10**9, mask=gaps).cast(pa.timestamp("us")),
            "note": pa.array(np.where(order % 3 == 0, "", "é€𝄞"), mask=gaps),
            "nothing": pa.nulls(_NUM_ROWS, pa.string()),
            "never": pa.nulls(_NUM_ROWS, pa.float64()),
            "pair": [{"a": text, "b": number} if number % 11 else None for number, text in enumerate(texts)],
            "truth": pa.array(order % 2 == 0, mask=gaps),
            "tiny": pa.array((order % 250 - 125).astype(np.int8), mask=np.roll(gaps, 1)),
            "small": pa.array((order - 9000).astype(np.int16), mask=np.roll(gaps, 2)),
            "span": pa.array(order * 10**7, mask=np.roll(gaps, 3)).cast(pa.duration("us")),
            "bytes": pa.array([None if gap else text.encode()[3:] for gap, text in zip(gaps, texts, strict=True)]),
            "vector": pa.FixedSizeListArray.from_arrays(order.repeat(4).astype(np.float32), 4),
            "tree": pa.array([_tree(number) for number in order.tolist()], _TREE),
            "bags": pa.array([_bag(number) for number in order.tolist()], pa.map_(pa.int32(), pa.list_(pa.bool_()))),
        }
    )
    lance_format.write_dataset(rows, path, max_rows_per_file=_NUM_ROWS // 2)
    return path


def load(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format("lance").option("batch_size", _BATCH_ROWS).load(path)


_GAPS = (
    "int",
    "long",
    "float",
    "double",
    "day",
    "time",
    "local",
    "note",
    "nothing",
    "never",
    "truth",
    "tiny",
    "small",
    "bytes",
)
_QUERIES = {
    "gaps": lambda df: df.select("id", *_GAPS),
    "counted gaps": lambda df: df.groupBy("part").agg(
        *(count(name) for name in _GAPS for count in (f.count, f.min, f.max))
    ),
    "extremes": lambda df: df.agg(
        *(pick(name) for name in ("text", "data", "wide", "list") for pick in (f.min, f.max))
    ),
    "extremes by group": lambda df: df.groupBy("part").agg(f.min("text"), f.max("data"), f.max("wide"), f.min("pair")),
    "values at extremes": lambda df: df.agg(f.max_by("map", "text"), f.min_by("list", "wide"), f.max_by("pair", "id")),
    "ends": lambda df: df.coalesce(1).agg(f.first("text"), f.last("text"), f.first("list"), f.last("map")),
    "groups of strings": lambda df: df.groupBy(f.substring("text", 1, 3)).agg(f.count("*"), f.sum("wide")),
    "distinct": lambda df: df.select("text", "data").distinct(),
    "collected": lambda df: df.groupBy("part").agg(f.sort_array(f.collect_list("text"))),
    "sorted": lambda df: df.orderBy("text").limit(1000),
    "joined": lambda df: df.join(
        f.broadcast(df.selectExpr("text AS other", "list[2] AS short")), f.expr("text = other")
    ),
    "cached": lambda df: df.where("part < 5").cache(),
    "window": lambda df: df.selectExpr(
        "id", "max(text) OVER (PARTITION BY part ORDER BY id)", "lag(map) OVER (ORDER BY id)"
    ),
    "exploded": lambda df: df.selectExpr("id", "explode(list)"),
    "nested": lambda df: df.select("id", "span", "vector", "tree", "bags"),
    "inside of nested": lambda df: df.selectExpr(
        "id",
        "aggregate(vector, cast(0 AS float), (sum, item) -> sum + item)",
        "transform(tree.leaves, leaf -> struct(get(leaf.flags, 1), leaf.amount, leaf.wide, leaf.days['é'], leaf.data))",
        "get(tree.leaves, 2).flags",
        "flatten(tree.weights)",
        "tree.n",
        "map_filter(bags, (key, flags) -> get(flags, 1))",
        "transform_values(bags, (key, flags) -> size(flags))",
        "size(bags)",
        "bags[1]",
    ),
    "exploded trees": lambda df: df.selectExpr("id", "inline(tree.leaves)"),
    "shuffled trees": lambda df: df.selectExpr("part", "tree", "bags", "bytes").repartition(3, "part"),
    "no column": lambda df: df.where("text > '01'").selectExpr("1"),
    "function": lambda df: df.select(f.udf(lambda text: text[::-1], "string")("text")),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", _QUERIES)
def test_values_outlive_their_batch(planner: SparkSession, path: str, name: str) -> None:
    found = _QUERIES[name](load(planner, path))
    rows = sorted(found.collect(), key=repr)
    planner.conf.set(PLANNER, "false")
    planner.catalog.clearCache()
    plain = _QUERIES[name](load(planner, path))
    assert rows == sorted(plain.collect(), key=repr)
    assert len(rows) >= 1


def test_spark_gets_batches(planner: SparkSession, path: str) -> None:
    df = load(planner, path).select("id", "text")
    plan = str(df._jdf.queryExecution().executedPlan().toString())
    assert "ColumnarToRow" in plan
