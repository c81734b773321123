"""Merge: columns are added to the existing fragments by further data files; fragments may be added too."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Self

from lance_format.datatypes import Schema, parse_schema, serialize_fields, serialize_metadata
from lance_format.errors import InvalidInputError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2
from lance_format.table.format.fragment import FragmentMetadata, parse_fragment, serialize_fragment
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.format.manifest import Manifest
from lance_format.table.transaction.indexed_values import changed_in_place
from lance_format.table.transaction.operations.operation import fragment_ids, retain_indices
from lance_format.table.transaction.operations.update import Update
from lance_format.table.transaction.row_lineage import add_rows, touch_rows, without_lineage


@dataclass(frozen=True, slots=True)
class Merge:
    """Gives the table another schema, and its fragments the data files for it.

    Parameters
    ----------
    fragments : tuple of FragmentMetadata
        All fragments of the table.
    schema : Schema
    preserves_nullability : bool
        Whether no column became non-nullable, so that concurrently appended rows still fit.
    new_fragments : tuple of FragmentMetadata
        Fragments to append. A parsed operation has them among `fragments`, where they are stored.
    update : Update, optional
        The change of rows that the commit made this of. It gave `fragments`, which the transaction has, and it is
        applied in their place. Not part of the stored transaction.
    """

    name: ClassVar[str] = "merge"
    fragments: tuple[FragmentMetadata, ...]
    schema: Schema
    preserves_nullability: bool = False
    new_fragments: tuple[FragmentMetadata, ...] = ()
    update: Update | None = None

    @property
    def changed_fragment_ids(self) -> frozenset[int]:
        """See `Operation`."""
        return fragment_ids(self.fragments)

    @property
    def added_fragments(self) -> tuple[FragmentMetadata, ...]:
        """See `Operation`."""
        return self.new_fragments

    @property
    def field_ids(self) -> frozenset[int]:
        """The fields of the new schema."""
        return frozenset(field.id for field in self.schema.walk())

    @classmethod
    def parse(cls, message: table_pb2.Transaction) -> Self:
        """See `Operation`."""
        stored = message.merge
        return cls(
            tuple(parse_fragment(fragment) for fragment in stored.fragments),
            parse_schema(stored.schema, stored.schema_metadata),
            stored.preserves_nullability,
        )

    def serialize(self, message: table_pb2.Transaction) -> None:
        """See `Operation`."""
        stored = message.merge
        stored.SetInParent()
        stored.fragments.extend(serialize_fragment(fragment) for fragment in (*self.fragments, *self.new_fragments))
        stored.schema.extend(serialize_fields(self.schema.fields))
        stored.schema_metadata.update(serialize_metadata(self.schema.metadata))
        stored.preserves_nullability = self.preserves_nullability

    def apply(self, current: Manifest) -> Manifest:
        """See `Operation`."""
        if self.update is not None:
            return self.update.apply(dataclasses.replace(current, schema=self.schema))
        after = {fragment.id: fragment for fragment in self.fragments}
        if after.keys() != current.fragments.ids:
            raise InvalidInputError("the fragments of a merge are not those of the table")
        for fragment in current.fragments:
            if fragment.physical_rows not in (0, after[fragment.id].physical_rows):
                raise InvalidInputError(f"a merge changes the number of rows of fragment {fragment.id}")
        indices = tuple(_uncover(index, current, after) for index in current.indices)
        fragments = FragmentList(touch_rows(current, self.fragments))
        state = dataclasses.replace(current, fragments=fragments, schema=self.schema, indices=indices)
        return retain_indices(add_rows(state, (without_lineage(fragment) for fragment in self.new_fragments)))


def _uncover(index: IndexMetadata, current: Manifest, after: Mapping[int, FragmentMetadata]) -> IndexMetadata:
    """Remove from an index the fragments with its values in other files than before."""
    changed = changed_in_place(index, current, after)
    return index.with_fragments(set(index.fragment_ids or ()) - changed) if changed else index
