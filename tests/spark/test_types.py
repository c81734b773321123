"""Types and field metadata, without a session."""

import inspect
import sys
from collections.abc import Callable

import pyarrow as pa
import pyspark
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.ml.linalg import MatrixUDT, VectorUDT
from pyspark.mllib.linalg import VectorUDT as OldVectorUDT
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.testing.objects import PythonOnlyUDT

from connector.types.compatibility import check_appendable, check_readable
from connector.types.schemas import to_exchange_schema, to_spark_schema, to_stored_schema
from lance_format import InvalidInputError, NotSupportedError, SchemaMismatchError
from tests.spark.conftest import relaxed

UTC = pa.timestamp("us", "UTC")
IN_UTC = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
"""Spark before 4.3 takes that for granted."""
VARIANT = pa.struct([pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)])
MAX_TIME_PRECISION = 9 if tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 3) else 6
VECTOR_PARTS = [("indices", pa.list_(pa.int32())), ("values", pa.list_(pa.float64()))]
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
    (t.TimeType(MAX_TIME_PRECISION), pa.time64("ns")),
    (t.DayTimeIntervalType(), pa.duration("us")),
    (t.DayTimeIntervalType(1, 2), pa.duration("us")),
    (t.DayTimeIntervalType(3, 3), pa.duration("us")),
    (t.VariantType(), VARIANT),
    (VectorUDT(), pa.struct([("type", pa.int8()), ("size", pa.int32()), *VECTOR_PARTS])),
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
    (pa.time64("ns"), t.TimeType(MAX_TIME_PRECISION)),
    *[(pa.duration(unit), t.DayTimeIntervalType()) for unit in ("s", "ms", "ns")],
    (pa.decimal256(38, 2), t.DecimalType(38, 2)),
    (pa.dictionary(pa.int8(), pa.large_string()), t.StringType()),
]

REFUSED = [
    (t.YearMonthIntervalType(), "interval year to month"),
    (t.CalendarIntervalType(), "interval"),
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
    (t.MapType(t.StringType(), t.ArrayType(t.VariantType())), pa.map_(pa.string(), pa.list_(VARIANT))),
    (t.ArrayType(t.StructType([t.StructField("v", t.VariantType())])), pa.list_(pa.struct([("v", VARIANT)]))),
    (t.ArrayType(MatrixUDT()), pa.list_(pa.struct(to_stored_schema(MatrixUDT.sqlType())))),
]


def struct(**fields: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, spark_type) for name, spark_type in fields.items()])


@pytest.mark.parametrize(("spark_type", "arrow_type"), STORED, ids=str)
def test_a_type_comes_back_as_it_was(spark_type: t.DataType, arrow_type: pa.DataType) -> None:
    stored = to_stored_schema(struct(c=spark_type))
    assert stored.field("c").type == arrow_type
    assert to_spark_schema(stored) == struct(c=spark_type)
    assert to_exchange_schema(struct(c=spark_type)) == to_arrow_schema(struct(c=spark_type), **IN_UTC)


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
    expected = to_arrow_schema(schema, **IN_UTC)
    found = to_exchange_schema(schema)
    assert found == expected
    assert found.to_string() == expected.to_string()


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


class TestVariants:
    def test_spark_itself_takes_them_for_variants(self) -> None:
        """Spark finds variants in the schema of a table, even if pylance has read it."""
        schema = struct(v=t.VariantType(), m=t.MapType(t.LongType(), t.ArrayType(struct(x=t.VariantType()))))
        assert from_arrow_schema(to_stored_schema(schema)) == schema

    @pytest.mark.parametrize("mark", [None, {"variant": "false"}, {"variant": b"\xff"}], ids=str)
    def test_a_struct_with_the_same_fields_stays_one(self, mark: dict[str, str] | None) -> None:
        lookalike = pa.struct([("value", pa.binary()), pa.field("metadata", pa.binary(), metadata=mark)])
        found = to_spark_schema(pa.schema([("c", lookalike)]))["c"].dataType
        assert [field.dataType for field in found] == [t.BinaryType(), t.BinaryType()]

    @pytest.mark.parametrize(
        "others",
        [[], [("value", pa.string())], [("x", pa.binary())], [("value", pa.binary()), ("x", pa.int8())]],
        ids=str,
    )
    def test_a_marked_struct_with_other_fields_stays_one(self, others: list[tuple[str, pa.DataType]]) -> None:
        marked = pa.field("metadata", pa.binary(), metadata={"variant": "true"})
        found = to_spark_schema(pa.schema([("c", pa.struct([*others, marked]))]))["c"].dataType
        assert found.fieldNames() == [*(name for name, _ in others), "metadata"]

    def test_offsets_and_order_of_other_writers(self) -> None:
        fields = [pa.field("metadata", pa.large_binary(), metadata={"variant": "true"}), ("value", pa.large_binary())]
        assert to_spark_schema(pa.schema([("c", pa.struct(fields))])) == struct(c=t.VariantType())


