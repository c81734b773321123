"""Arrays, maps and structs of any depth through a table and back, and vectors."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.ml.linalg import DenseVector, SparseVector, VectorUDT
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

import lance_format
from tests.spark.conftest import append, files, load, overwrite, relaxed

NUM_ROWS = 150
ATOMS: list[tuple[t.DataType, list[Any]]] = [
    (t.BooleanType(), [True, False]),
    (t.ByteType(), [-128, 0, 127]),
    (t.IntegerType(), [-(2**31), 0, 7]),
    (t.LongType(), [-(2**63), 0, 2**63 - 1]),
    (t.DoubleType(), [0.5, -0.0, float("inf")]),
    (t.DecimalType(20, 3), [Decimal("1.500"), Decimal("-99999999999999999.999")]),
    (t.StringType(), ["", "żółw", "x" * 300]),
    (t.BinaryType(), [bytearray(b""), bytearray(b"\0\1")]),
    (t.DateType(), [datetime.date(1969, 12, 31), datetime.date(9999, 12, 31)]),
    (t.TimestampType(), [datetime.datetime(1970, 1, 1, 0, 0, 0, 1), datetime.datetime(2024, 7, 1, 12)]),
    (t.TimestampNTZType(), [datetime.datetime(1, 1, 1), datetime.datetime(2024, 3, 10, 2, 30)]),
    (t.TimeType(0), [datetime.time(1, 2, 3)]),
    (t.DayTimeIntervalType(0, 1), [datetime.timedelta(hours=-25), datetime.timedelta(0)]),
    (t.TimeType(6), [datetime.time(23, 59, 59, 999999)]),
    (t.StringType("UTF8_LCASE"), ["a", "A"]),
    (
        t.VariantType(),
        [t.VariantVal(b"\x00", b"\x01\x00\x00"), t.VariantVal(b"\x03\x01\x00\x02\x0c\x01", b"\x01\x00\x00")],
    ),
    (VectorUDT(), [DenseVector([0.5, -1.0]), SparseVector(3, {2: 4.0}), DenseVector([])]),
    (t.NullType(), [None]),
]


def random_type(rng: random.Random, depth: int) -> t.DataType:
    kind = rng.choice(["array", "map", "struct", "atom"]) if depth else "atom"
    if kind == "array":
        return t.ArrayType(random_type(rng, depth - 1), rng.random() < 0.7)
    if kind == "map":
        key = rng.choice([t.StringType(), t.LongType(), t.DateType()])
        return t.MapType(key, random_type(rng, depth - 1), rng.random() < 0.7)
    if kind == "struct":
        fields = [
            t.StructField(f"f{index}", random_type(rng, depth - 1), rng.random() < 0.7, {"comment": f"{depth}"})
            for index in range(rng.randint(1, 3))
        ]
        return t.StructType(fields)
    return rng.choice(ATOMS)[0]


def random_value(rng: random.Random, spark_type: t.DataType, nullable: bool) -> Any:
    if isinstance(spark_type, t.NullType) or (nullable and rng.random() < 0.2):
        return None
    if isinstance(spark_type, t.ArrayType):
        length = rng.choice([0, 0, 1, 2, 5])
        return [random_value(rng, spark_type.elementType, spark_type.containsNull) for _ in range(length)]
    if isinstance(spark_type, t.MapType):
        keys = [random_value(rng, spark_type.keyType, False) for _ in range(rng.choice([0, 1, 3]))]
        return {key: random_value(rng, spark_type.valueType, spark_type.valueContainsNull) for key in keys}
    if isinstance(spark_type, t.StructType):
        return Row(**{field.name: random_value(rng, field.dataType, field.nullable) for field in spark_type})
    return rng.choice(next(values for atom, values in ATOMS if atom == spark_type))


def without_void(spark_type: t.DataType) -> bool:
    """Tell whether values of a type can lack nulls, which void cannot."""
    return "void" not in spark_type.simpleString()


def random_frame(spark: SparkSession, seed: int, num_columns: int = 6) -> DataFrame:
    """Return rows of nested columns; non-nullable parts have no nulls."""
    rng = random.Random(seed)
    types = []
    while len(types) < num_columns:
        spark_type = random_type(rng, 4)
        if len(spark_type.simpleString()) > 20 and without_void(spark_type):
            types.append(spark_type)
    fields = [t.StructField(f"c{index}", spark_type) for index, spark_type in enumerate(types)]
    schema = t.StructType([t.StructField("id", t.LongType()), *fields])
    rows = [(i, *(random_value(rng, spark_type, True) for spark_type in types)) for i in range(NUM_ROWS)]
    return spark.createDataFrame(rows, schema)


def plain(value: Any) -> Any:
    """Return a value of Spark or Arrow in terms of lists and dicts, maps being lists of pairs in any order."""
    if isinstance(value, Row):
        return {name: plain(part) for name, part in zip(value.__fields__, value, strict=True)}
    if isinstance(value, dict):
        return sorted(((repr(key), plain(part)) for key, part in value.items()), key=lambda pair: pair[0])
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, t.VariantVal):
        return bytes(value.value), bytes(value.metadata)
    return bytes(value) if isinstance(value, bytearray) else value


@pytest.mark.system
@pytest.mark.parametrize("seed", range(3))
def test_nested_columns_come_back(spark: SparkSession, path: str, seed: int) -> None:
    df = random_frame(spark, seed)
    append(df.repartition(2), path)
    found = load(spark, path, batch_size=37)
    assert found.schema == relaxed(df.schema)
    expected = [plain(row) for row in df.orderBy("id").collect()]
    assert [plain(row) for row in found.orderBy("id").collect()] == expected
    dataset = lance.dataset(path)
    dataset.validate()
    ours, theirs = (table.sort_by("id") for table in (lance_format.dataset(path).to_table(), dataset.to_table()))
    assert ours.schema == theirs.schema
    assert ours.to_pylist() == theirs.to_pylist()
    append(found, path)
    assert load(spark, path).where("id >= 0").count() == 2 * NUM_ROWS


@pytest.mark.slow
def test_nested_columns_are_what_parquet_says(spark: SparkSession, path: str) -> None:
    df = random_frame(spark, seed=7, num_columns=20).coalesce(1)
    append(df, path)
    df.write.parquet(f"{path}.parquet")
    found, expected = load(spark, path), spark.read.parquet(f"{path}.parquet")
    assert found.schema == expected.schema
    assert [plain(row) for row in found.collect()] == [plain(row) for row in expected.collect()]


def test_deep_nesting(spark: SparkSession, path: str) -> None:
    spark_type: t.DataType = t.LongType()
    value: Any = 7
    for depth in range(24):
        if depth % 3 == 0:
            spark_type, value = t.ArrayType(spark_type), [value, None]
        elif depth % 3 == 1:
            spark_type, value = t.StructType([t.StructField("x", spark_type)]), Row(x=value)
        else:
            spark_type, value = t.MapType(t.StringType(), spark_type), {"k": value, "n": None}
    schema = t.StructType([t.StructField("deep", spark_type)])
    df = spark.createDataFrame([(value,), (None,)], schema)
    append(df.coalesce(1), path)
    assert load(spark, path).schema == relaxed(schema)
    assert load(spark, path).collect() == [(value,), (None,)]


EMPTY = {
    "array<int>": [[], None, [None], [1]],
    "array<array<int>>": [[], None, [[]], [None], [[None]], [[1], []]],
    "map<string,int>": [{}, None, {"a": None}, {"a": 1}],
    "struct<x:int>": [Row(x=None), None, Row(x=1)],
    "struct<a:array<struct<x:int>>,m:map<int,struct<y:int>>>": [
        Row(a=None, m=None),
        None,
        Row(a=[], m={}),
        Row(a=[None], m={1: None}),
        Row(a=[Row(x=None)], m={1: Row(y=None)}),
    ],
    "array<void>": [[], None, [None, None]],
}


@pytest.mark.slow
@pytest.mark.parametrize("spelling", EMPTY)
@pytest.mark.parametrize("only", ["all", "first", "null"])
def test_nulls_and_empties(spark: SparkSession, path: str, spelling: str, only: str) -> None:
    values = {"all": EMPTY[spelling], "first": EMPTY[spelling][:1] * 3, "null": [None] * 3}[only]
    df = spark.createDataFrame([(value,) for value in values], f"c {spelling}").coalesce(1)
    append(df, path)
    assert load(spark, path).collect() == [(value,) for value in values]
    found = lance.dataset(path)
    found.validate()
    assert found.to_table()["c"].to_pylist() == lance_format.dataset(path).to_table()["c"].to_pylist()


def test_collections_made_by_sql(spark: SparkSession, path: str) -> None:
    """Spark's literals declare that they hold no nulls; an empty one is of type void."""
    df = spark.sql("SELECT array(1, 2) AS a, map('k', 1) AS m, named_struct('x', 1) AS s, array() AS e").coalesce(1)
    append(df, path)
    assert load(spark, path).collect() == [([1, 2], {"k": 1}, Row(x=1), [])]
    assert load(spark, path).schema["a"].dataType == t.ArrayType(t.IntegerType())
    more = "SELECT array(1, NULL) AS a, map('k', NULL) AS m, named_struct('x', NULL) AS s, array() AS e"
    append(
        spark.sql(more).selectExpr("a", "cast(m AS map<string, int>) AS m", "cast(s AS struct<x: int>) AS s", "e"), path
    )
    assert ([1, None], {"k": None}, Row(x=None), []) in load(spark, path).collect()


