"""Writing the files of a BTREE index; see `lance_format.table.indices.btree_index`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from lance_format.errors import LanceError
from lance_format.file import FileReader
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.btree_index import (
    DATA_FILE,
    LOOKUP_FILE,
    PAGE_ROWS,
    PARTITIONED,
    data_columns,
    lookup_columns,
)
from lance_format.table.indices.opening import opening
from lance_format.table.indices.row_kind import OpenFile, OrderedRows, RowParameter, write_file
from lance_format.table.versions.table_version import TableVersion

_ZONE_SIZE = 4096
_BATCH_ROWS = 64 * 1024


def write_btree(rows: OrderedRows, parameters: Mapping[str, int], open_file: OpenFile) -> dict[str, int]:
    """Write both files; see `lance_format.table.indices.row_kind.WriteRows`."""
    num_rows, page_rows = rows.ids.size, parameters["zone_size"]
    data = (
        [rows.column(start, min(start + _BATCH_ROWS, num_rows)), pa.array(rows.ids[start : start + _BATCH_ROWS])]
        for start in range(0, num_rows, _BATCH_ROWS)
    )
    starts = np.arange(0, num_rows, page_rows)
    stops = np.minimum(starts + page_rows, num_rows)
    null_counts = np.clip(rows.values.null_count - starts, 0, stops - starts)
    bounds = [rows.values.take(pa.array(chosen)).cast(rows.value_type) for chosen in (starts, stops - 1)]
    numbers = [pa.array(each, pa.uint32()) for each in (null_counts, np.arange(starts.size))]
    metadata = {PARTITIONED: b"false", PAGE_ROWS: b"%d" % page_rows}
    return {
        DATA_FILE: write_file(open_file, DATA_FILE, data_columns(rows.value_type), data),
        LOOKUP_FILE: write_file(
            open_file, LOOKUP_FILE, lookup_columns(rows.value_type), [[*bounds, *numbers]], metadata
        ),
    }


def _stored_zone_size(table: TableVersion, index: IndexMetadata) -> int | None:
    try:
        with opening(table, index, LOOKUP_FILE) as (source, verification):
            reader = FileReader(source, table.cache, verification=verification)
        try:
            number = reader.schema.metadata.get(PAGE_ROWS, b"")
        finally:
            reader.close()
    except LanceError:  # The index is about to be written again, perhaps because it is damaged.
        return None
    return int(number) if number.isdigit() else None


BTREE_PARAMETERS = (RowParameter("zone_size", _ZONE_SIZE, _stored_zone_size),)
"""`zone_size`: number of rows per page."""
