"""Every atomic type through a table and back, with and without nulls."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

import lance_format
from tests.spark.conftest import append, load

UTC = datetime.UTC
VALUES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "byte": [-128, 127, 0],
    "short": [-(2**15), 2**15 - 1, 0],
    "int": [-(2**31), 2**31 - 1, 0],
    "long": [-(2**63), 2**63 - 1, 0],
    "float": [0.5, -0.0, float("inf"), float("-inf"), float("nan"), 1.401298464324817e-45],
    "double": [0.1, -0.0, float("inf"), float("-inf"), float("nan"), 5e-324],
    "decimal(1,0)": [Decimal(9), Decimal(-9)],
    "decimal(18,6)": [Decimal("999999999999.999999"), Decimal("-0.000001")],
    "decimal(38,0)": [Decimal(10**38 - 1), Decimal(1 - 10**38)],
    "decimal(38,38)": [Decimal("0.1"), Decimal("-1e-38")],
    "string": ["", "a", "żółw 🐢", "x" * 5000, "null"],
    "string collate UTF8_LCASE": ["a", "A"],
    "char(3)": ["abc", "a  "],
    "varchar(3)": ["abc", "a", ""],
    "binary": [b"", b"\x00", bytes(range(256))],
    "date": [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(9999, 12, 31)],
    "timestamp": [
        datetime.datetime(1900, 1, 1, tzinfo=UTC),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime.datetime(2024, 3, 10, 7, 30, tzinfo=UTC),
        datetime.datetime(9999, 12, 30, 23, 59, 59, 999999, tzinfo=UTC),
    ],
    "timestamp_ntz": [
        datetime.datetime(1, 1, 1),
        datetime.datetime(2024, 3, 10, 2, 30),
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
    ],
    "time": [datetime.time(0), datetime.time(23, 59, 59, 999999)],
    "time(0)": [datetime.time(12, 34, 56)],
    "interval day to second": [datetime.timedelta(days=-1, microseconds=1), datetime.timedelta(days=106751991)],
    "interval day to hour": [datetime.timedelta(hours=-25), datetime.timedelta(0)],
    "interval second": [datetime.timedelta(microseconds=1)],
    "void": [None],
}
NUM_ROWS = 7
VARCHAR_5 = {"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"}
"""How Spark itself notes the declared type of a column of strings, in every schema that it reads from SQL."""


def make(spark: SparkSession, nulls: str) -> DataFrame:
    """Seven rows with a column for each type, which holds its values in turn; of "some" nulls every third is one."""
    columns = []
    for values in VALUES.values():
        cycle = (values * NUM_ROWS)[:NUM_ROWS]
        kept = {"no": cycle, "all": [None] * NUM_ROWS, "some": [None if i % 3 == 1 else v for i, v in enumerate(cycle)]}
        columns.append(kept[nulls])
    schema = t.StructType(
        [
            t.StructField(spelling, t.StringType(), metadata={"__CHAR_VARCHAR_TYPE_STRING": spelling})
            if "char" in spelling
            else t.StructField(spelling, t.DataType.fromDDL(spelling))
            for spelling in VALUES
        ]
    )
    return spark.createDataFrame(list(zip(range(NUM_ROWS), *columns, strict=True)), schema_with_number(schema))


def schema_with_number(schema: t.StructType) -> t.StructType:
    return t.StructType([t.StructField("number", t.IntegerType()), *schema.fields])


@pytest.mark.slow
@pytest.mark.parametrize("nulls", ["no", "some", "all"])
def test_every_type_comes_back(spark: SparkSession, path: str, nulls: str) -> None:
    expected = make(spark, nulls)
    append(expected, path)
    found = load(spark, path)
    assert [(field.dataType, field.metadata) for field in found.schema] == [
        (field.dataType, field.metadata) for field in expected.schema
    ]
    assert_df_equality(found.orderBy("number"), expected.orderBy("number"), allow_nan_equality=True)


@pytest.mark.slow
def test_all_types_side_by_side_in_several_partitions(spark: SparkSession, path: str, way: str) -> None:
    expected = spark.range(0, 10_000, 1, 3).select(
        "id",
        (f.col("id") % 2 == 0).alias("flag"),
        f.col("id").cast("string").alias("text"),
        f.when(f.col("id") % 3 == 0, f.col("id").cast("decimal(20,3)")).alias("amount"),
        f.timestamp_micros(f.col("id") * 1_000_003).alias("at"),
        f.when(f.col("id") > 5000, f.encode(f.col("id").cast("string"), "utf-8")).alias("bytes"),
    )
    append(expected, path)
    assert_df_equality(load(spark, path), expected, ignore_nullable=True, ignore_row_order=True)


def test_timestamps_are_instants_whatever_the_zone_of_the_session(spark: SparkSession, path: str) -> None:
    append(spark.sql("SELECT timestamp'2024-07-01 12:00:00 America/New_York' AS at"), path)
    stored = lance_format.dataset(path).to_table()["at"]
    assert stored.type == pa.timestamp("us", "UTC")
    assert stored.to_pylist() == [datetime.datetime(2024, 7, 1, 16, tzinfo=UTC)]
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        assert load(spark, path).select(f.col("at").cast("string")).first() == ("2024-07-02 01:00:00",)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")


@pytest.mark.slow
def test_comments_and_metadata_survive(spark: SparkSession, path: str) -> None:
    schema = t.StructType(
        [
            t.StructField("a", t.LongType(), metadata={"comment": "the first", "rank": 1, "tags": ["x", "y"]}),
            t.StructField("b", t.StringType(), metadata={"comment": "short", **VARCHAR_5}),
        ]
    )
    df = spark.createDataFrame([(1, "one")], schema)
    append(df, path)
    assert lance_format.dataset(path).schema.field("a").metadata[b"comment"] == b"the first"
    found = load(spark, path).schema
    assert found["a"].metadata == {"comment": "the first", "rank": 1, "tags": ["x", "y"]}
    assert found["b"].metadata == {"comment": "short", **VARCHAR_5}
    load(spark, path).createOrReplaceTempView("commented")
    described = {row.col_name: row.comment for row in spark.sql("DESCRIBE commented").collect()}
    assert described == {"a": "the first", "b": "short"}


def test_declared_lengths_are_enforced_on_insert(spark: SparkSession, path: str) -> None:
    spark.sql("CREATE TABLE declared (c varchar(3)) USING parquet")
    spark.sql("INSERT INTO declared VALUES ('abc')")
    append(spark.table("declared"), path)
    spark.sql("DROP TABLE declared")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW short USING lance OPTIONS (path '{path}')")
    spark.sql("INSERT INTO short VALUES ('xyz')")
    with pytest.raises(Exception, match="EXCEED_LIMIT_LENGTH"):
        spark.sql("INSERT INTO short VALUES ('longer')")
    assert sorted(row.c for row in load(spark, path).collect()) == ["abc", "xyz"]


def test_batches_have_the_size_asked_for(spark: SparkSession, path: str) -> None:
    append(spark.range(0, 1000, 1, 1), path)
    sizes = load(spark, path, batch_size=300).mapInArrow(
        lambda batches: (pa.record_batch({"n": [batch.num_rows]}) for batch in batches), "n long"
    )
    assert sum(row.n for row in sizes.collect()) == 1000
    assert load(spark, path, batch_size=1).count() == 1000
