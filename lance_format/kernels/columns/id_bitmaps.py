"""Roaring bitmaps whose containers are arrays, in the portable form of the Roaring specification:

    u32 12346 │ u32 containers │ {u16 high bits, u16 values - 1} … │ {u32 place of the values} … │ {u16 low bits …} …

of little-endian integers. Places count from the first byte of the bitmap.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_COOKIE = np.uint64(12346)
_LOW = np.uint64(0xFFFF)
_BYTE = np.uint64(0xFF)


@kernel
def _put(out: U8, position: int, number: np.uint64, num_bytes: int) -> int:
    for index in range(num_bytes):
        out[position + index] = np.uint8(number & _BYTE)
        number >>= np.uint64(8)
    return position + num_bytes


@kernel
def write_numbers(numbers: I64, positions: I64, out: U8) -> int:
    """Write numbers of four bytes.

    Parameters
    ----------
    numbers, positions : int64[num_numbers]
        Numbers below 2^32, and where their bytes begin.
    out : uint8[…]

    Returns
    -------
    int
        The number of bytes written.
    """
    for index in range(numbers.size):
        _put(out, positions[index], np.uint64(numbers[index]), 4)
    return 4 * numbers.size


@kernel
def write_arrays(ids: U64, containers: I64, parts: I64, chosen: Bools, positions: I64, out: U8) -> int:
    """Write bitmaps of the low halves of ids.

    Parameters
    ----------
    ids : uint64[num_ids]
        Ascending within each bitmap.
    containers : int64[num_containers + 1]
        The first id of each container, at most 4,096 after the last one, and the number of ids.
    parts : int64[num_bitmaps + 1]
        The first container of each bitmap, and the number of containers.
    chosen : bool[num_bitmaps]
        Which bitmaps to write.
    positions : int64[num_bitmaps]
        Where each begins in `out`.
    out : uint8[…]

    Returns
    -------
    int
        The number of bytes written.
    """
    written = np.int64(0)
    for part in range(chosen.size):
        if not chosen[part]:
            continue
        first, past, begin = parts[part], parts[part + 1], positions[part]
        header = _put(out, begin, _COOKIE, 4)
        header = _put(out, header, np.uint64(past - first), 4)
        place = header + 4 * (past - first)
        values = place + 4 * (past - first)
        for container in range(first, past):
            start, stop = containers[container], containers[container + 1]
            header = _put(out, header, (ids[start] >> np.uint64(16)) & _LOW, 2)
            header = _put(out, header, np.uint64(stop - start - 1), 2)
            place = _put(out, place, np.uint64(values - begin), 4)
            for index in range(start, stop):
                values = _put(out, values, ids[index] & _LOW, 2)
        written += values - begin
    return written
