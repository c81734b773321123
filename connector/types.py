"""Spark's types and Arrow's, both ways, and the field metadata that carries what Arrow has no place for.

A column that Spark writes is stored with one Arrow type (`to_stored_schema`), the same that Spark uses to exchange it,
so that reading it back copies nothing. A column that another writer stored may have any Arrow type: `to_spark_schema`
names the Spark type that holds all its values, and `connector.batches` converts.

Field metadata of Spark (comments, the declared type of char and varchar columns, anything else) becomes field metadata
of the table, which is text to text. Entries whose value is a string are stored as they are, where every other reader
finds them; all others go together, as JSON, into one entry. A third kind of entry keeps what the Arrow type does
not say of the Spark type: a collation, the precision of a time, the fields of an interval.

=================== ============================
key                 value
=================== ============================
the entry's own     a string
`spark:metadata`    a JSON object: the entries whose values are not strings
`spark:type`        Spark's spelling of the type: `string collate UNICODE`, `time(3)`, `interval hour to second`
=================== ============================
"""

from __future__ import annotations

import json
import re
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

from lance_format import InvalidInputError, NotSupportedError, SchemaMismatchError

TYPE_KEY = "spark:type"
METADATA_KEY = "spark:metadata"
_RESERVED_KEYS = (TYPE_KEY, METADATA_KEY)
_DECLARED_TYPE_KEY = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark itself keeps the declared type of a char or varchar column, whose type in a plan is string."""

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
}

_NESTED = "nested types cannot be stored yet; store its parts as columns of their own"
_REFUSED_TYPES: dict[type[DataType], str] = {
    YearMonthIntervalType: "Lance has no type for months; store extract(year FROM c) * 12 + extract(month FROM c)",
    CalendarIntervalType: "Lance has no type for it; store months, days and microseconds as columns of their own",
    VariantType: "Lance has no type for it; store to_json(column)",
    GeometryType: "it cannot be stored yet; store st_asbinary(column)",
    GeographyType: "it cannot be stored yet; store st_asbinary(column)",
    ArrayType: _NESTED,
    MapType: _NESTED,
    StructType: _NESTED,
    UserDefinedType: "user-defined types cannot be stored; store what they are made of",
}

_SPARK_TYPES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], DataType]], ...] = (
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
    (pa.types.is_time, lambda _: TimeType()),
    (pa.types.is_duration, lambda _: DayTimeIntervalType()),
    (pa.types.is_timestamp, lambda arrow_type: TimestampNTZType() if arrow_type.tz is None else TimestampType()),
    (pa.types.is_dictionary, lambda arrow_type: _spark_type(arrow_type.value_type)),
)

_INTERVAL_FIELDS = {"day": 0, "hour": 1, "minute": 2, "second": 3}
_INTERVAL = re.compile(r"interval (day|hour|minute|second)(?: to (day|hour|minute|second))?")
_TIME = re.compile(r"time\(([0-6])\)")
_COLLATION = re.compile(r"string collate (\w{1,100})")


def to_stored_schema(schema: StructType) -> pa.Schema:
    """Map the schema of a DataFrame to the one that a new table gets.

    All columns are nullable, as in every file that Spark writes: whether a plan of Spark can yield nulls says little of
    the rows that are appended later.

    Parameters
    ----------
    schema : StructType

    Returns
    -------
    pyarrow.Schema
        With Spark's field metadata as described above.

    Raises
    ------
    InvalidInputError
        If there is no column, or two have one name.
    NotSupportedError
        If a column has a type that cannot be stored.
    """
    names = schema.fieldNames()
    if not names:
        raise InvalidInputError("a table needs at least one column; the DataFrame has none")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidInputError(f"more than one column is called {', '.join(map(repr, repeated))}")
    return pa.schema(
        [
            pa.field(field.name, _stored_type(field.name, field.dataType), metadata=_to_stored_metadata(field))
            for field in schema
        ]
    )


def to_exchange_schema(schema: StructType) -> pa.Schema:
    """Map a schema of Spark to the Arrow schema that Spark demands of a reader's batches."""
    return pa.schema(
        [pa.field(field.name, _stored_type(field.name, field.dataType), field.nullable) for field in schema]
    )


def to_spark_schema(schema: pa.Schema) -> StructType:
    """Map a table's schema to the one that Spark sees.

    Parameters
    ----------
    schema : pyarrow.Schema

    Returns
    -------
    StructType

    Raises
    ------
    NotSupportedError
        If Spark has no type for a column, or it cannot be read yet.
    """
    return StructType([_to_spark_field(field) for field in schema])


def check_readable(stored: pa.Schema, wanted: StructType, path: str) -> None:
    """Check that a table has the columns that Spark is about to read, with types that hold the same values.

    Parameters
    ----------
    stored : pyarrow.Schema
        Of the table's version that is read.
    wanted : StructType
    path : str
        Of the table, for the message.

    Raises
    ------
    SchemaMismatchError
        Naming every column that is missing or has another type.
    """
    differences = []
    for field in wanted:
        if field.name not in stored.names:
            differences.append(f"column {field.name!r} is not in the table")
            continue
        has_type = _to_spark_field(stored.field(field.name)).dataType
        if not _holds_same_values(field.dataType, has_type):
            differences.append(f"column {field.name!r} is read as {_spell(field.dataType)} but is {_spell(has_type)}")
    if differences:
        raise SchemaMismatchError(
            f"the table {path} does not fit the schema that it is read with: {'; '.join(differences)}; "
            "load it again, without a schema of your own"
        )


