"""Strings and binaries of mini-block chunks: offsets counted from the chunk's first byte, then the values.

Chunks start at a multiple of their offsets' width, so offsets are read and written as whole words: `words` is a view of
the very bytes of `data`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
Words = npt.NDArray[Any]


@kernel
def measure_chunks(words: Words, starts: I64, sizes: I64, num_values: I64) -> int:
    """Return how many bytes the values of all chunks have, or -1 - the index of the first malformed chunk.

    Chunks lie within `words`. Offsets between the first and the last are checked in `unpack_chunks`.
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
    """Copy the values of chunks that `measure_chunks` has passed, and set their `offsets`, which start at 0.

    Returns the number of bytes, or -1 - the index of the first chunk whose offsets decrease.
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
        out[written : written + size] = data[source : source + size]
        written += size
        value += np.uint64(count)
    return written


@kernel
def plan_chunks(offsets: Words, width: int, target_bytes: int, max_values: int, log_num_values: I64) -> int:
    """Cut values into chunks of a power of two values and at most `target_bytes`, or of two values that are larger.

    Only the last chunk may have a single value: pylance takes any other for damaged. `log_num_values` has an entry a
    value; the last chunk takes whatever is left and has 0. Returns the number of
    chunks.
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
    """Write the chunks to `out`, whose bytes `words` views, each filled up to a multiple of the word with zeros.

    `offsets` start at 0. Sets `sizes` to each chunk's bytes and returns their sum.
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
        out[position + table : position + size] = data[begin:end]
        padded = (size + width - 1) // width * width
        for index in range(position + size, position + padded):
            out[index] = np.uint8(0)
        sizes[chunk] = padded
        position += padded
        first += count
    return position


@kernel
def drop_null_bytes(data: U8, offsets: Words, valid: npt.NDArray[np.bool_], out: U8, out_offsets: Words) -> int:
    """Copy the valid values; those that are null become empty. Returns the number of bytes written."""
    written = np.int64(0)
    out_offsets[0] = 0
    for index in range(valid.size):
        if valid[index]:
            begin = np.int64(offsets[index])
            size = np.int64(offsets[index + 1]) - begin
            out[written : written + size] = data[begin : begin + size]
            written += size
        out_offsets[index + 1] = written
    return written


@kernel
def longest(offsets: Words) -> int:
    """Return the bytes of the longest value; 0 if there is none."""
    most = np.int64(0)
    for index in range(np.uint64(1), np.uint64(offsets.size)):
        most = max(most, np.int64(offsets[index]) - np.int64(offsets[index - np.uint64(1)]))
    return most
