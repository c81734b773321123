"""Places of the items of Arrow lists and of the bytes of strings, and the lists that have the items."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_LARGE = (pa.types.is_large_list, pa.types.is_large_string, pa.types.is_large_binary)


def offsets_of(array: pa.Array) -> npt.NDArray[np.int32] | npt.NDArray[np.int64]:
    """Return where each list or byte string of an array, which may be a slice, starts, and where the last ends.

    Parameters
    ----------
    array : pa.Array
        Of lists, maps, strings or binaries, nulls included.

    Returns
    -------
    int32 or int64[len(array) + 1], read-only
    """
    is_large = any(matches(array.type) for matches in _LARGE)
    dtype = np.dtype(np.int64 if is_large else np.int32)
    buffer = array.buffers()[1]
    if buffer is None or buffer.size == 0:
        return np.zeros(len(array) + 1, dtype)
    # Arrays of nulls share one buffer among all of their parts, which is no multiple of the size of each.
    return np.frombuffer(buffer, dtype, len(array) + 1, array.offset * dtype.itemsize)


def items_of(lists: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Return the items of lists, and for each the index of its list.

    Items below null lists are left out. Arrow's `list_parent_indices` counts them, and its `list_flatten` does not.

    Parameters
    ----------
    lists : pa.Array
        Lists of any type.
    """
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return pc.list_flatten(lists), np.repeat(np.arange(len(lists), dtype=np.int64), sizes)
