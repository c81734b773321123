"""Moving bits between the buffers of chunks, whose values are adjacent bit by bit, and rows of whole bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel
from lance_format.kernels.words import copy_bytes

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]


@kernel
def spread(data: U8, starts: I64, num_values: I64, bits: int, row_bytes: int, offset: int, out: U8) -> int:
    """Copy values of any number of bits from chunks to one byte offset of consecutive rows.

    Parameters
    ----------
    data : uint8[…]
        The chunks: values without gaps, the least significant bit first.
    starts : int64[num_chunks]
        Byte offset of each chunk within `data`.
    num_values : int64[num_chunks]
        Number of values of each chunk.
    bits : int
        Bits per value.
    row_bytes : int
        Bytes per row of `out`.
    offset : int
        Byte offset of the value in a row.
    out : uint8[num_values.sum() * row_bytes]
        Set to the values. Unused bits of a value's last byte are set to 0; other bytes are left alone.

    Returns
    -------
    int
        The number of values.
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
                copy_bytes(data, source, whole, out, target)
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
    """Copy values of any number of bits from one byte offset of consecutive rows to chunks.

    Parameters
    ----------
    rows : uint8[num_values.sum() * row_bytes]
        The rows.
    num_values : int64[num_chunks]
        Number of values of each chunk.
    bits : int
        Bits per value.
    row_bytes : int
        Bytes per row.
    offset : int
        Byte offset of the value in a row.
    out : uint8[…]
        Holds zeros, set to the chunks. Each chunk is padded to a whole byte.

    Returns
    -------
    int
        The number of bytes written.
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
