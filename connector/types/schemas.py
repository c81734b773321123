"""Mapping between Spark's types and Arrow's.

A column that Spark writes is stored with one Arrow type (`to_stored_schema`). It is the type that Spark uses to
exchange it, except for the names of fields inside arrays, so reading it back copies nothing. A column that another
writer stored may have any Arrow type: `to_spark_schema` names the Spark type that holds all its values, and
`connector.types.batches` converts. Both descend into arrays, maps and structs, and treat nested values like columns.

| Spark       | stored                        | exchanged with Spark         |
|-------------|-------------------------------|------------------------------|
| `array<t>`  | `list<item: t>`, or a vector  | `list<element: t>`           |
| `map<k,v>`  | `map<key: k, value: v>`       | `map<key: k, value: v>`      |
| `struct<…>` | `struct<…>`                   | `struct<…>`                  |
| `variant`   | `struct<value, metadata>`     | the same                     |

The struct of a variant has two binaries that are not null, and the field `metadata` has the metadata `variant: true`.
Spark itself marks variants in Arrow so, and interprets such schemas as variants.

`connector.types.field_metadata` stores metadata, and properties of Spark's types that Arrow lacks;
`connector.types.user_defined_types` handles user-defined types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CalendarIntervalType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    GeographyType,
    GeometryType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    UserDefinedType,
    VarcharType,
    VariantType,
    YearMonthIntervalType,
)

from connector.types.arrays import has_items
from connector.types.declared_types import DECLARED_TYPE_KEY, declared_type, with_lengths, without_lengths
from connector.types.field_metadata import (
    VECTOR_SIZE_KEY,
    refine,
    spell_type,
    to_spark_metadata,
    to_stored_metadata,
)
from connector.types.user_defined_types import UDT_KEY, find_class, name_class
from lance_format import InvalidInputError, NotSupportedError, storage_schema

_VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
    ]
)
_MAX_PRECISION = 38
_UINT64_DIGITS = 20

_STORED_TYPES: dict[type[DataType], Callable[[Any], pa.DataType]] = {
    NullType: lambda _: pa.null(),
    BooleanType: lambda _: pa.bool_(),
    ByteType: lambda _: pa.int8(),
    ShortType: lambda _: pa.int16(),
    IntegerType: lambda _: pa.int32(),
    LongType: lambda _: pa.int64(),
    FloatType: lambda _: pa.float32(),
    DoubleType: lambda _: pa.float64(),
    DecimalType: lambda spark_type: pa.decimal128(spark_type.precision, spark_type.scale),
    StringType: lambda _: pa.string(),
    CharType: lambda _: pa.string(),
    VarcharType: lambda _: pa.string(),
    BinaryType: lambda _: pa.binary(),
    DateType: lambda _: pa.date32(),
    TimestampType: lambda _: pa.timestamp("us", tz="UTC"),
    TimestampNTZType: lambda _: pa.timestamp("us"),
    TimeType: lambda _: pa.time64("ns"),
    DayTimeIntervalType: lambda _: pa.duration("us"),
    VariantType: lambda _: _VARIANT,
}

_REFUSED_TYPES: dict[type[DataType], str] = {
    YearMonthIntervalType: "Lance has no type for months; store extract(year FROM c) * 12 + extract(month FROM c)",
    CalendarIntervalType: "Lance has no type for it; store months, days and microseconds as separate columns",
    GeometryType: "it cannot be stored yet; store st_asbinary(column)",
    GeographyType: "it cannot be stored yet; store st_asbinary(column)",
}

_SPARK_TYPES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], DataType | None]], ...] = (
    (pa.types.is_null, lambda _: NullType()),
    (pa.types.is_boolean, lambda _: BooleanType()),
    (pa.types.is_int8, lambda _: ByteType()),
    (pa.types.is_int16, lambda _: ShortType()),
    (pa.types.is_int32, lambda _: IntegerType()),
    (pa.types.is_int64, lambda _: LongType()),
    (pa.types.is_uint8, lambda _: ShortType()),
    (pa.types.is_uint16, lambda _: IntegerType()),
    (pa.types.is_uint32, lambda _: LongType()),
    (pa.types.is_uint64, lambda _: DecimalType(_UINT64_DIGITS, 0)),
    (pa.types.is_float16, lambda _: FloatType()),
    (pa.types.is_float32, lambda _: FloatType()),
    (pa.types.is_float64, lambda _: DoubleType()),
    (pa.types.is_decimal, lambda arrow_type: _decimal(arrow_type)),
    (pa.types.is_string, lambda _: StringType()),
    (pa.types.is_large_string, lambda _: StringType()),
    (pa.types.is_binary, lambda _: BinaryType()),
    (pa.types.is_large_binary, lambda _: BinaryType()),
    (pa.types.is_fixed_size_binary, lambda _: BinaryType()),
    (pa.types.is_date, lambda _: DateType()),
    (pa.types.is_time, lambda arrow_type: TimeType(9 if arrow_type.unit == "ns" else 6)),
    (pa.types.is_duration, lambda _: DayTimeIntervalType()),
    (pa.types.is_timestamp, lambda arrow_type: TimestampNTZType() if arrow_type.tz is None else TimestampType()),
    (lambda arrow_type: _is_variant(arrow_type), lambda _: VariantType()),
)

_ELEMENT, _ITEM = "element", "item"
"""Name of the field inside an array in Spark, and in Arrow and Lance."""
_MAX_VECTOR_SIZE = 2**31 - 1


def to_stored_schema(schema: StructType) -> pa.Schema:
    """Map the schema of a DataFrame to that of a new table.

    All columns are nullable, as in every file that Spark writes: rows appended later may have nulls even if this plan
    yields none. Nested values are nullable too, except keys of maps.

    Parameters
    ----------
    schema : StructType

    Returns
    -------
    pyarrow.Schema
        With Spark's field metadata, as `connector.types.field_metadata` describes.

    Raises
    ------
    InvalidInputError
        If there is no column, two have one name, or the size of a vector makes no sense.
    NotSupportedError
        If a column has a type that cannot be stored.
    """
    names = schema.fieldNames()
    if not names:
        raise InvalidInputError("a table needs at least one column; the DataFrame has none")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidInputError(f"more than one column is called {', '.join(map(repr, repeated))}")
    fields = []
    for field in schema:
        stored = _stored_field(field, field.name)
        metadata = {**(stored.metadata or {}), **declared_type(field.dataType)}
        fields.append(stored.with_nullable(True).with_metadata(metadata or None))
    return pa.schema(fields)


def to_exchange_schema(schema: StructType) -> pa.Schema:
    """Map a schema of Spark to the Arrow schema that Spark demands of a reader's batches."""
    return pa.schema(
        [_part(field.name, _exchange_type(field.dataType, field.name), field.nullable) for field in schema]
    )


