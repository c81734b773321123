"""ALTER COLUMN … TYPE: what Arrow's type of a column lacks of Spark's changes too, and values become what CAST returns.

Spark allows changes after which every value remains, and those of values without parts to strings. The library casts as
Arrow does. Where Spark's CAST has another result, because it depends on settings of the session or spells the value
differently, the change is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from connector.types.declared_types import DECLARED_TYPE_KEY, declared_type, with_lengths
from connector.types.field_metadata import KEY, TYPE_KEY, check_key_column
from connector.types.schemas import to_spark_schema
from lance_format import NotSupportedError

_SPELLED_ALIKE: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_dictionary,
)
"""The types whose text is the same in Arrow and in Spark."""


def change_type(schema: pa.Schema, path: Sequence[str], made: pa.Field) -> dict[str, Any]:
    """Return the alteration of a column to another type, for `LanceDataset.plan_alter_columns`.

    A field of a struct states its type even if it has no length: entries around it may say that it has one.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the table.
    path : sequence of str
        Of the column.
    made : pyarrow.Field
        A column that has the type.

    Raises
    ------
    NotSupportedError
        If the values would not be those of Spark's CAST, or a column of the primary key would have a collation.
    """
    old = _find(schema, path)
    if old is not None:
        _check_cast(old.type, made.type, path)
        if KEY.encode() in (old.metadata or {}):
            check_key_column(made.with_name(path[-1]))
    stated = {key.decode(): value.decode() for key, value in (made.metadata or {}).items()}
    declared = stated.get(DECLARED_TYPE_KEY, None if len(path) == 1 else "string")
    return {"data_type": made.type, "metadata": {TYPE_KEY: stated.get(TYPE_KEY), DECLARED_TYPE_KEY: declared}}


def entries_of_renamed(schema: pa.Schema, path: Sequence[str]) -> dict[str, str]:
    """Return the metadata that a field needs under another name: entries around it know it by its old one.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the table.
    path : sequence of str
        Of the column, by its old name.
    """
    if len(path) == 1 or _find(schema, path) is None:
        return {}
    (column,) = to_spark_schema(pa.schema([schema.field(path[0])]))
    declared = with_lengths(column)
    for name in path[1:]:
        declared = declared[name].dataType  # type: ignore[index]
    return declared_type(declared)


def child(fields: pa.Schema | pa.StructType, name: str) -> pa.Field | None:
    """Return a column of a schema or a field of a struct by its name, or None; in constant time."""
    index = fields.get_field_index(name)
    return None if index < 0 else fields.field(index)


def _find(schema: pa.Schema, path: Sequence[str]) -> pa.Field | None:
    """Return a field below structs, or None, which the library refuses."""
    fields: pa.Schema | pa.StructType = schema
    found = None
    for name in path:
        found = child(fields, name)
        if found is None:
            return None
        fields = found.type if pa.types.is_struct(found.type) else pa.struct([])
    return found


def _check_cast(old: pa.DataType, new: pa.DataType, path: Sequence[str]) -> None:
    if old == new or not (_depends_on_zone(old, new) or _is_spelled_otherwise(old, new)):
        return
    column = ".".join(path)
    is_time = pa.types.is_timestamp(new)
    reason = "depends on the time zone of the session" if is_time else "is text in Spark's own spelling"
    raise NotSupportedError(
        f"the type of column {column!r} cannot be changed from {old} to {new}, since the result of CAST {reason};"
        f" nothing was changed: CREATE OR REPLACE TABLE … AS SELECT … CAST({column} AS …) …, which may read the table"
        " itself, computes it"
    )


def _depends_on_zone(old: pa.DataType, new: pa.DataType) -> bool:
    if not pa.types.is_timestamp(new):
        return False
    zones = old.tz if pa.types.is_timestamp(old) else None, new.tz
    return zones.count(None) == 1


def _is_spelled_otherwise(old: pa.DataType, new: pa.DataType) -> bool:
    return pa.types.is_string(new) and not any(is_alike(old) for is_alike in _SPELLED_ALIKE)
