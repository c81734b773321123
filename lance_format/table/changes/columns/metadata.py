"""Changes of the configuration, and of the metadata of table, schema and fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lance_format.errors import InvalidInputError
from lance_format.file import names_zones
from lance_format.table.format.field_paths import find_field
from lance_format.table.transaction.operations import UpdateConfig
from lance_format.table.transaction.operations.update_config import MapUpdate
from lance_format.table.versions.table_version import TableVersion

MetadataEntries = Mapping[str, str | None]
"""Entries to set; None removes a key."""


def update_config(table: TableVersion, values: MetadataEntries, *, replace: bool = False) -> TableVersion:
    """Change entries of the configuration, and commit them.

    Parameters
    ----------
    table : TableVersion
    values : mapping of str to (str or None)
        Entries by key. None removes an entry.
    replace : bool
        Whether to remove all other entries.
    """
    return table.commit(UpdateConfig(config=as_update(values, replace)))


def update_table_metadata(table: TableVersion, values: MetadataEntries, *, replace: bool = False) -> TableVersion:
    """Change entries of the table's metadata, and commit them; see `update_config`."""
    return table.commit(UpdateConfig(table_metadata=as_update(values, replace)))


def update_schema_metadata(table: TableVersion, values: MetadataEntries, *, replace: bool = False) -> TableVersion:
    """Change entries of the schema's metadata, and commit them; see `update_config`.

    Raises
    ------
    InvalidInputError
        If a key locates the statistics of a file, since writers might copy it.
    """
    return table.commit(UpdateConfig(schema_metadata=check_schema_metadata(as_update(values, replace))))


def update_field_metadata(
    table: TableVersion, values: Mapping[str, MetadataEntries], *, replace: bool = False
) -> TableVersion:
    """Change entries of the metadata of fields, and commit them.

    Parameters
    ----------
    table : TableVersion
    values : mapping of str to mapping
        Entries by field path; see `update_config`.
    replace : bool
        Whether to remove all other entries of these fields.

    Raises
    ------
    InvalidInputError
        If no field is given, or there is no such field.
    """
    schema = table.manifest.schema
    updates = {find_field(schema, path)[-1].id: as_update(update, replace) for path, update in values.items()}
    if not updates:
        raise InvalidInputError("there is nothing to update: give the metadata of one field at least")
    return table.commit(UpdateConfig(field_metadata=updates))


def check_schema_metadata(update: MapUpdate | None) -> MapUpdate | None:
    """Check that a change of the schema's metadata has no key of a file's statistics, and return it.

    Raises
    ------
    InvalidInputError
        If it has.
    """
    for key in sorted(update.upserted if update is not None else ()):
        if names_zones(key.encode()):
            raise InvalidInputError(f"the metadata {key!r} says where statistics of a file are, and is no table's")
    return update


def as_update(values: Any, replace: bool) -> MapUpdate:
    """Check and return a change of a mapping.

    Raises
    ------
    InvalidInputError
        If it is not a mapping of strings to strings or None.
    """
    if not isinstance(values, Mapping) or not all(
        isinstance(key, str) and isinstance(value, str | None) for key, value in values.items()
    ):
        raise InvalidInputError(f"{values!r} is no mapping of strings to strings, or to None for removed entries")
    if replace:  # All entries are removed anyway.
        values = {key: value for key, value in values.items() if value is not None}
    return MapUpdate(dict(values), replace)
