"""Spark and pylance on the very same tables."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import lance_format
from tests.spark.conftest import append, load, overwrite

UTC = datetime.UTC
PLAIN = {"lance-encoding:compression": "none", "lance-encoding:dict-divisor": "1000000000"}
"""Keeps pylance to the encodings that can be read so far."""

COLUMNS: dict[str, tuple[pa.Array, list[Any]]] = {
    "bool": (pa.array([True, None]), [True, None]),
    "int8": (pa.array([-1, None], pa.int8()), [-1, None]),
    "uint8": (pa.array([255, None], pa.uint8()), [255, None]),
    "uint16": (pa.array([65535, None], pa.uint16()), [65535, None]),
    "uint32": (pa.array([2**32 - 1, None], pa.uint32()), [2**32 - 1, None]),
    "uint64": (pa.array([2**64 - 1, None], pa.uint64()), [Decimal(2**64 - 1), None]),
    "float16": (pa.array([1.5, None], pa.float16()), [1.5, None]),
    "double": (pa.array([0.1, None]), [0.1, None]),
    "decimal": (pa.array([Decimal("1.23"), None], pa.decimal128(38, 2)), [Decimal("1.23"), None]),
    "decimal256": (pa.array([Decimal("1.23"), None], pa.decimal256(20, 2)), [Decimal("1.23"), None]),
    "string": (pa.array(["é", None]), ["é", None]),
    "large_string": (pa.array(["é", None], pa.large_string()), ["é", None]),
    "binary": (pa.array([b"\0", None]), [b"\0", None]),
    "large_binary": (pa.array([b"\0", None], pa.large_binary()), [b"\0", None]),
    "fixed": (pa.array([b"abc", None], pa.binary(3)), [b"abc", None]),
    "date32": (pa.array([-1, None], pa.int32()).view(pa.date32()), [datetime.date(1969, 12, 31), None]),
    "date64": (pa.array([86_400_000, None], pa.date64()), [datetime.date(1970, 1, 2), None]),
    "time32": (pa.array([1, None], pa.time32("s")), [datetime.time(0, 0, 1), None]),
    "time64": (pa.array([1, None], pa.time64("us")), [datetime.time(0, 0, 0, 1), None]),
    "seconds": (pa.array([1, None], pa.timestamp("s")), [datetime.datetime(1970, 1, 1, 0, 0, 1), None]),
    "nanoseconds": (
        pa.array([-1, None], pa.timestamp("ns")),
        [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), None],
    ),
    "duration": (pa.array([-1, None], pa.duration("ms")), [datetime.timedelta(milliseconds=-1), None]),
}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_spark_reads_what_pylance_wrote(spark: SparkSession, path: str, version: str) -> None:
    fields = [pa.field(name, array.type, metadata=PLAIN) for name, (array, _) in COLUMNS.items()]
    table = pa.table([array for array, _ in COLUMNS.values()], schema=pa.schema(fields))
    lance.write_dataset(table, path, data_storage_version=version)
    rows = [row.asDict() for row in load(spark, path).collect()]
    for name, (_, expected) in COLUMNS.items():
        assert [row[name] for row in rows] == expected, name


def test_instants_that_pylance_wrote(spark: SparkSession, path: str) -> None:
    instant = datetime.datetime(2024, 7, 1, 16, tzinfo=UTC)
    fields = [pa.field("at", pa.timestamp("ms", "Asia/Tokyo"), metadata=PLAIN)]
    lance.write_dataset(pa.table([[instant]], schema=pa.schema(fields)), path)
    row = load(spark, path).select(f.unix_seconds("at"), f.typeof("at")).first()
    assert row == (int(instant.timestamp()), "timestamp")


def test_spark_appends_to_what_pylance_wrote(spark: SparkSession, path: str) -> None:
    names = ["uint8", "large_string", "fixed", "seconds", "date64", "decimal256"]
    fields = [pa.field(name, COLUMNS[name][0].type, metadata=PLAIN) for name in names]
    lance.write_dataset(pa.table([COLUMNS[name][0] for name in names], schema=pa.schema(fields)), path)
    append(load(spark, path), path)
    found = lance.dataset(path)
    found.validate()
    assert found.schema.types == [field.type for field in fields]
    assert found.to_table().to_pylist()[:2] == found.to_table().to_pylist()[2:]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_pylance_reads_what_spark_wrote(spark: SparkSession, path: str, version: str) -> None:
    df = spark.range(0, 10_000, 1, 3).select(
        "id",
        (f.col("id") % 2 == 0).alias("even"),
        f.when(f.col("id") % 3 > 0, f.col("id").cast("string")).alias("text"),
        f.col("id").cast("decimal(20,4)").alias("amount"),
        f.timestamp_seconds("id").alias("at"),
        f.expr("make_dt_interval(id)").alias("span"),
        f.lit(None).alias("nothing"),
    )
    overwrite(df, path, file_format_version=version)
    found = lance.dataset(path)
    found.validate()
    assert found.data_storage_version == version
    rows = found.to_table()
    assert rows.schema.types == [
        pa.int64(),
        pa.bool_(),
        pa.string(),
        pa.decimal128(20, 4),
        pa.timestamp("us", "UTC"),
        pa.duration("us"),
        pa.null(),
    ]
    assert rows["id"].to_pylist() == list(range(10_000))
    assert rows["text"].to_pylist() == [str(i) if i % 3 else None for i in range(10_000)]
    assert rows["amount"][9_999].as_py() == Decimal(9_999)
    assert rows["span"][9_999].as_py() == datetime.timedelta(days=9_999)


def test_both_write_to_one_table(spark: SparkSession, path: str) -> None:
    append(spark.range(3), path)
    lance.write_dataset(pa.table({"id": [3, 4]}), path, mode="append")
    append(spark.range(5, 7), path)
    assert sorted(row.id for row in load(spark, path).collect()) == list(range(7))
    found = lance.dataset(path)
    found.validate()
    assert found.version == 3
    assert sorted(found.to_table()["id"].to_pylist()) == list(range(7))


def test_spark_sees_rows_that_pylance_deleted(spark: SparkSession, path: str) -> None:
    append(spark.range(0, 1000, 1, 2), path)
    lance.dataset(path).delete("id % 2 = 0")
    assert load(spark, path).where("id < 6").collect() == [(1,), (3,), (5,)]
    assert load(spark, path).count() == 500


@pytest.mark.slow
def test_spark_appends_text_to_json(spark: SparkSession, path: str) -> None:
    document = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}', None]))
    inner = pa.StructArray.from_arrays([document], ["j"])
    lance.write_dataset(pa.table({"j": document, "s": inner}), path)
    rows = "'{\"b\": [2, 1]}' AS j, named_struct('j', '[3]') AS s"
    append(spark.sql(f"SELECT {rows}"), path)
    append(load(spark, path), path)
    expected = ['{"a":1}', None, '{"b":[2,1]}'] * 2
    found = lance.dataset(path).to_table()
    assert found.schema.field("j").type == pa.json_()
    assert sorted(map(str, found["j"].to_pylist())) == sorted(map(str, expected))
    assert [row["j"] for row in found["s"].to_pylist()].count("[3]") == 2
    with pytest.raises(Exception, match="column 'j', row 1: 'no JSON' cannot be stored as JSON"):
        append(spark.sql("SELECT explode(array('1', 'no JSON')) AS j").coalesce(1), path)
    assert load(spark, path).count() == 6


def test_spark_reads_the_storage_of_extension_types(spark: SparkSession, path: str) -> None:
    uuid = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef", None], pa.binary(16)))
    tensor_type = pa.fixed_shape_tensor(pa.float32(), [2])
    tensor = pa.ExtensionArray.from_storage(tensor_type, pa.array([[1, 2], None], tensor_type.storage_type))
    document = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}', None]))
    offsets = pa.array([0, 1, 2], pa.int32())
    table = pa.table(
        {
            "u": uuid,
            "s": pa.StructArray.from_arrays([uuid, document], ["u", "j"]),
            "l": pa.ListArray.from_arrays(offsets, uuid),
            "t": tensor,
            "j": document,
            "d": pa.array(["x", None]).dictionary_encode(),
            "e": pa.array([{}, {}], pa.struct([])),
        }
    )
    lance.write_dataset(table, path)
    found = spark.read.format("lance").load(path)
    types = "binary struct<u:binary,j:string> array<binary> array<float> string string struct<>"
    assert [column for _, column in found.dtypes] == types.split()
    first, second = found.collect()
    assert bytes(first.u) == bytes(first.s.u) == bytes(first.l[0]) == b"0123456789abcdef"
    assert (first.t, first.j, first.s.j, first.d) == ([1.0, 2.0], '{"a":1}', '{"a":1}', "x")
    assert (second.u, second.t, second.j, second.d) == (None, None, None, None)
    some = spark.read.format("lance").option("columns", "j,s").load(path)
    assert some.dtypes == [("j", "string"), ("s", "struct<u:binary,j:string>")]
    assert some.first() == (first.j, first.s)
    found.write.format("lance").mode("append").save(f"{path}-copy")
    copy = lance.dataset(f"{path}-copy").to_table(["u", "t", "j"])
    assert copy.schema.types == [pa.binary(), pa.list_(pa.float32(), 2), pa.string()]
    assert copy.column("t").to_pylist() == [[1.0, 2.0], None]


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
def test_filters_use_the_indices_of_pylance(spark: SparkSession, path: str, kind: str) -> None:
    rows = pa.table({"key": [number * 7919 % 60_000 for number in range(60_000)], "x": range(60_000)})
    lance.write_dataset(rows, path, max_rows_per_file=20_000).create_scalar_index("key", kind)
    append(spark.createDataFrame([(7919, -1)], "key long, x long"), path)
    plain = load(spark, path, use_scalar_index="false")
    wanted = f.col("key").isin(7919, 59_999, 60_000)
    expected = sorted(plain.where(wanted).collect())
    assert sorted(load(spark, path).where(wanted).collect()) == expected
    assert [row.x for row in expected] == [-1, 1, rows["key"].to_pylist().index(59_999)]
    lance_format.dataset(path).delete("key = 59999")
    assert load(spark, path).where("key = 59999").count() == 0


def test_rows_are_written_to_dictionaries_of_numbers(planner: SparkSession, path: str) -> None:
    kinds = {"n": pa.int64(), "u": pa.uint64(), "b": pa.bool_(), "s": pa.string()}
    values = {"n": [2**40, None, 3], "u": [2**64 - 1, 1, None], "b": [None, True, False], "s": ["x", None, ""]}
    columns = {name: pa.array(values[name], kind).dictionary_encode() for name, kind in kinds.items()}
    lance.write_dataset(pa.table({"id": [0, 1, 2], **columns}), path)
    planner.sql(f"INSERT INTO lance.`{path}` SELECT id + 3, n, u, b, s FROM lance.`{path}`")
    planner.sql(f"UPDATE lance.`{path}` SET n = 7, b = NOT b WHERE id = 1")
    planner.sql(
        f"MERGE INTO lance.`{path}` t USING (SELECT 2L AS id, 9L AS n UNION ALL SELECT 6, 9) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)"
    )
    found = lance.dataset(path).to_table().sort_by("id")
    assert found.schema.field("n").type == columns["n"].type
    rows = [(2**40, 2**64 - 1, None, "x"), (None, 1, True, None), (3, None, False, "")]
    assert [tuple(row.values())[1:] for row in found.to_pylist()] == [
        *(rows[0], (7, 1, False, None), (9, None, False, "")),
        *(*rows, (9, None, None, None)),
    ]
