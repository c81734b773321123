"""Rows that a merge writes: updated and inserted ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from lance_format.arrow_rows import take_rows
from lance_format.blob_fields import BlobHandling, read_schema
from lance_format.datatypes import Schema
from lance_format.table.batches.integer_index import Int64Array
from lance_format.table.batches.partial_structs import overlay
from lance_format.table.changes.merge.matching import FragmentUpdate, MergeSource
from lance_format.table.changes.rows.replaced_rows import MovedRows
from lance_format.table.fragments.joined_take import take_fragments
from lance_format.table.versions.table_version import TableVersion

_BATCH_ROWS = 8192
_BATCH_BYTES = 64 << 20
"""Of source rows that are written together."""


def replaced_rows(
    table: TableVersion, source: MergeSource, updates: Iterable[FragmentUpdate], moved: MovedRows
) -> Iterator[pa.RecordBatch]:
    """Yield the new forms of rows, in the order of the target; columns that the source lacks are read.

    Parameters
    ----------
    table : TableVersion
    source : MergeSource
    updates : iterable of FragmentUpdate
    moved : MovedRows
        Is told the rows.
    """
    schema = table.manifest.schema
    given = {name for name in source.table.schema.names if name not in source.partial}
    missing = read_schema(schema.select(name for name in schema.names if name not in given), BlobHandling.ALL_BINARY)
    batch_size = _rows_at_once(source)
    for group in _together(updates, batch_size):
        found = [update.all() for update in group]
        source_rows, first = np.concatenate([numbers for _, numbers in found]), 0
        for rows, _ in found:
            moved.add(rows)
        for taken, _ in take_fragments([rows for rows, _ in found], missing):
            for start in range(0, taken.num_rows, batch_size):
                kept = taken.slice(start, batch_size)
                values = take_rows(source.table, pa.array(source_rows[first : first + kept.num_rows]))
                first += kept.num_rows
                yield from _assemble(schema, overlay(kept, values, source.partial), kept)


def _together(updates: Iterable[FragmentUpdate], batch_size: int) -> Iterator[list[FragmentUpdate]]:
    """Yield adjacent updates whose columns are read at once: of at most so many rows, or of one fragment."""
    group: list[FragmentUpdate] = []
    num_rows = 0
    for update in updates:
        if group and num_rows + len(update) > batch_size:
            yield group
            group, num_rows = [], 0
        group.append(update)
        num_rows += len(update)
    if group:
        yield group


def inserted_rows(table: TableVersion, source: MergeSource, inserted: Int64Array) -> Iterator[pa.RecordBatch]:
    """Yield source rows, by index, as rows of the table; columns that the source lacks are null.

    Parameters
    ----------
    table : TableVersion
    source : MergeSource
    inserted : int64[num_rows]
        The source rows.
    """
    batch_size = _rows_at_once(source)
    for row in range(0, inserted.size, batch_size):
        values = take_rows(source.table, pa.array(inserted[row : row + batch_size]))
        yield from _assemble(table.manifest.schema, values, None)


def _rows_at_once(source: MergeSource) -> int:
    row_bytes = source.table.nbytes // max(source.table.num_rows, 1)
    return min(_BATCH_ROWS, max(int(_BATCH_BYTES // max(row_bytes, 1)), 1))


def _assemble(schema: Schema, given: pa.Table, kept: pa.RecordBatch | None) -> Iterator[pa.RecordBatch]:
    """Return rows of the table: columns of the source, others as they were, or else null."""
    names = set(given.schema.names)
    for node in schema.fields:
        if node.name in names:
            continue
        column = pa.nulls(given.num_rows, node.to_arrow_type()) if kept is None else kept.column(node.name)
        given = given.append_column(pa.field(node.name, column.type), column)
    return iter(given.select(schema.names).to_batches())
