"""Whether the columns of a DataFrame and those of a table hold the same values.

What no value depends on may differ: the order of columns and of the fields of structs, nullability, metadata, the
length of a varchar, a collation.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    DecimalType,
    MapType,
    StringType,
    StructType,
    VarcharType,
)

from connector.types import to_spark_schema
from lance_format import SchemaMismatchError


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
        [found] = to_spark_schema(pa.schema([stored.field(field.name)]))
        differences.extend(
            f"column {name!r} is read as {_spell(left)} but is {_spell(right)}"
            for name, left, right in _differing(field.dataType, found.dataType, field.name)
        )
    if differences:
        raise SchemaMismatchError(
            f"the table {path} does not fit the schema that it is read with: {'; '.join(differences)}; "
            "load it again, without a schema of your own"
        )


def check_same_types(found: StructType, expected: StructType, path: str) -> None:
    """Compare the columns that are to be appended with those of the table, by name.

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
            continue
        differences.extend(
            f"column {name!r} is {_spell(left)} where the table has {_spell(right)}"
            for name, left, right in _differing(found[field.name].dataType, field.dataType, field.name)
        )
    differences.extend(
        f"column {field.name!r} ({_spell(field.dataType)}) is not in the table"
        for field in found
        if field.name not in expected.fieldNames()
    )
    if differences:
        raise SchemaMismatchError(f"the data does not fit the table {path}: {'; '.join(differences)}")


def _differing(left: DataType, right: DataType, path: str) -> Iterator[tuple[str, DataType, DataType]]:
    """Yield the innermost parts of two types that do not hold the same values, each with its path."""
    if isinstance(left, ArrayType) and isinstance(right, ArrayType):
        yield from _differing(left.elementType, right.elementType, f"{path}.element")
    elif isinstance(left, MapType) and isinstance(right, MapType):
        yield from _differing(left.keyType, right.keyType, f"{path}.key")
        yield from _differing(left.valueType, right.valueType, f"{path}.value")
    elif isinstance(left, StructType) and isinstance(right, StructType) and _same_names(left, right):
        for field in right:
            yield from _differing(left[field.name].dataType, field.dataType, f"{path}.{field.name}")
    elif left != right and (isinstance(left, StructType | DecimalType) or _family(left) is not _family(right)):
        yield path, left, right


def _same_names(left: StructType, right: StructType) -> bool:
    return sorted(left.fieldNames()) == sorted(right.fieldNames())


def _family(spark_type: DataType) -> type[DataType]:
    return StringType if isinstance(spark_type, CharType | VarcharType) else type(spark_type)


def _spell(spark_type: DataType) -> str:
    return spark_type.simpleString()
