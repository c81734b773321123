"""Update config: entries of the table's configuration, of its metadata, of the schema's or of fields' change."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Self

from lance_format.blob_fields import is_marked
from lance_format.datatypes import Field, Schema
from lance_format.errors import InvalidInputError
from lance_format.lazy_dataclasses import dataclass
from lance_format.packing import asks_to_pack, spell_out
from lance_format.proto import table_pb2
from lance_format.table.format.key_rules import check_keys_stay
from lance_format.table.format.manifest import Manifest
from lance_format.table.transaction.operations.operation import FragmentDefaults
from lance_format.unenforced_keys import keys_of


@dataclass(frozen=True, slots=True)
class MapUpdate:
    """A change of a mapping.

    Parameters
    ----------
    entries : mapping of str to str or None
        Entries to set; None removes a key.
    replace : bool
        Whether to remove all other entries.
    """

    entries: Mapping[str, str | None]
    replace: bool = False

    @property
    def upserted(self) -> frozenset[str]:
        """The keys that it sets."""
        return frozenset(key for key, value in self.entries.items() if value is not None)

    def apply(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return the changed mapping."""
        changed = {} if self.replace else dict(values)
        for key, value in self.entries.items():
            if value is None:
                changed.pop(key, None)
            else:
                changed[key] = value
        return changed

    @classmethod
    def parse(cls, message: table_pb2.Transaction.UpdateMap) -> Self:
        """Build it from its protobuf."""
        entries = {entry.key: entry.value if entry.HasField("value") else None for entry in message.update_entries}
        return cls(entries, message.replace)

    def serialize(self, message: table_pb2.Transaction.UpdateMap) -> None:
        """Write it into its protobuf."""
        message.SetInParent()
        message.replace = self.replace
        for key, value in self.entries.items():
            message.update_entries.add(key=key, value=value)


@dataclass(frozen=True, slots=True)
class UpdateConfig(FragmentDefaults):
    """Changes the configuration and metadata of a table and its fields.

    Parameters
    ----------
    config, table_metadata, schema_metadata : MapUpdate, optional
    field_metadata : mapping of int to MapUpdate
        By field id.
    """

    name: ClassVar[str] = "update_config"
    config: MapUpdate | None = None
    table_metadata: MapUpdate | None = None
    schema_metadata: MapUpdate | None = None
    field_metadata: Mapping[int, MapUpdate] = field(default_factory=dict)

    @classmethod
    def parse(cls, message: table_pb2.Transaction) -> Self:
        """See `Operation`."""
        stored = message.update_config
        found = {
            name: MapUpdate.parse(getattr(stored, member)) if stored.HasField(member) else None
            for name, member in _MEMBERS.items()
        }
        fields = {field_id: MapUpdate.parse(update) for field_id, update in stored.field_metadata_updates.items()}
        # Writers of early releases used other members.
        if stored.upsert_values or stored.delete_keys:
            found["config"] = MapUpdate({**stored.upsert_values, **dict.fromkeys(stored.delete_keys)})
        if stored.schema_metadata:
            found["schema_metadata"] = MapUpdate(dict(stored.schema_metadata), replace=True)
        for field_id, update in stored.field_metadata.items():
            fields[field_id] = MapUpdate(dict(update.metadata), replace=True)
        return cls(**found, field_metadata=fields)

    def serialize(self, message: table_pb2.Transaction) -> None:
        """See `Operation`."""
        stored = message.update_config
        stored.SetInParent()
        for name, member in _MEMBERS.items():
            update: MapUpdate | None = getattr(self, name)
            if update is not None:
                update.serialize(getattr(stored, member))
        for field_id, update in self.field_metadata.items():
            update.serialize(stored.field_metadata_updates[field_id])

    def apply(self, current: Manifest) -> Manifest:
        """See `Operation`."""
        schema = current.schema
        missing = self.field_metadata.keys() - {node.id for node in schema.walk()}
        if missing:
            raise InvalidInputError(f"the table has no field with the id {min(missing)}, whose metadata is to change")
        fields = tuple(self._apply_to_field(top) for top in schema.fields)
        check_keys_stay(schema.fields, fields)
        metadata = schema.metadata
        if self.schema_metadata is not None:
            metadata = _encoded(self.schema_metadata.apply(_decoded(metadata)))
        config, table_metadata = current.config, current.table_metadata
        return dataclasses.replace(
            current,
            config=config if self.config is None else self.config.apply(config),
            table_metadata=table_metadata if self.table_metadata is None else self.table_metadata.apply(table_metadata),
            schema=Schema(fields, metadata),
        )

    def _apply_to_field(self, node: Field) -> Field:
        update = self.field_metadata.get(node.id)
        children = tuple(self._apply_to_field(child) for child in node.children)
        node = dataclasses.replace(node, children=children)
        if update is None:
            return node
        before, metadata = keys_of(node.metadata), spell_out(_encoded(update.apply(_decoded(node.metadata))))
        _check_layout_stays(node, metadata)
        keys = keys_of(metadata)
        node = dataclasses.replace(node, metadata=metadata)
        return node if keys == before else dataclasses.replace(node, **keys)


def _check_layout_stays(node: Field, metadata: Mapping[bytes, bytes]) -> None:
    """Refuse metadata that makes readers expect another layout than that of the column's files."""
    for what, says in (("packed", asks_to_pack), ("blob", is_marked)):
        if says(node.metadata) != says(metadata):
            raise InvalidInputError(
                f"the metadata 'lance-encoding:{what}' of field {node.name!r} says how its data files store it, and"
                " cannot change; write a new table"
            )


_MEMBERS = {
    "config": "config_updates",
    "table_metadata": "table_metadata_updates",
    "schema_metadata": "schema_metadata_updates",
}


_ESCAPED = "surrogateescape"  # Bytes that are no text survive a round trip.


def _decoded(metadata: Mapping[bytes, bytes]) -> dict[str, str]:
    return {key.decode(errors=_ESCAPED): value.decode(errors=_ESCAPED) for key, value in metadata.items()}


def _encoded(metadata: Mapping[str, str]) -> dict[bytes, bytes]:
    return {key.encode(errors=_ESCAPED): value.encode(errors=_ESCAPED) for key, value in metadata.items()}
