"""Checks that the columns of a DataFrame and those of a table hold the same values.

Properties on which no value depends may differ: the order of columns and struct fields, nullability, metadata, the
length of a varchar, a collation, a user-defined type or its storage type. Times and intervals may be coarser than the
type of their target.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimeType,
    UserDefinedType,
    VarcharType,
)

from connector.types.arrays import has_items
from connector.types.field_metadata import CURRENT_DEFAULT
from connector.types.row_columns import ROW_FIELDS
from connector.types.schemas import to_spark_schema
from connector.types.user_defined_types import name_class, storage_type
from lance_format import SchemaMismatchError


def check_readable(stored: pa.Schema, wanted: StructType, path: str) -> None:
    """Check that a table has the columns that Spark is about to read, with types that hold the same values.

    Parameters
    ----------
    stored, wanted, path
        See `find_misfit`.

    Raises
    ------
    SchemaMismatchError
        Naming every column that is missing or has another type.
    """
    misfit = find_misfit(stored, wanted, path)
    if misfit is not None:
        raise SchemaMismatchError(f"{misfit}; load it again, without a schema of your own")


def find_misfit(stored: pa.Schema, wanted: StructType, path: str) -> str | None:
    """Describe the reasons why a table cannot be read with a schema; return None if it can.

    Metadata columns count as columns of the table. A schema may omit fields of a struct.

    Parameters
    ----------
    stored : pyarrow.Schema
        Schema of the table's version.
    wanted : StructType
    path : str
        Path of the table, for the message.

    Returns
    -------
    str or None
        Every column that is missing or has another type.
    """
    differences = []
    names = set(stored.names)
    for field in wanted:
        if field.name in names:
            [found] = to_spark_schema(pa.schema([stored.field(field.name)]))
        elif field.name in ROW_FIELDS:
            found = ROW_FIELDS[field.name]
        else:
            differences.append(f"column {field.name!r} is not in the table")
            continue
        differences.extend(
            f"column {name!r} is read as {_spell(target)} but is {_spell(source)}"
            for name, source, target in _differing(found.dataType, field.dataType, field.name, partial=True)
        )
    if not differences:
        return None
    return f"the table {path} does not fit the schema that it is read with: {'; '.join(differences)}"


def name_as_stored(found: StructType, stored: Sequence[str]) -> StructType:
    """Rename the columns of a DataFrame to the names in a table.

    Names match in any case, as by default in Spark, unless a column has the exact name. Columns that the table lacks
    keep their names.

    Parameters
    ----------
    found : StructType
        Of the DataFrame.
    stored : sequence of str
        The columns of the table.

    Raises
    ------
    SchemaMismatchError
        If a name matches several columns of the table, or several names match one.
    """
    left = [name for name in stored if name not in found.fieldNames()]
    names = [field.name if field.name in stored else _find(field.name, left) for field in found]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise SchemaMismatchError(f"several columns of the data match column {repeated[0]!r} of the table")
    renamed = zip(found, names, strict=True)
    return StructType([StructField(name, field.dataType, field.nullable, field.metadata) for field, name in renamed])


def check_appendable(found: StructType, expected: StructType, path: str, *, allow_new: bool) -> None:
    """Compare the columns to append with those of the table, by name.

    Missing columns get their default values, or become null if the table allows it.

    Parameters
    ----------
    found, expected : StructType
        Schemas of the DataFrame, with the names of the table, and of the table.
    path : str
        Path of the table, for the message.
    allow_new : bool
        Whether columns and struct fields that the table lacks are allowed.

    Raises
    ------
    SchemaMismatchError
        If columns differ; the message names all of them.
    """
    differences: list[str] = []
    for field in expected:
        if field.name in found.fieldNames():
            differences.extend(
                f"column {name!r} is {_spell(source)} where the table has {_spell(target)}"
                for name, source, target in _differing(
                    found[field.name].dataType, field.dataType, field.name, partial=allow_new
                )
            )
        elif not field.nullable and CURRENT_DEFAULT not in field.metadata:
            differences.append(f"column {field.name!r} ({_spell(field.dataType)}) is missing and cannot be null")
    new = [field for field in found if field.name not in expected.fieldNames()]
    if not allow_new:
        differences.extend(f"column {field.name!r} ({_spell(field.dataType)}) is not in the table" for field in new)
    if differences:
        hint = "; the option mergeSchema adds columns" if new and not allow_new else ""
        raise SchemaMismatchError(f"the data does not fit the table {path}: {'; '.join(differences)}{hint}")


def check_same_columns(stored: pa.Schema, known: StructType, path: str, *, is_declared: bool) -> None:
    """Check that Spark knows all columns and struct fields of a table: rewritten rows would lose others.

    Parameters
    ----------
    stored : pyarrow.Schema
        Of the table.
    known : StructType
        As Spark has it.
    path : str
        Of the table, for the message.
    is_declared : bool
        Whether the columns are those of a catalog, which may differ from those of the table.

    Raises
    ------
    SchemaMismatchError
        Naming every column that is missing or has another type.
    """
    types = {field.name: field.dataType for field in known}
    names = set(stored.names)
    differences = [f"column {name!r} is not known" for name in stored.names if name not in types]
    for field in to_spark_schema(stored):
        if field.name in types:
            differences.extend(
                f"column {name!r} is known as {_spell(source)} but is {_spell(target)}"
                for name, source, target in _differing(types[field.name], field.dataType, field.name)
            )
    differences.extend(f"column {name!r} is not in the table" for name in known.fieldNames() if name not in names)
    if differences:
        reason = (
            f"rows of {path} cannot be written again, because another writer has changed its columns since the"
            " statement began:"
        )
        remedy = "run the statement again"
        if is_declared:
            reason = f"rows of {path} cannot be written again, because the catalog does not know the table as it is:"
            remedy = "create the table in the catalog again, without columns"
        raise SchemaMismatchError(f"{reason} {'; '.join(differences)}; nothing was changed: {remedy}")


def _find(name: str, stored: Sequence[str]) -> str:
    """Return the name in the table of a column, matched in any case; the given name if the table lacks it."""
    matches = [candidate for candidate in stored if candidate.lower() == name.lower()]
    if len(matches) > 1:
        raise SchemaMismatchError(
            f"column {name!r} of the data may stand for {' and '.join(map(repr, matches))} of the table; rename it"
        )
    return matches[0] if matches else name


def _differing(
    source: DataType, target: DataType, path: str, *, partial: bool = False
) -> Iterator[tuple[str, DataType, DataType]]:
    """Yield the innermost parts of two types where the target does not hold the values of the source, with paths.

    Unless `partial`, structs have to have the same fields, and else those of the target at least.
    """
    if isinstance(source, UserDefinedType) != isinstance(target, UserDefinedType):
        yield from _differing(storage_type(source), storage_type(target), path, partial=partial)
    elif isinstance(source, ArrayType) and isinstance(target, ArrayType):
        yield from _differing(source.elementType, target.elementType, f"{path}.element", partial=partial)
    elif isinstance(source, MapType) and isinstance(target, MapType):
        yield from _differing(source.keyType, target.keyType, f"{path}.key", partial=partial)
        yield from _differing(source.valueType, target.valueType, f"{path}.value", partial=partial)
    elif isinstance(source, StructType) and isinstance(target, StructType) and _has_fields(source, target, partial):
        for field in target:
            yield from _differing(source[field.name].dataType, field.dataType, f"{path}.{field.name}", partial=partial)
    elif source != target and not _holds(source, target):
        yield path, source, target


def _holds(source: DataType, target: DataType) -> bool:
    """Return whether a type without parts holds all values of another one that differs just in its parameters."""
    if isinstance(source, TimeType) and isinstance(target, TimeType):
        return source.precision <= target.precision
    if isinstance(source, DayTimeIntervalType) and isinstance(target, DayTimeIntervalType):
        return bool(source.endField <= target.endField)
    if isinstance(source, StructType | DecimalType | UserDefinedType):
        return False
    return _family(source) is _family(target)


def _has_fields(source: StructType, target: StructType, partial: bool) -> bool:
    """Return whether a struct has the fields of another one, and unless `partial` no others."""
    found, wanted = source.fieldNames(), target.fieldNames()
    return bool(wanted) and set(wanted) <= set(found) if partial else sorted(found) == sorted(wanted)


def _family(spark_type: DataType) -> type[DataType]:
    return StringType if isinstance(spark_type, CharType | VarcharType) else type(spark_type)


def _spell(spark_type: DataType) -> str:
    return name_class(spark_type) if isinstance(spark_type, UserDefinedType) else spark_type.simpleString()


def with_new_fields(stored: pa.Field, wanted: pa.Field) -> pa.Field:
    """Return a column of a table, its structs extended at the end by the fields that only the data has.

    Parameters
    ----------
    stored, wanted : pa.Field
        The column of the table, and the stored form of the data.

    Raises
    ------
    SchemaMismatchError
        If the data has such fields in place of a value of the table that is no struct.
    """
    extended = stored.with_type(_extend(stored.type, wanted.type))
    lost = sorted(set(_struct_fields(wanted.type, wanted.name)) - set(_struct_fields(extended.type, wanted.name)))
    if lost:
        raise SchemaMismatchError(
            f"the table cannot get the field {lost[0]!r}: column {stored.name!r} is {stored.type}"
        )
    return extended


def _extend(kind: pa.DataType, given: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind) and pa.types.is_struct(given):
        known = [field.with_type(_extend(field.type, given.field(field.name).type)) for field in kind]
        names = {field.name for field in kind}
        return pa.struct([*known, *(field for field in given if field.name not in names)])
    if pa.types.is_map(kind) and pa.types.is_map(given):
        item = kind.item_field.with_type(_extend(kind.item_type, given.item_type))
        return pa.map_(kind.key_field.with_type(_extend(kind.key_type, given.key_type)), item)
    if not (has_items(kind) and has_items(given)):
        return kind
    item = kind.value_field.with_type(_extend(kind.value_type, given.value_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(item, kind.list_size)
    return pa.large_list(item) if pa.types.is_large_list(kind) else pa.list_(item)


def _struct_fields(kind: pa.DataType, path: str) -> Iterator[str]:
    """Yield the paths of all fields of structs in a type."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_struct(kind):
        for field in kind:
            yield f"{path}.{field.name}"
            yield from _struct_fields(field.type, f"{path}.{field.name}")
    elif pa.types.is_map(kind):
        yield from _struct_fields(kind.key_type, f"{path}.key")
        yield from _struct_fields(kind.item_type, f"{path}.value")
    elif has_items(kind):
        yield from _struct_fields(kind.value_type, f"{path}.element")
