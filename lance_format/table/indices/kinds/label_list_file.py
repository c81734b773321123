"""Writing the file of a LABEL_LIST index; see `lance_format.table.indices.kinds.label_list_index`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from lance_format.list_items import items_of
from lance_format.table.indices.kinds.bitmap_file import KeyedRows, write_keys
from lance_format.table.indices.kinds.id_bitmaps import serialize_ids
from lance_format.table.indices.kinds.label_list_index import LIST_NULLS
from lance_format.table.indices.part_rows import PartRows
from lance_format.table.indices.row_finder import RowIds
from lance_format.table.indices.written_parts import OpenFile


def write_label_lists(rows: PartRows, parameters: Mapping[str, Any], open_file: OpenFile) -> dict[str, int]:  # noqa: ARG001
    """Write the file; see `lance_format.table.indices.row_kind.WriteRows`."""
    null_ids = [np.zeros(0, np.uint64)]

    def labelled() -> Iterator[tuple[pa.Array, RowIds]]:
        for lists, ids in rows:
            items, rows_of_items = items_of(lists)
            yield items, ids[rows_of_items]
            null_ids.append(ids[lists.is_null().to_numpy(zero_copy_only=False)])

    keyed = KeyedRows.of(labelled(), rows.value_type.value_type, "LABEL_LIST")
    nulls = serialize_ids(np.sort(np.concatenate(null_ids)))
    return write_keys(keyed, open_file, {LIST_NULLS: lambda: nulls})
