"""Overwrite: replaces all fragments and the schema, or creates the table."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Self

from lance_format.datatypes import Schema, parse_schema, serialize_fields, serialize_metadata
from lance_format.errors import NotSupportedError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2
from lance_format.table.format.fragment import FragmentMetadata, parse_fragment, serialize_fragment
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.manifest import Manifest, first_manifest
from lance_format.table.transaction.operations.operation import FragmentDefaults
from lance_format.table.transaction.row_lineage import add_rows, without_lineage
from lance_format.version import STABLE, FileVersion


@dataclass(frozen=True, slots=True)
class Overwrite(FragmentDefaults):
    """Replaces fragments and schema, or creates the table.

    Parameters
    ----------
    fragments : tuple of FragmentMetadata
    schema : Schema
    file_version : FileVersion, optional
        The new default version of data files. Not part of the stored transaction.
    config_upserts : mapping of str to str
        Entries of the table's configuration to set.
    stable_row_ids : bool, optional
        Whether moved rows of a new table keep their ids. Not part of the stored transaction, and ignored for existing
        tables.
    derives_rows : bool
        Whether the rows are made from those of the version that the transaction has read, so that changes of these in
        between would be lost. Not part of the stored transaction.
    """

    name: ClassVar[str] = "overwrite"
    fragments: tuple[FragmentMetadata, ...]
    schema: Schema
    file_version: FileVersion | None = None
    config_upserts: Mapping[str, str] = field(default_factory=dict)
    stable_row_ids: bool | None = None
    derives_rows: bool = False

    @property
    def added_fragments(self) -> tuple[FragmentMetadata, ...]:
        """See `Operation`."""
        return self.fragments

    @classmethod
    def parse(cls, message: table_pb2.Transaction) -> Self:
        """See `Operation`."""
        stored = message.overwrite
        return cls(
            tuple(parse_fragment(fragment) for fragment in stored.fragments),
            parse_schema(stored.schema, stored.schema_metadata),
            config_upserts=dict(stored.config_upsert_values),
        )

    def serialize(self, message: table_pb2.Transaction) -> None:
        """See `Operation`."""
        stored = message.overwrite
        stored.SetInParent()
        stored.fragments.extend(serialize_fragment(fragment) for fragment in self.fragments)
        stored.schema.extend(serialize_fields(self.schema.fields))
        stored.schema_metadata.update(serialize_metadata(self.schema.metadata))
        stored.config_upsert_values.update(self.config_upserts)

    def create(self) -> Manifest:
        """Return the new table, still without rows and version."""
        version = self.file_version or STABLE
        created = first_manifest(self.schema, version, stable_row_ids=bool(self.stable_row_ids))
        return dataclasses.replace(created, config=dict(self.config_upserts))

    def apply(self, current: Manifest) -> Manifest:
        """See `Operation`."""
        if self.stable_row_ids and not current.stable_row_ids:
            raise NotSupportedError("stable row ids can only be enabled when a table is created, not by an overwrite")
        emptied = dataclasses.replace(
            current,
            fragments=FragmentList(),
            schema=self.schema,
            file_version=self.file_version or current.file_version,
            indices=(),
            config={**current.config, **self.config_upserts},
        )
        return add_rows(emptied, (without_lineage(fragment) for fragment in self.fragments))
