"""A field to read from a file, and what follows from it whatever the file holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from lance_format.blob_fields import describe
from lance_format.datatypes import Field
from lance_format.file.nesting import Leaf, leaves_of


@dataclass(frozen=True)
class ColumnProjection:
    """A field to read, and where its columns are.

    One projection serves all files that have the field in the same columns: what is found out about it once need not be
    found out for every file.

    Parameters
    ----------
    field : Field
        A top-level field; it decides the type and the name of what is returned.
    column_indices : mapping of int to int
        The column of the file for the field's id and for those of all fields below it; absent or -1 for fields that
        have no column of their own.
    """

    field: Field
    column_indices: Mapping[int, int]

    @cached_property
    def stored(self) -> Field:
        """The field as files have it: with descriptions in place of blobs; itself if there are none."""
        return describe(self.field)

    @cached_property
    def leaves(self) -> tuple[tuple[Leaf, int], ...]:
        """The leaf columns, in the order of the schema, and the column of the file that each is, -1 for none.

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