def test_a_field_that_is_never_null_in_a_struct_that_is(spark: SparkSession, path: str) -> None:
    schema = t.StructType([t.StructField("s", t.StructType([t.StructField("x", t.LongType(), False)]))])
    append(spark.createDataFrame([(None,), (Row(x=1),)], schema).coalesce(1), path)
    assert load(spark, path).schema == relaxed(schema)
    assert load(spark, path).collect() == [(None,), (Row(x=1),)]
    assert lance.dataset(path).to_table()["s"].to_pylist() == [None, {"x": 1}]


def test_an_array_that_is_never_null_in_a_struct_that_is(spark: SparkSession, path: str) -> None:
    never_null = t.StructField("x", t.ArrayType(t.LongType()), False)
    schema = t.StructType([t.StructField("s", t.StructType([never_null]))])
    append(spark.createDataFrame([(None,), (Row(x=[1]),)], schema).coalesce(1), path)
    assert load(spark, path).schema == relaxed(schema)
    assert load(spark, path).collect() == [(None,), (Row(x=[1]),)]


def test_fields_of_structs_are_matched_by_name(spark: SparkSession, path: str) -> None:
    append(spark.sql("SELECT array(named_struct('x', 1, 'y', 'a')) AS c"), path)
    append(spark.sql("SELECT array(named_struct('y', 'b', 'x', 2)) AS c"), path)
    assert sorted(load(spark, path).select(f.inline("c")).collect()) == [(1, "a"), (2, "b")]
    found = spark.read.format("lance").schema("c array<struct<y:string,x:int>>").load(path)
    assert sorted(found.select(f.inline("c")).collect()) == [("a", 1), ("b", 2)]