class TestUserDefinedTypes:
    def test_the_class_is_named_where_the_type_is(self) -> None:
        stored = to_stored_schema(struct(p=PythonOnlyUDT(), a=t.ArrayType(VectorUDT()), s=struct(m=MatrixUDT())))
        assert stored.field("p").metadata == {b"spark:udt": b"pyspark.testing.objects.PythonOnlyUDT"}
        assert stored.field("a").type.value_field.metadata == {b"spark:udt": b"pyspark.ml.linalg.VectorUDT"}
        assert stored.field("s").type.field("m").metadata == {b"spark:udt": b"pyspark.ml.linalg.MatrixUDT"}

    def test_metadata_of_the_column_comes_back_without_the_name(self) -> None:
        schema = t.StructType([t.StructField("v", OldVectorUDT(), True, {"ml_attr": {"num_attrs": 3}, "comment": "x"})])
        assert to_spark_schema(to_stored_schema(schema)) == schema

    def test_other_classes_come_back_as_what_they_are_made_of_and_keep_their_name(self) -> None:
        found = to_spark_schema(to_stored_schema(struct(p=PythonOnlyUDT())))["p"]
        assert found.dataType == t.ArrayType(t.DoubleType())
        assert found.metadata == {"spark:udt": "pyspark.testing.objects.PythonOnlyUDT"}
        assert to_stored_schema(t.StructType([found])) == to_stored_schema(struct(p=PythonOnlyUDT()))

    @pytest.mark.parametrize(
        "name", ["this.s", "this.VectorUDT", "pyspark.shell.spark", "antigravity", "", ".", "pyspark.ml.linalg.Vectors"]
    )
    def test_nothing_that_a_file_names_is_imported(self, name: str) -> None:
        before = set(sys.modules)
        fields = [pa.field("c", pa.list_(pa.float64()), metadata={"spark:udt": name})]
        assert to_spark_schema(pa.schema(fields))["c"].dataType == t.ArrayType(t.DoubleType())
        assert set(sys.modules) == before

    def test_a_class_that_stores_something_else_is_not_believed(self) -> None:
        fields = [pa.field("c", pa.list_(pa.float64()), metadata={"spark:udt": "pyspark.ml.linalg.VectorUDT"})]
        assert to_spark_schema(pa.schema(fields))["c"].dataType == t.ArrayType(t.DoubleType())

    def test_what_the_storage_says_of_its_type_is_kept(self) -> None:
        class Opening(t.UserDefinedType):
            @classmethod
            def sqlType(cls) -> t.DataType:
                return t.TimeType(3)

            @classmethod
            def module(cls) -> str:
                return "shops"

        stored = to_stored_schema(struct(c=Opening()))
        assert stored.field("c").metadata == {b"spark:type": b"time(3)", b"spark:udt": b"shops.Opening"}
        assert to_spark_schema(stored)["c"].dataType == t.TimeType(3)

    def test_a_type_inside_that_cannot_be_stored_is_refused_by_path(self) -> None:
        class Ages(t.UserDefinedType):
            @classmethod
            def sqlType(cls) -> t.DataType:
                return struct(age=t.YearMonthIntervalType())

        with pytest.raises(
            NotSupportedError, match=r"column 'c\.element\.age' has Spark's type interval year to month"
        ):
            to_stored_schema(struct(c=t.ArrayType(Ages())))

    def test_a_schema_of_ones_own_may_have_classes(self) -> None:
        stored = to_stored_schema(struct(p=PythonOnlyUDT(), v=VectorUDT()))
        check_readable(stored, struct(p=PythonOnlyUDT(), v=VectorUDT.sqlType()), "/t")
        with pytest.raises(
            SchemaMismatchError, match=r"column 'v' is read as pyspark\.ml\.linalg\.MatrixUDT but is pysp"
        ):
            check_readable(stored, struct(v=MatrixUDT()), "/t")
        with pytest.raises(SchemaMismatchError, match=r"column 'p\.element' is read as double but is string"):
            check_readable(pa.schema([("p", pa.list_(pa.string()))]), struct(p=PythonOnlyUDT()), "/t")


