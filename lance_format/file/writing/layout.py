"""The columns of a new file, as its schema and version decide; files that are alike have the same."""

from __future__ import annotations

import functools
import itertools

from lance_format.blob_fields import check_storable, describe, in_file
from lance_format.datatypes import Field, Schema
from lance_format.file.columns.leaf_columns import Leaf
from lance_format.file.columns.storable import check_order, writable_leaves
from lance_format.file.zones.collector import has_order
from lance_format.lazy_dataclasses import dataclass
from lance_format.version import FileVersion

_KEPT_LAYOUTS = 16


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """A top-level column.

    Parameters
    ----------
    field : Field
    described : Field
        With descriptions in place of blobs; `field` itself if there are none.
    leaves : tuple of Leaf
        Of `described`.
    zoned : tuple of Leaf
        Those that have statistics.
    """

    field: Field
    described: Field
    leaves: tuple[Leaf, ...]
    zoned: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class FileLayout:
    """All columns of a file.

    Parameters
    ----------
    columns : tuple of ColumnLayout
    stored_fields : tuple of Field
        The form of the fields in the schema of the file.
    """

    columns: tuple[ColumnLayout, ...]
    stored_fields: tuple[Field, ...]


@functools.lru_cache(maxsize=_KEPT_LAYOUTS)
def layout_of(schema: Schema, version: FileVersion) -> FileLayout:
    """Return the columns of files of a schema.

    Raises
    ------
    InvalidInputError
        If a column asks for what its type cannot be.
    NotSupportedError
        If the version cannot hold a column.
    """
    for top in schema.fields:
        check_storable(top, version)
    columns = []
    for top in schema.fields:
        described = describe(top)
        leaves = tuple(writable_leaves(described, version))
        columns.append(ColumnLayout(top, described, leaves, tuple(filter(has_order, leaves))))
    check_order(itertools.chain.from_iterable(column.leaves for column in columns), version)
    return FileLayout(tuple(columns), tuple(in_file(top) for top in schema.fields))
