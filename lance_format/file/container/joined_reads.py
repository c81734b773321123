"""Reads of many small ranges into one buffer: in a kernel, where a call per range would take longer than the range."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import cast

import numpy as np
import numpy.typing as npt

from lance_format.byte_io import PROBED_RANGES, ByteRanges, LendingReader, RangeReader
from lance_format.kernels.files.file_reads import read_plain
from lance_format.kernels.jit import is_compiler_imported
from lance_format.memory import empty

U8 = npt.NDArray[np.uint8]

ReadSome = Callable[[int, ByteRanges, U8], tuple[int, int]]
"""Reads the first of some ranges of an open file, given its descriptor, into an array, one after the other.

It returns their number, and how many bytes it has read for them.
"""


def read_joined(source: RangeReader, ranges: ByteRanges) -> U8 | None:
    """Return the bytes of all ranges, one after the other; None if they have to be read one by one.

    Whatever is not as it should be is left to that, which says what is wrong.

    Parameters
    ----------
    source : RangeReader
        One that has a method of this name, or lends its descriptor, or any other.
    ranges : ByteRanges
    """
    read = getattr(source, "read_joined", None)
    if read is not None:
        found: U8 | None = read(ranges)
        return found
    return read_by_kernel(source, ranges, _read_plain)


def read_by_kernel(source: RangeReader, ranges: ByteRanges, read: ReadSome) -> U8 | None:
    """Read ranges of a file that this process has open; see `read_joined`."""
    if not hasattr(source, "lend") or not is_compiler_imported():
        return None
    lending = cast("LendingReader", source)
    if lending.lend() < 0 or not _are_within(ranges, source.size_bytes):
        return None
    out = empty(ranges.num_bytes, np.uint8)
    done = place = 0
    while done < len(ranges):
        descriptor = lending.lend()
        if descriptor < 0:
            return None
        start = time.perf_counter()
        count, num_bytes = read(descriptor, ranges[done:] if done else ranges[:PROBED_RANGES], out[place:])
        lending.give_back(count, num_bytes)
        if not count:
            return None
        if not done:
            lending.announce(ranges[count:], (time.perf_counter() - start) / count)
        place += ranges[done : done + count].num_bytes
        done += count
    out.flags.writeable = False  # Like bytes, so that other kernels are compiled for one of both.
    return out


def _are_within(ranges: ByteRanges, size_bytes: int) -> bool:
    """Return whether ranges lie within a file, so that their memory is asked for only if they are no nonsense."""
    offsets, sizes = ranges.offsets, ranges.sizes
    if offsets.min() < 0 or sizes.min() < 0 or offsets.max() > size_bytes or sizes.max() > size_bytes:
        return False
    return bool((offsets + sizes).max() <= size_bytes)


def _read_plain(descriptor: int, ranges: ByteRanges, out: U8) -> tuple[int, int]:
    count = read_plain(descriptor, ranges.offsets, ranges.sizes, out)
    return count, ranges[:count].num_bytes
