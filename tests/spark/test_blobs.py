"""Columns of blobs: written by an option, read as bytes or as descriptions, and exchanged with pylance."""

from __future__ import annotations

import lance
import lance.blob
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from tests.blobs import payloads
from tests.spark.conftest import append, load, overwrite

_BLOB = {"picture.lance.encoding": "blob"}


def _frame(spark: SparkSession, values: list[bytes | None]) -> DataFrame:
    rows = [(row, None if value is None else bytearray(value)) for row, value in enumerate(values)]
    return spark.createDataFrame(rows, "id long, picture binary").coalesce(1)


def _pictures(df: DataFrame) -> list[bytes | None]:
    return [None if row.picture is None else bytes(row.picture) for row in df.orderBy("id").collect()]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_round_trip(version: str, spark: SparkSession, path: str) -> None:
    values = payloads(200, most=5000)
    overwrite(_frame(spark, values), path, file_format_version=version, max_row_per_file=80, **_BLOB)
    assert _pictures(load(spark, path)) == values
    theirs = lance.dataset(path)
    assert len(theirs.get_fragments()) == 3
    assert theirs.scanner(blob_handling="all_binary").to_table()["picture"].to_pylist() == values
    blobs = theirs.take_blobs("picture", indices=range(200))
    assert [None if blob is None else blob.read() for blob in blobs] == values
    # An append needs no option, and accepts one that agrees with the table.
    append(_frame(spark, values), path)
    append(_frame(spark, values), path, **_BLOB)
    assert load(spark, path).where("picture is not null").count() == 3 * sum(value is not None for value in values)


def test_descriptions(spark: SparkSession, path: str) -> None:
    values: list[bytes | None] = [b"x" * 100, None, b"y"]
    overwrite(_frame(spark, values), path, file_format_version="2.1", **_BLOB)
    described = spark.read.format("lance").option("blob_handling", "blobs_descriptions").load(path)
    assert [row.picture and row.picture.asDict() for row in described.orderBy("id").collect()] == [
        {"position": 0, "size": 100},
        None,
        {"position": 128, "size": 1},
    ]
    overwrite(_frame(spark, values), path, **_BLOB)
    described = spark.read.format("lance").option("blob_handling", "all_descriptions").load(path)
    assert isinstance(described.schema["picture"].dataType, t.StructType)
    assert described.selectExpr("sum(picture.size) AS size").first()["size"] == 101
    with pytest.raises(Exception, match="has descriptions of blobs, which cannot be written"):
        overwrite(described, path + "2")


def test_overwriting_with_what_was_read_stores_blobs_again(spark: SparkSession, path: str) -> None:
    values = payloads(20)
    overwrite(_frame(spark, values), path, **_BLOB)
    overwrite(load(spark, path), path)
    assert lance.dataset(path).version == 2
    blobs = lance.dataset(path).take_blobs("picture", indices=range(20))
    assert [None if blob is None else blob.read() for blob in blobs] == values


def test_tables_of_pylance(spark: SparkSession, path: str) -> None:
    values: list[bytes | None] = [b"in", None, b"shared" * 20_000, b"own" * 2_000_000, b""]
    array = lance.blob.blob_array(values)
    data = pa.table(
        [pa.array(range(5)), array], schema=pa.schema([pa.field("id", pa.int64()), lance.blob.blob_field("picture")])
    )
    lance.write_dataset(data, path, data_storage_version="2.2")
    assert _pictures(load(spark, path)) == values
    append(_frame(spark, values), path)
    assert lance.dataset(path).scanner(blob_handling="all_binary").to_table()["picture"].to_pylist() == values * 2


def test_what_makes_no_sense_is_refused(spark: SparkSession, path: str) -> None:
    df = _frame(spark, [b"x"])
    for options, message in (
        ({"id.lance.encoding": "blob"}, "cannot hold blobs"),
        ({"picture.lance.encoding": "packed"}, "must be one of blob"),
        ({"picture.lance.encodin": "blob"}, "did you mean 'picture.lance.encoding'"),
        ({"blob_handling": "bytes"}, "must be one of all_binary"),
    ):
        with pytest.raises(Exception, match=message):
            overwrite(df, path, **options)
    overwrite(df, path)
    with pytest.raises(Exception, match="has none: how a column is stored"):
        append(df, path, **_BLOB)
