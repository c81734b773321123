"""Sums of successive blocks: many by a kernel, few by a call each."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from lance_format.checksums import checksum32
from lance_format.file.container.seal import Sums
from lance_format.kernels.files.xxh3 import sum_blocks
from lance_format.kernels.jit import is_compiler_imported

_MANY_BLOCKS = 8
"""So many blocks are hashed by the kernel, if the compiler is there. It does not pay to import it for them."""


Values: TypeAlias = "memoryview[int]"
"""Sums whose items are whole numbers of Python: of few blocks they are faster to compare than those of numpy."""


def find_mismatch(data: memoryview, block_bytes: int, sums: Values, first: int) -> int:
    """Return the number of the first block that has not its sum, or -1.

    Parameters
    ----------
    data : memoryview
        Contiguous bytes.
    block_bytes : int
        Bytes per block; the last block may have fewer.
    sums : memoryview of uint32
    first : int
        Index of the sum of the first block.
    """
    start, size = 0, len(data)
    if size >= _MANY_BLOCKS * block_bytes and is_compiler_imported():
        found = _sums_of_whole(data, block_bytes)
        different = np.flatnonzero(found != np.asarray(sums[first : first + found.size]))
        if different.size:
            return int(different[0])
        start = found.size * block_bytes
        first += found.size
    while start < size:
        if checksum32(data[start : start + block_bytes]) != sums[first]:
            return start // block_bytes
        start += block_bytes
        first += 1
    return -1


def sums_of(data: memoryview, block_bytes: int) -> Sums:
    """Return the sums of whole blocks.

    Parameters
    ----------
    data : memoryview
        Contiguous bytes; a multiple of a block.
    block_bytes : int
    """
    if len(data) >= _MANY_BLOCKS * block_bytes and is_compiler_imported():
        return _sums_of_whole(data, block_bytes)
    starts = range(0, len(data), block_bytes)
    return np.array([checksum32(data[start : start + block_bytes]) for start in starts], np.uint32)


def _sums_of_whole(data: memoryview, block_bytes: int) -> Sums:
    sums = np.empty(len(data) // block_bytes, np.uint32)
    sum_blocks(np.frombuffer(data.toreadonly(), np.uint8), block_bytes, sums)
    return sums
