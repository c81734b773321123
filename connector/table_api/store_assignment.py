"""Casts of values to the types of columns by Spark's rule for writes (`spark.sql.storeAssignmentPolicy=ANSI`).

A number goes into any column of numbers, a date or a timestamp into any column of these, and every value without parts
into a column of strings. Text does not become a number. A value that the column cannot hold is an error, also where
`spark.sql.ansi.enabled` is false, and never another value. Fields of structs are matched by name.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    UserDefinedType,
    VarcharType,
)

from connector.types.column_names import find_name
from connector.types.declared_types import has_leaf, has_length
from lance_format import SchemaMismatchError

if TYPE_CHECKING:
    from pyspark.sql import Column

_DATES = (DateType, TimestampType, TimestampNTZType)
_FAMILIES: tuple[tuple[type[DataType], ...], ...] = ((NumericType,), _DATES, (TimeType,), (DayTimeIntervalType,))


def fit(
    value: Column,
    found: DataType,
    wanted: DataType,
    path: str,
    *,
    is_ansi: bool,
    case_sensitive: bool,
    computes_times: bool,
) -> Column:
    """Cast a value to the type of a column.

    Parameters
    ----------
    value : Column
    found, wanted : DataType
        The types of the value and of the column.
    path : str
        Of the column, for messages.
    is_ansi : bool
        Whether casts of the session fail where a value does not fit.
    case_sensitive : bool
        Whether fields of structs whose names differ in case only are different.
    computes_times : bool
        See `null_of`.

    Raises
    ------
    SchemaMismatchError
        If values of the one type cannot be stored as the other.
    """
    return _Fitting(is_ansi, case_sensitive, computes_times).fit(value, found, wanted, path)


class _Fitting:
    def __init__(self, is_ansi: bool, case_sensitive: bool, computes_times: bool) -> None:
        self._is_ansi = is_ansi
        self._case_sensitive = case_sensitive
        self._computes_times = computes_times

    def fit(self, value: Column, found: DataType, wanted: DataType, path: str) -> Column:
        from pyspark.sql import functions as f

        if _is_same(found, wanted):
            return value
        if isinstance(found, StructType) and isinstance(wanted, StructType):
            return self._fit_struct(value, found, wanted, path)
        if isinstance(found, ArrayType) and isinstance(wanted, ArrayType):
            element, item = found.elementType, wanted.elementType
            return f.transform(value, lambda each: self.fit(each, element, item, f"{path}.element"))
        if isinstance(found, MapType) and isinstance(wanted, MapType):
            return self._fit_map(value, found, wanted, path)
        if not _is_assignable(found, wanted):
            raise SchemaMismatchError(
                f"column {path!r} is {wanted.simpleString()}, and values of type {found.simpleString()} cannot be"
                " stored in it: cast them"
            )
        if isinstance(found, NullType):  # Also of raise_error, which is to be evaluated.
            is_cast = self._computes_times or not has_leaf(wanted, TimeType)
            return value.cast(wanted) if is_cast else null_of(wanted, computes_times=False)
        return value.cast(wanted) if self._is_ansi else _checked_cast(value, wanted, path)

    def _fit_struct(self, value: Column, found: StructType, wanted: StructType, path: str) -> Column:
        from pyspark.sql import functions as f

        names = {field.name: self._find(field.name, found, path) for field in wanted}
        extra = [name for name in found.names if name not in names.values()]
        if extra:
            raise SchemaMismatchError(f"column {path!r} has no field {extra[0]!r}: leave it out")
        fields = [
            self.fit(
                value.getField(names[field.name]),
                found[names[field.name]].dataType,
                field.dataType,
                f"{path}.{field.name}",
            ).alias(field.name)
            for field in wanted
        ]
        return f.when(value.isNotNull(), f.struct(*fields))

    def _fit_map(self, value: Column, found: MapType, wanted: MapType, path: str) -> Column:
        from pyspark.sql import functions as f

        keys = f.transform(f.map_keys(value), lambda key: self.fit(key, found.keyType, wanted.keyType, f"{path}.key"))
        values = f.transform(
            f.map_values(value), lambda item: self.fit(item, found.valueType, wanted.valueType, f"{path}.value")
        )
        return f.map_from_arrays(keys, values)

    def _find(self, name: str, found: StructType, path: str) -> str:
        match = find_name(name, found.names, case_sensitive=self._case_sensitive)
        if match is None:
            raise SchemaMismatchError(
                f"the value for column {path!r} lacks the field {name!r}: a struct needs all fields of the column"
            )
        return match


def null_of(spark_type: DataType, *, computes_times: bool) -> Column:
    """Return the null of a type.

    Parameters
    ----------
    spark_type : DataType
    computes_times : bool
        Whether the session casts to types with times. Otherwise their nulls are read from a document without values,
        which only Spark 4.3 can do. Earlier releases do not read times in such sessions at all.
    """
    from pyspark.sql import functions as f

    if computes_times or not has_leaf(spark_type, TimeType):
        return f.lit(None).cast(spark_type)
    if isinstance(spark_type, TimeType):
        return f.from_json(f.lit("{}"), StructType([StructField("at", spark_type)])).getField("at")
    null = partial(null_of, computes_times=False)
    if isinstance(spark_type, ArrayType):
        made = f.array(null(spark_type.elementType))
    elif isinstance(spark_type, MapType):
        made = f.map_from_arrays(f.array(null(spark_type.keyType)), f.array(null(spark_type.valueType)))
    else:
        made = f.struct(*(null(field.dataType).alias(field.name) for field in cast(StructType, spark_type)))
    return f.when(f.lit(False), made)


def limit_length(value: Column, declared: DataType, path: str) -> Column:
    """Check and pad text declared as `varchar(n)` or `char(n)`, also inside of a column, as Spark's INSERT does.

    Parameters
    ----------
    value : Column
    declared : DataType
        Type of the value, with char and varchar; see `connector.types.declared_types`.
    path : str
        Of the column, for the message.
    """
    from pyspark.sql import functions as f

    if not has_length(declared):
        return value
    if isinstance(declared, ArrayType):
        element = declared.elementType
        return f.transform(value, lambda each: limit_length(each, element, path))
    if isinstance(declared, MapType):
        key, item = declared.keyType, declared.valueType
        keys = f.transform(f.map_keys(value), lambda each: limit_length(each, key, path))
        return f.map_from_arrays(keys, f.transform(f.map_values(value), lambda each: limit_length(each, item, path)))
    if isinstance(declared, StructType):
        parts = [
            limit_length(value.getField(field.name), field.dataType, f"{path}.{field.name}").alias(field.name)
            for field in declared
        ]
        return f.when(value.isNotNull(), f.struct(*parts))
    assert isinstance(declared, CharType | VarcharType)
    limit = declared.length
    stored = f.rpad(value, limit, " ") if isinstance(declared, CharType) else f.substring(value, 1, limit)
    message = f.lit(f"a value of column {path!r} has more than {limit} characters")
    return f.when(f.char_length(f.rtrim(value)) > limit, f.raise_error(message).cast("string")).otherwise(stored)


def _checked_cast(value: Column, wanted: DataType, path: str) -> Column:
    """Cast a value without parts, and fail if it does not fit; the session's own casts would change it."""
    from pyspark.sql import functions as f

    made = value.try_cast(wanted)
    message = f"a value does not fit column {path!r}, which is {wanted.simpleString()}"
    failed = value.isNotNull() & made.isNull()
    return f.when(failed, f.raise_error(f.lit(message)).cast(wanted)).otherwise(made)


def _is_assignable(found: DataType, wanted: DataType) -> bool:
    if isinstance(found, NullType):
        return True
    if isinstance(wanted, StringType):
        return isinstance(found, AtomicType)
    return any(isinstance(found, family) and isinstance(wanted, family) for family in _FAMILIES)


def _is_same(found: DataType, wanted: DataType) -> bool:
    """Return whether two types have the same values in the same form; the writer checks nulls."""
    if isinstance(found, UserDefinedType) or isinstance(wanted, UserDefinedType):
        return found == wanted
    if isinstance(found, StructType) and isinstance(wanted, StructType):
        pairs = zip(found, wanted, strict=False)
        return found.names == wanted.names and all(_is_same(one.dataType, other.dataType) for one, other in pairs)
    if isinstance(found, ArrayType) and isinstance(wanted, ArrayType):
        return _is_same(found.elementType, wanted.elementType)
    if isinstance(found, MapType) and isinstance(wanted, MapType):
        return _is_same(found.keyType, wanted.keyType) and _is_same(found.valueType, wanted.valueType)
    return found == wanted
