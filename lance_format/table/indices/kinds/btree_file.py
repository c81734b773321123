"""Writing the files of a BTREE index; see `lance_format.table.indices.kinds.btree_index`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from lance_format.table.indices.kinds.btree_index import (
    DATA_FILE,
    LOOKUP_FILE,
    PAGE_ROWS,
    PARTITIONED,
    data_columns,
    lookup_columns,
)
from lance_format.table.indices.part_rows import OrderedRows, PartRows
from lance_format.table.indices.row_kind import RowParameter
from lance_format.table.indices.written_parts import OpenFile, write_file

_ZONE_SIZE = 4096
_BATCH_ROWS = 64 * 1024
_BATCH_BYTES = 256 << 20


def write_btree(given: PartRows, parameters: Mapping[str, Any], open_file: OpenFile) -> dict[str, int]:
    """Write both files; see `lance_format.table.indices.row_kind.WriteRows`."""
    rows = given.ordered()
    num_rows, page_rows = rows.ids.size, parameters["zone_size"]
    data = (
        [rows.column(start, stop), pa.array(rows.ids[start:stop])]
        for first in range(0, num_rows, _BATCH_ROWS)
        for start, stop in _bounded(rows, first, min(first + _BATCH_ROWS, num_rows))
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


def _bounded(rows: OrderedRows, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield parts of a range whose values an array of the column's type holds."""
    if stop - start > 1 and rows.values.slice(start, stop - start).nbytes > _BATCH_BYTES:
        middle = (start + stop) // 2
        yield from _bounded(rows, start, middle)
        yield from _bounded(rows, middle, stop)
    else:
        yield start, stop


BTREE_PARAMETERS = (RowParameter("zone_size", _ZONE_SIZE, LOOKUP_FILE, PAGE_ROWS),)
"""`zone_size`: number of rows per page."""