def test_a_map_needs_a_type_of_keys() -> None:
    with pytest.raises(NotSupportedError, match=r"column 'c\.element' is a map without a type of keys.*cast it"):
        to_stored_schema(struct(c=t.ArrayType(t.MapType(t.NullType(), t.NullType()))))


def test_digits_that_this_spark_lacks_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = [pa.field("c", pa.time64("ns"), metadata={"spark:type": "time(9)"}), pa.field("d", pa.time64("ns"))]
    for known in (6, 9):
        monkeypatch.setattr("connector.types.field_metadata._MAX_TIME_PRECISION", known)
        assert to_spark_schema(pa.schema(fields)) == struct(c=t.TimeType(known), d=t.TimeType(known))


ATOMS = [spark_type for spark_type, _ in STORED] + [PythonOnlyUDT(), MatrixUDT(), t.CharType(3), t.VarcharType(4)]
KEYS = [spark_type for spark_type in ATOMS if type(spark_type) not in (t.NullType, t.VariantType)]
NAMES = st.text("aéb .`\"'<>:,#", min_size=1, max_size=4)


def containers(inner: st.SearchStrategy[t.DataType]) -> st.SearchStrategy[t.DataType]:
    return st.one_of(
        st.builds(t.ArrayType, inner, st.booleans()),
        st.builds(t.MapType, st.sampled_from(KEYS), inner, st.booleans()),
        structs(inner),
    )


def structs(inner: st.SearchStrategy[t.DataType]) -> st.SearchStrategy[t.StructType]:
    metadata = st.dictionaries(NAMES, st.none() | st.integers() | NAMES | st.lists(NAMES), max_size=2)
    fields = st.builds(t.StructField, NAMES, inner, st.booleans(), metadata)
    return st.lists(fields, min_size=1, max_size=3, unique_by=lambda field: field.name).map(t.StructType)


def as_read(spark_type: t.DataType) -> t.DataType:
    """Return a type without lengths of strings and classes that are no part of Spark's linear algebra."""
    if isinstance(spark_type, t.ArrayType):
        return t.ArrayType(as_read(spark_type.elementType))
    if isinstance(spark_type, t.MapType):
        return t.MapType(as_read(spark_type.keyType), as_read(spark_type.valueType))
    if isinstance(spark_type, t.StructType):
        return struct(**{field.name: as_read(field.dataType) for field in spark_type})
    if isinstance(spark_type, t.CharType | t.VarcharType):
        return t.StringType()
    return t.ArrayType(t.DoubleType()) if spark_type == PythonOnlyUDT() else spark_type


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(structs(st.recursive(st.sampled_from(ATOMS), containers, max_leaves=8)))
def test_any_schema_comes_back(schema: t.StructType) -> None:
    stored = to_stored_schema(schema)
    found = to_spark_schema(stored)
    assert as_read(found) == as_read(schema)
    for field in schema:
        assert field.metadata.items() <= found[field.name].metadata.items()
    check_readable(stored, schema, "/t")
    check_appendable(schema, found, "/t", allow_new=False)
    assert to_exchange_schema(found) == to_arrow_schema(found, **IN_UTC)


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


def declared(text: str, arrow_type: pa.DataType) -> str | None:
    """Return what Spark is told of a column whose entry may disagree with its type."""
    field = pa.field("c", arrow_type, metadata={"__CHAR_VARCHAR_TYPE_STRING": text})
    return to_spark_schema(pa.schema([field]))["c"].metadata.get("__CHAR_VARCHAR_TYPE_STRING")


