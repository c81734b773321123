"""Addresses of the rows of a version that have given keys."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.errors import InvalidInputError, RepeatedRowError
from lance_format.row_numbers import distinct
from lance_format.table.batches.key_index import index_keys, null_keys
from lance_format.table.changes.rows.key_absence import describe_key
from lance_format.table.changes.rows.key_filter import key_filter
from lance_format.table.fragments.row_columns import ROW_ADDRESS
from lance_format.table.scan.options import ScanOptions
from lance_format.table.scan.scanner import LanceScanner
from lance_format.table.versions.table_version import TableVersion

_BATCH_ROWS = 64 * 1024


def find_rows(table: TableVersion, keys: pa.Table) -> npt.NDArray[np.int64]:
    """Find the row of each key. The key columns are read where statistics and indices do not exclude all keys.

    Parameters
    ----------
    table : TableVersion
    keys : pa.Table
        The columns of the key, as the table has them. Each key is there once.

    Returns
    -------
    int64[num_keys]
        The addresses; -1 for keys that no row has.

    Raises
    ------
    InvalidInputError
        If a key is null.
    RepeatedRowError
        If a key is there twice, or several rows of the table have it.
    """
    names = keys.schema.names
    found = np.full(keys.num_rows, -1, np.int64)
    if not keys.num_rows:
        return found
    if null_keys(keys, names).any():
        row = int(null_keys(keys, names).argmax())
        raise InvalidInputError(f"a row has the key {describe_key(keys, row)}, and a key must not be null")
    index, numbers = index_keys(keys, names)
    if index.num_keys < keys.num_rows:
        _, first = np.unique(numbers, return_index=True)
        twice = int(np.delete(np.arange(keys.num_rows), first)[0])
        raise RepeatedRowError(
            f"several rows have the key {describe_key(keys, twice)}, so that it is not clear which of them replaces the"
            " row of the table; nothing was changed: leave one of them, as by dropDuplicates"
        )
    row_of_number = np.empty(index.num_keys, np.int64)
    row_of_number[numbers] = np.arange(keys.num_rows)
    options = ScanOptions(columns=names, filter=key_filter(keys, names), with_row_address=True, batch_size=_BATCH_ROWS)
    for batch in LanceScanner(table, options).to_batches():
        rows = pa.Table.from_batches([batch])
        matches = index.find(rows.select(names))
        matches[null_keys(rows, names)] = -1
        places = np.flatnonzero(matches >= 0)
        hit = row_of_number[matches[places]]
        if (found[hit] >= 0).any() or distinct(hit).size < hit.size:
            raise RepeatedRowError(
                f"several rows of {table.directory} have a key by which one row is to be replaced, such as"
                f" {describe_key(rows.select(names), int(places[0]))}; nothing was changed: remove all of them but one"
            )
        found[hit] = rows.column(ROW_ADDRESS).to_numpy()[places].astype(np.int64)
    return found
