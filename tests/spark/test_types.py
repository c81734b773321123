"""Types and field metadata, without a session."""

import pyarrow as pa
import pytest
from pyspark.sql import types as t

from connector.types import check_readable, check_same_types, to_exchange_schema, to_spark_schema, to_stored_schema
from lance_format import InvalidInputError, NotSupportedError, SchemaMismatchError

STORED = [
    (t.NullType(), pa.null()),
    (t.BooleanType(), pa.bool_()),
    (t.ByteType(), pa.int8()),
    (t.ShortType(), pa.int16()),
    (t.IntegerType(), pa.int32()),
    (t.LongType(), pa.int64()),
    (t.FloatType(), pa.float32()),
    (t.DoubleType(), pa.float64()),
    (t.DecimalType(38, 38), pa.decimal128(38, 38)),
    (t.StringType(), pa.string()),
    (t.StringType("UTF8_LCASE"), pa.string()),
    (t.BinaryType(), pa.binary()),
    (t.DateType(), pa.date32()),
    (t.TimestampType(), pa.timestamp("us", "UTC")),
    (t.TimestampNTZType(), pa.timestamp("us")),
    (t.TimeType(), pa.time64("ns")),
    (t.TimeType(3), pa.time64("ns")),
    (t.DayTimeIntervalType(), pa.duration("us")),
    (t.DayTimeIntervalType(1, 2), pa.duration("us")),
    (t.DayTimeIntervalType(3, 3), pa.duration("us")),
]

READ_ONLY = [
    (pa.uint8(), t.ShortType()),
    (pa.uint16(), t.IntegerType()),
    (pa.uint32(), t.LongType()),
    (pa.uint64(), t.DecimalType(20, 0)),
    (pa.float16(), t.FloatType()),
    (pa.large_string(), t.StringType()),
    (pa.large_binary(), t.BinaryType()),
    (pa.binary(16), t.BinaryType()),
    (pa.date64(), t.DateType()),
    *[(pa.timestamp(unit), t.TimestampNTZType()) for unit in ("s", "ms", "us", "ns")],
    *[(pa.timestamp(unit, "Asia/Tokyo"), t.TimestampType()) for unit in ("s", "ms", "us", "ns")],
    *[(time, t.TimeType()) for time in (pa.time32("s"), pa.time32("ms"), pa.time64("us"))],
    *[(pa.duration(unit), t.DayTimeIntervalType()) for unit in ("s", "ms", "ns")],
    (pa.decimal256(38, 2), t.DecimalType(38, 2)),
    (pa.dictionary(pa.int8(), pa.large_string()), t.StringType()),
]

REFUSED = [
    (t.YearMonthIntervalType(), "interval year to month"),
    (t.CalendarIntervalType(), "interval"),
    (t.VariantType(), "variant"),
    (t.GeometryType(4326), "geometry"),
    (t.GeographyType(4326), "geography"),
    (t.ArrayType(t.LongType()), "array<bigint>"),
    (t.MapType(t.StringType(), t.LongType()), "map<string,bigint>"),
    (t.StructType([t.StructField("x", t.LongType())]), "struct<x:bigint>"),
]


class Point(t.UserDefinedType):
    @classmethod
    def sqlType(cls) -> t.DataType:
        return t.LongType()


def struct(**fields: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, spark_type) for name, spark_type in fields.items()])


@pytest.mark.parametrize(("spark_type", "arrow_type"), STORED, ids=str)
def test_a_type_comes_back_as_it_was(spark_type: t.DataType, arrow_type: pa.DataType) -> None:
    stored = to_stored_schema(struct(c=spark_type))
    assert stored.field("c").type == arrow_type
    assert to_spark_schema(stored) == struct(c=spark_type)
    assert to_exchange_schema(struct(c=spark_type)) == pa.schema([("c", arrow_type)])


def test_every_type_of_spark_is_stored_or_refused() -> None:
    abstract = {"AnsiIntervalType", "AnyTimeType", "AtomicType", "DataType", "DatetimeType", "FractionalType"}
    abstract |= {"IntegralType", "NumericType", "SpatialType"}
    known = {type(spark_type) for spark_type, _ in [*STORED, *REFUSED]}
    known |= {t.CharType, t.VarcharType, t.UserDefinedType}
    exported = (getattr(t, name) for name in dir(t) if name.endswith("Type") and name not in abstract | {"Type"})
    assert {spark_type for spark_type in exported if issubclass(spark_type, t.DataType)} <= known


@pytest.mark.parametrize(("arrow_type", "spark_type"), READ_ONLY, ids=str)
def test_types_that_other_writers_store(arrow_type: pa.DataType, spark_type: t.DataType) -> None:
    assert to_spark_schema(pa.schema([("c", arrow_type)])) == struct(c=spark_type)


