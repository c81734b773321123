"""Writing the file of a BITMAP index; see `lance_format.table.indices.bitmap_index`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.errors import NotSupportedError
from lance_format.table.indices.bitmap_index import BITMAP_FILE, MOST_KEYS, bitmap_columns, serialize_ids
from lance_format.table.indices.row_kind import OpenFile, OrderedRows, totally_ordered, write_file

_KEYS_AT_ONCE = 4096


def write_bitmaps(rows: OrderedRows, parameters: Mapping[str, int], open_file: OpenFile) -> dict[str, int]:  # noqa: ARG001
    """Write the file; see `lance_format.table.indices.row_kind.WriteRows`.

    Raises
    ------
    NotSupportedError
        If there are too many distinct values.
    """
    starts = _starts_of_keys(rows.values)
    if starts.size > MOST_KEYS:
        raise NotSupportedError(
            f"the column has {starts.size} distinct values and more; a BITMAP index may have {MOST_KEYS}: make one of"
            " type BTREE"
        )
    metadata = {b"lance:index_stats": b'{"num_bitmaps":%d}' % starts.size}
    return {
        BITMAP_FILE: write_file(open_file, BITMAP_FILE, bitmap_columns(rows.value_type), _keys(rows, starts), metadata)
    }


def _starts_of_keys(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return where each distinct value begins among ascending ones."""
    if not len(values):
        return np.zeros(0, np.int64)
    keys, num_nulls = totally_ordered(values), values.null_count
    valid = keys.slice(num_nulls)
    changes = pc.not_equal(valid[1:], valid[:-1]) if len(valid) else pa.array([], pa.bool_())
    found = np.flatnonzero(changes.to_numpy(zero_copy_only=False)) + 1 + num_nulls
    return np.concatenate([[0], [num_nulls] if 0 < num_nulls < len(values) else [], found]).astype(np.int64)


def _keys(rows: OrderedRows, starts: npt.NDArray[np.int64]) -> Iterator[list[pa.Array]]:
    """Yield keys and their bitmaps, some at a time."""
    stops = np.append(starts[1:], rows.ids.size)
    for first in range(0, starts.size, _KEYS_AT_ONCE):
        some = slice(first, first + _KEYS_AT_ONCE)
        keys = rows.values.take(pa.array(starts[some])).cast(rows.value_type)
        bounds = zip(starts[some].tolist(), stops[some].tolist(), strict=True)
        yield [keys, pa.array([serialize_ids(np.sort(rows.ids[start:stop])) for start, stop in bounds], pa.binary())]
