"""Strings and binaries of mini-block chunks: offsets counted from the chunk's first byte, then the values.

Chunks start at a multiple of their offsets' width, so offsets are read and written as whole words: `words` is a view of
the very bytes of `data`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel
from lance_format.kernels.words import copy_bytes

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
Words = npt.NDArray[Any]


@kernel
def measure_chunks(words: Words, starts: I64, sizes: I64, num_values: I64) -> int:
    """Return the bytes of the values of all chunks, and check the first and last offset of each.

    `unpack_chunks` checks the offsets between them.

    Parameters
    ----------
    words : uint32 or uint64[…]
        The chunks.
    starts, sizes : int64[num_chunks]
        Byte ranges of the chunks within `words`.
    num_values : int64[num_chunks]
        Number of values of each chunk.

    Returns
    -------
    int
        The number of bytes, or -1 - the index of the first malformed chunk.
    """
    width = words.itemsize
    total = 0
    for chunk in range(starts.size):
        count = num_values[chunk]
        table = (count + 1) * width
        if count < 0 or starts[chunk] % width != 0 or table > sizes[chunk]:
            return -1 - chunk
        first = np.int64(words[starts[chunk] // width])
        last = np.int64(words[starts[chunk] // width + count])
        if first < table or last < first or last > sizes[chunk]:
            return -1 - chunk
        total += last - first
    return total


@kernel
def unpack_chunks(words: Words, data: U8, starts: I64, num_values: I64, out: U8, offsets: Words) -> int:
    """Copy the values of chunks that `measure_chunks` has passed.

    Parameters
    ----------
    words : uint32 or uint64[…]
        View of the chunks as offsets.
    data : uint8[…]
        View of the chunks as bytes.
    starts : int64[num_chunks]
        Byte offset of each chunk within `data`.
    num_values : int64[num_chunks]
        Number of values of each chunk.
    out : uint8[num_bytes]
        Set to the bytes of the values.
    offsets : integer[num_values.sum() + 1]
        Set to the byte offsets of the values within `out`; the first is 0.

    Returns
    -------
    int
        The number of bytes, or -1 - the index of the first chunk whose offsets decrease.
    """
    value = np.uint64(0)
    written = np.int64(0)
    offsets[0] = 0
    for chunk in range(starts.size):
        count = num_values[chunk]
        word = np.uint64(starts[chunk] // words.itemsize)
        first = np.int64(words[word])
        shift = written - first
        previous = first
        ordered = True
        for index in range(np.uint64(1), np.uint64(count + 1)):
            end = np.int64(words[word + index])
            ordered &= end >= previous
            offsets[value + index] = end + shift
            previous = end
        if not ordered:
            return -1 - chunk
        size = previous - first
        source = starts[chunk] + first
        copy_bytes(data, source, size, out, written)
        written += size
        value += np.uint64(count)
    return written


@kernel
def plan_chunks(offsets: Words, width: int, target_bytes: int, max_values: int, log_num_values: I64) -> int:
    """Cut values into chunks of a power of two of values.

    Only the last chunk may have a single value: pylance rejects any other as corrupt.

    Parameters
    ----------
    offsets : integer[num_values + 1]
        Byte offsets of the values.
    width : int
        Bytes per offset in a chunk.
    target_bytes : int
        Highest number of bytes per chunk; a chunk of two values may exceed it.
    max_values : int
        Highest number of values per chunk.
    log_num_values : int64[num_values]
        Set to the binary logarithm of each chunk's number of values; 0 for the last chunk, which takes the rest.

    Returns
    -------
    int
        The number of chunks.
    """
    num_values = offsets.size - 1
    first = 0
    chunks = 0
    while first < num_values:
        left = num_values - first
        if left <= max_values and (left + 1) * width + offsets[num_values] - offsets[first] <= target_bytes:
            log_num_values[chunks] = 0
            return chunks + 1
        if left == 1:
            log_num_values[chunks] = 0
            return chunks + 1
        log = 1
        while (2 << log) <= max_values and (2 << log) <= left:
            size = ((2 << log) + 1) * width + offsets[first + (2 << log)] - offsets[first]
            if size > target_bytes:
                break
            log += 1
        log_num_values[chunks] = log
        chunks += 1
        first += 1 << log
    return chunks


@kernel
def pack_chunks(data: U8, offsets: Words, num_values: I64, words: Words, out: U8, sizes: I64) -> int:
    """Write chunks, each padded with zeros to a multiple of the offsets' width.

    Parameters
    ----------
    data : uint8[…]
        The bytes of the values.
    offsets : integer[num_values.sum() + 1]
        Byte offsets of the values within `data`; the first is 0.
    num_values : int64[num_chunks]
        Number of values of each chunk.
    words : uint32 or uint64[…]
        View of the bytes of `out` as offsets.
    out : uint8[…]
        Set to the chunks.
    sizes : int64[num_chunks]
        Set to the bytes of each chunk.

    Returns
    -------
    int
        The number of bytes written.
    """
    width = words.itemsize
    first = np.uint64(0)
    position = np.int64(0)
    for chunk in range(num_values.size):
        count = np.uint64(num_values[chunk])
        table = (num_values[chunk] + 1) * width
        word = np.uint64(position // width)
        begin = np.int64(offsets[first])
        end = np.int64(offsets[first + count])
        for index in range(count + np.uint64(1)):
            words[word + index] = np.int64(offsets[first + index]) - begin + table
        size = table + end - begin
        copy_bytes(data, begin, end - begin, out, position + table)
        padded = (size + width - 1) // width * width
        for index in range(position + size, position + padded):
            out[index] = np.uint8(0)
        sizes[chunk] = padded
        position += padded
        first += count
    return position


@kernel
def drop_null_bytes(data: U8, offsets: Words, valid: npt.NDArray[np.bool_], out: U8, out_offsets: Words) -> int:
    """Copy the valid values; null ones become empty.

    Parameters
    ----------
    data : uint8[…]
        The bytes of the values.
    offsets : integer[num_values + 1]
        Byte offsets of the values within `data`.
    valid : bool[num_values]
        Whether a value is not null.
    out : uint8[…]
        Set to the bytes of the valid values.
    out_offsets : integer[num_values + 1]
        Set to the byte offsets of the values within `out`; the first is 0.

    Returns
    -------
    int
        The number of bytes written.
    """
    written = np.int64(0)
    out_offsets[0] = 0
    for index in range(valid.size):
        if valid[index]:
            begin = np.int64(offsets[index])
            size = np.int64(offsets[index + 1]) - begin
            copy_bytes(data, begin, size, out, written)
            written += size
        out_offsets[index + 1] = written
    return written


@kernel
def count_null_bytes(offsets: Words, valid: npt.NDArray[np.bool_]) -> int:
    """Return the bytes of the null values; see `drop_null_bytes`."""
    total = np.int64(0)
    for index in range(np.uint64(valid.size)):
        size = np.int64(offsets[index + np.uint64(1)]) - np.int64(offsets[index])
        total += size * np.int64(not valid[index])
    return total


@kernel
def longest(offsets: Words) -> int:
    """Return the bytes of the longest value; 0 if there is none."""
    most = np.int64(0)
    for index in range(np.uint64(1), np.uint64(offsets.size)):
        most = max(most, np.int64(offsets[index]) - np.int64(offsets[index - np.uint64(1)]))
    return most
