"""Metadata columns of rows."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as t

import lance_format
from lance_format.proto import table_pb2
from tests.spark.conftest import Catalog, load, overwrite
from tests.table.builders import with_checksum

ALL = ["_rowid", "_rowaddr", "_fragid", "_row_created_at_version", "_row_last_updated_at_version", "_rowoffset"]
OF_PYLANCE = [name for name in ALL if name != "_fragid"]


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_values_are_those_of_pylance(spark: SparkSession, path: str, stable: bool) -> None:
    numbers = pa.table({"id": range(50), "text": [str(number) for number in range(50)]})
    table = lance.write_dataset(numbers, path, max_rows_per_file=20, enable_stable_row_ids=stable)
    table.delete("id % 7 = 3")
    table.update({"text": "'new'"}, "id > 45")
    df = load(spark, path, metadata_columns=",".join(ALL), columns="text")
    assert df.columns == ["text", *ALL]
    expected = table.to_table(columns=["text", *OF_PYLANCE]).sort_by("_rowoffset").to_pylist()
    rows = [row.asDict() for row in df.orderBy("_rowoffset").collect()]
    assert [{name: row[name] for name in ("text", *OF_PYLANCE)} for row in rows] == expected
    assert [row["_fragid"] for row in rows] == [row["_rowaddr"] >> 32 for row in rows]
    assert df.where("_fragid = 1 AND _rowoffset < 20").count() == sum(
        row["_rowoffset"] < 20 and row["_fragid"] == 1 for row in rows
    )


def test_types_are_those_of_lance_spark(spark: SparkSession, path: str) -> None:
    overwrite(spark.range(3), path)
    fields = load(spark, path, metadata_columns='["_fragid", "_rowid", "_row_created_at_version"]').schema.fields
    assert fields == [
        t.StructField("id", t.LongType()),
        t.StructField("_fragid", t.IntegerType(), False),
        t.StructField("_rowid", t.LongType(), False),
        t.StructField("_row_created_at_version", t.LongType()),
    ]


def test_a_schema_may_name_them(spark: SparkSession, path: str) -> None:
    overwrite(spark.range(0, 4, 1, 2), path)
    df = spark.read.schema("_rowaddr bigint, id long").format("lance").load(path)
    assert sorted(df.collect()) == [(0, 0), (1, 1), (2**32, 2), (2**32 + 1, 3)]
    with pytest.raises(PySparkException, match="column '_rowaddr' is read as int but is bigint"):
        spark.read.schema("_rowaddr int").format("lance").load(path).collect()


def test_ids_that_a_long_cannot_hold(spark: SparkSession, path: str) -> None:
    """Ids count up from 0; that they go so far takes a table whose maker says so."""
    overwrite(spark.range(2), path, enable_stable_row_ids=True)
    raise_next_row_id(path, 2**63)
    lance_format.write_dataset(pa.table({"id": [2]}), path, mode="append")
    assert load(spark, path).count() == 3
    with pytest.raises(PySparkException, match="NotSupportedError: column '_rowid': uint64 does not fit Spark's type"):
        load(spark, path, metadata_columns="_rowid").collect()


def raise_next_row_id(path: str, next_row_id: int) -> None:
    """Rewrite the manifest of the only version."""
    (file,) = Path(path, "_versions").glob("*.manifest")
    content = file.read_bytes()
    start = int.from_bytes(content[-16:-8], "little")
    size = int.from_bytes(content[start : start + 4], "little")
    manifest = table_pb2.Manifest.FromString(content[start + 4 : start + 4 + size])
    manifest.next_row_id = next_row_id
    body = manifest.SerializeToString()
    file.write_bytes(with_checksum(content[:start] + len(body).to_bytes(4, "little") + body + content[-16:]))


def test_a_column_of_its_own_hides_one(spark: SparkSession, path: str) -> None:
    overwrite(spark.createDataFrame([("mine",)], "_fragid string"), path)
    assert load(spark, path).collect() == [("mine",)]
    with pytest.raises(PySparkException, match="has its own column of this name"):
        load(spark, path, metadata_columns="_fragid")


def test_they_are_not_written(spark: SparkSession, path: str, tmp_path: Path) -> None:
    overwrite(spark.range(3), path)
    df = load(spark, path, metadata_columns="_rowid")
    with pytest.raises(PySparkException, match="cannot have a column '_rowid'"):
        overwrite(df, str(tmp_path / "other"))
    with pytest.raises(PySparkException, match=r"column '_rowid' \(bigint\) is not in the table"):
        df.write.format("lance").mode("append").save(path)


@pytest.mark.parametrize("stable", ["false", "true"], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("text", ["", "repeat('x', 500)"], ids=["all columns are read", "columns are kept"])
def test_an_update_may_name_them(catalog: Catalog, stable: str, text: str) -> None:
    properties = f"TBLPROPERTIES ('enable_stable_row_ids' = '{stable}')"
    catalog.sql(f"CREATE TABLE @.t (id INT, n INT, s STRING) {properties}")
    for first in (0, 3):
        rows = f"SELECT CAST(id AS INT), CAST(id AS INT), {text or 'NULL'} FROM range({first}, {first + 3}, 1, 1)"
        catalog.sql(f"INSERT INTO @.t {rows}")
    before = catalog.sql("SELECT id, s FROM @.t ORDER BY id")
    catalog.sql("UPDATE @.t SET n = 10 + _rowaddr WHERE _rowid = 1")
    catalog.sql("UPDATE @.t SET n = 20 WHERE _fragid = 1L AND id = 4")
    assert catalog.sql("SELECT n FROM @.t ORDER BY id") == [(0,), (11,), (2,), (3,), (20,), (5,)]
    assert catalog.sql("SELECT id, s FROM @.t ORDER BY id") == before
    catalog.refuses(
        "MERGE INTO @.t USING (SELECT 2 AS r) ON t._rowid = r WHEN MATCHED THEN UPDATE SET n = 7", "hidden.*_rowid"
    )
