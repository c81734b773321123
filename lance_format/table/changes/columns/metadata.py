"""Changing what a table says of itself: configuration, and the metadata of table, schema and fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lance_format.errors import InvalidInputError
from lance_format.file import names_zones
from lance_format.table.format.field_paths import find_field
from lance_format.table.transaction.operations import UpdateConfig
from lance_format.table.transaction.operations.update_config import MapUpdate
from lance_format.table.versions.table_version import TableVersion

Values = Mapping[str, str | None]
"""What to set; None removes a key."""


def update_config(table: TableVersion, values: Values, *, replace: bool = False) -> TableVersion:
    """Change entries of the configuration, and commit that; all others go if `replace`."""
    return table.commit(UpdateConfig(config=as_update(values, replace)))


def update_table_metadata(table: TableVersion, values: Values, *, replace: bool = False) -> TableVersion:
    """Change entries of the table's metadata, and commit that; all others go if `replace`."""
    return table.commit(UpdateConfig(table_metadata=as_update(values, replace)))


def update_schema_metadata(table: TableVersion, values: Values, *, replace: bool = False) -> TableVersion:
    """Change entries of the schema's metadata, and commit that; all others go if `replace`.

    Raises
    ------
    InvalidInputError
        If a key is one of those by which files tell where their statistics are, which writers might then copy.
    """
    return table.commit(UpdateConfig(schema_metadata=check_schema_metadata(as_update(values, replace))))


def update_field_metadata(table: TableVersion, values: Mapping[str, Values], *, replace: bool = False) -> TableVersion:
    """Change entries of the metadata of fields, given by their paths, and commit that; all others go if `replace`."""
    schema = table.manifest.schema
    updates = {find_field(schema, path)[-1].id: as_update(update, replace) for path, update in values.items()}
    if not updates:
        raise InvalidInputError("there is nothing to update: give the metadata of one field at least")
    return table.commit(UpdateConfig(field_metadata=updates))


def check_schema_metadata(update: MapUpdate | None) -> MapUpdate | None:
    """Return a change of the schema's metadata, once it is shown to be none of a file's; see above."""
    for key in sorted(update.upserted if update is not None else ()):
        if names_zones(key.encode()):
            raise InvalidInputError(f"the metadata {key!r} says where statistics of a file are, and is no table's")
    return update


def as_update(values: Any, replace: bool) -> MapUpdate:
    """Return a change of a mapping, once it is shown to be one of strings."""
    if not isinstance(values, Mapping) or not all(
        isinstance(key, str) and isinstance(value, str | None) for key, value in values.items()
    ):
        raise InvalidInputError(f"{values!r} is no mapping of strings to strings, or to None for what is to go")
    if replace:  # What is to go goes anyway.
        values = {key: value for key, value in values.items() if value is not None}
    return MapUpdate(dict(values), replace)
