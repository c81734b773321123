"""Rows on their way to Python, in batches that end by the bytes of their rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from py4j.java_gateway import java_import
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from tests.spark.conftest import append, load

_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


@contextlib.contextmanager
def _limited(spark: SparkSession, size: str, rows: int) -> Iterator[None]:
    spark.conf.set(_BYTES, size)
    spark.conf.set(_ROWS, str(rows))
    try:
        yield
    finally:
        spark.conf.unset(_BYTES)
        spark.conf.unset(_ROWS)


@pytest.mark.parametrize("size", ["1b", "20k", "64m", str(2**31 - 1)])
def test_no_row_is_lost_where_batches_end(planner: SparkSession, path: str, size: str) -> None:
    """Batches end by bytes, by rows, or at the last row; a coalesced task sets up Python functions between its rows."""
    next_one = f.udf(lambda number: number + 1, "long", useArrow=True)
    text = f.expr("repeat('x', cast(pow(id % 20, 2) as int)) as text")
    frame = planner.range(0, 3000, 1, 6).select("id", text, next_one("id").alias("next")).coalesce(2)
    with _limited(planner, size, 97):
        append(frame, path)
    found = load(planner, path).selectExpr("count(*)", "sum(id)", "sum(next)", "sum(length(text))").first()
    sizes = [(number % 20) ** 2 for number in range(3000)]
    assert found == (3000, sum(range(3000)), sum(range(1, 3001)), sum(sizes))


def test_a_batch_ends_once_its_rows_have_the_bytes(planner: SparkSession) -> None:
    """Spark stops where there seems to be no further row, and asks again for the next batch."""
    context: Any = planner.sparkContext
    jvm, gateway = context._jvm, context._gateway
    java_import(jvm, "org.apache.spark.sql.internal.SQLConf")
    loader = jvm.Thread.currentThread().getContextClassLoader()
    (made,) = loader.loadClass("lance.MeasuredRows").getDeclaredConstructors()
    made.setAccessible(True)
    frame: Any = planner.range(0, 10, 1, 1).selectExpr("id", "repeat('x', if(id = 7, 5000, 10)) as text")
    rows = jvm.scala.jdk.javaapi.CollectionConverters.asJava(
        frame._jdf.queryExecution().executedPlan().executeToIterator()
    )
    arguments = gateway.new_array(jvm.Object, 4)
    arguments[0], arguments[1], arguments[2], arguments[3] = rows, rows.next(), jvm.SQLConf(), 150
    measured = made.newInstance(arguments)
    batches: list[list[int]] = []
    empty = False
    while not empty:
        batch = []
        while measured.hasNext():
            batch.append(measured.next().getLong(0))
        batches.append(batch)
        empty = not batch
    assert batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9], []], "a row has 40 bytes, one has 5,024"
