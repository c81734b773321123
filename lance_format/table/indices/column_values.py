"""Reading the column of an index, which may be a field below structs."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lance_format.datatypes import Field, Schema
from lance_format.extension_types import storage_of
from lance_format.progress import Work, advance
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.row_columns import LiveRows
from lance_format.table.fragments.whole_fragments import read_whole
from lance_format.table.versions.table_version import TableVersion


def narrowed(path: Sequence[Field]) -> Field:
    """Return the first field, reduced to the path that leads to the last."""
    if len(path) == 1:
        return path[0]
    return dataclasses.replace(path[0], children=(narrowed(path[1:]),))


def read_column(
    table: TableVersion, path: Sequence[Field], fragments: Iterable[FragmentMetadata], *, batch_size: int
) -> Iterator[tuple[pa.Array, list[LiveRows]]]:
    """Yield the values of the live rows of fragments, in order, and these rows: of one fragment, or of several.

    Parameters
    ----------
    table : TableVersion
    path : sequence of Field
        The fields from a column to the one that is read.
    fragments : iterable of FragmentMetadata
    batch_size : int
        Maximum number of rows per step.
    """
    schema = Schema((narrowed(path),), {})
    scans = (table.scan(fragment, schema) for fragment in fragments)
    for batch, rows in read_whole(scans, schema, batch_size=batch_size):
        yield values_below(batch.column(0), path[1:]), rows


def read_covered(
    table: TableVersion, path: Sequence[Field], fragments: Sequence[FragmentMetadata], *, batch_size: int
) -> Iterator[tuple[list[int], pa.Array, list[LiveRows]]]:
    """Yield what `read_column` does, and tell the progress of an index that is made.

    Fragments that share an id, as in tables of early releases, are left out: an address is not of one row there.

    Parameters
    ----------
    table, path, fragments, batch_size
        See `read_column`.

    Yields
    ------
    (list of int, pa.Array, list of LiveRows)
        The ids of fragments that have no further rows, and the next rows; there are none at the end.
    """
    shared, left = table.manifest.fragments.repeated_ids, deque(fragments)

    def finish(until: FragmentMetadata | None) -> list[int]:
        done = []
        while left and left[0] is not until:
            fragment = left.popleft()
            advance(Work.INDEXING, fragment.physical_rows, fragment.known_bytes)
            done += [] if fragment.id in shared else [fragment.id]
        return done

    usable = [fragment for fragment in fragments if fragment.id not in shared]
    for values, rows in read_column(table, path, usable, batch_size=batch_size):
        yield finish(rows[0].scan.fragment), values, rows
    yield finish(None), pa.nulls(0), []


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