@pytest.mark.parametrize(("spark_type", "name"), REFUSED, ids=str)
def test_what_cannot_be_stored_is_refused_by_name(spark_type: t.DataType, name: str) -> None:
    with pytest.raises(NotSupportedError) as error:
        to_stored_schema(struct(ok=t.LongType(), c=spark_type))
    assert f"column 'c' has Spark's type {name}" in str(error.value)


def test_user_defined_types_are_refused_though_what_they_are_made_of_is_not() -> None:
    with pytest.raises(NotSupportedError, match=r"column 'p'.*user-defined"):
        to_stored_schema(struct(p=Point()))


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.decimal256(39, 0),
        pa.decimal128(5, -2),
        pa.list_(pa.int8()),
        pa.struct([("x", pa.int8())]),
        pa.month_day_nano_interval(),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_refused_by_name(arrow_type: pa.DataType) -> None:
    with pytest.raises(NotSupportedError) as error:
        to_spark_schema(pa.schema([("c", arrow_type)]))
    assert "column 'c'" in str(error.value)
    assert str(arrow_type) in str(error.value)


def test_a_table_needs_columns_with_different_names() -> None:
    with pytest.raises(InvalidInputError, match="at least one column"):
        to_stored_schema(t.StructType([]))
    twice = t.StructType([t.StructField("a", t.LongType()), t.StructField("a", t.StringType())])
    with pytest.raises(InvalidInputError, match="'a'"):
        to_stored_schema(twice)


METADATA = {
    "comment": "what it is — ünïcode",
    "lance-encoding:compression": "none",
    "max": 3,
    "share": 0.5,
    "nested": {"list": [1, "two", None, True]},
    "none": None,
    "spark:type": "mine",
    "spark:metadata": "mine too",
}


def test_field_metadata_comes_back() -> None:
    field = t.StructField("c", t.TimeType(2), metadata=METADATA)
    stored = to_stored_schema(t.StructType([field]))
    assert stored.field("c").metadata[b"comment"].decode() == METADATA["comment"]
    assert stored.field("c").metadata[b"lance-encoding:compression"] == b"none"
    assert to_spark_schema(stored)["c"].metadata == METADATA
    assert to_spark_schema(stored)["c"].dataType == t.TimeType(2)


@pytest.mark.parametrize("text", ["", "{", "[1]", "3", "[" * 100_000])
def test_foreign_metadata_is_ignored(text: str) -> None:
    fields = [pa.field("c", pa.string(), metadata={"spark:metadata": text, "spark:type": text, "x": "y"})]
    assert to_spark_schema(pa.schema(fields)) == t.StructType([t.StructField("c", t.StringType(), metadata={"x": "y"})])


@pytest.mark.parametrize(
    ("declared", "spelling"), [(t.VarcharType(10), "varchar(10)"), (t.CharType(3), "char(3)")], ids=str
)
def test_declared_lengths_are_kept_where_spark_looks_for_them(declared: t.DataType, spelling: str) -> None:
    field = to_spark_schema(to_stored_schema(struct(c=declared)))["c"]
    assert field.dataType == t.StringType()
    assert field.metadata == {"__CHAR_VARCHAR_TYPE_STRING": spelling}


class TestAppend:
    TABLE = struct(a=t.LongType(), b=t.StringType(), c=t.DecimalType(5, 2))

    def test_order_nullability_and_collation_may_differ(self) -> None:
        found = t.StructType(
            [
                t.StructField("c", t.DecimalType(5, 2), False),
                t.StructField("b", t.StringType("UTF8_LCASE")),
                t.StructField("a", t.LongType()),
            ]
        )
        check_same_types(found, self.TABLE, "/t")

    def test_every_difference_is_named(self) -> None:
        found = struct(a=t.IntegerType(), c=t.DecimalType(6, 2), d=t.DateType())
        with pytest.raises(SchemaMismatchError) as error:
            check_same_types(found, self.TABLE, "/t")
        assert str(error.value) == (
            "the data does not fit the table /t: column 'a' is int where the table has bigint; "
            "column 'b' (string) is missing; column 'c' is decimal(6,2) where the table has decimal(5,2); "
            "column 'd' (date) is not in the table"
        )


class TestRead:
    def test_a_column_that_is_gone_or_changed_is_named(self) -> None:
        stored = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("unreadable", pa.list_(pa.int8()))])
        check_readable(stored, struct(a=t.LongType()), "/t")
        with pytest.raises(SchemaMismatchError, match="column 'b' is read as string but is bigint; column 'x' is not"):
            check_readable(stored, struct(b=t.StringType(), x=t.LongType()), "/t")
