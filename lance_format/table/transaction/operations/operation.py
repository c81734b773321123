"""Base of all operations."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import ClassVar, Protocol, Self

from lance_format.datatypes import Field
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.index_metadata import retain_relevant
from lance_format.table.format.manifest import Manifest


class Operation(Protocol):
    """Effect of a transaction on a table, as a value; `apply` is pure."""

    name: ClassVar[str]
    """The member of the protobuf oneof."""

    @property
    def changed_fragment_ids(self) -> frozenset[int]:
        """The fragments of the table that it changes or removes; other commits that did so may conflict."""

    @property
    def added_fragments(self) -> tuple[FragmentMetadata, ...]:
        """The fragments that it adds."""

    @classmethod
    def parse(cls, message: table_pb2.Transaction) -> Self:
        """Build it from its transaction.

        Raises
        ------
        CorruptFileError
            If it is malformed.
        """

    def serialize(self, message: table_pb2.Transaction) -> None:
        """Put it into a transaction."""

    def apply(self, current: Manifest) -> Manifest:
        """Apply the operation to a version.

        Raises
        ------
        InvalidInputError
            If it does not fit the version.
        """


class FragmentDefaults:
    """Defaults of an operation: it changes no fragment, and adds none."""

    __slots__ = ()

    @property
    def changed_fragment_ids(self) -> frozenset[int]:
        """See `Operation`."""
        return frozenset()

    @property
    def added_fragments(self) -> tuple[FragmentMetadata, ...]:
        """See `Operation`."""
        return ()


@dataclass(frozen=True, slots=True)
class OtherOperation:
    """An operation that only other libraries commit.

    Parameters
    ----------
    member : str
        Its name in the format, or "unknown".
    """

    member: str

    @property
    def name(self) -> str:
        """See `Operation`."""
        return self.member


def fragment_ids(fragments: Iterable[FragmentMetadata]) -> frozenset[int]:
    """Return the ids of fragments."""
    return frozenset(fragment.id for fragment in fragments)


def known_field_ids(fragments: Iterable[FragmentMetadata], new_fields: Iterable[Field]) -> frozenset[int]:
    """Return the fields of new fragments that the table had when their columns were planned."""
    new = {node.id for field in new_fields for node in field.walk()}
    return frozenset[int]().union(*(fragment.field_ids for fragment in fragments)) - new


def retain_indices(state: Manifest) -> Manifest:
    """Drop the indices without remaining fields or fragments."""
    if not state.indices:
        return state
    field_ids = frozenset(field.id for field in state.schema.walk())
    indices = retain_relevant(state.indices, field_ids, state.fragments.ids)
    return dataclasses.replace(state, indices=indices)
