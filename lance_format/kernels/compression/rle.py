"""Run-length encoding: values, and for each the number of its repetitions.

`words` are arrays of unsigned integers of the values' width, often a view of the very bytes of another argument.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
Words = npt.NDArray[Any]

FILL_VALUES = 16
"""Number of values that `expand_runs` may write beyond the end of its output's values."""

_MAX_RUN = 255
_COMPARED = 8


@kernel
def expand_runs(
    words: Words, value_starts: I64, num_runs: I64, data: U8, length_starts: I64, num_values: I64, out: Words
) -> int:
    """Expand the runs of chunks. The last run of a chunk is cut if it is too long, as other readers do.

    Parameters
    ----------
    words : integer[…]
        Holds the values of runs.
    value_starts : int64[num_chunks]
        Index of each chunk's first value within `words`.
    num_runs : int64[num_chunks]
        Number of runs of each chunk.
    data : uint8[…]
        Holds the lengths of runs, one byte each.
    length_starts : int64[num_chunks]
        Byte offset of each chunk's first length within `data`.
    num_values : int64[num_chunks]
        Number of values of each chunk.
    out : integer[num_values.sum() + FILL_VALUES]
        Set to the values.

    Returns
    -------
    int
        The number of values, or -1 - the index of the first chunk whose runs are too short.
    """
    written = np.uint64(0)
    for chunk in range(value_starts.size):
        end = written + np.uint64(num_values[chunk])
        source = np.uint64(value_starts[chunk])
        lengths = np.uint64(length_starts[chunk])
        for run in range(np.uint64(num_runs[chunk])):
            value = words[source + run]
            stop = min(written + np.uint64(data[lengths + run]), end)
            while written < stop:
                for index in range(np.uint64(FILL_VALUES)):
                    out[written + index] = value
                written += np.uint64(FILL_VALUES)
            written = stop
        if written != end:
            return -1 - chunk
    return np.int64(written)


@kernel
def pick_runs(
    words: Words,
    value_starts: I64,
    num_runs: I64,
    data: U8,
    length_starts: I64,
    chunks: I64,
    positions: I64,
    out: Words,
) -> int:
    """Find single values among the runs of chunks.

    Parameters
    ----------
    words, value_starts, num_runs, data, length_starts
        See `expand_runs`.
    chunks : int64[num_picked]
        The chunk of each value.
    positions : int64[num_picked]
        The position of each within its chunk. The runs before a value are walked once while positions ascend.
    out : integer[num_picked]
        Set to the values.

    Returns
    -------
    int
        The number of values, or -1 - the index of the first chunk whose runs are too short.
    """
    current = run = -1
    begin = end = np.int64(0)
    for index in range(positions.size):
        chunk, position = chunks[index], positions[index]
        if chunk != current or position < begin:
            current, run = chunk, -1
            begin = end = np.int64(0)
        while position >= end:
            run += 1
            if run == num_runs[chunk]:
                return -1 - chunk
            begin = end
            end += np.int64(data[length_starts[chunk] + run])
        out[index] = words[value_starts[chunk] + run]
    return positions.size


@kernel
def find_runs(words: Words, values: Words, ends: I64) -> int:
    """Find the runs of equal words.

    Several are compared at once; where they differ, what is written does not depend on a branch.

    Parameters
    ----------
    words : integer[num_values]
        At least one.
    values : integer[num_runs]
        Set to the word of each run.
    ends : int64[num_runs]
        Set to the index after the last word of each run.

    Returns
    -------
    int
        The number of runs.
    """
    run = index = np.uint64(0)
    last = np.uint64(words.size - 1)
    while index < last:
        end = min(index + np.uint64(_COMPARED), last)
        if end - index == np.uint64(_COMPARED):
            difference = words[index] ^ words[index]
            for step in range(np.uint64(_COMPARED)):
                difference |= words[index + step] ^ words[index + step + np.uint64(1)]
            if difference == 0:
                index = end
                continue
        while index < end:
            following = index + np.uint64(1)
            values[run] = words[index]
            ends[run] = following
            run += np.uint64(words[following] != words[index])
            index = following
    values[run] = words[last]
    ends[run] = words.size
    return np.int64(run) + 1


