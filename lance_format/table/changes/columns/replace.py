"""Replacing values of some rows of a fragment: their columns are rewritten and replace the existing ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from lance_format.arrow_rows import keep_rows, take_rows
from lance_format.datatypes import Schema
from lance_format.row_numbers import to_bitmap
from lance_format.table.batches.partial_structs import overlay
from lance_format.table.changes.columns.add import add_data_file
from lance_format.table.changes.columns.column_source import ColumnSource
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.deletion_file import RowOffsets
from lance_format.table.versions.table_version import Draft
from lance_format.version import FileVersion


def replace_values(
    draft: Draft,
    fragment: FragmentMetadata,
    columns: Schema,
    values: pa.Table,
    rows: RowOffsets,
    partial: Mapping[str, pa.StructType] | None = None,
    file_version: FileVersion | None = None,
) -> FragmentMetadata:
    """Rewrite some columns of a fragment with new values in some rows.

    Parameters
    ----------
    draft : Draft
    fragment : FragmentMetadata
    columns : Schema
        Columns of the table with field ids.
    values : pa.Table
        The new values of these columns, of the same types.
    rows : int64[num_rows]
        For each live row of the fragment, the index of the row of `values` that replaces it, or -1.
    partial : mapping of str to pa.StructType, optional
        Columns whose structs lack fields, which keep their values; see `lance_format.table.batches.partial_structs`.
    file_version : FileVersion, optional
        Version of the data file, by default that of the table.

    Returns
    -------
    FragmentMetadata
        The fragment with one more data file, the last one, and without data files that hold no column anymore.
    """
    position = 0

    def replace(batch: pa.RecordBatch) -> pa.Table:
        nonlocal position
        wanted = rows[position : position + batch.num_rows]
        position += batch.num_rows
        found = wanted >= 0
        news = take_rows(values, pa.array(wanted[found]))
        if partial:
            news = overlay(keep_rows(batch, pa.array(found)), news, partial)
        positions = np.arange(batch.num_rows)
        positions[found] = batch.num_rows + np.arange(news.num_rows)
        joined = pa.concat_tables([_cast(pa.Table.from_batches([batch]), values.schema), _cast(news, values.schema)])
        return take_rows(joined, pa.array(positions)).combine_chunks()

    source = ColumnSource(columns, values.schema, replace)
    return add_data_file(draft, fragment, source, columns, file_version=file_version)


def serialize_offsets(offsets: RowOffsets) -> bytes:
    """Return offsets of rows in the files of a fragment, `int64[n]`, as a portable Roaring bitmap."""
    return to_bitmap(offsets).serialize()


def _cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Cast columns of other types only: Arrow's casts of lists that hold nulls of type null in lists are not valid."""
    pairs = zip(table.columns, schema, strict=True)
    columns = [column if column.type == field.type else column.cast(field.type) for column, field in pairs]
    return pa.Table.from_arrays(columns, schema=schema)
