"""Append: the table keeps all it has, and gains fragments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from lance_format.proto import table_pb2
from lance_format.table.fragment import FragmentMetadata, parse_fragment, serialize_fragment
from lance_format.table.manifest import Manifest
from lance_format.table.row_lineage import add_rows, without_lineage


@dataclass(frozen=True, slots=True)
class Append:
    """Adds fragments; the rest stays."""

    name: ClassVar[str] = "append"
    fragments: tuple[FragmentMetadata, ...]

    @property
    def changed_fragment_ids(self) -> frozenset[int]:
        """See `Operation`."""
        return frozenset()

    @property
    def added_fragments(self) -> tuple[FragmentMetadata, ...]:
        """See `Operation`."""
        return self.fragments

    @classmethod
    def parse(cls, message: table_pb2.Transaction) -> Self:
        """See `Operation`."""
        return cls(tuple(parse_fragment(fragment) for fragment in message.append.fragments))

    def serialize(self, message: table_pb2.Transaction) -> None:
        """See `Operation`."""
        message.append.SetInParent()
        message.append.fragments.extend(serialize_fragment(fragment) for fragment in self.fragments)

    def apply(self, current: Manifest) -> Manifest:
        """See `Operation`."""
        return add_rows(current, (without_lineage(fragment) for fragment in self.fragments))
