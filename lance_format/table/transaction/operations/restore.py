"""Restore: an earlier version becomes the latest again."""

from __future__ import annotations

import dataclasses
from dataclasses import field
from typing import ClassVar, Self

from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2
from lance_format.table.format.manifest import Manifest
from lance_format.table.transaction.operations.operation import FragmentDefaults


@dataclass(frozen=True, slots=True)
class Restore(FragmentDefaults):
    """Restores the table to an earlier version.

    Parameters
    ----------
    version : int
    restored : Manifest, optional
        That version, which the commit loads.
    """

    name: ClassVar[str] = "restore"
    version: int
    restored: Manifest | None = field(default=None, repr=False, compare=False)

    @classmethod
    def parse(cls, message: table_pb2.Transaction) -> Self:
        """See `Operation`."""
        return cls(message.restore.version)

    def serialize(self, message: table_pb2.Transaction) -> None:
        """See `Operation`."""
        message.restore.version = self.version
        message.restore.SetInParent()

    def apply(self, current: Manifest) -> Manifest:
        """See `Operation`; ids that were assigned since are not reused."""
        if self.restored is None:
            raise TypeError("a version must be loaded before it is restored")
        return dataclasses.replace(
            self.restored,
            max_fragment_id=max(self.restored.max_fragment_id, current.max_fragment_id),
            next_row_id=max(self.restored.next_row_id, current.next_row_id),
        )
