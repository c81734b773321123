"""First bytes of byte strings as numbers that are ordered like them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.byte_strings import first_bytes
from lance_format.kernels.jit import kernel

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Words = npt.NDArray[Any]

_EVEN_BYTES, _EVEN_PAIRS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)


@kernel
def _reversed(word: np.uint64) -> np.uint64:
    """Return a word with its bytes in the opposite order."""
    word = ((word & _EVEN_BYTES) << np.uint64(8)) | ((word >> np.uint64(8)) & _EVEN_BYTES)
    word = ((word & _EVEN_PAIRS) << np.uint64(16)) | ((word >> np.uint64(16)) & _EVEN_PAIRS)
    return (word << np.uint64(32)) | (word >> np.uint64(32))


@kernel
def common_prefix(data: U8, offsets: Words, rows: I64, most: int) -> int:
    """Count the first bytes that all byte strings have in common.

    Parameters
    ----------
    data : uint8[…]
    offsets : int32 or int64[num_values + 1]
        Where each byte string begins in `data`, and where the last ends.
    rows : int64[num_rows]
        The byte strings to look at, at least one.
    most : int
        Maximum of the result.

    Returns
    -------
    int
        The number of bytes.
    """
    first = np.int64(offsets[rows[0]])
    count = min(np.int64(offsets[rows[0] + 1]) - first, np.int64(most))
    for index in range(1, rows.size):
        start = np.int64(offsets[rows[index]])
        count = min(count, np.int64(offsets[rows[index] + 1]) - start)
        position = np.int64(0)
        while position < count and data[first + position] == data[start + position]:
            position += 1
        count = position
        if not count:
            break
    return count


@kernel
def order_keys(data: U8, offsets: Words, rows: I64, skipped: int, out: U64) -> int:
    """Read the first 8 bytes behind a common prefix as numbers, the first byte as the highest; zeros fill short ones.

    Parameters
    ----------
    data, offsets, rows
        See `common_prefix`.
    skipped : int
        The number of bytes of the prefix, which every byte string has.
    out : uint64[num_rows]
        Set to the numbers. Of two that differ, the less is that of the byte string that comes first.

    Returns
    -------
    int
        The number of rows.
    """
    for index in range(rows.size):
        start, stop = np.int64(offsets[rows[index]]) + skipped, np.int64(offsets[rows[index] + 1])
        out[index] = _reversed(first_bytes(data, start, stop - start))
    return rows.size
