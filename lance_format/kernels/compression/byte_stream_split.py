"""Splitting values into planes: all first bytes, all second bytes, and so on, chunk by chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.compression.lz4 import decode_block, encode_block
from lance_format.kernels.jit import kernel

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
Words = npt.NDArray[Any]


@kernel
def _join4(data: U8, first: np.uint64, count: np.uint64, out: npt.NDArray[np.uint32], written: np.uint64) -> None:
    plane1 = first + count
    plane2 = plane1 + count
    plane3 = plane2 + count
    for index in range(count):
        out[written + index] = (
            np.uint32(data[first + index])
            | np.uint32(data[plane1 + index]) << np.uint32(8)
            | np.uint32(data[plane2 + index]) << np.uint32(16)
            | np.uint32(data[plane3 + index]) << np.uint32(24)
        )


@kernel
def _join8(data: U8, first: np.uint64, count: np.uint64, out: npt.NDArray[np.uint64], written: np.uint64) -> None:
    for index in range(count):
        low = (
            np.uint64(data[first + index])
            | np.uint64(data[first + count + index]) << np.uint64(8)
            | np.uint64(data[first + np.uint64(2) * count + index]) << np.uint64(16)
            | np.uint64(data[first + np.uint64(3) * count + index]) << np.uint64(24)
        )
        high = (
            np.uint64(data[first + np.uint64(4) * count + index])
            | np.uint64(data[first + np.uint64(5) * count + index]) << np.uint64(8)
            | np.uint64(data[first + np.uint64(6) * count + index]) << np.uint64(16)
            | np.uint64(data[first + np.uint64(7) * count + index]) << np.uint64(24)
        )
        out[written + index] = low | high << np.uint64(32)


@kernel
def join4(data: U8, starts: I64, num_values: I64, out: npt.NDArray[np.uint32]) -> int:
    """Join the four planes of each chunk.

    Parameters
    ----------
    data : uint8[…]
        The chunks.
    starts : int64[num_chunks]
        Byte offset of each chunk within `data`.
    num_values : int64[num_chunks]
        Number of values of each chunk.
    out : uint32[num_values.sum()]
        Set to the values.

    Returns
    -------
    int
        The number of values.
    """
    written = np.uint64(0)
    for chunk in range(starts.size):
        _join4(data, np.uint64(starts[chunk]), np.uint64(num_values[chunk]), out, written)
        written += np.uint64(num_values[chunk])
    return np.int64(written)


@kernel
def join8(data: U8, starts: I64, num_values: I64, out: npt.NDArray[np.uint64]) -> int:
    """Join the eight planes of each chunk into uint64 values; see `join4`."""
    written = np.uint64(0)
    for chunk in range(starts.size):
        _join8(data, np.uint64(starts[chunk]), np.uint64(num_values[chunk]), out, written)
        written += np.uint64(num_values[chunk])
    return np.int64(written)


@kernel
def expand_join4(data: U8, starts: I64, sizes: I64, num_values: I64, scratch: U8, out: npt.NDArray[np.uint32]) -> int:
    """Join the four planes of each chunk that is an LZ4 block.

    Parameters
    ----------
    data : uint8[…]
        The LZ4 blocks.
    starts, sizes : int64[num_chunks]
        Byte ranges of the blocks within `data`.
    num_values : int64[num_chunks]
        Number of values of each chunk.
    scratch : uint8[num_values.max() * 4 + lz4.SLACK]
        Overwritten.
    out : uint32[num_values.sum()]
        Set to the values.

    Returns
    -------
    int
        The number of values, or -1 - the index of the first chunk that is malformed or has another number of values.
    """
    written = np.uint64(0)
    for chunk in range(starts.size):
        if not decode_block(data, starts[chunk], sizes[chunk], scratch, 0, num_values[chunk] * 4):
            return -1 - chunk
        _join4(scratch, np.uint64(0), np.uint64(num_values[chunk]), out, written)
        written += np.uint64(num_values[chunk])
    return np.int64(written)


@kernel
def expand_join8(data: U8, starts: I64, sizes: I64, num_values: I64, scratch: U8, out: npt.NDArray[np.uint64]) -> int:
    """Join the eight planes of each chunk that is an LZ4 block into uint64 values; see `expand_join4`."""
    written = np.uint64(0)
    for chunk in range(starts.size):
        if not decode_block(data, starts[chunk], sizes[chunk], scratch, 0, num_values[chunk] * 8):
            return -1 - chunk
        _join8(scratch, np.uint64(0), np.uint64(num_values[chunk]), out, written)
        written += np.uint64(num_values[chunk])
    return np.int64(written)


@kernel
def _split_chunk(words: Words, first: np.uint64, count: np.uint64, out: U8, target: np.uint64) -> None:
    for plane in range(np.uint64(words.itemsize)):
        shift = np.uint64(8) * plane
        for index in range(count):
            out[target + index] = np.uint8((np.uint64(words[first + index]) >> shift) & np.uint64(0xFF))
        target += count


@kernel
def split(words: Words, num_values: I64, out: U8) -> int:
    """Split chunks of consecutive words into planes.

    Parameters
    ----------
    words : uint8, uint16, uint32 or uint64[num_values.sum()]
        The values of the chunks.
    num_values : int64[num_chunks]
        Number of values of each chunk.
    out : uint8[words.nbytes]
        Set to the planes of each chunk, the least significant bytes first.

    Returns
    -------
    int
        The number of values.
    """
    first = np.uint64(0)
    for chunk in range(num_values.size):
        count = np.uint64(num_values[chunk])
        _split_chunk(words, first, count, out, first * np.uint64(words.itemsize))
        first += count
    return np.int64(first)


@kernel
def measure_encoded(words: Words, chunk_values: int, most: int, planes: U8, out: U8) -> int:
    """Measure the LZ4 blocks of the planes of some chunks.

    Parameters
    ----------
    words : uint32 or uint64[num_values]
        The values.
    chunk_values : int
        Number of values of each chunk but the last.
    most : int
        Number of chunks that are encoded. If there are more, these are whole ones at even distances.
    planes : uint8[chunk_values * words.itemsize]
        Overwritten.
    out : uint8[…]
        Overwritten. It has the room that `lz4.encode_planes` needs for a chunk.

    Returns
    -------
    int
        The bytes of all chunks, in proportion if only some were encoded.
    """
    num_chunks = (words.size + chunk_values - 1) // chunk_values
    whole = words.size // chunk_values
    encoded, size, values = min(num_chunks, most), 0, 0
    for number in range(encoded):
        chunk = number if num_chunks <= most else number * (whole - 1) // max(most - 1, 1)
        first = chunk * chunk_values
        count = min(chunk_values, words.size - first)
        _split_chunk(words, np.uint64(first), np.uint64(count), planes, np.uint64(0))
        size += 4 + encode_block(planes, 0, count * words.itemsize, count, out, 0)
        values += count
    return size * words.size // values
