"""Variants through a table and back."""

from __future__ import annotations

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

from tests.spark.conftest import append, load

JSON = [
    "null",
    None,
    "true",
    "-1.5",
    '"żółw 🐢"',
    "[]",
    '[1,"two",null,{"three":[3]}]',
    '{"a":{"b":[{"c":1}]},"d":"' + "x" * 10_000 + '"}',
]
NESTED = """
    SELECT array(v, NULL, parse_json('null')) AS a, map('k', v, 'n', NULL) AS m, named_struct('x', v, 'y', 1) AS s,
           map(1, array(named_struct('x', array(v)))) AS deep
    FROM VALUES (parse_json('{"n": [1, null]}')), (NULL), (parse_json('2')) AS t(v)
"""


@pytest.mark.slow
def test_a_variant_that_is_null_and_one_of_null(spark: SparkSession, path: str) -> None:
    df = spark.createDataFrame(list(enumerate(JSON)), "id int, json string").coalesce(1)
    append(df.select("id", f.parse_json("json").alias("v")), path)
    assert load(spark, path).schema["v"].dataType == t.VariantType()
    for batch_size in (3, 100):
        rows = load(spark, path, batch_size=batch_size).orderBy("id")
        assert [row[0] for row in rows.select(f.to_json("v")).collect()] == JSON
        assert [row.id for row in rows.where("v IS NULL").collect()] == [1]
        assert [row.id for row in rows.where("is_variant_null(v)").collect()] == [0]
    assert load(spark, path).select(f.expr("v:a.b[0].c::int AS c")).where("c IS NOT NULL").collect() == [(1,)]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_variants_inside_of_columns(spark: SparkSession, path: str, version: str) -> None:
    df = spark.sql(NESTED).drop(*["m", "deep"][: 2 if version == "2.1" else 0]).coalesce(1)
    append(df, path, file_format_version=version)
    append(load(spark, path), path)
    found = load(spark, path)
    assert found.schema.simpleString() == df.schema.simpleString()
    expected = [row[0] for row in df.select(f.to_json(f.struct("*"))).collect()]
    assert [row[0] for row in found.select(f.to_json(f.struct("*"))).collect()] == expected * 2
    lance.dataset(path).validate()


@pytest.mark.slow
def test_variants_in_tables_of_2_0_are_not_null(spark: SparkSession, path: str) -> None:
    df = spark.sql(
        "SELECT parse_json('{\"n\": [1]}') AS v, array(parse_json('null')) AS a, struct(parse_json('2') AS x)"
    )
    append(df.coalesce(1), path, file_format_version="2.0")
    assert load(spark, path).select(f.to_json(f.struct("*"))).collect() == df.select(f.to_json(f.struct("*"))).collect()
    assert lance.dataset(path).to_table().num_rows == 1
    with pytest.raises(PySparkException, match=r"null.*2\.0"):
        append(spark.sql("SELECT CAST(NULL AS VARIANT) AS v").coalesce(1), path)
    assert load(spark, path).count() == 1


def test_pylance_sees_a_struct_and_may_append_to_it(spark: SparkSession, path: str) -> None:
    append(spark.sql("SELECT parse_json('{\"a\": 1}') AS v UNION ALL SELECT NULL").coalesce(1), path)
    stored = lance.dataset(path).to_table()
    assert stored["v"].to_pylist() == [
        {"value": b"\x02\x01\x00\x00\x02\x0c\x01", "metadata": b"\x01\x01\x00\x01a"},
        None,
    ]
    lance.write_dataset(pa.table({"v": stored["v"].combine_chunks()}), path, mode="append")
    assert from_arrow_schema(stored.schema) == load(spark, path).schema
    found = load(spark, path).select(f.to_json("v"))
    assert [row[0] for row in found.collect()] == ['{"a":1}', None] * 2


def test_a_struct_of_two_binaries_is_no_variant(spark: SparkSession, path: str) -> None:
    df = spark.sql("SELECT named_struct('value', X'00', 'metadata', X'010000') AS v")
    append(df, path)
    assert load(spark, path).collect() == df.collect()
    with pytest.raises(PySparkException, match=r"SchemaMismatchError: .*'v' is variant where the table has struct"):
        append(spark.sql("SELECT parse_json('null') AS v"), path)
    with pytest.raises(PySparkException, match=r"SchemaMismatchError: .*column 'v' is read as variant but is struct"):
        spark.read.schema("v variant").format("lance").load(path).collect()


def test_a_variant_that_lacks_a_part_is_refused(spark: SparkSession, path: str) -> None:
    fields = [pa.field("value", pa.binary()), pa.field("metadata", pa.binary(), metadata={"variant": "true"})]
    rows = pa.array([{"value": b"\0", "metadata": b"\1\0\0"}, None, {"value": b"\0"}], pa.struct(fields))
    lance.write_dataset(pa.table({"v": rows}), path)
    with pytest.raises(PySparkException, match=r"SchemaMismatchError: column 'v\.metadata' holds nulls"):
        load(spark, path).collect()