def to_spark_schema(schema: pa.Schema) -> StructType:
    """Map a table's schema to Spark's.

    Parameters
    ----------
    schema : pyarrow.Schema

    Returns
    -------
    StructType

    Raises
    ------
    NotSupportedError
        If Spark has no type for a column or a nested value.
    """
    return StructType([_declared(_to_spark_field(field, field.name)) for field in storage_schema(schema)])


def as_vector(array_type: pa.DataType, size: int, column: str) -> pa.DataType:
    """Return the type of vectors of a size with the elements of an array.

    Parameters
    ----------
    array_type : pyarrow.DataType
        As `to_stored_schema` returns it.
    size : int
    column : str
        For the message.

    Raises
    ------
    InvalidInputError
        If the column is no array of numbers, or of another type whose values all have one width, or the size is not
        positive.
    """
    if not 0 < size <= _MAX_VECTOR_SIZE:
        raise InvalidInputError(
            f"column {column!r} cannot hold vectors of {size} values: a size is from 1 to {_MAX_VECTOR_SIZE}"
        )
    item = array_type.value_field if pa.types.is_list(array_type) else None
    if item is None or not pa.types.is_primitive(item.type) or item.metadata:
        raise InvalidInputError(
            f"column {column!r} cannot hold vectors: an array of values of a fixed width, such as array<float>, is "
            f"needed, and the column is stored as {array_type}"
        )
    # The format keeps neither the name nor the nullability of the values of a vector.
    return pa.list_(pa.field(_ITEM, item.type), size)


