"""Splitting values into planes: all first bytes, all second bytes, and so on, chunk by chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
Words = npt.NDArray[Any]


@kernel
def join4(data: U8, starts: I64, num_values: I64, out: npt.NDArray[np.uint32]) -> int:
    """Join the four planes of each chunk, slices of `data` that lie within; returns the number of values."""
    written = np.uint64(0)
    for chunk in range(starts.size):
        count = np.uint64(num_values[chunk])
        plane0 = np.uint64(starts[chunk])
        plane1 = plane0 + count
        plane2 = plane1 + count
        plane3 = plane2 + count
        for index in range(count):
            out[written + index] = (
                np.uint32(data[plane0 + index])
                | np.uint32(data[plane1 + index]) << np.uint32(8)
                | np.uint32(data[plane2 + index]) << np.uint32(16)
                | np.uint32(data[plane3 + index]) << np.uint32(24)
            )
        written += count
    return np.int64(written)


@kernel
def join8(data: U8, starts: I64, num_values: I64, out: npt.NDArray[np.uint64]) -> int:
    """Join the eight planes of each chunk, slices of `data` that lie within; returns the number of values."""
    written = np.uint64(0)
    for chunk in range(starts.size):
        count = np.uint64(num_values[chunk])
        first = np.uint64(starts[chunk])
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
        written += count
    return np.int64(written)


@kernel
def split(words: Words, num_values: I64, out: U8) -> int:
    """Split chunks of consecutive words into planes; returns the number of values."""
    width = np.uint64(words.itemsize)
    first = np.uint64(0)
    for chunk in range(num_values.size):
        count = np.uint64(num_values[chunk])
        for plane in range(width):
            target = first * width + plane * count
            shift = np.uint64(8) * plane
            for index in range(count):
                out[target + index] = np.uint8((np.uint64(words[first + index]) >> shift) & np.uint64(0xFF))
        first += count
    return np.int64(first)
