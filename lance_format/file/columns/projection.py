"""A field to read from a file, and the properties that follow from it for all files."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lance_format.blob_fields import describe
from lance_format.datatypes import Field
from lance_format.file.columns.leaf_columns import Leaf, leaves_of
from lance_format.lazy_dataclasses import dataclass
from lance_format.lazy_properties import cached_property


@dataclass(frozen=True)
class ColumnProjection:
    """A field to read, and the columns that hold it.

    One projection serves all files that have the field in the same columns, so its derived properties are computed
    once.

    Parameters
    ----------
    field : Field
        A top-level field, which gives the type and the name of the result.
    column_indices : mapping of int to int
        Column of the file by the id of the field and of all fields below it; absent or -1 for fields without an own
        column.
    """

    field: Field
    column_indices: Mapping[int, int]

    @cached_property
    def stored(self) -> Field:
        """The field in stored form: with descriptions in place of blobs; itself if there are none."""
        return describe(self.field)

    @cached_property
    def leaves(self) -> tuple[tuple[Leaf, int], ...]:
        """The leaf columns, in the order of the schema, each with its column of the file, or -1.

        Raises
        ------
        CorruptFileError, NotSupportedError
            See `leaves_of`.
        """
        return tuple((leaf, self.column_indices.get(leaf.field.id, -1)) for leaf in leaves_of(self.stored))

    @cached_property
    def arrow_field(self) -> pa.Field:
        """Arrow field of the values that are returned."""
        return self.field.to_arrow()
