"""Finding the fields of packed structs whose rows have any length."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
Words = npt.NDArray[Any]


@kernel
def locate_fields(data: U8, offsets: Words, widths: I64, prefixes: I64, starts: I64, sizes: I64) -> int:
    """Find the bytes of every field of every row.

    Parameters
    ----------
    data : uint8[…]
        The rows.
    offsets : integer[num_rows + 1]
        Byte offsets of the rows within `data`, which do not decrease.
    widths : int64[num_fields]
        Bytes of each field of fixed width, negative for the others.
    prefixes : int64[num_fields]
        Bytes of the length before a field of any other width.
    starts, sizes : int64[num_fields, num_rows]
        Set to the byte ranges of the fields within `data`. The fields of an empty row, which is null, are empty.

    Returns
    -------
    int
        The number of rows, or -1 - the index of the first whose fields do not fill it exactly.
    """
    for row in range(offsets.size - 1):
        position = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        if position == end:
            starts[:, row] = position
            sizes[:, row] = 0
            continue
        for field in range(widths.size):
            size = widths[field]
            if size < 0:
                prefix = prefixes[field]
                if prefix > end - position:
                    return -1 - row
                size = np.int64(0)
                for byte in range(prefix):
                    size |= np.int64(data[position + byte]) << (8 * byte)
                position += prefix
            if size < 0 or size > end - position:
                return -1 - row
            starts[field, row] = position
            sizes[field, row] = size
            position += size
        if position != end:
            return -1 - row
    return offsets.size - 1
