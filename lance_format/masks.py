"""Rows of Arrow arrays and batches that a mask selects."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.kernels.columns.selection import SLACK, select_words
from lance_format.memory import empty

_LEAST_ROWS = 4096
"""Arrow filters fewer rows sooner than a kernel is called."""

_LEAST_SHARE, _MOST_SHARE = 0.07, 0.95
"""Arrow copies or drops many rows at once where a mask is mostly true or false. In between it takes up to four times as
long as the kernel."""

_WORD_BITS = (8, 16, 32, 64)

_SPARSE_BITS = 128
"""Of so many bits of a mask one at most is true where most of its bytes are skipped."""


def filter_rows(batch: pa.RecordBatch, mask: pa.BooleanArray) -> pa.RecordBatch:
    """Return the rows of a batch for which a mask without nulls is true; the batch has columns."""
    count = mask.true_count
    if not _is_scattered(count, len(mask)):
        return batch.filter(mask)
    columns = [_select(column, mask, count) for column in batch.columns]
    others = [index for index, column in enumerate(columns) if column is None]
    if others:
        for index, column in zip(others, batch.select(others).filter(mask).columns, strict=True):
            columns[index] = column
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def indices(mask: pa.BooleanArray) -> npt.NDArray[np.int64]:
    """Return the places where a mask without nulls is true, `int64[mask.true_count]`."""
    if mask.true_count * _SPARSE_BITS > len(mask) or mask.offset % 8:
        all_of: npt.NDArray[np.int64] = filter_values(pa.array(np.arange(len(mask))), mask).to_numpy()
        return all_of
    start = mask.offset // 8
    bits = np.frombuffer(mask.buffers()[1], np.uint8, -(-len(mask) // 8), start)
    places = np.flatnonzero(bits)
    rows, within = np.nonzero(np.unpackbits(bits[places, np.newaxis], axis=1, bitorder="little"))
    found: npt.NDArray[np.int64] = places[rows] * 8 + within
    return found[: np.searchsorted(found, len(mask))]  # The last byte may have further bits.


def filter_values(array: pa.Array, mask: pa.BooleanArray) -> pa.Array:
    """Return the values of an array for which a mask without nulls is true."""
    count = mask.true_count
    found = _select(array, mask, count) if _is_scattered(count, len(mask)) else None
    return array.filter(mask) if found is None else found


def _is_scattered(count: int, num_rows: int) -> bool:
    return num_rows >= _LEAST_ROWS and _LEAST_SHARE * num_rows <= count <= _MOST_SHARE * num_rows


def _select(array: pa.Array, mask: pa.BooleanArray, count: int) -> pa.Array | None:
    """Return the selected values; None if they are not words, or some are null."""
    arrow_type = array.type
    if not pa.types.is_primitive(arrow_type) or arrow_type.bit_width not in _WORD_BITS or array.null_count:
        return None
    width = arrow_type.bit_width // 8
    words = np.frombuffer(array.buffers()[1], f"u{width}", len(array), array.offset * width)
    bits = np.frombuffer(mask.buffers()[1], np.uint8)
    words.flags.writeable = bits.flags.writeable = False  # The kernel is compiled once per width.
    out = empty(count + SLACK, words.dtype)
    select_words(words, bits, mask.offset, out)
    return pa.Array.from_buffers(arrow_type, count, [None, pa.py_buffer(out)])
