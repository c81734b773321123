"""Project: the schema changes, but no data: columns are dropped, renamed, reordered, or become nullable."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Self

from lance_format.datatypes import Schema, parse_schema, serialize_fields
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2
from lance_format.table.format.fragment import without_dropped_files
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.manifest import Manifest
from lance_format.table.transaction.operations.operation import FragmentDefaults, retain_indices


@dataclass(frozen=True, slots=True)
class Project(FragmentDefaults):
    """Gives the table another schema of existing fields.

    Parameters
    ----------
    schema : Schema
        Its metadata are not part of the transaction; the table keeps its own.
    preserves_nullability : bool
        Whether no column became non-nullable.
    """

    name: ClassVar[str] = "project"
    schema: Schema
    preserves_nullability: bool = False

    @classmethod
    def parse(cls, message: table_pb2.Transaction) -> Self:
        """See `Operation`."""
        return cls(parse_schema(message.project.schema, {}), message.project.preserves_nullability)

    def serialize(self, message: table_pb2.Transaction) -> None:
        """See `Operation`."""
        message.project.SetInParent()
        message.project.schema.extend(serialize_fields(self.schema.fields))
        message.project.preserves_nullability = self.preserves_nullability

    def apply(self, current: Manifest) -> Manifest:
        """See `Operation`."""
        left = {field.id for field in self.schema.walk()}
        fragments = FragmentList(without_dropped_files(fragment, left) for fragment in current.fragments)
        schema = Schema(self.schema.fields, current.schema.metadata)
        return retain_indices(dataclasses.replace(current, fragments=fragments, schema=schema))
