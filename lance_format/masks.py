"""Masks, and rows of Arrow arrays and batches that a mask selects."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.arrow_rows import keep_rows
from lance_format.kernels.columns.selection import SLACK, select_words
from lance_format.kernels.jit import read_only
from lance_format.memory import empty, fixed_width

_LEAST_ROWS = 4096
"""Arrow filters fewer rows sooner than a kernel is called."""

_LEAST_SHARE, _MOST_SHARE = 0.07, 0.95
"""Arrow copies or drops many rows at once where a mask is mostly true or false. In between it takes up to four times as
long as the kernel."""

_WORD_BITS = (8, 16, 32, 64)

_TEXTS = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)

_SPARSE_BITS = 128
"""Of so many bits of a mask one at most is true where most of its bytes are skipped."""


def is_text(arrow_type: pa.DataType) -> bool:
    """Return whether the values of a type are byte strings that lie one after the other."""
    return any(is_kind(arrow_type) for is_kind in _TEXTS)


def is_true(flags: Any) -> Any:
    """Return where flags, an array or a scalar, are true; neither false nor null is. `fill_null` takes much longer."""
    return pc.and_kleene(flags, pc.is_valid(flags))


def flags_of(flags: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    """Return flags without nulls, a byte each. Arrow's `to_numpy` takes ten times as long."""
    return _unpacked(flags.buffers()[1], flags.offset, len(flags))


def _unpacked(bits: pa.Buffer | None, first: int, count: int) -> npt.NDArray[np.bool_]:
    if bits is None:
        return np.zeros(count, np.bool_)
    start = first // 8
    stored = np.frombuffer(bits, np.uint8, -(-(first + count) // 8) - start, start)
    return np.unpackbits(stored, bitorder="little")[first % 8 : first % 8 + count].view(np.bool_)


def filled(numbers: pa.Array, number: int) -> pa.Array:
    """Return integers with a number in place of nulls. `fill_null` takes longer."""
    if not numbers.null_count:
        return numbers
    values = fixed_width(numbers, np.dtype(numbers.type.to_pandas_dtype()).str)
    return pa.array(np.where(flags_of(numbers.is_valid()), values, values.dtype.type(number)))


def filter_rows(batch: pa.RecordBatch, mask: pa.BooleanArray) -> pa.RecordBatch:
    """Return the rows of a batch for which a mask without nulls is true; the batch has columns."""
    count = mask.true_count
    if not _is_scattered(count, len(mask)):
        return keep_rows(batch, mask)
    return pa.RecordBatch.from_arrays([_select(column, mask, count) for column in batch.columns], schema=batch.schema)


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
    return _select(array, mask, count) if _is_scattered(count, len(mask)) else keep_rows(array, mask)


def _is_scattered(count: int, num_rows: int) -> bool:
    return num_rows >= _LEAST_ROWS and _LEAST_SHARE * num_rows <= count <= _MOST_SHARE * num_rows


def _select(array: pa.Array, mask: pa.BooleanArray, count: int) -> pa.Array:
    """Return the selected values."""
    arrow_type = array.type
    if isinstance(array, pa.DictionaryArray):
        keys = _select(array.indices, mask, count)
        return pa.DictionaryArray.from_arrays(keys, array.dictionary, ordered=arrow_type.ordered, safe=False)
    if not pa.types.is_primitive(arrow_type) and not is_text(arrow_type):
        return keep_rows(array, mask)
    validity, *buffers = array.buffers()
    if array.null_count:  # Arrow takes twice as long with nulls.
        values = _select(pa.Array.from_buffers(arrow_type, len(array), [None, *buffers], 0, array.offset), mask, count)
        is_valid = _select_bits(validity, array, mask, count)
        return pa.Array.from_buffers(arrow_type, count, [is_valid, *values.buffers()[1:]], offset=values.offset)
    if pa.types.is_boolean(arrow_type):
        return pa.Array.from_buffers(arrow_type, count, [None, _select_bits(buffers[0], array, mask, count)])
    if is_text(arrow_type) or arrow_type.bit_width not in _WORD_BITS:
        return array.filter(mask)
    words = fixed_width(array, f"u{arrow_type.bit_width // 8}")
    return pa.Array.from_buffers(arrow_type, count, [None, pa.py_buffer(_select_words(words, mask, count))])


def _select_bits(bits: pa.Buffer, array: pa.Array, mask: pa.BooleanArray, count: int) -> pa.Buffer:
    """Return the selected bits of a buffer of an array."""
    flags = _unpacked(bits, array.offset, len(array)).view(np.uint8)
    return pa.py_buffer(np.packbits(_select_words(flags, mask, count)[:count], bitorder="little"))


def _select_words(words: npt.NDArray[Any], mask: pa.BooleanArray, count: int) -> npt.NDArray[Any]:
    out = empty(count + SLACK, words.dtype)
    select_words(read_only(words), read_only(np.frombuffer(mask.buffers()[1], np.uint8)), mask.offset, out)
    return out