def test_comments_inside_of_structs(spark: SparkSession, path: str) -> None:
    inner = t.StructType([t.StructField("x", t.LongType(), True, {"comment": "why", "rank": 1})])
    schema = t.StructType([t.StructField("s", t.ArrayType(inner))])
    append(spark.createDataFrame([([Row(x=1)],)], schema), path)
    assert load(spark, path).schema == relaxed(schema)
    assert lance.dataset(path).schema.field("s").type.value_type.field("x").metadata[b"comment"] == b"why"


def test_declared_lengths_inside_of_arrays(spark: SparkSession, path: str) -> None:
    spark.sql("CREATE TABLE declared_nested (c array<varchar(3)>) USING parquet")
    append(spark.table("declared_nested"), path)
    spark.sql("DROP TABLE declared_nested")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW short_nested USING lance OPTIONS (path '{path}')")
    spark.sql("INSERT INTO short_nested VALUES (array('xyz'))")
    with pytest.raises(Exception, match="EXCEED_LIMIT_LENGTH"):
        spark.sql("INSERT INTO short_nested VALUES (array('longer'))")
    assert load(spark, path).collect() == [(["xyz"],)]


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("array(interval '1-2' year to month)", "c.element"),
        ("named_struct('a', named_struct('b', array(interval '1' month)))", "c.a.b.element"),
    ],
)
def test_refused_types(spark: SparkSession, path: str, expression: str, name: str) -> None:
    with pytest.raises(PySparkException, match=f"NotSupportedError: column '{name}' has Spark's type"):
        append(spark.range(3).select(f.expr(expression).alias("c")), path)