@kernel
def pack_chunks(
    words: Words, ends: I64, max_values: int, max_runs: int, values: Words, lengths: U8, num_values: I64, num_runs: I64
) -> int:
    """Cut runs into chunks, and into runs of at most 255 values.

    Every chunk except the last has a power of two of values.

    Parameters
    ----------
    words : integer[num_found]
        The value of each run.
    ends : int64[num_found]
        The index after the last value of each run.
    max_values : int
        Highest number of values per chunk, a power of two.
    max_runs : int
        Highest number of runs per chunk.
    values : integer[num_runs + max_runs]
        Set to the values of the runs.
    lengths : uint8[num_runs + max_runs]
        Set to the lengths of the runs.
    num_values, num_runs : int64[num_chunks]
        Set to the number of values and runs of each chunk. They have room for a chunk per `max_runs / 2` values and two
        more.

    Returns
    -------
    int
        The number of chunks.
    """
    total = ends[-1]
    first = position = chunks = current = np.int64(0)
    size = np.int64(max_values)
    while first < total:
        size = min(size * 2, max_values)
        while True:
            stop = min(first + size, total)
            begin, run, made = first, current, np.int64(0)
            while begin < stop and made < max_runs:
                end = min(ends[run], begin + _MAX_RUN, stop)
                values[position + made] = words[run]
                lengths[position + made] = np.uint8(end - begin)
                run += end == ends[run]
                made += 1
                begin = end
            if begin == stop:
                break
            size //= 2
        num_values[chunks] = stop - first
        num_runs[chunks] = made
        chunks += 1
        first, current = stop, run
        position += made
    return chunks


@kernel
def measure_blocks(words: Words, num_values: I64, num_runs: I64) -> int:
    """Count the runs of each chunk. Runs of more than 255 values are split.

    Parameters
    ----------
    words : integer[num_values.sum()]
        The values.
    num_values : int64[num_chunks]
        Number of values of each chunk.
    num_runs : int64[num_chunks]
        Set to the number of runs of each chunk.

    Returns
    -------
    int
        The number of runs.
    """
    first = np.uint64(0)
    total = 0
    for chunk in range(num_values.size):
        end = first + np.uint64(num_values[chunk])
        runs = np.int64(0)
        start = first
        for index in range(first, end):
            ends = index + np.uint64(1) == end or words[index + np.uint64(1)] != words[index]
            if ends:
                runs += (np.int64(index - start) + _MAX_RUN) // _MAX_RUN
                start = index + np.uint64(1)
        num_runs[chunk] = runs
        total += runs
        first = end
    return total


@kernel
def pack_blocks(words: Words, num_values: I64, sizes: I64, out: U8) -> int:
    """Write each chunk as a block: an u64 with the bytes of its values, the values, the lengths.

    Parameters
    ----------
    words : integer[num_values.sum()]
        The values.
    num_values : int64[num_chunks]
        Number of values of each chunk.
    sizes : int64[num_chunks]
        Bytes of each block, from the number of its runs.
    out : uint8[sizes.sum()]
        Set to the blocks.

    Returns
    -------
    int
        The number of bytes written.
    """
    width = words.itemsize
    first = 0
    position = 0
    for chunk in range(num_values.size):
        end = first + num_values[chunk]
        runs = (sizes[chunk] - 8) // (width + 1)
        for byte in range(8):
            out[position + byte] = np.uint8(((runs * width) >> (8 * byte)) & 0xFF)
        value = position + 8
        length = value + runs * width
        index = first
        while index < end:
            stop = index + 1
            limit = min(index + _MAX_RUN, end)
            while stop < limit and words[stop] == words[index]:
                stop += 1
            word = np.uint64(words[index])
            for byte in range(width):
                out[value + byte] = np.uint8((word >> np.uint64(8 * byte)) & np.uint64(0xFF))
            out[length] = np.uint8(stop - index)
            value += width
            length += 1
            index = stop
        position += sizes[chunk]
        first = end
    return position
