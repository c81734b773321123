"""User-defined types through a table and back."""

from __future__ import annotations

from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.ml.feature import StandardScaler, VectorAssembler
from pyspark.ml.linalg import DenseMatrix, DenseVector, MatrixUDT, SparseVector, VectorUDT
from pyspark.mllib.linalg import DenseVector as OldDenseVector
from pyspark.mllib.linalg import VectorUDT as OldVectorUDT
from pyspark.sql import Row, SparkSession
from pyspark.sql import types as t
from pyspark.testing.objects import PythonOnlyPoint, PythonOnlyUDT

from tests.spark.conftest import append, load, overwrite, relaxed

VECTORS = [DenseVector([1.0, -0.5]), None, SparseVector(9, [1, 8], [2.0, float("inf")]), DenseVector([])]
POINTS = [PythonOnlyPoint(1.0, 2.0), None, PythonOnlyPoint(-0.5, float("inf"))]


def struct(**fields: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, spark_type) for name, spark_type in fields.items()])


@pytest.mark.slow
def test_vectors_and_matrices_of_spark(spark: SparkSession, path: str) -> None:
    schema = struct(v=VectorUDT(), old=OldVectorUDT(), m=MatrixUDT())
    others = (OldDenseVector([0.5]), DenseMatrix(1, 2, [1.0, 2.0]))
    rows = [(vector, *((None, None) if vector is None else others)) for vector in VECTORS]
    append(spark.createDataFrame(rows, schema).coalesce(1), path)
    for batch_size in (1, 100):
        found = load(spark, path, batch_size=batch_size)
        assert found.schema == schema
        assert found.collect() == rows
    lance.dataset(path).validate()
    assert lance.dataset(path).to_table()["v"].to_pylist()[:2] == [
        {"type": 1, "size": None, "indices": None, "values": [1.0, -0.5]},
        None,
    ]


@pytest.mark.slow
def test_vectors_inside_of_columns(spark: SparkSession, path: str) -> None:
    schema = struct(
        a=t.ArrayType(VectorUDT(), False), m=t.MapType(t.LongType(), VectorUDT()), s=struct(x=struct(v=VectorUDT()))
    )
    rows: list[tuple[Any, ...]] = [
        ([VECTORS[0], VECTORS[2]], {1: VECTORS[2], 2: None}, Row(x=Row(v=VECTORS[0]))),
        ([], {}, Row(x=None)),
        (None, None, None),
    ]
    append(spark.createDataFrame(rows, schema).coalesce(1), path)
    append(load(spark, path), path)
    assert load(spark, path).schema == relaxed(schema)
    assert load(spark, path).collect() == rows * 2


@pytest.mark.slow
def test_columns_that_machine_learning_makes(spark: SparkSession, path: str) -> None:
    df = VectorAssembler(inputCols=["x", "y"], outputCol="v").transform(
        spark.createDataFrame([(1.0, 2.0), (0.0, 0.0)], "x double, y double")
    )
    append(df.coalesce(1), path)
    assert load(spark, path).schema == df.schema
    scaler = StandardScaler(inputCol="v", outputCol="scaled")
    expected = scaler.fit(df).transform(df).select("v", "scaled").collect()
    assert scaler.fit(load(spark, path)).transform(load(spark, path)).select("v", "scaled").collect() == expected


def test_other_classes_need_a_schema(spark: SparkSession, path: str) -> None:
    schema = struct(p=PythonOnlyUDT())
    rows = [(point,) for point in POINTS]
    append(spark.createDataFrame(rows, schema).coalesce(1), path)
    plain = load(spark, path)
    assert plain.schema["p"].dataType == t.ArrayType(t.DoubleType())
    assert plain.schema["p"].metadata == {"spark:udt": "pyspark.testing.objects.PythonOnlyUDT"}
    assert plain.collect() == [([1.0, 2.0],), (None,), ([-0.5, float("inf")],)]
    own_schema = load(spark, path).schema
    own_schema["p"].dataType = PythonOnlyUDT()
    own = spark.read.schema(own_schema).format("lance").load(path)
    assert own.collect() == rows
    append(own, path)
    append(plain, path)
    assert spark.read.schema(schema).format("lance").load(path).collect() == rows * 3
    overwrite(plain.limit(1), path)
    assert lance.dataset(path).schema.field("p").metadata[b"spark:udt"] == b"pyspark.testing.objects.PythonOnlyUDT"


def test_points_are_stored_as_vectors(spark: SparkSession, path: str) -> None:
    schema = struct(p=PythonOnlyUDT())
    rows = [(point,) for point in POINTS]
    append(spark.createDataFrame(rows, schema).coalesce(1), path, **{"p.arrow.fixed-size-list.size": 2})
    assert lance.dataset(path).schema.field("p").type == pa.list_(pa.float64(), 2)
    assert spark.read.schema(schema).format("lance").load(path).collect() == rows


def test_values_that_a_class_rules_out_are_refused(spark: SparkSession, path: str) -> None:
    append(spark.sql("SELECT array(1D, NULL) AS p"), path)
    own = spark.read.schema(struct(p=PythonOnlyUDT())).format("lance").load(path)
    with pytest.raises(PySparkException, match=r"SchemaMismatchError: column 'p\.element' holds nulls"):
        own.collect()
    with pytest.raises(PySparkException, match=r"SchemaMismatchError: .*'p' is read as struct<.*but is array<double>"):
        spark.read.schema(struct(p=VectorUDT())).format("lance").load(path).collect()