def test_maps_need_files_of_format_2_2(spark: SparkSession, path: str) -> None:
    df = spark.sql("SELECT map('k', 1) AS m")
    with pytest.raises(PySparkException, match=r"NotSupportedError: .*in a map, which file format 2\.1 cannot hold"):
        append(df, path, file_format_version="2.1")
    append(df.selectExpr("array(named_struct('x', 1)) AS a"), path, file_format_version="2.1")
    assert load(spark, path).collect() == [([Row(x=1)],)]


NULLS = [None, [1, None, 3], []]
FOREIGN: dict[str, tuple[pa.Array, list[Any]]] = {
    "large_list": (pa.array([*NULLS, [4]], pa.large_list(pa.int64())), [*NULLS, [4]]),
    "unsigned": (pa.array([*NULLS, [255]], pa.list_(pa.uint8())), [*NULLS, [255]]),
    "uint64": (
        pa.array([[2**64 - 1], None, [None], []], pa.list_(pa.uint64())),
        [[Decimal(2**64 - 1)], None, [None], []],
    ),
    "names": (pa.array([*NULLS, [4]], pa.list_(pa.field("anything", pa.int16()))), [*NULLS, [4]]),
    "large_strings": (
        pa.array([[["a"], None], [], None, [[]]], pa.large_list(pa.list_(pa.large_string()))),
        [[["a"], None], [], None, [[]]],
    ),
    "struct": (
        pa.array(
            [{"n": -1, "d": 86_400_000}, None, {"n": None, "d": None}, {"n": 1999, "d": 0}],
            pa.struct([("n", pa.timestamp("ns")), ("d", pa.date64())]),
        ),
        [
            Row(n=datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), d=datetime.date(1970, 1, 2)),
            None,
            Row(n=None, d=None),
            Row(n=datetime.datetime(1970, 1, 1, 0, 0, 0, 1), d=datetime.date(1970, 1, 1)),
        ],
    ),
    "map": (
        pa.array([[(1, b"ab")], None, [], [(2, None), (3, b"cd")]], pa.map_(pa.uint32(), pa.binary(2))),
        [{1: b"ab"}, None, {}, {2: None, 3: b"cd"}],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_spark_reads_what_pylance_wrote(spark: SparkSession, path: str, version: str) -> None:
    columns = {name: array for name, (array, _) in FOREIGN.items() if name != "map" or version == "2.2"}
    if version == "2.0":
        del columns["struct"]  # Structs are never null there.
    lance.write_dataset(pa.table(columns), path, data_storage_version=version)
    for batch_size in (1, 3, 100):
        rows = load(spark, path, batch_size=batch_size).collect()
        for name in columns:
            assert [row[name] for row in rows] == FOREIGN[name][1], name


def test_spark_appends_to_what_pylance_wrote(spark: SparkSession, path: str) -> None:
    table = pa.table({name: array for name, (array, _) in FOREIGN.items() if name != "struct"})
    lance.write_dataset(table, path, data_storage_version="2.2")
    append(load(spark, path), path)
    found = lance.dataset(path)
    found.validate()
    assert found.schema == table.schema
    assert found.to_table().to_pylist() == table.to_pylist() * 2


def test_pylance_appends_to_what_spark_wrote(spark: SparkSession, path: str) -> None:
    append(spark.sql("SELECT array(named_struct('x', 1)) AS a WHERE false UNION ALL SELECT NULL").coalesce(1), path)
    more = pa.array([[{"x": 2}], None], lance.dataset(path).schema.field("a").type)
    lance.write_dataset(pa.table({"a": more}), path, mode="append")
    assert sorted(load(spark, path).where("a IS NOT NULL").collect()) == [([Row(x=2)],)]
    assert load(spark, path).count() == 3


VECTOR_SIZE = "v.arrow.fixed-size-list.size"


def vectors_are_stored(path: str) -> bool:
    """Tell whether the library below writes vectors yet."""
    vectors = pa.table({"v": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))})
    try:
        lance_format.write_dataset(vectors, f"{path}.probe")
    except lance_format.NotSupportedError:
        return False
    return True