def _stored_field(field: StructField, path: str) -> pa.Field:
    """Return the stored form of a column, or of a field of a struct."""
    stored = _stored_part(field.name, field.dataType, path)
    metadata = {**to_stored_metadata(field), **_decode(stored.metadata)}
    size = field.metadata.get(VECTOR_SIZE_KEY)
    if size is not None and isinstance(field.dataType, ArrayType):
        stored = stored.with_type(as_vector(stored.type, _vector_size(size, path), path))
    return stored.with_metadata(metadata or None)


def _stored_part(name: str, spark_type: DataType, path: str, *, nullable: bool = True) -> pa.Field:
    """Return the stored form of a type, with metadata if the Arrow type lacks properties of Spark's.

    Later rows may hold nulls even if the query that makes the table has none, except as keys of maps.
    """
    if isinstance(spark_type, ArrayType):
        item = _stored_part(_ITEM, spark_type.elementType, f"{path}.element")
        return pa.field(name, pa.list_(item), nullable)
    if isinstance(spark_type, MapType):
        if isinstance(spark_type.keyType, NullType):
            raise NotSupportedError(
                f"column {path!r} is a map without a type of keys, as map() is: cast it to a map<…> that has one"
            )
        key = _stored_part("key", spark_type.keyType, f"{path}.key", nullable=False)
        value = _stored_part("value", spark_type.valueType, f"{path}.value")
        return pa.field(name, pa.map_(key, value), nullable)
    if isinstance(spark_type, StructType):
        fields = [_stored_field(field, f"{path}.{field.name}") for field in spark_type]
        return pa.field(name, pa.struct(fields), nullable)
    if isinstance(spark_type, UserDefinedType):
        stored = _stored_part(name, spark_type.sqlType(), path, nullable=nullable)
        return stored.with_metadata({**_decode(stored.metadata), UDT_KEY: name_class(spark_type)})
    arrow_type = _atomic_arrow_type(spark_type, path)
    metadata = spell_type(spark_type, _atomic_spark_type(arrow_type, path))
    return _part(name, arrow_type, nullable).with_metadata(metadata or None)


def _exchange_type(spark_type: DataType, path: str) -> pa.DataType:
    if isinstance(spark_type, ArrayType):
        element = _exchange_type(spark_type.elementType, f"{path}.element")
        return pa.list_(_part(_ELEMENT, element, spark_type.containsNull))
    if isinstance(spark_type, MapType):
        key = _part("key", _exchange_type(spark_type.keyType, f"{path}.key"), False)
        value_type = _exchange_type(spark_type.valueType, f"{path}.value")
        return pa.map_(key, _part("value", value_type, spark_type.valueContainsNull))
    if isinstance(spark_type, StructType):
        return pa.struct(
            [
                _part(field.name, _exchange_type(field.dataType, f"{path}.{field.name}"), field.nullable)
                for field in spark_type
            ]
        )
    if isinstance(spark_type, UserDefinedType):
        return _exchange_type(spark_type.sqlType(), path)
    return _atomic_arrow_type(spark_type, path)


def _part(name: str, arrow_type: pa.DataType, nullable: bool) -> pa.Field:
    """Return a field; one of type null is nullable even if Spark says otherwise, as for `array()`."""
    return pa.field(name, arrow_type, nullable or pa.types.is_null(arrow_type))


def _declared(column: StructField) -> StructField:
    """Put the lengths of char and varchar in a column where Spark looks for them: in the metadata of the column."""
    declared = with_lengths(column)
    metadata = {key: value for key, value in column.metadata.items() if key != DECLARED_TYPE_KEY}
    return StructField(column.name, without_lengths(declared), column.nullable, {**metadata, **declared_type(declared)})


