"""Appends whose columns are not exactly those of the table, and tables whose rows keep their ids."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import lance_format
from pyspark_lance import LanceTable
from tests.spark.conftest import append, data_files, load, overwrite


def rows(spark: SparkSession, path: str) -> list[tuple[object, ...]]:
    """Return all rows by id, once pylance has found the table valid and the same."""
    reference = lance.dataset(path)
    reference.validate()
    df = load(spark, path)
    found = [tuple(row.asDict(recursive=True).values()) for row in df.orderBy("id").collect()]
    assert found == [tuple(row.values()) for row in reference.to_table().sort_by("id").to_pylist()]
    return found


def test_columns_may_be_missing_and_in_any_case_and_order(spark: SparkSession, path: str) -> None:
    append(spark.createDataFrame([("one", 1)], "name string, id int"), path)
    append(spark.createDataFrame([(2, "two")], "ID int, Name string"), path)
    append(spark.createDataFrame([(3,)], "Id int"), path)
    assert load(spark, path).columns == ["name", "id"]
    assert rows(spark, path) == [("one", 1), ("two", 2), (None, 3)]


def test_the_very_name_goes_before_others(spark: SparkSession, path: str) -> None:
    lance_format.write_dataset(pa.table({"id": [1], "ID": [10], "Name": ["one"]}), path)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        append(spark.createDataFrame([(2, 20, "two")], "id long, ID long, NAME string"), path)
        assert load(spark, path).select("id", "ID", "Name").collect()[1] == (2, 20, "two")
        with pytest.raises(PySparkException, match="column 'Id' of the data may stand for 'id' and 'ID' of the table"):
            append(spark.createDataFrame([(2,)], "Id long"), path)
        with pytest.raises(PySparkException, match="several columns of the data match column 'Name'"):
            append(spark.createDataFrame([(2, 3, "a", "b")], "id long, ID long, NAME string, name string"), path)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_required_columns_are_not_left_out(spark: SparkSession, path: str) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
    lance_format.write_dataset(pa.table({"id": [1], "name": ["one"]}, schema=schema), path)
    with pytest.raises(PySparkException, match=r"column 'id' \(bigint\) is missing and cannot be null"):
        append(spark.createDataFrame([("x",)], "name string"), path)
    assert lance_format.dataset(path).version == 1


@pytest.mark.slow
def test_new_columns_come_with_the_rows(spark: SparkSession, path: str) -> None:
    append(spark.range(2), path)
    new = spark.range(2, 4).select(
        f.array(f.col("id").cast("float"), f.lit(0.5).cast("float")).alias("vector"),
        f.struct(f.col("id").cast("string").alias("text")).alias("part"),
        f.col("id").alias("ID"),
        f.encode(f.lit("blob"), "utf-8").alias("blob"),
    )
    options = {
        "vector.arrow.fixed-size-list.size": 2,
        "blob.lance.encoding": "blob",
        "part.lance.compression": "zstd",
    }
    append(new, path, mergeSchema=True, **options)
    table = lance_format.dataset(path)
    assert (table.version, table.schema.names) == (2, ["id", "vector", "part", "blob"])
    assert table.schema.field("vector").type == pa.list_(pa.float32(), 2)
    lance.dataset(path).validate()
    found = [tuple(row.asDict(recursive=True).values()) for row in load(spark, path).orderBy("id").collect()]
    assert found == [
        (0, None, None, None),
        (1, None, None, None),
        (2, [2.0, 0.5], {"text": "2"}, b"blob"),
        (3, [3.0, 0.5], {"text": "3"}, b"blob"),
    ]
    # Their own columns are known from now on.
    append(new, path)
    assert load(spark, path).where("blob IS NOT NULL").count() == 4


def test_structs_get_the_fields_that_they_lack(spark: SparkSession, path: str) -> None:
    old = "id long, s struct<a: int, t: struct<x: string>>, l array<struct<a: int>>"
    append(spark.createDataFrame([(1, (1, ("x",)), [(1,), None]), (2, None, None)], old), path)
    new = "L array<struct<b: string, a: int>>, id long, s struct<c: double, a: int, t: struct<x: string, y: boolean>>"
    more = spark.createDataFrame([([("b", 3)], 3, (0.5, 3, ("z", True)))], new)
    with pytest.raises(PySparkException, match="column 's' is struct"):
        append(more, path)
    append(more, path, mergeSchema=True)
    assert lance_format.dataset(path).schema == pa.schema(
        {
            "id": pa.int64(),
            "s": pa.struct({"a": pa.int32(), "t": pa.struct({"x": pa.string(), "y": pa.bool_()}), "c": pa.float64()}),
            "l": pa.list_(pa.struct({"a": pa.int32(), "b": pa.string()})),
        }
    )
    assert rows(spark, path) == [
        (1, {"a": 1, "t": {"x": "x", "y": None}, "c": None}, [{"a": 1, "b": None}, None]),
        (2, None, None),
        (3, {"a": 3, "t": {"x": "z", "y": True}, "c": 0.5}, [{"a": 3, "b": "b"}]),
    ]
    assert load(spark, path).where("s.c > 0 and s.t.y").select("s.c", "l.b").collect() == [(0.5, ["b"])]


@pytest.mark.slow
def test_new_fields_have_their_declared_lengths(spark: SparkSession, path: str) -> None:
    append(spark.createDataFrame([(1, (1,), [(1,)])], "id long, s struct<a: int>, l array<struct<a: int>>"), path)
    declared = {
        "c": "char(2)",
        "s": "struct<a:int,v:varchar(3),t:struct<c:char(2)>>",
        "l": "array<struct<a:int,v:array<varchar(4)>>>",
    }
    of_s, of_l = "a: int, v: string, t: struct<c: string>", "v: array<string>, a: int"
    new = f"id long, c string, s struct<{of_s}>, l array<struct<{of_l}>>"
    more = spark.createDataFrame([(2, "cc", (2, "vvv", ("cc",)), [(["vvvv"], 2)])], new)
    for name, spelling in declared.items():
        more = more.withMetadata(name, {"__CHAR_VARCHAR_TYPE_STRING": spelling})
    append(more, path, mergeSchema=True)
    found = {field.name: field.metadata.get("__CHAR_VARCHAR_TYPE_STRING") for field in load(spark, path).schema}
    assert {name: text.replace("`", "") for name, text in found.items() if text} == declared
    with pytest.raises(PySparkException, match=r"s\.t\.c' has more than 2 characters"):
        LanceTable.forPath(spark, path).update(set={"s.t.c": "'ccc'"})
    lance.dataset(path).validate()
    assert lance.dataset(path).to_table().num_rows == 2


def test_structs_that_cannot_get_fields(spark: SparkSession, path: str) -> None:
    point = pa.struct({"a": pa.int32()})
    schema = pa.schema({"m": pa.map_(pa.string(), point), "v": pa.list_(point, 1), "p": point})
    lance_format.write_dataset(schema.empty_table(), path)
    for new, column in (
        ("m map<string, struct<a: int, b: int>>", {"k": (1, 2)}),
        ("v array<struct<a: int, b: int>>", [(1, 2)]),
    ):
        with pytest.raises(PySparkException, match="the structs in it cannot get the field 'b'"):
            append(spark.createDataFrame([(column,)], new), path, mergeSchema=True)
    with pytest.raises(PySparkException, match="column 'p' is struct<b:int> where the table has struct<a:int>"):
        append(spark.createDataFrame([((1,),)], "p struct<b: int>"), path, mergeSchema=True)
    assert lance_format.dataset(path).version == 1


def test_columns_of_concurrent_writers_are_added_once(spark: SparkSession, path: str) -> None:
    append(spark.range(2), path)

    def add_meanwhile(batches):  # type: ignore[no-untyped-def]
        new = pa.table({"id": [10], "name": ["other"]})
        lance_format.write_dataset(new, path, mode="append", merge_schema=True)
        yield from batches

    df = spark.range(2, 3, 1, 1).mapInArrow(add_meanwhile, "id long").withColumn("name", f.lit("mine"))
    append(df, path, mergeSchema=True)
    assert lance_format.dataset(path).version == 3
    assert rows(spark, path) == [(0, None), (1, None), (2, "mine"), (10, "other")]


def test_a_column_of_another_writer_that_does_not_fit(spark: SparkSession, path: str) -> None:
    append(spark.range(2), path)

    def add_meanwhile(batches):  # type: ignore[no-untyped-def]
        lance_format.dataset(path).add_columns({"name": "id"})
        yield from batches

    df = spark.range(2, 3, 1, 1).mapInArrow(add_meanwhile, "id long").withColumn("name", f.lit("mine"))
    with pytest.raises(PySparkException, match="another writer has concurrently given the table a column 'name'"):
        append(df, path, mergeSchema=True)
    assert rows(spark, path) == [(0, 0), (1, 1)]
    fragments = lance_format.dataset(path).get_fragments()
    files = {file.relative_path for fragment in fragments for file in fragment.data_files()}
    assert data_files(path) == files


def test_what_is_refused(spark: SparkSession, path: str) -> None:
    append(spark.range(2), path)
    more = spark.range(2).withColumn("more", f.lit(1))
    with pytest.raises(PySparkException, match=r"'more' .* is not in the table; the option mergeSchema adds columns"):
        append(more, path)
    with pytest.raises(PySparkException, match="option 'mergeSchema' is for appends"):
        overwrite(more, path, mergeSchema=True)
    with pytest.raises(PySparkException, match="column 'id' is string where the table has bigint"):
        append(more.withColumn("id", f.lit("x")), path, mergeSchema=True)
    assert lance_format.dataset(path).version == 1


def test_a_table_is_created_with_stable_row_ids(spark: SparkSession, path: str, tmp_path: Path) -> None:
    append(spark.range(3), path, enable_stable_row_ids=True)
    append(spark.range(3, 5), path, enable_stable_row_ids=True)
    append(spark.range(5, 7), path)
    overwrite(spark.range(4), path)
    table = lance.dataset(path)
    assert table.has_stable_row_ids
    table.update({"id": "100"}, "id = 2")
    assert sorted(load(spark, path, metadata_columns="_rowid").collect()) == [(0, 7), (1, 8), (3, 10), (100, 9)]
    with pytest.raises(PySparkException, match=r"is false, but the table .* was created with stable row ids"):
        append(spark.range(3), path, enable_stable_row_ids=False)
    other = str(tmp_path / "other")
    append(spark.range(3), other, enable_stable_row_ids="false")
    for save in (append, overwrite):
        with pytest.raises(PySparkException, match=r"is true, but the table .* was created without stable row ids"):
            save(spark.range(3), other, enable_stable_row_ids=True)
    assert lance_format.dataset(other).version == 1