class TestVectors:
    @pytest.fixture(autouse=True)
    def _stored(self, path: str) -> None:
        if not vectors_are_stored(path):
            pytest.skip("lance_format does not write vectors yet")

    @pytest.mark.slow
    @pytest.mark.parametrize("element", ["float", "double", "tinyint", "int", "bigint"])
    def test_vectors_come_back(self, spark: SparkSession, path: str, element: str) -> None:
        values = [[1, 2, 3], None, [4, 5, 6]]
        df = spark.createDataFrame([(value,) for value in values], "V array<int>")
        df = df.select(f.col("V").cast(f"array<{element}>")).coalesce(1)
        append(df, path, **{VECTOR_SIZE: 3})
        stored = lance.dataset(path)
        stored.validate()
        assert pa.types.is_fixed_size_list(stored.schema.field("V").type)
        assert stored.schema.field("V").type.list_size == 3
        assert stored.to_table()["V"].to_pylist() == values
        found = load(spark, path)
        assert found.schema.simpleString() == f"struct<V:array<{element}>>"
        assert [row.V for row in found.collect()] == values
        append(df, path, **{VECTOR_SIZE: 3})
        append(df, path)
        assert load(spark, path).count() == 9
        overwrite(load(spark, path), path)
        assert pa.types.is_fixed_size_list(lance.dataset(path).schema.field("V").type)

    @pytest.mark.slow
    def test_rows_of_another_length_are_refused(self, spark: SparkSession, path: str) -> None:
        df = spark.createDataFrame([([1.0, 2.0],), ([1.0, 2.0, 3.0],)], "v array<float>")
        with pytest.raises(PySparkException, match=r"InvalidInputError: column 'v' has an array of 3 .* 2 values"):
            append(df, path, **{VECTOR_SIZE: 2})
        with pytest.raises(lance_format.DatasetNotFoundError):
            lance_format.dataset(path)

    @pytest.mark.slow
    def test_a_table_keeps_its_size(self, spark: SparkSession, path: str) -> None:
        df = spark.createDataFrame([([1.0, 2.0],)], "v array<float>")
        append(df, path, **{VECTOR_SIZE: 2})
        before = files(path)
        with pytest.raises(PySparkException, match=rf"InvalidInputError: option '{VECTOR_SIZE}' is '3'"):
            append(df, path, **{VECTOR_SIZE: 3})
        with pytest.raises(PySparkException, match="InvalidInputError: column 'v' has an array of 1 values"):
            append(df.selectExpr("slice(v, 1, 1) AS v"), path)
        assert files(path) == before

    def test_spark_reads_vectors_that_pylance_wrote(self, spark: SparkSession, path: str) -> None:
        halves = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.float16(), 2))
        lance.write_dataset(pa.table({"v": halves}), path)
        found = load(spark, path)
        assert found.schema["v"].dataType == t.ArrayType(t.FloatType())
        assert [row.v for row in found.collect()] == [[1.0, 2.0], None, [3.0, 4.0]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (VECTOR_SIZE, "2", "column 'v' cannot hold vectors"),
        ("w.arrow.fixed-size-list.size", "2", "no column is called 'w'"),
        ("w.lance.compression", "zstd", "no column is called 'w'"),
        ("v.lance.compression", "gzip", "one of none, zstd, lz4, fsst"),
        ("v.lance.compression-level", "23", "an integer from -131072 to 22"),
        ("v.lance.rle-threshold", "2", "a number from 0.0 to 1.0"),
        ("v.lance.bss", "maybe", "one of off, on, auto"),
        ("v.lance.minichunk-size", "0", "an integer from 1 to 1073741824"),
        ("v.lance.structural-encoding", "sparse", "one of miniblock, fullzip"),
        ("v.lance.packed", "yes", "one of true"),
        ("v.lance.packed", "true", "column 'v' cannot be packed"),
    ],
)
def test_bad_options_of_columns(spark: SparkSession, path: str, name: str, value: str, message: str) -> None:
    with pytest.raises(PySparkException, match=f"InvalidInputError: .*{message}"):
        append(spark.createDataFrame([(["x"],)], "v array<string>"), path, **{name: value})


