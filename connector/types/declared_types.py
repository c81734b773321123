"""Declared lengths of char and varchar, which are strings in Spark's plans and in tables.

Spark looks for them in one entry of the metadata of a column, the spelling of its declared type. A field of a struct
may have such an entry too, which replaces what the entries around it say of the field. So a field that is added,
renamed or changed brings its own entry, and those around it, which other writers do not know, need not follow. Where an
entry and the type of the column disagree, the type is right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, TypeAlias

from pyspark.sql.types import ArrayType, CharType, DataType, MapType, StringType, StructField, StructType, VarcharType

from connector.types.column_names import quoted

DECLARED_TYPE_KEY = "__CHAR_VARCHAR_TYPE_STRING"
"""Key of Spark for the declared type of a column with char or varchar."""
_LENGTH = re.compile(r"\s*(char|varchar)\(\s*(\d{1,10})\s*\)\s*", re.IGNORECASE)
_ATOM = re.compile(r"[^<>,:()]+(?:\([^()<>]*\))?")
_FIELD = re.compile(r"\s*(?:`((?:[^`]|``)*)`|([^:<>,`]+?))\s*:\s*")
_MAX_DEPTH = 100

_Spelled: TypeAlias = "str | list[_Spelled] | dict[str, _Spelled]"
"""The text of an atomic type, the parts of an array or map, or the fields of a struct by their names."""


def declared_type(spark_type: DataType) -> dict[str, str]:
    """Return the entry of a column with the lengths of char and varchar; empty if there are none."""
    return {DECLARED_TYPE_KEY: _declare(spark_type)} if has_length(spark_type) else {}


def has_length(spark_type: DataType) -> bool:
    """Return whether a type has a char or varchar."""
    return has_leaf(spark_type, CharType | VarcharType)


def has_leaf(spark_type: DataType, leaf: type[DataType] | UnionType) -> bool:
    """Return whether a type is one of some types without parts, or has such parts."""
    if isinstance(spark_type, ArrayType):
        return has_leaf(spark_type.elementType, leaf)
    if isinstance(spark_type, MapType):
        return has_leaf(spark_type.keyType, leaf) or has_leaf(spark_type.valueType, leaf)
    if isinstance(spark_type, StructType):
        return any(has_leaf(field.dataType, leaf) for field in spark_type)
    return isinstance(spark_type, leaf)


def with_lengths(field: StructField) -> DataType:
    """Return the declared type of a column: its type, with char and varchar where entries of the metadata say so."""
    return _with_lengths(field.dataType, _spelled(field.metadata))


def without_lengths(spark_type: DataType) -> DataType:
    """Return the type of a column of a plan: its declared type with strings, and no entry in fields of structs."""
    if isinstance(spark_type, CharType | VarcharType):
        return StringType()
    return _with_fields(spark_type, without_lengths, _without_entry)


def with_entries_of_fields(schema: StructType) -> StructType:
    """Return columns whose fields of structs have their own entries, so that a table can get any of them alone."""
    return StructType([StructField(f.name, _with_entries(with_lengths(f)), f.nullable, f.metadata) for f in schema])


def _with_entries(spark_type: DataType) -> DataType:
    return _with_fields(spark_type, _with_entries, lambda field: {**field.metadata, **declared_type(field.dataType)})


def _without_entry(field: StructField) -> dict[str, Any]:
    return {key: value for key, value in field.metadata.items() if key != DECLARED_TYPE_KEY}


def _with_fields(
    spark_type: DataType,
    change: Callable[[DataType], DataType],
    entries_of: Callable[[StructField], dict[str, Any]],
) -> DataType:
    """Return an array, map or struct of changed types, whose fields have other metadata; other types as they are."""
    if isinstance(spark_type, ArrayType):
        return ArrayType(change(spark_type.elementType), spark_type.containsNull)
    if isinstance(spark_type, MapType):
        return MapType(change(spark_type.keyType), change(spark_type.valueType), spark_type.valueContainsNull)
    if isinstance(spark_type, StructType):
        return StructType([StructField(f.name, change(f.dataType), f.nullable, entries_of(f)) for f in spark_type])
    return spark_type


def _with_lengths(spark_type: DataType, spelled: _Spelled | None) -> DataType:
    if isinstance(spark_type, ArrayType):
        (element,) = _parts(spelled, 1)
        return ArrayType(_with_lengths(spark_type.elementType, element), spark_type.containsNull)
    if isinstance(spark_type, MapType):
        key, value = _parts(spelled, 2)
        made = _with_lengths(spark_type.keyType, key), _with_lengths(spark_type.valueType, value)
        return MapType(*made, spark_type.valueContainsNull)
    if isinstance(spark_type, StructType):
        return StructType([_field_with_lengths(field, spelled) for field in spark_type])
    match = _LENGTH.fullmatch(spelled) if isinstance(spelled, str) and spark_type == StringType() else None
    if match is None:
        return spark_type
    return (CharType if match[1].lower() == "char" else VarcharType)(int(match[2]))


def _field_with_lengths(field: StructField, around: _Spelled | None) -> StructField:
    spelled = _spelled(field.metadata)
    if spelled is None and isinstance(around, dict):
        spelled = around.get(field.name)
    return StructField(field.name, _with_lengths(field.dataType, spelled), field.nullable, field.metadata)


def _parts(spelled: _Spelled | None, count: int) -> list[_Spelled | None]:
    return [*spelled] if isinstance(spelled, list) and len(spelled) == count else [None] * count


def _spelled(metadata: Mapping[str, object]) -> _Spelled | None:
    text = metadata.get(DECLARED_TYPE_KEY)
    return _Reading(text).read() if isinstance(text, str) else None


def _declare(spark_type: DataType) -> str:
    """Spell a type so that Spark's parser reads it for any names of fields; `simpleString` does not quote them."""
    if isinstance(spark_type, ArrayType):
        return f"array<{_declare(spark_type.elementType)}>"
    if isinstance(spark_type, MapType):
        return f"map<{_declare(spark_type.keyType)},{_declare(spark_type.valueType)}>"
    if isinstance(spark_type, StructType):
        fields = (f"{quoted(field.name)}:{_declare(field.dataType)}" for field in spark_type)
        return f"struct<{','.join(fields)}>"
    return spark_type.simpleString()


class _Reading:
    """Reads the spelling of a type. Other writers may have stored anything."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def read(self) -> _Spelled | None:
        """Return the parts of the type, or None if the text is none."""
        try:
            made = self._type(0)
        except ValueError:
            return None
        return made if self._place == len(self._text) else None

    def _type(self, depth: int) -> _Spelled:
        name = self._match(_ATOM)[0].strip().lower()
        if depth > _MAX_DEPTH:
            raise ValueError
        if name in ("array", "map") and self._takes("<"):
            parts = [self._type(depth + 1)]
            while self._takes(","):
                parts.append(self._type(depth + 1))
            self._demand(">")
            return parts
        if name == "struct" and self._takes("<"):
            fields: dict[str, _Spelled] = {}
            while not self._takes(">"):
                if fields:
                    self._demand(",")
                match = self._match(_FIELD)
                found = match[2] if match[1] is None else match[1].replace("``", "`")
                fields[found] = self._type(depth + 1)
            return fields
        return name

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        match = pattern.match(self._text, self._place)
        if match is None:
            raise ValueError
        self._place = match.end()
        return match

    def _takes(self, character: str) -> bool:
        found = self._text.startswith(character, self._place)
        self._place += found
        return found

    def _demand(self, character: str) -> None:
        if not self._takes(character):
            raise ValueError
