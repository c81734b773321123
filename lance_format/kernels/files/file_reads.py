"""Reads of many ranges of an open file in one call, which compare the checksums of what they read.

A call per range of a few KiB takes as long as the range. These kernels alone touch a file: they are given its
descriptor, and know neither its path nor its errors. A range that cannot be read whole ends the call, and the caller
reads it again in another way, which says what is wrong.

Ranges are placed one after the other, each at a multiple of 64 bytes plus the rest of its offset, so that what is
aligned in the file is aligned in memory:

    │ range 0 │ gap │ range 1 │ gap │ …
    0               64 n + offset % 64, without its lower three bits
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.files.xxh3 import LANES, sum_block
from lance_format.kernels.jit import allocating_kernel, instructions, kernel
from lance_format.kernels.words import copy_bytes
from lance_format.memory import empty

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]

_GAP_BYTES = 128
"""The most bytes that a range takes beyond its own."""

_TOGETHER_BYTES = 512 * 1024
"""Bytes of small ranges that are read in one call, which the caches of a processor hold."""

_STEP_BYTES = 128 * 1024
"""So much is read before it is hashed: the second level of a processor's caches holds it."""


def _pread(typing_context: Any, descriptor: Any, out: Any, position: Any, size: Any, offset: Any) -> Any:  # noqa: ARG001
    """Type and compile `_read_unchecked`: a call of the C library, which the linker finds by its name."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        descriptor, out, position, size, offset = arguments
        view = context.make_array(signature.args[1])(context, builder, out)
        whole, address = ir.IntType(64), ir.IntType(8).as_pointer()
        place = builder.bitcast(builder.gep(view.data, [position]), address)
        kind = ir.FunctionType(whole, [ir.IntType(32), address, whole, whole])
        function = cgutils.get_or_insert_function(builder.module, kind, "pread")  # type: ignore[no-untyped-call]
        return builder.call(function, [builder.trunc(descriptor, ir.IntType(32)), place, size, offset])

    return types.int64(types.intp, out, types.intp, types.intp, types.intp), generate


_read_unchecked: Callable[[int, U8, int, int, int], int] = instructions(_pread)
"""Read bytes of a file to `position` of an array, and return their number; -1 if that fails."""


def room_for(sizes: I64) -> U8:
    """Return memory for the first of some ranges and as many others as are read in one call.

    Parameters
    ----------
    sizes : int64[num_ranges]
        Bytes of each; the first lies within its file.
    """
    needed = int(np.minimum(sizes, _TOGETHER_BYTES).sum()) + _GAP_BYTES * sizes.size
    return empty(max(int(sizes[0]) + _GAP_BYTES, min(needed, _TOGETHER_BYTES)), np.uint8)


@kernel
def _place(position: int, offset: int) -> int:
    """Return the place of a range: the first one from `position` on that keeps its alignment."""
    return (position + 63) // 64 * 64 + (offset & 56)


@kernel
def _find_other(data: U8, position: int, size: int, block_bytes: int, sums: U32, first: int, accumulators: Any) -> int:
    """Return the index of the first of successive blocks that has another sum, or -1; the last block may be shorter."""
    end = position + size
    while position < end:
        stop = min(position + block_bytes, end)
        if sum_block(data, position, stop - position, accumulators) != sums[first]:
            return first
        first += 1
        position = stop
    return -1


@kernel
def read_plain(descriptor: int, offsets: I64, sizes: I64, out: U8) -> int:
    """Read ranges of a file, one after the other.

    Parameters
    ----------
    descriptor : int
        Of the open file.
    offsets, sizes : int64[num_ranges]
    out : uint8[…]
        Set to the bytes of the ranges.

    Returns
    -------
    int
        The number of ranges that were read; the next one does not fit, or could not be read whole.
    """
    place = 0
    for number in range(offsets.size):
        offset, size = offsets[number], sizes[number]
        if offset < 0 or size < 0 or size > out.size - place:
            return number
        if _read_unchecked(descriptor, out, place, size, offset) != size:
            return number
        place += size
    return offsets.size


@allocating_kernel
def read_blocks(
    descriptor: int,
    block_bytes: int,
    region_end: int,
    sums: U32,
    first_block: int,
    offsets: I64,
    sizes: I64,
    scratch: U8,
    is_dense: bool,
    out: U8,
    positions: I64,
) -> int:
    """Read ranges of the data region of a sealed file, and compare the checksums of the blocks that they lie in.

    Parameters
    ----------
    descriptor : int
        Of the open file.
    block_bytes : int
    region_end : int
        Offset of the first byte after the region; the last block ends there, and has at least
        `xxh3.MIN_BLOCK_BYTES`.
    sums : uint32[num_sums]
        The sums of some successive blocks.
    first_block : int
        Number of the first of these blocks.
    offsets, sizes : int64[num_ranges]
    scratch : uint8[block_bytes or more]
        Overwritten.
    is_dense : bool
        Whether the ranges follow each other in `out` without a gap.
    out : uint8[…]
        Set to the bytes of the ranges. A range takes at most 128 more than its size.
    positions : int64[num_ranges + 2]
        Set to their places in `out`. The last but one is set to the number of a block that has another sum, or to -1;
        the last one to the number of bytes that were read.

    Returns
    -------
    int
        The number of ranges that were read and compared. The next one does not fit, lies in other blocks, could not be
        read whole, or has the block that `positions` names.
    """
    accumulators = np.empty(LANES, np.uint64)
    positions[offsets.size] = -1
    positions[offsets.size + 1] = 0
    begin = first_block * block_bytes
    end = min(begin + sums.size * block_bytes, region_end)
    place = 0
    for number in range(offsets.size):
        offset, size = offsets[number], sizes[number]
        if not is_dense:
            place = _place(place, offset)
        if offset < begin or offset > end or size < 0 or size > end - offset or size > out.size - place:
            return number
        positions[number] = place
        stop = offset + size
        while offset < stop:
            block = offset // block_bytes
            start = block * block_bytes
            last = min((stop + block_bytes - 1) // block_bytes * block_bytes, region_end)
            whole = (stop if last == stop else stop // block_bytes * block_bytes) - start
            if start == offset and whole > 0 and last - start > scratch.size:
                # Whole blocks are read to their place.
                part = length = min(whole, max(_STEP_BYTES // block_bytes, 1) * block_bytes)
                if _read_unchecked(descriptor, out, place, length, start) != length:
                    return number
                other = _find_other(out, place, length, block_bytes, sums, block - first_block, accumulators)
            else:
                # Others are read beside it: those of a small range together, else the first or the last block.
                length = last - start if last - start <= scratch.size else min(block_bytes, last - start)
                if _read_unchecked(descriptor, scratch, 0, length, start) != length:
                    return number
                other = _find_other(scratch, 0, length, block_bytes, sums, block - first_block, accumulators)
                part = min(start + length, stop) - offset
                copy_bytes(scratch, offset - start, part, out, place)
            positions[offsets.size + 1] += length
            if other >= 0:
                positions[offsets.size] = first_block + other
                return number
            offset += part
            place += part
    return offsets.size
