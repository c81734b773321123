"""Finding the distinct values of a page, with a hash table of open addressing, and looking values up by their numbers.

Kernels that number values stop as soon as there are more distinct values than the caller allows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.byte_strings import (
    ENDS,
    TWO_WORDS,
    equal_rest,
    first_bytes,
    hash_bytes,
    hash_ends,
    last_bytes,
)
from lance_format.kernels.jit import kernel
from lance_format.kernels.prefetch import LINE_BYTES, prefetch
from lance_format.kernels.words import copy_bytes, load_word, mix, run_end, store_word

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Words = npt.NDArray[Any]

SLACK = 16
"""Number of bytes written beyond the end of the result."""

KEY_WORDS = np.uint64(4)
"""Words of what is kept of a distinct byte string."""

TOO_MANY = -1
"""Result of a kernel if there are more distinct values than allowed."""

ALIKE = -2
"""Result of `index_bytes` if many byte strings differ in their middles alone."""

_HALF = np.uint64(32)
_LONG = 128
_FEW = 64
_AHEAD = np.uint64(4)


@kernel
def index_words(words: Words, most: int, slots: I32, items: Words, indices: Words) -> int:
    """Number the distinct words in the order of their first appearance.

    Parameters
    ----------
    words : unsigned integer[num_values]
        The values.
    most : int
        Number of distinct words allowed.
    slots : int32[2**n]
        Holds -1, more than twice as many entries as `most`. Set to the hash table: numbers of words, -1 where free.
    items : unsigned integer[most]
        Set to the distinct words.
    indices : unsigned integer[num_values]
        Set to the number of each word; can represent `most - 1`.

    Returns
    -------
    int
        The number of distinct words, or `TOO_MANY`.
    """
    mask = np.uint64(slots.size - 1)
    size = np.uint64(words.size)
    found = np.int64(0)
    position = np.uint64(0)
    while position < size:
        word = words[position]
        slot = (mix(np.uint64(word)) >> _HALF) & mask
        number = slots[slot]
        while number >= 0 and items[np.uint64(number)] != word:
            slot = (slot + np.uint64(1)) & mask
            number = slots[slot]
        if number < 0:
            if found == most:
                return TOO_MANY
            number = np.int32(found)
            slots[slot] = number
            items[found] = word
            found += 1
        end = run_end(words, position, size)
        for index in range(position, end):
            indices[index] = number
        position = end
    return found


@kernel
def index_pairs(words: Words, most: int, slots: I32, items: Words, indices: Words) -> int:
    """Number the distinct values of two words, such as decimals, in the order of their first appearance.

    Parameters
    ----------
    words : uint64[num_values * 2]
        The values.
    most : int
        Number of distinct values allowed.
    slots : int32[2**n]
        See `index_words`.
    items : uint64[most * 2]
        Set to the distinct values.
    indices : unsigned integer[num_values]
        Set to the number of each value; can represent `most - 1`.

    Returns
    -------
    int
        The number of distinct values, or `TOO_MANY`.
    """
    mask = np.uint64(slots.size - 1)
    one, two = np.uint64(1), np.uint64(2)
    found = np.int64(0)
    for position in range(np.uint64(indices.size)):
        first, second = words[position * two], words[position * two + one]
        slot = (mix(mix(first) ^ second) >> _HALF) & mask
        number = slots[slot]
        while number >= 0:
            place = np.uint64(number) * two
            if items[place] == first and items[place + one] == second:
                break
            slot = (slot + one) & mask
            number = slots[slot]
        if number < 0:
            if found == most:
                return TOO_MANY
            number = np.int32(found)
            slots[slot] = number
            place = np.uint64(number) * two
            items[place] = first
            items[place + one] = second
            found += 1
        indices[position] = number
    return found


@kernel
def index_bytes(
    data: U8, offsets: Words, most: int, ends: bool, slots: I32, keys: U64, firsts: I64, indices: Words
) -> int:
    """Number the distinct byte strings in the order of their first appearance.

    Up to 16 bytes are compared as two words, which say all of them together with the size. Long ones are read once,
    to be compared, where their ends tell them apart.

    Parameters
    ----------
    data : uint8[offsets[-1] or more]
        The byte strings.
    offsets : integer[num_values + 1]
        Byte offsets of the byte strings within `data`.
    most : int
        Number of distinct byte strings allowed.
    ends : bool
        Whether only the ends of long byte strings are hashed.
    slots : int32[2**n]
        Holds -1, more than twice as many entries as `most`. Set to the hash table: numbers of values, -1 where free.
    keys : uint64[most * KEY_WORDS]
        Set to the first and the last bytes of each distinct value, its size and its hash.
    firsts : int64[most]
        Set to the index of the first appearance of each distinct value.
    indices : unsigned integer[num_values]
        Set to the number of each value; can represent `most - 1`.

    Returns
    -------
    int
        The number of distinct byte strings, `TOO_MANY`, or, if `ends`, `ALIKE`.
    """
    mask = np.uint64(slots.size - 1)
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    found = np.int64(0)
    compared_in_vain = np.int64(0)
    last_position = np.uint64(indices.size)
    start = np.int64(offsets[0])
    for position in range(np.uint64(indices.size)):
        end = np.int64(offsets[position + one])
        size = end - start
        length = np.uint64(size)
        first, last = first_bytes(data, start, size), last_bytes(data, start, size)
        if ends and size > ENDS:  # The processor does not foresee that only the ends of the next are read at first.
            boundary = np.int64(offsets[min(position + _AHEAD, last_position)])
            prefetch(data, boundary - LINE_BYTES)
            prefetch(data, boundary)
            value = hash_ends(first, last, data, start, size)
        else:
            value = hash_bytes(first, last, data, start, size)
        slot = value & mask
        number = slots[slot]
        while number >= 0:
            place = np.uint64(number) * KEY_WORDS
            difference = (keys[place] ^ first) | (keys[place + one] ^ last)
            difference |= (keys[place + two] ^ length) | (keys[place + three] ^ value)
            if difference == 0:
                known = np.int64(offsets[np.uint64(firsts[number])])
                if size <= TWO_WORDS or equal_rest(data, known, data, start, size):
                    break
                compared_in_vain += 1
                if ends and compared_in_vain > _FEW:
                    return ALIKE
            slot = (slot + one) & mask
            number = slots[slot]
        if number < 0:
            if found == most:
                return TOO_MANY
            number = np.int32(found)
            slots[slot] = number
            place = np.uint64(number) * KEY_WORDS
            keys[place] = first
            keys[place + one] = last
            keys[place + two] = length
            keys[place + three] = value
            firsts[found] = position
            found += 1
        indices[position] = number
        start = end
    return found


@kernel
def number_together(words: Words, num_values: I64, num_items: I64, out: Words) -> int:
    """Turn indices into the items of each page into indices into the items of all pages, one after the other.

    Parameters
    ----------
    words : unsigned integer[sum(num_values)]
        The indices of all pages.
    num_values : int64[num_pages]
        The number of indices of each page, together as many as there are.
    num_items : int64[num_pages]
        The number of items of each page.
    out : unsigned integer[sum(num_values)]
        Set to the indices; wide enough for the number of all items.

    Returns
    -------
    int
        A page with an index that has no item; -1 for none.
    """
    start = base = np.uint64(0)
    for page in range(num_values.size):
        end, highest = start + np.uint64(num_values[page]), np.uint64(0)
        for index in range(start, end):
            word = np.uint64(words[index])
            highest = max(highest, word)
            out[index] = word + base
        if end > start and highest >= np.uint64(num_items[page]):
            return page
        start, base = end, base + np.uint64(num_items[page])
    return -1


@kernel
def gather_words(words: Words, indices: Words, out: Words) -> int:
    """Look up words by their numbers.

    Parameters
    ----------
    words : integer[num_words]
        The distinct words.
    indices : integer[num_values]
        Valid indices into `words`.
    out : integer[num_values]
        Set to the words.

    Returns
    -------
    int
        The number of values.
    """
    for index in range(np.uint64(indices.size)):
        out[index] = words[np.uint64(indices[index])]
    return indices.size


@kernel
def gather_wide(words: Words, width: int, indices: Words, out: Words) -> int:
    """Look up values of several words by their numbers. Those of two words, such as decimals, are the fastest.

    Parameters
    ----------
    words : uint64[num_items * width]
        The distinct values.
    width : int
        Words of a value.
    indices : integer[num_values]
        Valid numbers of values.
    out : uint64[num_values * width]
        Set to the values.

    Returns
    -------
    int
        The number of values.
    """
    size = np.uint64(width)
    for index in range(np.uint64(indices.size)):
        start, target = np.uint64(indices[index]) * size, index * size
        out[target] = words[start]
        out[target + np.uint64(1)] = words[start + np.uint64(1)]
        for word in range(np.uint64(2), size):
            out[target + word] = words[start + word]
    return indices.size


@kernel
def measure_bytes(offsets: Words, indices: Words, out_offsets: Words) -> int:
    """Compute the offsets of byte strings that are looked up by their numbers.

    Parameters
    ----------
    offsets : integer[num_items + 1]
        Byte offsets of the distinct byte strings.
    indices : integer[num_values]
        Valid indices of byte strings.
    out_offsets : integer[num_values + 1]
        Set to the byte offsets of the values; the first is 0.

    Returns
    -------
    int
        The number of bytes. It may exceed what `out_offsets` can represent; the offsets are invalid then.
    """
    total = np.int64(0)
    for index in range(np.uint64(indices.size)):
        out_offsets[index] = total
        number = np.uint64(indices[index])
        total += np.int64(offsets[number + np.uint64(1)]) - np.int64(offsets[number])
    out_offsets[indices.size] = total
    return total


@kernel
def gather_bytes(data: U8, offsets: Words, indices: Words, out: U8) -> int:
    """Look up byte strings by their numbers and copy them, one after the other.

    Most byte strings are short. Two words are copied of each one that does not end near the end of `data`, so that the
    loop does not branch on their sizes.

    Parameters
    ----------
    data : uint8[…]
        The distinct byte strings.
    offsets : integer[num_items + 1]
        Byte offsets of the distinct byte strings within `data`.
    indices : integer[num_values]
        Valid indices of byte strings.
    out : uint8[num_bytes + SLACK]
        Set to the bytes of the values.

    Returns
    -------
    int
        The number of bytes, without the slack.
    """
    written = np.int64(0)
    for index in range(np.uint64(indices.size)):
        number = np.uint64(indices[index])
        start = np.int64(offsets[number])
        size = np.int64(offsets[number + np.uint64(1)]) - start
        if size >= _LONG:
            copy_bytes(data, start, size, out, written)
        elif max(start + size + 8, start + 16) > data.size:
            for byte in range(size):
                out[written + byte] = data[start + byte]
        else:
            store_word(out, written, load_word(data, start))
            store_word(out, written + 8, load_word(data, start + 8))
            copied = np.int64(16)
            while copied < size:
                store_word(out, written + copied, load_word(data, start + copied))
                copied += 8
        written += size
    return written
