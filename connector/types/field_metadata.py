"""Field metadata for properties that Arrow types lack.

Field metadata of Spark (comments, the declared type of char and varchar columns, anything else) becomes field metadata
of the table, which is text to text. Entries with a string value are stored under their own key, where other readers
find them; all others are stored together, as JSON, in one entry. A third kind of entry holds properties of the Spark
type that the Arrow type lacks: a collation, the precision of a time, the fields of an interval. It belongs to the field
with the type, which may be the element of an array, or the key or value of a map.

=================== ============================
key                 value
=================== ============================
the entry's own     a string
`spark:metadata`    a JSON object: the entries whose values are not strings
`spark:type`        Spark's spelling of the type: `string collate UNICODE`, `time(3)`, `interval hour to second`
=================== ============================

The SQL of a default value is two entries of Spark's: `CURRENT_DEFAULT`, for rows that are written without a value, and
`EXISTS_DEFAULT`, which those got that were there before the column.

One entry is on Spark's side only: `arrow.fixed-size-list.size` marks an array that is stored as a vector; the Arrow
type is the mark in the table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql.types import (
    CharType,
    DataType,
    DayTimeIntervalType,
    StringType,
    StructField,
    TimeType,
    VarcharType,
)
from pyspark.util import VersionUtils

from connector.types.column_names import find_name
from lance_format import InvalidInputError, LanceDataset, NotSupportedError

TYPE_KEY = "spark:type"
METADATA_KEY = "spark:metadata"
VECTOR_SIZE_KEY = "arrow.fixed-size-list.size"
KEY = "lance-schema:unenforced-primary-key"
KEY_POSITION = f"{KEY}:position"
CURRENT_DEFAULT, FIRST_DEFAULT = "CURRENT_DEFAULT", "EXISTS_DEFAULT"
_RESERVED_KEYS = (TYPE_KEY, METADATA_KEY)
_FIELD_ID_KEY = "__FIELD_ID"
"""Key of Spark 4.2 and newer for the id that a column has in the table that a query reads; others have their own."""

_INTERVAL_FIELDS = {"day": 0, "hour": 1, "minute": 2, "second": 3}
_INTERVAL = re.compile(r"interval (day|hour|minute|second)(?: to (day|hour|minute|second))?")
_TIME = re.compile(r"time\(([0-9])\)")
_MAX_TIME_PRECISION = 9 if VersionUtils.majorMinorVersion(pyspark.__version__) >= (4, 3) else 6
"""Maximum precision of seconds in this version of Spark."""
_COLLATION = re.compile(r"string collate (\w{1,100})")


def to_stored_metadata(field: StructField) -> dict[str, str]:
    """Return the stored form of the metadata of a column, or of a field of a struct."""
    stored: dict[str, str] = {}
    others: dict[str, Any] = {}
    for key, value in field.metadata.items():
        if key in (VECTOR_SIZE_KEY, _FIELD_ID_KEY):
            continue
        if isinstance(value, str) and key not in _RESERVED_KEYS:
            stored[key] = value
        else:
            others[key] = value
    if others:
        stored[METADATA_KEY] = json.dumps(others)
    return stored


def without_copied_keys(schema: pa.Schema) -> pa.Schema:
    """Return columns of a new table without the marks of a primary key, and nullable.

    Spark passes the metadata of columns on to the results of queries.
    """
    entries = (KEY.encode(), KEY_POSITION.encode())
    fields = [
        field.with_metadata({key: value for key, value in field.metadata.items() if key not in entries})
        if field.nullable and field.metadata
        else field
        for field in schema
    ]
    return pa.schema(fields, schema.metadata)


def to_spark_metadata(stored: dict[str, str]) -> dict[str, Any]:
    """Return the stored metadata of Spark; malformed entries are ignored."""
    plain = {key: value for key, value in stored.items() if key not in _RESERVED_KEYS}
    try:
        others = json.loads(stored.get(METADATA_KEY, "{}"))
    except (ValueError, RecursionError):
        others = {}
    return {**plain, **others} if isinstance(others, dict) else plain


def spell_type(spark_type: DataType, implied: DataType) -> dict[str, str]:
    """Return the entry of an atomic type that differs from the one its Arrow type implies; empty if it does not."""
    if spark_type == implied or isinstance(spark_type, CharType | VarcharType):
        return {}
    return {TYPE_KEY: spark_type.simpleString()}


def refine(spark_type: DataType, stored: dict[str, str]) -> DataType:
    """Refine a type by its stored spelling; return it unchanged if the spelling does not apply."""
    spelling = stored.get(TYPE_KEY, "")
    if isinstance(spark_type, StringType) and (match := _COLLATION.fullmatch(spelling)):
        return StringType(match[1])
    if isinstance(spark_type, TimeType):
        match = _TIME.fullmatch(spelling)
        return TimeType(min(int(match[1]) if match else spark_type.precision, _MAX_TIME_PRECISION))
    if isinstance(spark_type, DayTimeIntervalType) and (match := _INTERVAL.fullmatch(spelling)):
        first = _INTERVAL_FIELDS[match[1]]
        last = first if match[2] is None else _INTERVAL_FIELDS[match[2]]
        return DayTimeIntervalType(first, last) if first <= last else spark_type
    return spark_type


def check_primary_key(schema: pa.Schema) -> None:
    """Refuse columns that are marked as the primary key, and cannot be part of one; see `check_key_column`."""
    for field in schema:
        if KEY.encode() in (field.metadata or {}):
            check_key_column(field)


def check_key_column(field: pa.Field) -> None:
    """Refuse a column of a key whose equal values may have different bytes, which is what keys are compared by.

    Parameters
    ----------
    field : pyarrow.Field
        As the table has it.

    Raises
    ------
    NotSupportedError
        If a string in it has a collation.
    """
    spelling = (field.metadata or {}).get(TYPE_KEY.encode(), b"").decode()
    if _COLLATION.fullmatch(spelling):
        raise NotSupportedError(
            f"column {field.name!r} has the type {spelling!r}, of which equal values may differ in their bytes, by"
            " which keys are compared; nothing was changed: use a column without a collation, such as lower(…) of it"
        )
    if isinstance(field.type, pa.StructType | pa.ListType | pa.MapType):
        for number in range(field.type.num_fields):
            check_key_column(field.type.field(number))


def declare_primary_key(dataset: LanceDataset, columns: Sequence[str]) -> None:
    """Make columns the primary key of a table, which nothing enforces. A key is declared once.

    Parameters
    ----------
    dataset : LanceDataset
    columns : sequence of str
        In the order of the key, in any case.

    Raises
    ------
    InvalidInputError
        If there is no such column, one is named twice, none is named, or the table has a key already.
    NotSupportedError
        If a column has a collation.
    SchemaMismatchError
        If a column may be null.
    """
    schema = dataset.schema
    names = [find_name(name, schema.names, case_sensitive=False) or name for name in columns]
    if not names or len(set(names)) < len(names):
        raise InvalidInputError(f"columns is {list(columns)!r}; one column or more, each once, is needed")
    for name in names:
        if name in schema.names:
            check_key_column(schema.field(name))
    places = [{}] if len(columns) == 1 else [{KEY_POSITION: str(place)} for place in range(1, len(columns) + 1)]
    dataset.update_field_metadata({name: {KEY: "true", **place} for name, place in zip(names, places, strict=True)})
