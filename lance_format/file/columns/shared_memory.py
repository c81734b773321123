"""Arrays that hold the memory of others: the columns of a batch that arrived as one message are parts of one buffer."""

from __future__ import annotations

import pyarrow as pa

_MOST_TIMES = 2
_MOST_EXTRA_BYTES = 64 * 1024


def detached(array: pa.Array) -> pa.Array:
    """Return an array that does not hold much more memory than its own: itself, or a copy."""
    if isinstance(array, pa.DictionaryArray):
        items = detached(array.dictionary)
        return array.from_arrays(detached(array.indices), items, ordered=array.type.ordered, safe=False)
    held = max((_held_bytes(buffer) for buffer in array.buffers() if buffer is not None), default=0)
    if held > _MOST_EXTRA_BYTES and held > _MOST_TIMES * array.nbytes:
        return pa.concat_arrays([array])
    return array


def _held_bytes(buffer: pa.Buffer) -> int:
    """Return the size of the buffer that a buffer is a part of; 0 if it is none."""
    whole = buffer.parent
    while whole is not None and whole.parent is not None:
        whole = whole.parent
    return 0 if whole is None else int(whole.size)
