"""Numbers of equal values per group, in Spark's bytes: see `lance_format.aggregation.value_counts`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel
from lance_format.kernels.words import store_word

I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

SIZE_BYTES = 4
ENTRY_BYTES = SIZE_BYTES + 24
_SIZE = np.uint64(24 << 24)


@kernel
def write_counts(keys: I64, counts: I64, positions: I64, out: U8) -> int:
    """Write the entries of each group one after the other.

    Parameters
    ----------
    keys : int64[num_entries, 2], read-only
        The group and the value of each entry.
    counts : int64[num_entries], read-only
    positions : int64[num_groups]
        Where the entries of each group begin in `out`. Set to where they end.
    out : uint8[…]
        Set. 4 bytes follow the entries of each group.

    Returns
    -------
    int
        The number of entries.
    """
    zero = np.uint64(0)
    for index in range(counts.size):
        group = keys[index, 0]
        position = positions[group]
        store_word(out, position, _SIZE)
        store_word(out, position + SIZE_BYTES, zero)
        store_word(out, position + SIZE_BYTES + 8, np.uint64(keys[index, 1]))
        store_word(out, position + SIZE_BYTES + 16, np.uint64(counts[index]))
        positions[group] = position + ENTRY_BYTES
    return counts.size
