"""Append: the table keeps its content, and gains fragments."""

from __future__ import annotations

from typing import ClassVar, Self

from lance_format.datatypes import Field
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2
from lance_format.table.format.fragment import FragmentMetadata, parse_fragment, serialize_fragment
from lance_format.table.format.manifest import Manifest
from lance_format.table.transaction.operations.operation import FragmentDefaults, known_field_ids
from lance_format.table.transaction.row_lineage import add_rows, without_lineage


@dataclass(frozen=True, slots=True)
class Append(FragmentDefaults):
    """Adds fragments; the rest stays.

    Parameters
    ----------
    fragments : tuple of FragmentMetadata
    new_fields : tuple of Field
        Columns of the fragments that the table lacked when the append was planned. Not part of the stored transaction:
        the commit turns it into a merge; see `lance_format.table.transaction.appended_columns`.
    """

    name: ClassVar[str] = "append"
    fragments: tuple[FragmentMetadata, ...]
    new_fields: tuple[Field, ...] = ()

    @property
    def added_fragments(self) -> tuple[FragmentMetadata, ...]:
        """See `Operation`."""
        return self.fragments

    @property
    def known_field_ids(self) -> frozenset[int]:
        """The fields of the fragments that the table had when the append was planned."""
        return known_field_ids(self.fragments, self.new_fields)

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
