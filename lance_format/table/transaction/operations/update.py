"""Update: rows are deleted in their fragments; their new forms and new rows are added as fragments."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Set
from dataclasses import field
from typing import ClassVar, Self

from lance_format.datatypes import Field
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2
from lance_format.table.format.fragment import FragmentMetadata, parse_fragment, serialize_fragment
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.format.manifest import Manifest
from lance_format.table.transaction.inserted_keys import InsertedKeys
from lance_format.table.transaction.operations.operation import fragment_ids, known_field_ids, retain_indices
from lance_format.table.transaction.row_lineage import add_rows, touch_some_rows


@dataclass(frozen=True, slots=True)
class Update:
    """Replaces rows.

    Parameters
    ----------
    removed_fragment_ids : frozenset of int
    updated_fragments : tuple of FragmentMetadata
        Fragments with new deletion files or new data files.
    new_fragments : tuple of FragmentMetadata
        Fragments with updated and new rows. In a table with stable row ids their `row_ids` and `created_at` are those
        of the updated rows, which come first.
    fields_modified : frozenset of int
        Fields whose values in `updated_fragments` changed in place.
    fields_rewritten : frozenset of int
        Fields whose values in `new_fragments` may differ from those of the replaced rows. Indices on other fields do
        not cover the new fragments either: some refer to rows by address.
    rewrites_rows : bool
        Whether updated rows are in new fragments. Otherwise updated columns are in new files of the same fragments.
    updated_fragment_offsets : mapping of int to bytes
        Offsets of the rows of `updated_fragments` whose values changed in place, as a portable Roaring bitmap per
        fragment id. In a table with stable row ids the new version counts as the last update of these rows.
    inserted_keys : InsertedKeys, optional
        The primary keys of new rows, for other writers that insert rows.
    new_fields : tuple of Field
        Columns of `new_fragments` that the table lacked when the update was planned; see `Append`.
    """

    name: ClassVar[str] = "update"
    removed_fragment_ids: frozenset[int]
    updated_fragments: tuple[FragmentMetadata, ...]
    new_fragments: tuple[FragmentMetadata, ...]
    fields_modified: frozenset[int] = frozenset()
    fields_rewritten: frozenset[int] = frozenset()
    rewrites_rows: bool = True
    updated_fragment_offsets: Mapping[int, bytes] = field(default_factory=dict)
    inserted_keys: InsertedKeys | None = None
    new_fields: tuple[Field, ...] = ()

    @property
    def known_field_ids(self) -> frozenset[int]:
        """The fields of the new fragments that the table had when the update was planned."""
        return known_field_ids(self.new_fragments, self.new_fields)

    @property
    def changed_fragment_ids(self) -> frozenset[int]:
        """See `Operation`."""
        return fragment_ids(self.updated_fragments) | self.removed_fragment_ids

    @property
    def added_fragments(self) -> tuple[FragmentMetadata, ...]:
        """See `Operation`."""
        return self.new_fragments

    @classmethod
    def parse(cls, message: table_pb2.Transaction) -> Self:
        """See `Operation`."""
        stored = message.update
        return cls(
            frozenset(stored.removed_fragment_ids),
            tuple(parse_fragment(fragment) for fragment in stored.updated_fragments),
            tuple(parse_fragment(fragment) for fragment in stored.new_fragments),
            frozenset(stored.fields_modified),
            frozenset(stored.fields_for_preserving_frag_bitmap),
            stored.update_mode == table_pb2.Transaction.REWRITE_ROWS,
            dict(stored.updated_fragment_offsets),
            InsertedKeys.parse(stored),
        )

    def serialize(self, message: table_pb2.Transaction) -> None:
        """See `Operation`."""
        stored = message.update
        stored.SetInParent()
        stored.removed_fragment_ids.extend(sorted(self.removed_fragment_ids))
        stored.updated_fragments.extend(serialize_fragment(fragment) for fragment in self.updated_fragments)
        stored.new_fragments.extend(serialize_fragment(fragment) for fragment in self.new_fragments)
        stored.fields_modified.extend(sorted(self.fields_modified))
        stored.fields_for_preserving_frag_bitmap.extend(sorted(self.fields_rewritten))
        stored.updated_fragment_offsets.update(self.updated_fragment_offsets)
        if self.inserted_keys is not None:
            self.inserted_keys.serialize(stored)
        mode = table_pb2.Transaction
        stored.update_mode = mode.REWRITE_ROWS if self.rewrites_rows else mode.REWRITE_COLUMNS

    def apply(self, current: Manifest) -> Manifest:
        """See `Operation`."""
        updated = touch_some_rows(current, self.updated_fragments, self.updated_fragment_offsets)
        kept = current.fragments.changed(updated, self.removed_fragment_ids)
        modified = current.schema.with_relatives(self.fields_modified)
        indices = tuple(self._uncover(index, modified) for index in current.indices)
        state = dataclasses.replace(current, fragments=kept, indices=indices)
        return retain_indices(add_rows(state, self.new_fragments))

    def _uncover(self, index: IndexMetadata, modified: Set[int]) -> IndexMetadata:
        """Remove the fragments whose values changed in place from an index on these values."""
        if index.fragment_ids is None or modified.isdisjoint(index.fields):
            return index
        return index.with_fragments(set(index.fragment_ids) - fragment_ids(self.updated_fragments))
