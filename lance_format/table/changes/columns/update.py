"""Replacing values of one fragment by key: only the changed columns are rewritten."""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa

from lance_format.blob_fields import has_blobs
from lance_format.datatypes import Field, Schema
from lance_format.errors import InvalidInputError, NotSupportedError, SchemaMismatchError
from lance_format.table.batches.fitting import conform_table, plan_update
from lance_format.table.batches.key_index import index_keys
from lance_format.table.changes.columns.replace import replace_values, serialize_offsets
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.deletion_file import RowOffsets
from lance_format.table.fragments.row_columns import ROW_ADDRESS, ROW_COLUMNS, ROW_ID
from lance_format.table.scan.options import ScanOptions
from lance_format.table.scan.scanner import LanceScanner
from lance_format.table.versions.table_version import Draft, TableVersion


def update_columns(
    table: TableVersion, fragment: FragmentMetadata, data: pa.Table, left_on: str, right_on: str
) -> tuple[FragmentMetadata, list[int], bytes]:
    """Rewrite columns of one fragment with new values in some rows, without committing them.

    Parameters
    ----------
    table : TableVersion
    fragment : FragmentMetadata
    data : pa.Table
        The new values. The last row wins if a key repeats. Null is a key like any other.
    left_on : str
        The key of the fragment: a column, `_rowid` or `_rowaddr`.
    right_on : str
        The key of the data. All other columns of the data replace those of the fragment. Rows whose key the data lacks
        keep their values.

    Returns
    -------
    FragmentMetadata
        For `LanceOperation.Update`, with one more data file.
    list of int
        The ids of the fields in this file, for its `fields_modified`.
    bytes
        The offsets of the matched rows in the files, as a portable Roaring bitmap, for `updated_fragment_offsets`.

    Raises
    ------
    SchemaMismatchError
        If the keys differ in type, or a column does not fit.
    InvalidInputError
        If a column is missing.
    NotSupportedError
        If a column has blobs.
    """
    replaced, values = _fit_values(table.manifest.schema, data, right_on)
    rows = _match(table, fragment, data, left_on, right_on)
    with Draft(table, str(uuid.uuid4())) as draft:
        made = replace_values(draft, fragment, replaced, values, rows)
    live = np.delete(np.arange(made.physical_rows), table.scan(fragment, Schema(())).deleted_rows())
    return made, list(made.files[-1].fields), serialize_offsets(live[rows >= 0])


def _fit_values(schema: Schema, data: pa.Table, right_on: str) -> tuple[Schema, pa.Table]:
    """Return the stored columns to replace, and their new values."""
    if right_on not in data.schema.names:
        raise InvalidInputError(f"the data has no column {right_on!r} to match rows by")
    if reserved := sorted(set(ROW_COLUMNS) & set(data.schema.names) - {right_on}):
        raise InvalidInputError(f"{reserved[0]!r} is a metadata column, and cannot be updated")
    values = data.drop_columns([right_on])
    if not values.num_columns:
        raise InvalidInputError(f"the data has no column to update beside its key {right_on!r}")
    if unknown := sorted(set(values.schema.names) - set(schema.names)):
        raise InvalidInputError(f"column {unknown[0]!r} does not exist; the columns are {', '.join(schema.names)}")
    replaced = plan_update(schema, values.schema)
    for field in replaced.fields:
        if has_blobs(field):
            raise NotSupportedError(f"column {field.name!r} has blobs, whose values cannot be updated in place")
    return replaced, conform_table(values, replaced)


def _match(table: TableVersion, fragment: FragmentMetadata, data: pa.Table, left_on: str, right_on: str) -> RowOffsets:
    """For each live row of the fragment, return the index of the row of the data with its key, or -1."""
    kind = pa.uint64() if left_on in (ROW_ID, ROW_ADDRESS) else table.manifest.schema.field(left_on).to_arrow_type()
    found = data.schema.field(right_on)
    if Field.from_arrow(found).logical_type != Field.from_arrow(pa.field(left_on, kind)).logical_type:
        raise SchemaMismatchError(
            f"the keys differ: {left_on!r} of the table is {kind}, {right_on!r} of the data {found.type}; cast the data"
        )
    keys, numbers = index_keys(data.select([right_on]).rename_columns([left_on]), [left_on])
    last_row = np.full(keys.num_keys + 1, -1, np.int64)  # The last item is for keys that the data lacks.
    last_row[numbers] = np.arange(numbers.size)
    last_row[-1] = -1
    read = LanceScanner(table, ScanOptions(columns=[left_on], fragments=[fragment])).to_table()
    return last_row[keys.find(read)]
