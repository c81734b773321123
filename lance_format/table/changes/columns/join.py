"""Adding columns by key: every row of the table gets the values of the row of the data with the same key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_format.arrow_rows import take_rows
from lance_format.datatypes import Field, Schema
from lance_format.errors import InvalidInputError, NotSupportedError, SchemaMismatchError
from lance_format.file.columns.json_columns import has_json
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.batches.key_index import index_keys
from lance_format.table.changes.columns.add import add_columns, merge_fragment_columns
from lance_format.table.changes.columns.batch_udf import BatchFunction
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.row_columns import ROW_ADDRESS, ROW_ID
from lance_format.table.versions.table_version import TableVersion

_MIN_BATCH_ROWS = 8192


@dataclass(frozen=True, slots=True)
class _LookUp:
    """A function that finds the new columns of rows by their key.

    Parameters
    ----------
    compute : callable
    makes : pa.Schema
    batch_rows : int
        Preferred number of rows per call.
    """

    compute: BatchFunction
    makes: pa.Schema
    batch_rows: int


def merge_columns(table: TableVersion, data: pa.Table, left_on: str, right_on: str) -> TableVersion:
    """Add columns to a table, and commit the change.

    Parameters
    ----------
    table : TableVersion
    data : pa.Table
        The last row wins if a key repeats. Null is a key like any other.
    left_on : str
        The key of the table: a column, `_rowid` or `_rowaddr`.
    right_on : str
        The key of the data; all its other columns are added. They are null in rows whose key the data lacks.

    Raises
    ------
    SchemaMismatchError
        If the keys differ in type.
    InvalidInputError
        If a column is missing, or the table has one of the others already.
    NotSupportedError
        If the key is JSON.
    """
    found = _plan(table, data, left_on, right_on)
    return add_columns(
        table, found.compute, read_columns=[left_on], output_schema=found.makes, batch_size=found.batch_rows
    )


def merge_into_fragment(
    table: TableVersion, fragment: FragmentMetadata, data: pa.Table, left_on: str, right_on: str
) -> tuple[FragmentMetadata, Schema]:
    """Write a data file with columns for one fragment, and commit nothing; see `merge_columns`.

    Returns
    -------
    FragmentMetadata
        With one more data file.
    Schema
        That of the table with the new columns.
    """
    found = _plan(table, data, left_on, right_on)
    return merge_fragment_columns(
        table,
        fragment,
        found.compute,
        read_columns=[left_on],
        output_schema=found.makes,
        batch_size=found.batch_rows,
    )


def _plan(table: TableVersion, data: pa.Table, left_on: str, right_on: str) -> _LookUp:
    is_row_column = left_on in (ROW_ID, ROW_ADDRESS)
    wanted = Field.from_arrow(pa.field(left_on, pa.uint64())) if is_row_column else table.manifest.schema.field(left_on)
    if right_on not in data.schema.names:
        raise InvalidInputError(f"the data has no column {right_on!r} to match rows by")
    if data.num_columns < 2:
        raise InvalidInputError(f"the data has no column to add beside its key {right_on!r}")
    found = Field.from_arrow(data.schema.field(right_on))
    if found.logical_type != wanted.logical_type:
        raise SchemaMismatchError(
            f"the keys differ: {left_on!r} of the table is {wanted.to_arrow_type()}, {right_on!r} of the data"
            f" {found.to_arrow_type()}; cast the data"
        )
    if has_json(found):
        raise NotSupportedError(f"rows cannot be matched by column {left_on!r}, which is JSON")
    keys, numbers = index_keys(data.select([right_on]).rename_columns([left_on]), [left_on])
    last_row = np.full(keys.num_keys, -1, np.int64)
    last_row[numbers] = np.arange(numbers.size)
    values = data.drop_columns([right_on]).combine_chunks()
    makes = pa.schema([field.with_nullable(True) for field in values.schema])

    def look_up(batch: pa.RecordBatch) -> pa.Table:
        numbers = keys.find(pa.Table.from_batches([batch]))
        rows = np.full(numbers.size, -1, np.int64)
        rows[numbers >= 0] = last_row[numbers[numbers >= 0]]
        positions = pa.array(rows, mask=rows < 0)
        return pa.Table.from_arrays(take_rows(values, positions).columns, schema=makes)

    batch_rows = max(data.num_rows, _MIN_BATCH_ROWS)  # The index of keys is hashed again for every batch.
    return _LookUp(look_up, makes, batch_rows)
