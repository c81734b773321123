"""Types and field metadata, without a session."""

from collections.abc import Callable

import pyarrow as pa
import pytest
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from connector.compatibility import check_readable, check_same_types
from connector.types import to_exchange_schema, to_spark_schema, to_stored_schema
from lance_format import InvalidInputError, NotSupportedError, SchemaMismatchError
from tests.spark.conftest import relaxed

UTC = pa.timestamp("us", "UTC")
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
]


NESTED = [
    (t.ArrayType(t.LongType()), pa.list_(pa.field("item", pa.int64()))),
    (t.ArrayType(t.LongType(), False), pa.list_(pa.int64())),
    (t.ArrayType(t.ArrayType(t.TimestampType(), False)), pa.list_(pa.list_(UTC))),
    (t.MapType(t.StringType(), t.LongType()), pa.map_(pa.string(), pa.int64())),
    (
        t.MapType(t.DateType(), t.MapType(t.LongType(), t.BinaryType(), False), False),
        pa.map_(pa.date32(), pa.map_(pa.int64(), pa.binary())),
    ),
    (
        t.StructType([t.StructField("x", t.LongType(), False), t.StructField("element", t.ArrayType(t.NullType()))]),
        pa.struct([("x", pa.int64()), ("element", pa.list_(pa.null()))]),
    ),
    (
        t.MapType(t.TimeType(0), t.ArrayType(t.StructType([t.StructField("s", t.StringType("UTF8_LCASE"))]))),
        pa.map_(pa.time64("ns"), pa.list_(pa.struct([("s", pa.string())]))),
    ),
    (t.ArrayType(t.DayTimeIntervalType(1, 2)), pa.list_(pa.duration("us"))),
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


@pytest.mark.parametrize(("spark_type", "arrow_type"), NESTED, ids=str)
def test_a_nested_type_comes_back_as_it_was(spark_type: t.DataType, arrow_type: pa.DataType) -> None:
    stored = to_stored_schema(struct(c=spark_type))
    assert stored.field("c").type == arrow_type
    assert to_spark_schema(stored) == struct(c=relaxed(spark_type))
    with_metadata = pa.schema([pa.field("c", stored.field("c").type, metadata=stored.field("c").metadata)])
    assert to_spark_schema(with_metadata) == struct(c=relaxed(spark_type))


@pytest.mark.parametrize(("spark_type", "arrow_type"), [*STORED, *NESTED], ids=str)
def test_what_spark_demands_of_batches(spark_type: t.DataType, arrow_type: pa.DataType) -> None:
    """Names inside of lists, which Arrow leaves out when it compares types, are part of how it spells them."""
    schema = t.StructType(
        [t.StructField("c", spark_type, spark_type == t.NullType()), t.StructField("d", t.ArrayType(spark_type))]
    )
    expected = to_arrow_schema(schema, timezone="UTC")
    found = to_exchange_schema(schema)
    assert found == expected
    assert str(found) == str(expected)


def test_names_inside_of_lists() -> None:
    spark_type = t.ArrayType(t.ArrayType(t.LongType()))
    assert "item" in str(to_stored_schema(struct(c=spark_type)))
    assert "element" not in str(to_stored_schema(struct(c=spark_type)))


def test_void_is_nullable_whatever_spark_says() -> None:
    never_null = t.StructType([t.StructField("x", t.NullType(), False)])
    stored = to_stored_schema(struct(a=t.ArrayType(t.NullType(), False), s=never_null))
    assert stored == pa.schema([("a", pa.list_(pa.null())), ("s", pa.struct([("x", pa.null())]))])
    assert to_exchange_schema(never_null) == pa.schema([("x", pa.null())])


def test_metadata_inside_of_structs_comes_back() -> None:
    inner = t.StructType([t.StructField("x", t.TimeType(1), False, METADATA), t.StructField("y", t.LongType())])
    schema = struct(c=t.ArrayType(t.MapType(t.LongType(), inner)))
    stored = to_stored_schema(schema)
    field = stored.field("c").type.value_type.item_type.field("x")
    assert field.metadata[b"comment"].decode() == METADATA["comment"]
    assert to_spark_schema(stored) == relaxed(schema)
    assert to_spark_schema(stored)["c"].dataType.elementType.valueType["x"].metadata == METADATA


def test_every_type_of_spark_is_stored_or_refused() -> None:
    abstract = {"AnsiIntervalType", "AnyTimeType", "AtomicType", "DataType", "DatetimeType", "FractionalType"}
    abstract |= {"IntegralType", "NumericType", "SpatialType"}
    known = {type(spark_type) for spark_type, _ in [*STORED, *NESTED, *REFUSED]}
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


@pytest.mark.parametrize(("spark_type", "name"), REFUSED, ids=str)
@pytest.mark.parametrize(
    ("nest", "path"),
    [
        (lambda inner: t.ArrayType(inner), "c.element"),
        (lambda inner: t.MapType(t.LongType(), inner), "c.value"),
        (lambda inner: t.MapType(inner, t.LongType()), "c.key"),
        (lambda inner: struct(x=t.LongType(), b=t.ArrayType(inner)), "c.b.element"),
        (lambda inner: t.ArrayType(t.MapType(t.LongType(), struct(b=inner))), "c.element.value.b"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_stored_is_refused_by_path(
    spark_type: t.DataType, name: str, nest: Callable[[t.DataType], t.DataType], path: str
) -> None:
    with pytest.raises(NotSupportedError) as error:
        to_stored_schema(struct(ok=t.LongType(), c=nest(spark_type)))
    assert f"column {path!r} has Spark's type {name}" in str(error.value)


def test_user_defined_types_are_refused_though_what_they_are_made_of_is_not() -> None:
    with pytest.raises(NotSupportedError, match=r"column 'p'.*user-defined"):
        to_stored_schema(struct(p=Point()))
    with pytest.raises(NotSupportedError, match=r"column 'p\.element'.*user-defined"):
        to_stored_schema(struct(p=t.ArrayType(Point())))


@pytest.mark.parametrize(
    ("arrow_type", "spark_type"),
    [
        (pa.large_list(pa.uint8()), t.ArrayType(t.ShortType())),
        (pa.list_(pa.float16(), 4), t.ArrayType(t.FloatType())),
        (pa.list_(pa.list_(pa.float64(), 4)), t.ArrayType(t.ArrayType(t.DoubleType()))),
        (pa.list_(pa.dictionary(pa.int8(), pa.list_(pa.uint64()))), t.ArrayType(t.ArrayType(t.DecimalType(20, 0)))),
        (pa.map_(pa.uint32(), pa.date64()), t.MapType(t.LongType(), t.DateType())),
        (pa.list_(pa.field("x", pa.timestamp("ns", "Asia/Tokyo"), False)), t.ArrayType(t.TimestampType(), False)),
    ],
    ids=str,
)
def test_nested_types_that_other_writers_store(arrow_type: pa.DataType, spark_type: t.DataType) -> None:
    found = to_spark_schema(pa.schema([("c", arrow_type)]))
    assert found["c"].dataType == spark_type


@pytest.mark.parametrize(
    ("arrow_type", "path"),
    [
        (pa.list_(pa.decimal256(39, 0)), "c.element"),
        (pa.map_(pa.string(), pa.decimal256(39, 0)), "c.value"),
        (pa.large_list(pa.struct([("x", pa.decimal256(39, 0))])), "c.element.x"),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_refused_by_path(arrow_type: pa.DataType, path: str) -> None:
    with pytest.raises(NotSupportedError, match=rf"column '{path}'.*decimal256\(39, 0\).*the option 'columns'"):
        to_spark_schema(pa.schema([("c", arrow_type)]))


class TestVectors:
    def test_metadata_makes_an_array_a_vector(self) -> None:
        field = t.StructField("v", t.ArrayType(t.FloatType()), metadata={"arrow.fixed-size-list.size": 4, "x": "y"})
        schema = t.StructType([field, t.StructField("s", t.StructType([field]))])
        stored = to_stored_schema(schema)
        assert stored.field("v").type == pa.list_(pa.float32(), 4)
        assert stored.field("v").metadata == {b"x": b"y"}
        assert stored.field("s").type.field("v").type == pa.list_(pa.float32(), 4)
        assert to_spark_schema(stored) == schema

    @pytest.mark.parametrize("size", [0, -1, 2**31, "four", 1.5, None, True])
    def test_sizes_are_checked(self, size: object) -> None:
        field = t.StructField("v", t.ArrayType(t.FloatType()), metadata={"arrow.fixed-size-list.size": size})
        if size is None:
            assert to_stored_schema(t.StructType([field])).field("v").type == pa.list_(pa.float32())
            return
        with pytest.raises(InvalidInputError, match="column 'v'"):
            to_stored_schema(t.StructType([field]))

    @pytest.mark.parametrize(
        "element",
        [t.StringType(), t.ArrayType(t.FloatType()), t.DecimalType(5, 2), t.TimeType(3), t.NullType()],
        ids=str,
    )
    def test_other_elements_are_refused(self, element: t.DataType) -> None:
        field = t.StructField("v", t.ArrayType(element), metadata={"arrow.fixed-size-list.size": 4})
        with pytest.raises(InvalidInputError, match="column 'v' cannot hold vectors: an array of values of a fixed"):
            to_stored_schema(t.StructType([field]))


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.decimal256(39, 0),
        pa.decimal128(5, -2),
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


def test_declared_lengths_inside_of_a_column_are_kept_at_the_column() -> None:
    inner = t.StructType([t.StructField("a b`c", t.ArrayType(t.VarcharType(3)))])
    field = to_spark_schema(to_stored_schema(struct(c=t.MapType(t.CharType(2), inner))))["c"]
    assert field.dataType.simpleString() == "map<string,struct<a b`c:array<string>>>"
    assert field.metadata == {"__CHAR_VARCHAR_TYPE_STRING": "map<char(2),struct<`a b``c`:array<varchar(3)>>>"}


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

    def test_differences_inside_of_columns_are_named(self) -> None:
        table = struct(
            s=struct(x=t.LongType(), y=t.ArrayType(t.LongType())),
            m=t.MapType(t.StringType(), t.LongType()),
            t=struct(x=t.LongType()),
            a=t.ArrayType(t.LongType()),
        )
        found = struct(
            s=struct(y=t.ArrayType(t.DateType(), False), x=t.LongType()),
            m=t.MapType(t.LongType(), t.StringType()),
            t=struct(z=t.LongType()),
            a=t.LongType(),
        )
        with pytest.raises(SchemaMismatchError) as error:
            check_same_types(found, table, "/t")
        assert str(error.value) == (
            "the data does not fit the table /t: column 's.y.element' is date where the table has bigint; "
            "column 'm.key' is bigint where the table has string; "
            "column 'm.value' is string where the table has bigint; "
            "column 't' is struct<z:bigint> where the table has struct<x:bigint>; "
            "column 'a' is bigint where the table has array<bigint>"
        )


class TestRead:
    def test_a_column_that_is_gone_or_changed_is_named(self) -> None:
        stored = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("unreadable", pa.decimal256(50, 0))])
        check_readable(stored, struct(a=t.LongType()), "/t")
        with pytest.raises(SchemaMismatchError, match="column 'b' is read as string but is bigint; column 'x' is not"):
            check_readable(stored, struct(b=t.StringType(), x=t.LongType()), "/t")
