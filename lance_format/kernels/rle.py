"""Run-length encoding: values, and for each the number of its repetitions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]


@kernel
def expand_blocks(data: U8, starts: I64, sizes: I64, num_values: I64, width: int, out: U8) -> int:
    """Expand blocks of `u64 bytes of values, values of width bytes, one u8 length a value`.

    Slices lie within `data`; a last run that is too long is cut. Returns the number of values, or -1 - the index of the
    first malformed block.
    """
    written = 0
    for block in range(starts.size):
        if sizes[block] < 8:
            return -1 - block
        value_bytes = np.int64(0)
        for byte in range(8):
            value_bytes |= np.int64(data[starts[block] + byte]) << (8 * byte)
        runs = value_bytes // width
        if value_bytes < 0 or runs * width != value_bytes or sizes[block] != 8 + value_bytes + runs:
            return -1 - block
        left = num_values[block]
        source = starts[block] + 8
        lengths = source + value_bytes
        for run in range(runs):
            count = min(np.int64(data[lengths + run]), left)
            for _ in range(count):
                for byte in range(width):
                    out[written + byte] = data[source + byte]
                written += width
            left -= count
            source += width
        if left != 0:
            return -1 - block
    return written // width