def _to_spark_field(field: pa.Field, path: str) -> StructField:
    """Return the Spark form of a column, or of a field of a struct."""
    metadata = to_spark_metadata(_decode(field.metadata))
    if pa.types.is_fixed_size_list(field.type):
        metadata[VECTOR_SIZE_KEY] = field.type.list_size
    spark_type = _spark_type(field, path)
    if isinstance(spark_type, UserDefinedType):
        del metadata[UDT_KEY]
    return StructField(field.name, spark_type, field.nullable, metadata)


def _spark_type(field: pa.Field, path: str) -> DataType:
    arrow_type = field.type
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _spark_type(field.with_type(arrow_type.storage_type), path)
    if pa.types.is_dictionary(arrow_type):
        return _spark_type(field.with_type(arrow_type.value_type), path)
    user_defined = find_class(_decode(field.metadata).get(UDT_KEY))
    if user_defined is not None and _stored_part(field.name, user_defined.sqlType(), path).type == arrow_type:
        return user_defined
    if has_items(arrow_type):
        item = arrow_type.value_field
        return ArrayType(_spark_type(item, f"{path}.element"), item.nullable)
    if pa.types.is_map(arrow_type):
        key, value = arrow_type.key_field, arrow_type.item_field
        return MapType(_spark_type(key, f"{path}.key"), _spark_type(value, f"{path}.value"), value.nullable)
    if pa.types.is_struct(arrow_type) and not _is_variant(arrow_type):
        return StructType([_to_spark_field(child, f"{path}.{child.name}") for child in arrow_type])
    return refine(_atomic_spark_type(arrow_type, path), _decode(field.metadata))


def _atomic_arrow_type(spark_type: DataType, path: str) -> pa.DataType:
    to_arrow = _STORED_TYPES.get(type(spark_type))
    if to_arrow is not None:
        return to_arrow(spark_type)
    reasons = (reason for refused, reason in _REFUSED_TYPES.items() if isinstance(spark_type, refused))
    reason = next(reasons, "this type is not known here")
    raise NotSupportedError(f"column {path!r} has Spark's type {spark_type.simpleString()}: {reason}")


def _atomic_spark_type(arrow_type: pa.DataType, path: str) -> DataType:
    reason = "Spark has no type for it"
    for matches, to_spark in _SPARK_TYPES:
        if matches(arrow_type):
            spark_type = to_spark(arrow_type)
            if spark_type is not None:
                return spark_type
            reason = f"Spark's decimals have at most {_MAX_PRECISION} digits, and a scale from 0 to their precision"
    raise NotSupportedError(
        f"column {path!r}: the table's type {arrow_type} cannot be read: {reason}; "
        "leave it out with the option 'columns'"
    )


def _is_variant(arrow_type: pa.DataType) -> bool:
    """Return whether a struct is a variant, rather than a struct with the same names of fields."""
    if not pa.types.is_struct(arrow_type) or sorted(field.name for field in arrow_type) != ["metadata", "value"]:
        return False
    binary = all(pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type) for field in arrow_type)
    return binary and _decode(arrow_type.field("metadata").metadata).get("variant") == "true"


def _decimal(arrow_type: pa.Decimal128Type) -> DecimalType | None:
    if arrow_type.precision > _MAX_PRECISION or not 0 <= arrow_type.scale <= arrow_type.precision:
        return None
    return DecimalType(arrow_type.precision, arrow_type.scale)


def _vector_size(value: object, path: str) -> int:
    """Return the vector size in the metadata of a field, which is text in SQL's table properties."""
    try:
        return int(str(value))
    except ValueError:
        raise InvalidInputError(
            f"the metadata {VECTOR_SIZE_KEY!r} of column {path!r} must be a whole number, not {value!r}"
        ) from None


def _decode(metadata: dict[bytes, bytes] | None) -> dict[str, str]:
    return {key.decode(errors="replace"): value.decode(errors="replace") for key, value in (metadata or {}).items()}
