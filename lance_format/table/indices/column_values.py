"""Reading the column of an index, which may be a field below structs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lance_format.datatypes import Field, Schema
from lance_format.extension_types import storage_of
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.row_columns import LiveRows
from lance_format.table.versions.table_version import TableVersion


def narrowed(path: Sequence[Field]) -> Field:
    """Return the first field, reduced to the path that leads to the last."""
    if len(path) == 1:
        return path[0]
    return dataclasses.replace(path[0], children=(narrowed(path[1:]),))


def read_column(
    table: TableVersion, path: Sequence[Field], fragment: FragmentMetadata, *, batch_size: int
) -> Iterator[tuple[pa.Array, LiveRows]]:
    """Yield the values of the live rows of a fragment, and these rows.

    Parameters
    ----------
    table : TableVersion
    path : sequence of Field
        The fields from a column to the one that is read.
    fragment : FragmentMetadata
    batch_size : int
        Maximum number of rows per step.
    """
    schema = Schema((narrowed(path),), {})
    scan = table.scan(fragment, schema)
    with scan.open() as files:
        for batch, offsets in scan.read_range(files, schema, 0, scan.physical_rows(), batch_size=batch_size):
            yield values_below(batch.column(0), path[1:]), LiveRows(scan, offsets, 0)


def values_below(array: pa.Array, fields: Iterable[Field]) -> pa.Array:
    """Return a field below structs; it is null if one of these is.

    Parameters
    ----------
    array : pa.Array
        Values of the outermost struct.
    fields : iterable of Field
        Those below, the innermost last.
    """
    for field in fields:
        array = pc.struct_field(array, [field.name])  # It would take a text that begins with a dot for a path.
    return storage_of(array)