@pytest.mark.parametrize(
    ("text", "arrow_type", "wanted"),
    [
        ("varchar(3)", pa.int32(), None),
        ("struct<f:char(3),g:int>", pa.struct({"f": pa.string(), "h": pa.int8()}), "struct<`f`:char(3),`h`:tinyint>"),
        ("struct<f:char(3)>", pa.struct({"z": pa.string()}), None),
        ("STRUCT<`a``:b`: VARCHAR( 3 )>", pa.struct({"a`:b": pa.string()}), "struct<`a``:b`:varchar(3)>"),
        ("map<decimal(5,2),char(1)>", pa.map_(pa.int8(), pa.string()), "map<tinyint,char(1)>"),
        ("array<char(1)>", pa.map_(pa.int8(), pa.string()), None),
        *((text, pa.string(), None) for text in ("", "char", "char(", "char(1)>", "array<", "array<" * 10_000, "<>,:")),
    ],
)
def test_declared_lengths_follow_the_type_of_the_column(text: str, arrow_type: pa.DataType, wanted: str | None) -> None:
    assert declared(text, arrow_type) == wanted


def test_an_entry_of_a_field_replaces_that_of_its_column() -> None:
    entry = "__CHAR_VARCHAR_TYPE_STRING"
    fields = [
        pa.field("f", pa.string(), metadata={entry: "string"}),
        pa.field("g", pa.string(), metadata={entry: "char(9)", "comment": "x"}),
        pa.field("h", pa.string()),
    ]
    column = pa.field("c", pa.struct(fields), metadata={entry: "struct<f:char(1),g:char(2),h:char(3)>"})
    found = to_spark_schema(pa.schema([column]))["c"]
    assert found.metadata == {entry: "struct<`f`:string,`g`:char(9),`h`:char(3)>"}
    assert [field.metadata for field in found.dataType] == [{}, {"comment": "x"}, {}]


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
        check_appendable(found, self.TABLE, "/t", allow_new=False)

    def test_every_difference_is_named(self) -> None:
        found = struct(a=t.IntegerType(), c=t.DecimalType(6, 2), d=t.DateType())
        with pytest.raises(SchemaMismatchError) as error:
            check_appendable(found, self.TABLE, "/t", allow_new=False)
        assert str(error.value) == (
            "the data does not fit the table /t: column 'a' is int where the table has bigint; "
            "column 'c' is decimal(6,2) where the table has decimal(5,2); column 'd' (date) is not in the table; "
            "the option mergeSchema adds columns"
        )

    def test_times_and_intervals_may_be_coarser_but_not_finer(self) -> None:
        table = struct(t=t.TimeType(3), i=t.DayTimeIntervalType(0, 2))
        check_appendable(struct(t=t.TimeType(0), i=t.DayTimeIntervalType(1, 1)), table, "/t", allow_new=False)
        with pytest.raises(SchemaMismatchError, match=r"'t' is time\(6\) where the table has time\(3\); column 'i'"):
            check_appendable(struct(t=t.TimeType(6), i=t.DayTimeIntervalType()), table, "/t", allow_new=False)
        with pytest.raises(SchemaMismatchError, match=r"'t' is read as time\(0\) but is time\(3\)"):
            check_readable(to_stored_schema(table), struct(t=t.TimeType(0)), "/t")

    def test_a_class_may_be_what_it_is_made_of_but_no_other_class(self) -> None:
        plain, vectors = struct(c=t.ArrayType(VectorUDT.sqlType())), struct(c=t.ArrayType(VectorUDT()))
        check_appendable(plain, vectors, "/t", allow_new=False)
        check_appendable(vectors, plain, "/t", allow_new=False)
        with pytest.raises(SchemaMismatchError, match=r"'c.element' is pyspark.mllib.linalg.VectorUDT where the table"):
            check_appendable(struct(c=t.ArrayType(OldVectorUDT())), vectors, "/t", allow_new=False)

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
            check_appendable(found, table, "/t", allow_new=False)
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
