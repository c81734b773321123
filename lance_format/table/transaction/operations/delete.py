"""Delete: rows are marked as deleted, and fragments without live rows are removed."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Self

from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2
from lance_format.table.format.fragment import FragmentMetadata, parse_fragment, serialize_fragment
from lance_format.table.format.manifest import Manifest
from lance_format.table.transaction.operations.operation import FragmentDefaults, fragment_ids, retain_indices


@dataclass(frozen=True, slots=True)
class Delete(FragmentDefaults):
    """Marks rows as deleted.

    Parameters
    ----------
    updated_fragments : tuple of FragmentMetadata
        Fragments with a new deletion file.
    deleted_fragment_ids : frozenset of int
    predicate : str
        Description of the deleted rows, for readers of the transaction.
    """

    name: ClassVar[str] = "delete"
    updated_fragments: tuple[FragmentMetadata, ...]
    deleted_fragment_ids: frozenset[int]
    predicate: str = ""

    @property
    def changed_fragment_ids(self) -> frozenset[int]:
        """See `Operation`."""
        return fragment_ids(self.updated_fragments) | self.deleted_fragment_ids

    @classmethod
    def parse(cls, message: table_pb2.Transaction) -> Self:
        """See `Operation`."""
        return cls(
            tuple(parse_fragment(fragment) for fragment in message.delete.updated_fragments),
            frozenset(message.delete.deleted_fragment_ids),
            message.delete.predicate,
        )

    def serialize(self, message: table_pb2.Transaction) -> None:
        """See `Operation`."""
        message.delete.SetInParent()
        message.delete.updated_fragments.extend(serialize_fragment(fragment) for fragment in self.updated_fragments)
        message.delete.deleted_fragment_ids.extend(sorted(self.deleted_fragment_ids))
        message.delete.predicate = self.predicate

    def apply(self, current: Manifest) -> Manifest:
        """See `Operation`."""
        fragments = current.fragments.changed(self.updated_fragments, self.deleted_fragment_ids)
        return retain_indices(dataclasses.replace(current, fragments=fragments))
