"""Reserve fragments: reserves ids for fragments whose rows are addressed before their commit."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Self

from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2
from lance_format.table.format.manifest import Manifest
from lance_format.table.transaction.operations.operation import FragmentDefaults


@dataclass(frozen=True, slots=True)
class ReserveFragments(FragmentDefaults):
    """Reserves fragment ids: the last `num_fragments` up to the highest one of the new version."""

    name: ClassVar[str] = "reserve_fragments"
    num_fragments: int

    @classmethod
    def parse(cls, message: table_pb2.Transaction) -> Self:
        """See `Operation`."""
        return cls(message.reserve_fragments.num_fragments)

    def serialize(self, message: table_pb2.Transaction) -> None:
        """See `Operation`."""
        message.reserve_fragments.num_fragments = self.num_fragments
        message.reserve_fragments.SetInParent()

    def apply(self, current: Manifest) -> Manifest:
        """See `Operation`."""
        return dataclasses.replace(current, max_fragment_id=current.max_fragment_id + self.num_fragments)
