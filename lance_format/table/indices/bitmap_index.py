"""BITMAP indices, which other writers make: each distinct value of a column, with the ids of its rows.

The only file, `bitmap_page_lookup.lance`, has the columns `keys` and `bitmaps`, in no order. A bitmap is

    u32 entries │ u32 high half of the ids │ u32 size │ Roaring bitmap of the low halves │ u32 high half │ …

of little-endian integers. The high half of an address is the fragment. A size of 0 stands for all low halves.
"""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pyroaring

from lance_format.errors import CorruptFileError
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.row_finder import IndexFile, Question, RowIds
from lance_format.table.versions.table_version import TableVersion

_FILE = "bitmap_page_lookup.lance"
_COUNT = struct.Struct("<I")
_ENTRY = struct.Struct("<II")
_MOST_KEYS = 1 << 16
_ROWS_AT_ONCE = 1024


def find_rows(table: TableVersion, index: IndexMetadata, question: Question) -> RowIds | None:
    """See `Finder`."""
    found, left = [np.zeros(0, np.uint64)], question.most_rows
    with IndexFile(table, index, _FILE, [("keys", question.value_type), ("bitmaps", pa.binary())]) as file:
        if file.num_rows > _MOST_KEYS:
            return None
        for start in range(0, file.num_rows, _ROWS_AT_ONCE):
            batch = file.read(start, min(start + _ROWS_AT_ONCE, file.num_rows))
            chosen = np.flatnonzero(question.holds_for(batch.column("keys")))
            for stored in batch.column("bitmaps").take(pa.array(chosen)):
                try:
                    ids = _parse(stored.as_py())
                except (struct.error, ValueError, IndexError, TypeError) as error:
                    raise CorruptFileError(f"malformed bitmap of rows: {error}", path=file.path) from error
                if ids is None or ids.size > left:
                    return None
                left -= ids.size
                found.append(ids)
    return np.concatenate(found)


def _parse(data: bytes) -> RowIds | None:
    """Return the ids of a bitmap; None if they are all that share a high half."""
    (count,) = _COUNT.unpack_from(data)
    position, parts = _COUNT.size, [np.zeros(0, np.uint64)]
    for _ in range(count):
        high, size = _ENTRY.unpack_from(data, position)
        position += _ENTRY.size
        if not size:
            return None
        content = data[position : position + size]
        if len(content) != size:
            raise ValueError(f"{len(content)} of {size} bytes")
        low = np.array(pyroaring.BitMap.deserialize(content).to_array(), np.uint64)
        parts.append(low | np.uint64(high) << np.uint64(32))
        position += size
    if position != len(data):
        raise ValueError(f"{len(data) - position} bytes too many")
    return np.concatenate(parts)
