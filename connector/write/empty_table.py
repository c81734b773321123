"""Tables that are created or replaced without rows."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

import lance_format
from connector.options.column_options import apply_to_new
from connector.options.options import LanceOptions
from connector.types.field_metadata import check_primary_key
from connector.types.schemas import to_stored_schema


def write_empty(options: LanceOptions, columns: StructType, mode: str, config: Mapping[str, str]) -> None:
    """Create or replace a table. If that fails, no file is left.

    Parameters
    ----------
    options : LanceOptions
        Options of the table, with its path.
    columns : StructType
    mode : {"create", "overwrite"}
    config : mapping of str to str
        Configuration of the table.

    Raises
    ------
    DatasetExistsError
        If a table to be created exists.
    NotSupportedError
        If a column's type cannot be stored, or a column of the primary key has a collation.
    """
    stored = apply_to_new(to_stored_schema(columns), options.column_options)
    fields = [
        _as_declared(field, column.dataType, column.nullable) for field, column in zip(stored, columns, strict=True)
    ]
    schema = pa.schema(fields)
    check_primary_key(schema)
    plan = lance_format.plan_write(
        options.path,
        schema,
        mode=mode,
        data_storage_version=options.file_format_version,
        enable_stable_row_ids=bool(options.enable_stable_row_ids),
        config=config,
        allow_unportable_names=options.allow_unportable_names,
        storage_options=options.storage,
    )
    with contextlib.ExitStack() as failed:
        failed.callback(plan.abort, ())
        plan.commit(())
        failed.pop_all()


def _as_declared(field: pa.Field, declared: DataType, nullable: bool) -> pa.Field:
    """Return a field that may be null, also below structs and arrays, where it is declared so."""
    stored = field.type
    if isinstance(declared, StructType):
        parts = zip(stored, declared, strict=True)
        stored = pa.struct([_as_declared(part, each.dataType, each.nullable) for part, each in parts])
    elif isinstance(declared, ArrayType) and pa.types.is_list(stored):
        stored = pa.list_(_as_declared(stored.value_field, declared.elementType, declared.containsNull))
    elif isinstance(declared, MapType):
        key = _as_declared(stored.key_field, declared.keyType, False)
        stored = pa.map_(key, _as_declared(stored.item_field, declared.valueType, declared.valueContainsNull))
    return field.with_type(stored).with_nullable(nullable)
