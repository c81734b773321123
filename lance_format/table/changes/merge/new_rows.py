"""Rows that a merge writes: updated and inserted ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lance_format.arrow_rows import take_rows
from lance_format.blob_fields import BlobHandling, read_schema
from lance_format.datatypes import Schema
from lance_format.table.batches.integer_index import Int64Array
from lance_format.table.batches.partial_structs import overlay
from lance_format.table.changes.merge.matching import FragmentUpdate, MergeSource
from lance_format.table.changes.rows.replaced_rows import MovedRows
from lance_format.table.versions.table_version import TableVersion

_BATCH_ROWS = 8192


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
    given = [name for name in source.table.schema.names if name not in source.partial]
    missing = read_schema(schema.select(name for name in schema.names if name not in given), BlobHandling.ALL_BINARY)
    for update in updates:
        rows, source_rows = update.all()
        moved.add(rows)
        scan = table.scan(update.scan.fragment, missing)
        for row in range(0, source_rows.size, _BATCH_ROWS):
            part = slice(row, row + _BATCH_ROWS)
            kept = scan.take_physical(rows.offsets[part]) if missing.fields else None
            values = take_rows(source.table, pa.array(source_rows[part]))
            if kept is not None:
                values = overlay(kept, values, source.partial)
            yield from _assemble(schema, values, kept)


def inserted_rows(table: TableVersion, source: MergeSource, inserted: Int64Array) -> Iterator[pa.RecordBatch]:
    """Yield source rows, by index, as rows of the table; columns that the source lacks are null.

    Parameters
    ----------
    table : TableVersion
    source : MergeSource
    inserted : int64[num_rows]
        The source rows.
    """
    for row in range(0, inserted.size, _BATCH_ROWS):
        values = take_rows(source.table, pa.array(inserted[row : row + _BATCH_ROWS]))
        yield from _assemble(table.manifest.schema, values, None)


def _assemble(schema: Schema, given: pa.Table, kept: pa.RecordBatch | None) -> Iterator[pa.RecordBatch]:
    """Return rows of the table: columns of the source, others as they were, or else null."""
    for node in schema.fields:
        if node.name in given.schema.names:
            continue
        column = pa.nulls(given.num_rows, node.to_arrow_type()) if kept is None else kept.column(node.name)
        given = given.append_column(pa.field(node.name, column.type), column)
    return iter(given.select(schema.names).to_batches())
