"""The methods of `LanceDataset` that read and change the configuration and metadata of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lance_format.arguments import checked_methods
from lance_format.table.changes.columns.metadata import (
    MetadataEntries,
    update_config,
    update_field_metadata,
    update_schema_metadata,
    update_table_metadata,
)
from lance_format.table.versions.open_table import OpenTable


@checked_methods
class DatasetMetadata(OpenTable):
    """Configuration of a table; metadata of the table, its schema and its fields. Part of `LanceDataset`."""

    def config(self) -> dict[str, str]:
        """Return the table's configuration."""
        return dict(self._table.manifest.config)

    def update_config(self, values: MetadataEntries, *, replace: bool = False) -> dict[str, str]:
        """Set entries of the table's configuration.

        Parameters
        ----------
        values : mapping of str to (str or None)
            Entries by key. None removes an entry.
        replace : bool
            Whether to remove all other entries.

        Returns
        -------
        dict
            The new configuration.
        """
        self._move(lambda table: update_config(table, values, replace=replace))
        return self.config()

    def delete_config_keys(self, keys: Sequence[str]) -> None:
        """Remove entries of the table's configuration. Missing ones are ignored."""
        self.update_config(dict.fromkeys(keys))

    @property
    def metadata(self) -> dict[str, str]:
        """The table's metadata."""
        return dict(self._table.manifest.table_metadata)

    def update_metadata(self, values: MetadataEntries, *, replace: bool = False) -> dict[str, str]:
        """Set entries of the table's metadata, and return them; see `update_config`."""
        self._move(lambda table: update_table_metadata(table, values, replace=replace))
        return self.metadata

    @property
    def schema_metadata(self) -> dict[str, str]:
        """The metadata of the schema."""
        metadata = self._table.manifest.schema.metadata
        return {key.decode(errors="replace"): value.decode(errors="replace") for key, value in metadata.items()}

    def update_schema_metadata(self, values: MetadataEntries, *, replace: bool = False) -> dict[str, str]:
        """Set entries of the schema's metadata, and return them; see `update_config`."""
        self._move(lambda table: update_schema_metadata(table, values, replace=replace))
        return self.schema_metadata

    def replace_schema_metadata(self, new_metadata: Mapping[str, str]) -> None:
        """Replace all metadata of the schema. An older name of `update_schema_metadata(…, replace=True)`."""
        self.update_schema_metadata(new_metadata, replace=True)

    def replace_field_metadata(self, field_name: str, new_metadata: Mapping[str, str]) -> None:
        """Replace all metadata of a field. An older name of `update_field_metadata(…, replace=True)`."""
        self.update_field_metadata({field_name: new_metadata}, replace=True)

    def update_field_metadata(self, field_updates: Mapping[str, MetadataEntries], *, replace: bool = False) -> None:
        """Set entries of the metadata of fields, by field path; see `update_config`."""
        self._move(lambda table: update_field_metadata(table, field_updates, replace=replace))
