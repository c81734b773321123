"""The order of values in an index: nulls first, floats in the total order of IEEE 754, byte strings by their bytes.

Byte strings are sorted by eight bytes behind the prefix that all have in common, and compared as a whole only where
these are equal. If most are, since there are few distinct ones, these are sorted. Either takes a quarter of the time of
comparing all.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.kernels.columns import byte_order as kernels
from lance_format.kernels.jit import read_only
from lance_format.list_items import offsets_of

Order = npt.NDArray[np.int64]

_FEW_VALUES, _MOST_VALUES = 32 * 1024, 32 << 20
"""Numbers of byte strings to sort by first bytes: fewer take no time, and the keys of more a gigabyte and more."""
_MOST_TIED = 0.5
_MOST_DISTINCT = 0.25
_MOST_SKIPPED = 64
_BYTE_STRINGS = {pa.string(), pa.binary(), pa.large_string(), pa.large_binary()}


def ascending(values: pa.Array) -> Order:
    """Return the indices of values by ascending value; those of equal values ascend.

    Parameters
    ----------
    values : pa.Array
    """
    comparable = totally_ordered(values)
    found = _by_first_bytes(comparable) if comparable.type in _BYTE_STRINGS else None
    return _by_arrow(comparable) if found is None else found


def totally_ordered(values: pa.Array) -> pa.Array:
    """Return values that Arrow compares, in the same order: floats become integers of their size."""
    if pa.types.is_duration(values.type):
        return values.view(pa.int64())
    if not pa.types.is_floating(values.type):
        return values
    number = pa.from_numpy_dtype(f"int{values.type.bit_width}")
    bits = pc.fill_null(values.view(number), 0).to_numpy()
    all_but_sign = bits.dtype.type(np.iinfo(bits.dtype).max)
    keys = np.where(bits < 0, bits ^ all_but_sign, bits)
    return pa.array(keys, mask=None if not values.null_count else pc.is_null(values).to_numpy(zero_copy_only=False))


def _by_arrow(values: pa.Array) -> Order:
    order: Order = pc.array_sort_indices(values, null_placement="at_start").to_numpy().view(np.int64)
    return order


def _by_first_bytes(values: pa.Array) -> Order | None:
    """Return the order of byte strings; None if they are few or very many, or have too much in common."""
    if not _FEW_VALUES <= len(values) - values.null_count <= _MOST_VALUES or values.buffers()[2] is None:
        return None
    is_null = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else np.zeros(len(values), np.bool_)
    rows = np.flatnonzero(~is_null)
    offsets, data = offsets_of(values), np.frombuffer(values.buffers()[2], np.uint8)
    skipped = kernels.common_prefix(read_only(data), offsets, rows, _MOST_SKIPPED)
    keys = np.empty(rows.size, np.uint64)
    kernels.order_keys(read_only(data), offsets, rows, skipped, keys)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    is_tied = np.zeros(rows.size, np.bool_)
    is_tied[1:] = keys[1:] == keys[:-1]
    is_tied[:-1] |= is_tied[1:]
    tied = np.flatnonzero(is_tied)
    if tied.size > _MOST_TIED * rows.size:
        return _by_items(values)
    order = rows[order]
    members = np.sort(order[tied])
    order[tied] = members[_by_arrow(values.take(pa.array(members)))]  # Groups of equal keys keep their places.
    return np.concatenate([np.flatnonzero(is_null), order])


def _by_items(values: pa.Array) -> Order | None:
    """Return the order of byte strings by that of the distinct ones; None if these are many."""
    encoded = values.dictionary_encode()
    num_items = len(encoded.dictionary)
    if num_items > _MOST_DISTINCT * len(values):
        return None
    ranks = np.zeros(num_items + 1, np.uint16 if num_items < 1 << 16 else np.uint32)  # Two bytes sort faster.
    ranks[_by_arrow(encoded.dictionary)] = np.arange(1, num_items + 1)
    return np.argsort(ranks[pc.fill_null(encoded.indices, num_items).to_numpy()], kind="stable")
