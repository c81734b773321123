"""Moving bits between the buffers of chunks, where values follow each other bit by bit, and rows of whole bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]


@kernel
def spread(data: U8, starts: I64, num_values: I64, bits: int, row_bytes: int, offset: int, out: U8) -> int:
    """Copy values of `bits` bits from chunks, slices of `data` that lie within, to byte `offset` of consecutive rows.

    What is left of a value's last byte is set to 0. Returns the number of values.
    """
    whole = bits // 8
    rest = bits % 8
    row = 0
    for chunk in range(starts.size):
        bit = 0
        for _ in range(num_values[chunk]):
            source = starts[chunk] + bit // 8
            target = row * row_bytes + offset
            shift = bit % 8
            if shift == 0:
                out[target : target + whole] = data[source : source + whole]
            else:
                for byte in range(whole):
                    pair = np.int64(data[source + byte]) | np.int64(data[source + byte + 1]) << 8
                    out[target + byte] = np.uint8((pair >> shift) & 0xFF)
            if rest > 0:
                value = np.int64(data[source + whole]) >> shift
                if shift + rest > 8:
                    value |= np.int64(data[source + whole + 1]) << (8 - shift)
                out[target + whole] = np.uint8(value & ((1 << rest) - 1))
            bit += bits
            row += 1
    return row


@kernel
def gather(rows: U8, num_values: I64, bits: int, row_bytes: int, offset: int, out: U8) -> int:
    """Copy values of `bits` bits from byte `offset` of consecutive rows to chunks, which each end with a whole byte.

    `out` holds zeros. Returns the number of bytes written.
    """
    position = 0
    row = 0
    for chunk in range(num_values.size):
        bit = position * 8
        for _ in range(num_values[chunk]):
            source = row * row_bytes + offset
            left = bits
            while left > 0:
                shift = bit % 8
                taken = min(left, 8)
                value = np.int64(rows[source]) & ((1 << taken) - 1)
                out[bit // 8] |= np.uint8((value << shift) & 0xFF)
                if shift + taken > 8:
                    out[bit // 8 + 1] |= np.uint8(value >> (8 - shift))
                bit += taken
                source += 1
                left -= taken
            row += 1
        position = (bit + 7) // 8
    return position
