"""Create index: indices are added to the table, replaced or removed; their files already exist."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Self

from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2
from lance_format.table.format.index_metadata import IndexMetadata, parse_index
from lance_format.table.format.manifest import Manifest
from lance_format.table.transaction.operations.operation import FragmentDefaults


@dataclass(frozen=True, slots=True)
class CreateIndex(FragmentDefaults):
    """Adds and removes indices.

    Parameters
    ----------
    new_indices : tuple of IndexMetadata
        New parts. All parts of one index have the same name.
    removed_indices : tuple of IndexMetadata
        Parts that the new ones replace, or that are dropped.
    """

    name: ClassVar[str] = "create_index"
    new_indices: tuple[IndexMetadata, ...]
    removed_indices: tuple[IndexMetadata, ...] = ()

    @classmethod
    def parse(cls, message: table_pb2.Transaction) -> Self:
        """See `Operation`."""
        stored = message.create_index
        return cls(
            tuple(parse_index(index) for index in stored.new_indices),
            tuple(parse_index(index) for index in stored.removed_indices),
        )

    def serialize(self, message: table_pb2.Transaction) -> None:
        """See `Operation`."""
        message.create_index.SetInParent()
        message.create_index.new_indices.extend(index.message for index in self.new_indices)
        message.create_index.removed_indices.extend(index.message for index in self.removed_indices)

    def apply(self, current: Manifest) -> Manifest:
        """See `Operation`; an index on a column that another writer dropped is left out."""
        field_ids = {field.id for field in current.schema.walk()}
        new = [index for index in self.new_indices if index.is_system or field_ids.issuperset(index.fields)]
        gone = {index.uuid for index in (*self.removed_indices, *self.new_indices)}
        kept = [index for index in current.indices if index.uuid not in gone]
        return dataclasses.replace(current, indices=(*kept, *new))
