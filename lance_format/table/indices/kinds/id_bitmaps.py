"""Ids of rows as the bitmaps that indices store; `bitmap_index.py` has the bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.data_block import MAX_INT32, Counts
from lance_format.errors import NotSupportedError
from lance_format.kernels.columns import id_bitmaps as kernels
from lance_format.row_numbers import to_bitmap
from lance_format.table.indices.row_finder import RowIds

_Mask = npt.NDArray[np.bool_]
_HEAD_BYTES = _BITMAP_BYTES = _CONTAINER_BYTES = 8
_COUNT_BYTES = 4
_MOST_OF_ARRAY = 4096
_LOW_HALF = np.uint64(0xFFFFFFFF)


def serialize_ids(ids: RowIds) -> bytes:
    """Return ascending ids as a bitmap, `uint64[num_ids]`."""
    found: bytes = serialize_groups(ids, np.array([0, ids.size], np.int64))[0].as_py()
    return found


def serialize_groups(ids: RowIds, starts: Counts) -> pa.BinaryArray:
    """Return groups of ids as bitmaps.

    Those whose containers are small arrays are written by a kernel: a value of a table of many fragments has a Roaring
    bitmap in each, and to make these one by one takes a thousand times as long as their bytes.

    Parameters
    ----------
    ids : uint64[num_ids]
        Ascending within each group; some may be repeated, as of a list with the same item twice.
    starts : int64[num_groups + 1]
        The first id of each group, and the number of ids.

    Raises
    ------
    NotSupportedError
        If the bitmaps have more than 2 GiB.
    """
    ids, starts = _without_repeated(ids, starts)
    num_groups = starts.size - 1
    is_part = np.ones(ids.size, np.bool_)
    is_part[1:] = (ids[1:] ^ ids[:-1]) >> np.uint64(32) != 0
    is_part[starts[:-1][starts[:-1] < ids.size]] = True
    is_container = is_part.copy()
    is_container[1:] |= (ids[1:] ^ ids[:-1]) >> np.uint64(16) != 0
    is_run = is_container.copy()
    is_run[1:] |= ids[1:] - ids[:-1] != 1
    first_ids = np.flatnonzero(is_part)
    containers = np.append(np.flatnonzero(is_container), ids.size)
    parts = np.append(np.searchsorted(containers, first_ids), containers.size - 1)

    is_plain, low_bytes = _as_arrays(containers, parts, is_run)
    others = {
        part: to_bitmap(ids[containers[parts[part]] : containers[parts[part + 1]]] & _LOW_HALF).serialize()
        for part in np.flatnonzero(~is_plain).tolist()
    }
    for part, low in others.items():
        low_bytes[part] = len(low)
    ends = np.append(0, np.cumsum(_HEAD_BYTES + low_bytes))
    past_parts = np.searchsorted(first_ids, starts)
    offsets = ends[past_parts] + _COUNT_BYTES * np.arange(num_groups + 1)
    if offsets[-1] > MAX_INT32:
        raise NotSupportedError(f"the bitmaps of {num_groups} values have {offsets[-1]} bytes; 2 GiB are the maximum")
    num_parts = np.diff(past_parts)
    positions = ends[:-1] + _COUNT_BYTES * np.repeat(np.arange(1, num_groups + 1), num_parts)

    data = np.empty(int(offsets[-1]), np.uint8)
    kernels.write_numbers(num_parts, offsets[:-1], data)
    kernels.write_numbers((ids[first_ids] >> np.uint64(32)).astype(np.int64), positions, data)
    kernels.write_numbers(low_bytes, positions + 4, data)
    kernels.write_arrays(ids, containers, parts, is_plain, positions + _HEAD_BYTES, data)
    for part, low in others.items():
        start = int(positions[part]) + _HEAD_BYTES
        data[start : start + len(low)] = np.frombuffer(low, np.uint8)
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), num_groups, buffers)


def _without_repeated(ids: RowIds, starts: Counts) -> tuple[RowIds, Counts]:
    is_new = np.ones(ids.size, np.bool_)
    is_new[1:] = ids[1:] != ids[:-1]
    is_new[starts[:-1][starts[:-1] < ids.size]] = True
    return (ids, starts) if is_new.all() else (ids[is_new], np.append(0, np.cumsum(is_new))[starts])


def _as_arrays(containers: Counts, parts: Counts, is_run: _Mask) -> tuple[_Mask, Counts]:
    """Return which Roaring bitmaps have no container that is better not an array, and the bytes of all as arrays."""
    if parts.size == 1:
        return np.zeros(0, np.bool_), np.zeros(0, np.int64)
    sizes = np.diff(containers)
    num_runs = np.add.reduceat(is_run, containers[:-1], dtype=np.int64)
    is_array = (sizes <= _MOST_OF_ARRAY) & (2 * sizes <= 2 + 4 * num_runs)
    is_plain = np.logical_and.reduceat(is_array, parts[:-1])
    num_values = containers[parts[1:]] - containers[parts[:-1]]
    return is_plain, _BITMAP_BYTES + _CONTAINER_BYTES * np.diff(parts) + 2 * num_values
