"""Taking mini-block chunks apart and putting them together; `structural/mini_block.py` has the byte diagram."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]


@kernel
def read_integer(data: U8, position: int, size: int) -> int:
    """Return a little-endian integer of `size` bytes, at most 8."""
    value = 0
    for byte in range(size):
        value |= np.int64(data[position + byte]) << (8 * byte)
    return value


@kernel
def parse_headers(
    data: U8, chunk_starts: I64, chunk_sizes: I64, size_width: int, num_levels: I64, starts: I64, sizes: I64
) -> int:
    """Find the buffers of every chunk.

    `data` holds the chunks, which lie within it. `starts` and `sizes`, both `(2 + buffers, chunks)`, are set to where
    the repetition levels, the definition levels and each value buffer stand in `data`. The caller marks level buffers
    that the page has not with -1 in `sizes[0]` and `sizes[1]`; they are left alone. `size_width` is the bytes of a
    value buffer's size. Returns the number of chunks, or -1 - the index of the first chunk whose buffers do not fit
    into it.
    """
    rows = sizes.shape[0]
    for chunk in range(chunk_starts.size):
        begin = chunk_starts[chunk]
        end = begin + chunk_sizes[chunk]
        header = 2
        for row in range(rows):
            if row >= 2:
                header += size_width
            elif sizes[row, chunk] >= 0:
                header += 2
        if begin + header > end:
            return -1 - chunk
        num_levels[chunk] = read_integer(data, begin, 2)
        position = begin + 2
        for row in range(rows):
            width = size_width if row >= 2 else 2
            if row >= 2 or sizes[row, chunk] >= 0:
                sizes[row, chunk] = read_integer(data, position, width)
                position += width
        position = begin + (header + 7) // 8 * 8
        for row in range(rows):
            if sizes[row, chunk] < 0:
                continue
            if position + sizes[row, chunk] > end:
                return -1 - chunk
            starts[row, chunk] = position
            position += (sizes[row, chunk] + 7) // 8 * 8
    return chunk_starts.size


@kernel
def copy_slices(data: U8, starts: I64, sizes: I64, out: U8) -> int:
    """Copy slices of `data`, which lie within it, one after the other; returns the number of bytes."""
    position = 0
    for chunk in range(starts.size):
        size = sizes[chunk]
        out[position : position + size] = data[starts[chunk] : starts[chunk] + size]
        position += size
    return position


@kernel
def copy_bits(data: U8, starts: I64, num_bits: I64, out: U8) -> int:
    """Copy bit slices, each from the first bit of a byte of `data`, one after the other; returns the number of bits.

    `out` holds zeros.
    """
    position = 0
    for chunk in range(starts.size):
        count = num_bits[chunk]
        start = starts[chunk]
        shift = position % 8
        target = position // 8
        whole = (count + 7) // 8
        for byte in range(whole):
            value = np.int64(data[start + byte])
            remaining = count - byte * 8
            if remaining < 8:
                value &= (1 << remaining) - 1
            out[target + byte] |= np.uint8((value << shift) & 0xFF)
            if shift > 0 and (value >> (8 - shift)) != 0:
                out[target + byte + 1] |= np.uint8(value >> (8 - shift))
        position += count
    return position


@kernel
def scatter(source: U8, sizes: I64, positions: I64, out: U8) -> int:
    """Copy consecutive slices of `source` to given positions of `out`; returns the number of bytes."""
    read = 0
    for chunk in range(sizes.size):
        size = sizes[chunk]
        out[positions[chunk] : positions[chunk] + size] = source[read : read + size]
        read += size
    return read


@kernel
def write_integers(values: I64, width: int, positions: I64, out: U8) -> int:
    """Write little-endian integers of `width` bytes to given positions of `out`; returns their number."""
    for index in range(values.size):
        value = values[index]
        for byte in range(width):
            out[positions[index] + byte] = np.uint8((value >> (8 * byte)) & 0xFF)
    return values.size
