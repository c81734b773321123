"""Writing the file of a LABEL_LIST index; see `lance_format.table.indices.kinds.label_list_index`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lance_format.list_items import items_of
from lance_format.table.indices.kinds.bitmap_file import KeyedRows, write_keys
from lance_format.table.indices.kinds.bitmap_index import serialize_ids
from lance_format.table.indices.kinds.label_list_index import LIST_NULLS
from lance_format.table.indices.row_finder import RowIds
from lance_format.table.indices.row_kind import GatheredRows
from lance_format.table.indices.written_parts import OpenFile


def write_label_lists(rows: GatheredRows, parameters: Mapping[str, Any], open_file: OpenFile) -> dict[str, int]:  # noqa: ARG001
    """Write the file; see `lance_format.table.indices.row_kind.WriteRows`."""
    items, item_ids, null_ids = [], list[RowIds](), [np.zeros(0, np.uint64)]
    for lists, ids in zip(rows.values, rows.ids, strict=True):
        found, rows_of_items = items_of(lists)
        items.append(found)
        item_ids.append(ids[rows_of_items])
        null_ids.append(ids[lists.is_null().to_numpy(zero_copy_only=False)])
    rows.values.clear()
    rows.ids.clear()
    nulls = serialize_ids(np.sort(np.concatenate(null_ids)))
    keyed = KeyedRows.of(items, item_ids, rows.value_type.value_type, "LABEL_LIST")
    return write_keys(keyed, open_file, {LIST_NULLS: lambda: nulls})
