"""Byte strings that are hashed and compared, by words that may overlap: nothing is read behind them.

Two words, which are in registers, say all of up to 16 bytes, together with their number. The rest of longer ones is
left to functions of their own, since the compiler does not inline loops.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel
from lance_format.kernels.words import PRIME, are_equal, load_word, mix

U8 = npt.NDArray[np.uint8]

TWO_WORDS = 16
"""The bytes that two words say."""

ENDS = 64
"""The bytes of both ends of long byte strings."""

_BLOCK = 32
_HALF = np.uint64(32)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def first_bytes(data: U8, start: int, size: int) -> np.uint64:
    """Return the first 8 bytes of a byte string as a little-endian word, with zeros behind it.

    Parameters
    ----------
    data : uint8[start + size or more]
    start, size : int
        The range of its bytes.
    """
    if size >= 8:
        return load_word(data, start)
    if size > 0 and start + 8 <= data.size:
        return load_word(data, start) & (_ALL >> np.uint64(64 - 8 * size))
    word = np.uint64(0)
    for index in range(size):
        word |= np.uint64(data[start + index]) << np.uint64(8 * index)
    return word


@kernel
def last_bytes(data: U8, start: int, size: int) -> np.uint64:
    """Return the last 8 bytes of a byte string of 8 or more as a little-endian word, 0 for others.

    Parameters
    ----------
    data, start, size
        See `first_bytes`.
    """
    return load_word(data, start + size - 8) if size >= 8 else np.uint64(0)


@kernel
def hash_bytes(first: np.uint64, last: np.uint64, data: U8, start: int, size: int) -> np.uint64:
    """Return a hash of a byte string.

    Parameters
    ----------
    first, last : uint64
        See `first_bytes` and `last_bytes`.
    data, start, size
        See `first_bytes`.
    """
    value = mix(mix(first ^ ~np.uint64(size)) ^ last)
    if size > TWO_WORDS:
        value = _hash_rest(data, start, size, value)
    return value ^ (value >> _HALF)


@kernel
def hash_ends(first: np.uint64, last: np.uint64, data: U8, start: int, size: int) -> np.uint64:
    """Return a hash of the size and of both ends of a byte string of more than `ENDS` bytes.

    Parameters
    ----------
    first, last, data, start, size
        See `hash_bytes`.
    """
    end = start + size
    zero = mix(mix(first ^ ~np.uint64(size)) ^ last)
    one = _stir(_stir(~zero, load_word(data, start + 8)), load_word(data, end - 16))
    two = _stir(_stir(zero ^ PRIME, load_word(data, start + 16)), load_word(data, end - 24))
    three = _stir(_stir(~zero ^ PRIME, load_word(data, start + 24)), load_word(data, end - 32))
    value = mix(_stir(_stir(_stir(zero, one), two), three))
    return value ^ (value >> _HALF)


@kernel
def _stir(value: np.uint64, word: np.uint64) -> np.uint64:
    """Return a hash of a hash and a word that differs for each word; it takes less time than `mix`, and mixes less."""
    mixed = value ^ word
    return ((mixed << _HALF) | (mixed >> _HALF)) * PRIME


@kernel
def _hash_rest(data: U8, start: int, size: int, value: np.uint64) -> np.uint64:
    """Return the hash of a byte string of more than two words, given that of its ends."""
    end = start + size
    if size <= _BLOCK:
        return mix(_stir(_stir(value, load_word(data, start + 8)), load_word(data, end - 16)))
    zero, one, two, three = value, ~value, value ^ PRIME, ~value ^ PRIME
    while start < end:  # Four hashes that do not wait for each other, of blocks of which the last two may overlap.
        block = min(start, end - _BLOCK)
        zero = _stir(zero, load_word(data, block))
        one = _stir(one, load_word(data, block + 8))
        two = _stir(two, load_word(data, block + 16))
        three = _stir(three, load_word(data, block + 24))
        start += _BLOCK
    return mix(_stir(_stir(_stir(zero, one), two), three))


@kernel
def equal_bytes(data: U8, one: int, others: U8, other: int, size: int) -> bool:
    """Return whether two byte strings of a size are equal.

    Parameters
    ----------
    data : uint8[one + size or more]
    one : int
        Start of the one in `data`.
    others : uint8[other + size or more]
    other : int
        Start of the other in `others`.
    size : int
    """
    difference = first_bytes(data, one, size) ^ first_bytes(others, other, size)
    difference |= last_bytes(data, one, size) ^ last_bytes(others, other, size)
    return difference == 0 and (size <= TWO_WORDS or equal_rest(data, one, others, other, size))


@kernel
def equal_rest(data: U8, one: int, others: U8, other: int, size: int) -> bool:
    """Return whether two byte strings of more than two words are equal, the first and the last words of which are.

    Parameters
    ----------
    data, one, others, other, size
        See `equal_bytes`.
    """
    if size <= _BLOCK:
        difference = load_word(data, one + 8) ^ load_word(others, other + 8)
        return difference | (load_word(data, one + size - 16) ^ load_word(others, other + size - 16)) == 0
    return are_equal(data, one + 8, others, other + 8, size - TWO_WORDS)