def test_options_of_columns_become_metadata_unless_the_frame_says_otherwise(spark: SparkSession, path: str) -> None:
    own = {"lance-encoding:compression": "lz4"}
    schema = t.StructType([t.StructField("Text", t.StringType()), t.StructField("own", t.LongType(), True, own)])
    df = spark.createDataFrame([("x" * 10, 1)] * 5000, schema).coalesce(1)
    options = {"text.lance.compression": "zstd", "text.lance.compression-level": "9", "own.lance.compression": "zstd"}
    append(df, path, **options)
    stored = lance.dataset(path)
    stored.validate()
    assert stored.schema.field("Text").metadata == {
        b"lance-encoding:compression": b"zstd",
        b"lance-encoding:compression-level": b"9",
    }
    assert stored.schema.field("own").metadata == {b"lance-encoding:compression": b"lz4"}
    append(df, path, **{"text.lance.compression": "zstd"})
    with pytest.raises(PySparkException, match=r"InvalidInputError: option 'text\.lance\.compression' is 'lz4'"):
        append(df, path, **{"text.lance.compression": "lz4"})
    overwrite(df, path, **{"text.lance.compression": "lz4"})
    assert load(spark, path, **options).collect() == df.collect()


def test_packed_structs(spark: SparkSession, path: str) -> None:
    df = spark.range(100).selectExpr("named_struct('x', id, 'y', cast(id AS int)) AS S").coalesce(1)
    append(df, path, **{"s.lance.packed": "true"})
    stored = lance.dataset(path)
    stored.validate()
    assert stored.schema.field("S").metadata == {b"lance-encoding:packed": b"true"}
    file = stored.get_fragments()[0].metadata.files[0]
    assert len(set(file.column_indices)) == 1
    append(df, path, **{"s.lance.packed": "true"})
    expected = df.union(df).orderBy("S").collect()
    assert load(spark, path).orderBy("S").collect() == expected
    assert stored.checkout_version(2).to_table()["S"].to_pylist() == [{"x": n, "y": n} for n in [*range(100)] * 2]
    assert load(spark, path).where("S.y = 7").count() == 2


def test_compression_shrinks_what_is_inside(spark: SparkSession, path: str) -> None:
    df = spark.range(0, 20_000, 1, 1).select(f.array(f.sha2((f.col("id") % 7000).cast("string"), 256)).alias("a"))
    sizes = {}
    for compression in ("none", "zstd"):
        append(df, f"{path}.{compression}", **{"a.lance.compression": compression})
        fragments = lance_format.dataset(f"{path}.{compression}").get_fragments()
        sizes[compression] = sum(file.file_size_bytes for fragment in fragments for file in fragment.data_files())
    assert sizes["zstd"] < 0.7 * sizes["none"]
