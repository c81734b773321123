"""Split block Bloom filters over 64-bit xxHash, as in Parquet.

The bytes of a value are hashed (XXH64, seed 0). The upper half of the hash chooses a block of eight words; the lower
half, multiplied by eight odd numbers, chooses a bit in each of them. A value is not in the filter if one of its bits is
0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_FACTORS = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint64
)
_LOW = np.uint64(0xFFFFFFFF)


@kernel
def _rotate(word: np.uint64, bits: int) -> np.uint64:
    return np.uint64((word << np.uint64(bits)) | (word >> np.uint64(64 - bits)))


@kernel
def _read(source: U8, position: int, size: int) -> np.uint64:
    """Read a little-endian number."""
    word = np.uint64(0)
    for byte in range(size):
        word |= np.uint64(source[position + byte]) << np.uint64(8 * byte)
    return word


@kernel
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return np.uint64(_rotate(np.uint64(lane + word * _P2), 31) * _P1)


@kernel
def _hash(source: U8, start: int, stop: int) -> np.uint64:
    position = start
    if stop - start >= 32:
        one, two, three, four = np.uint64(_P1 + _P2), _P2, np.uint64(0), np.uint64(np.uint64(0) - _P1)
        while stop - position >= 32:
            one = _round(one, _read(source, position, 8))
            two = _round(two, _read(source, position + 8, 8))
            three = _round(three, _read(source, position + 16, 8))
            four = _round(four, _read(source, position + 24, 8))
            position += 32
        word = np.uint64(_rotate(one, 1) + _rotate(two, 7) + _rotate(three, 12) + _rotate(four, 18))
        for lane in (one, two, three, four):
            word = np.uint64((word ^ _round(np.uint64(0), lane)) * _P1 + _P4)
    else:
        word = _P5
    word = np.uint64(word + np.uint64(stop - start))
    while stop - position >= 8:
        word = np.uint64(_rotate(word ^ _round(np.uint64(0), _read(source, position, 8)), 27) * _P1 + _P4)
        position += 8
    if stop - position >= 4:
        word = np.uint64(_rotate(word ^ np.uint64(_read(source, position, 4) * _P1), 23) * _P2 + _P3)
        position += 4
    while position < stop:
        word = np.uint64(_rotate(word ^ np.uint64(np.uint64(source[position]) * _P5), 11) * _P1)
        position += 1
    word = np.uint64((word ^ (word >> np.uint64(33))) * _P2)
    word = np.uint64((word ^ (word >> np.uint64(29))) * _P3)
    return np.uint64(word ^ (word >> np.uint64(32)))


@kernel
def hash_values(source: U8, ends: I64, out: npt.NDArray[np.uint64]) -> int:
    """Hash values by XXH64.

    Parameters
    ----------
    source : uint8[num_bytes], read-only
    ends : int64[num_values + 1], read-only
        The start of the first value in `source`, then the end of each.
    out : uint64[num_values]
        Set to the hashes.

    Returns
    -------
    int
        The number of values.
    """
    for index in range(ends.size - 1):
        out[index] = _hash(source, ends[index], ends[index + 1])
    return ends.size - 1


@kernel
def find_hashes(hashes: U64, words: U32, starts: I64, out: Flags) -> int:
    """Mark the filters that may hold one of several hashed values.

    Parameters
    ----------
    hashes : uint64[num_values]
    words : uint32[…], read-only
        The filters, one after another.
    starts : int64[num_filters + 1]
        The first word of each filter, then the end of the last. A filter has a multiple of eight words, and at least
        that many.
    out : bool[num_filters]
        Set for each filter.

    Returns
    -------
    int
        The number of filters.
    """
    for index in range(starts.size - 1):
        num_blocks = np.uint64((starts[index + 1] - starts[index]) // 8)
        out[index] = False
        for position in range(hashes.size):
            value = hashes[position]
            block = starts[index] + np.int64(((value >> np.uint64(32)) * num_blocks) >> np.uint64(32)) * 8
            low = value & _LOW
            holds = True
            for place in range(8):
                bit = ((low * _FACTORS[place]) & _LOW) >> np.uint64(27)
                if not (np.uint64(words[block + place]) >> bit) & np.uint64(1):
                    holds = False
                    break
            if holds:
                out[index] = True
                break
    return starts.size - 1


@kernel
def insert_hashes(hashes: npt.NDArray[np.uint64], words: U32) -> int:
    """Insert hashed values into a filter.

    Parameters
    ----------
    hashes : uint64[num_values], read-only
    words : uint32[8 * num_blocks]
        Bits are set in it.

    Returns
    -------
    int
        The number of values.
    """
    num_blocks = np.uint64(words.size // 8)
    for index in range(hashes.size):
        value = np.uint64(hashes[index])
        block = np.int64(((value >> np.uint64(32)) * num_blocks) >> np.uint64(32)) * 8
        low = value & _LOW
        for place in range(8):
            bit = ((low * _FACTORS[place]) & _LOW) >> np.uint64(27)
            words[block + place] |= np.uint32(np.uint64(1) << bit)
    return hashes.size
