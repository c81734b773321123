"""Rewrite: fragments are replaced by others with the same rows, as in a compaction."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Self

from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2
from lance_format.table.format.fragment import FragmentMetadata, parse_fragment, serialize_fragment
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.format.manifest import Manifest
from lance_format.table.transaction.file_versions import with_rewritten_files


@dataclass(frozen=True, slots=True)
class RewriteGroup:
    """Fragments and their replacements.

    Parameters
    ----------
    old_fragments, new_fragments : tuple of FragmentMetadata
        The new ones have reserved ids; the commit assigns an id to those of id 0.
    """

    old_fragments: tuple[FragmentMetadata, ...]
    new_fragments: tuple[FragmentMetadata, ...]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Replaces groups of fragments by others with the same rows.

    Parameters
    ----------
    groups : tuple of RewriteGroup
    rewrites_indices : bool
        Whether a transaction of another writer rewrote indices, or deferred that.
    """

    name: ClassVar[str] = "rewrite"
    groups: tuple[RewriteGroup, ...]
    rewrites_indices: bool = False

    @property
    def changed_fragment_ids(self) -> frozenset[int]:
        """See `Operation`."""
        return frozenset(fragment.id for group in self.groups for fragment in group.old_fragments)

    @property
    def added_fragments(self) -> tuple[FragmentMetadata, ...]:
        """See `Operation`."""
        return tuple(fragment for group in self.groups for fragment in group.new_fragments)

    @classmethod
    def parse(cls, message: table_pb2.Transaction) -> Self:
        """See `Operation`."""
        stored = message.rewrite
        groups = [(group.old_fragments, group.new_fragments) for group in stored.groups]
        if stored.old_fragments or stored.new_fragments:  # Field of early releases, which had only one group.
            groups.append((stored.old_fragments, stored.new_fragments))
        return cls(
            tuple(
                RewriteGroup(
                    tuple(parse_fragment(fragment) for fragment in old),
                    tuple(parse_fragment(fragment) for fragment in new),
                )
                for old, new in groups
            ),
            bool(stored.rewritten_indices),
        )

    def serialize(self, message: table_pb2.Transaction) -> None:
        """See `Operation`."""
        message.rewrite.SetInParent()
        for group in self.groups:
            stored = message.rewrite.groups.add()
            stored.old_fragments.extend(serialize_fragment(fragment) for fragment in group.old_fragments)
            stored.new_fragments.extend(serialize_fragment(fragment) for fragment in group.new_fragments)

    def apply(self, current: Manifest) -> Manifest:
        """See `Operation`."""
        if self.rewrites_indices:
            raise NotSupportedError("a rewrite that rewrites indices cannot be committed")
        self._check_reserved(current)
        missing = self.changed_fragment_ids - current.fragments.ids
        if missing:
            raise InvalidInputError(f"the table has no fragments {sorted(missing)[:10]}, which would be rewritten")
        kept = current.fragments.changed(removed=self.changed_fragment_ids)
        state = dataclasses.replace(current, fragments=kept)
        for group in self.groups:
            reserved = [fragment for fragment in group.new_fragments if fragment.id]
            state = dataclasses.replace(state, fragments=state.fragments.extended(reserved))
            state = state.with_new_fragments(fragment for fragment in group.new_fragments if not fragment.id)
        indices = tuple(self._shrunk(index) for index in current.indices)
        return with_rewritten_files(current, dataclasses.replace(state, indices=indices))

    def _shrunk(self, index: IndexMetadata) -> IndexMetadata:
        """Remove the old fragments from an index: it refers to rows by address, even with stable ids."""
        covered = index.fragment_ids
        if covered is None or index.is_system or not index.covers_any(self.changed_fragment_ids):
            return index
        return index.with_fragments(set(covered) - self.changed_fragment_ids)

    def _check_reserved(self, current: Manifest) -> None:
        """Refuse ids that were not reserved, or are in use."""
        ids = [fragment.id for fragment in self.added_fragments if fragment.id]
        taken = current.fragments.ids
        for fragment_id in ids:
            if fragment_id > current.max_fragment_id or fragment_id in taken or ids.count(fragment_id) > 1:
                raise InvalidInputError(f"fragment id {fragment_id} of a rewrite has not been reserved for it")