def check_same_types(found: StructType, expected: StructType, path: str) -> None:
    """Compare the columns that are to be appended with those of the table, by name.

    The order may differ, and so may what no value depends on: nullability, metadata, the length of a varchar, a
    collation.

    Parameters
    ----------
    found, expected : StructType
        Of the DataFrame and of the table.
    path : str
        Of the table, for the message.

    Raises
    ------
    SchemaMismatchError
        Naming every column that differs, and how.
    """
    differences = []
    for field in expected:
        if field.name not in found.fieldNames():
            differences.append(f"column {field.name!r} ({_spell(field.dataType)}) is missing")
        elif not _holds_same_values(found[field.name].dataType, field.dataType):
            is_type, has_type = _spell(found[field.name].dataType), _spell(field.dataType)
            differences.append(f"column {field.name!r} is {is_type} where the table has {has_type}")
    differences.extend(
        f"column {field.name!r} ({_spell(field.dataType)}) is not in the table"
        for field in found
        if field.name not in expected.fieldNames()
    )
    if differences:
        raise SchemaMismatchError(f"the data does not fit the table {path}: {'; '.join(differences)}")


def _stored_type(name: str, spark_type: DataType) -> pa.DataType:
    to_arrow = _STORED_TYPES.get(type(spark_type))
    if to_arrow is not None:
        return to_arrow(spark_type)
    reasons = (reason for refused, reason in _REFUSED_TYPES.items() if isinstance(spark_type, refused))
    reason = next(reasons, "this type is not known here")
    raise NotSupportedError(f"column {name!r} has Spark's type {_spell(spark_type)}: {reason}")


def _spark_type(arrow_type: pa.DataType) -> DataType:
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _spark_type(arrow_type.storage_type)
    for matches, to_spark in _SPARK_TYPES:
        if matches(arrow_type):
            return to_spark(arrow_type)
    reason = "nested types cannot be read yet" if pa.types.is_nested(arrow_type) else "Spark has no type for it"
    raise NotSupportedError(f"the table's type {arrow_type} cannot be read: {reason}")


def _decimal(arrow_type: pa.Decimal128Type) -> DecimalType:
    if arrow_type.precision > _MAX_PRECISION or not 0 <= arrow_type.scale <= arrow_type.precision:
        raise NotSupportedError(
            f"the table's type {arrow_type} cannot be read: Spark's decimals have at most {_MAX_PRECISION} digits, "
            "and a scale from 0 to their precision"
        )
    return DecimalType(arrow_type.precision, arrow_type.scale)


def _to_spark_field(field: pa.Field) -> StructField:
    stored = {key.decode(): value.decode(errors="replace") for key, value in (field.metadata or {}).items()}
    try:
        spark_type = _spark_type(field.type)
    except NotSupportedError as error:
        raise NotSupportedError(f"column {field.name!r}: {error}; leave it out with the option 'columns'") from None
    return StructField(
        field.name, _refine(spark_type, stored.get(TYPE_KEY, "")), field.nullable, _to_spark_metadata(stored)
    )


def _refine(spark_type: DataType, spelling: str) -> DataType:
    """Return what the stored spelling says of the type, or the type itself where it does not apply."""
    if isinstance(spark_type, StringType) and (match := _COLLATION.fullmatch(spelling)):
        return StringType(match[1])
    if isinstance(spark_type, TimeType) and (match := _TIME.fullmatch(spelling)):
        return TimeType(int(match[1]))
    if isinstance(spark_type, DayTimeIntervalType) and (match := _INTERVAL.fullmatch(spelling)):
        first = _INTERVAL_FIELDS[match[1]]
        last = first if match[2] is None else _INTERVAL_FIELDS[match[2]]
        return DayTimeIntervalType(first, last) if first <= last else spark_type
    return spark_type


def _to_stored_metadata(field: StructField) -> dict[str, str] | None:
    stored: dict[str, str] = {}
    others: dict[str, Any] = {}
    for key, value in field.metadata.items():
        if isinstance(value, str) and key not in _RESERVED_KEYS:
            stored[key] = value
        else:
            others[key] = value
    if others:
        stored[METADATA_KEY] = json.dumps(others)
    if isinstance(field.dataType, CharType | VarcharType):
        stored[_DECLARED_TYPE_KEY] = field.dataType.simpleString()
    elif field.dataType != _spark_type(_stored_type(field.name, field.dataType)):
        stored[TYPE_KEY] = field.dataType.simpleString()
    return stored or None


def _to_spark_metadata(stored: dict[str, str]) -> dict[str, Any]:
    plain = {key: value for key, value in stored.items() if key not in _RESERVED_KEYS}
    try:
        others = json.loads(stored.get(METADATA_KEY, "{}"))
    except (ValueError, RecursionError):
        others = {}
    return {**plain, **others} if isinstance(others, dict) else plain


def _holds_same_values(left: DataType, right: DataType) -> bool:
    if isinstance(left, DecimalType) and isinstance(right, DecimalType):
        return left == right
    return _family(left) is _family(right)


def _family(spark_type: DataType) -> type[DataType]:
    return StringType if isinstance(spark_type, CharType | VarcharType) else type(spark_type)


def _spell(spark_type: DataType) -> str:
    return spark_type.simpleString()
