"""Splitting of texts into tokens, over UTF-8 bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@kernel
def read_character(data: U8, at: int) -> tuple[int, int]:
    """Return the code point at an offset of valid UTF-8, and the offset after it."""
    lead = np.int64(data[at])
    if lead < 0x80:
        return lead, at + 1
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | (np.int64(data[at + 1]) & 0x3F), at + 2
    if lead < 0xF0:
        value = (lead & 0x0F) << 12 | (np.int64(data[at + 1]) & 0x3F) << 6
        return value | (np.int64(data[at + 2]) & 0x3F), at + 3
    value = (lead & 0x07) << 18 | (np.int64(data[at + 1]) & 0x3F) << 12 | (np.int64(data[at + 2]) & 0x3F) << 6
    return value | (np.int64(data[at + 3]) & 0x3F), at + 4


@kernel
def split_words(data: U8, offsets: I64, in_word: Mask, out: U8, ends: I64, counts: I64) -> int:
    """Copy the words of texts: the longest runs of characters that are in words.

    Parameters
    ----------
    data : uint8[…]
        Valid UTF-8.
    offsets : int64[num_texts + 1]
        The texts.
    in_word : bool[0x110000]
        By code point.
    out : uint8[num_bytes]
        Set to the words, one after the other.
    ends : int64[num_bytes // 2 + num_texts + 1]
        Set to 0, and to the end of each word within `out`.
    counts : int64[num_texts]
        Set to the number of words of each text.

    Returns
    -------
    int
        The number of words.
    """
    num_words, size = 0, 0
    ends[0] = 0
    for text in range(offsets.size - 1):
        at, stop, before = offsets[text], offsets[text + 1], num_words
        is_inside = False
        while at < stop:
            character, after = read_character(data, at)
            if in_word[character]:
                is_inside = True
                for index in range(at, after):
                    out[size] = data[index]
                    size += 1
            elif is_inside:
                is_inside = False
                num_words += 1
                ends[num_words] = size
            at = after
        if is_inside:
            num_words += 1
            ends[num_words] = size
        counts[text] = num_words - before
    return num_words


@kernel
def measure_grams(data: U8, offsets: I64, shortest: int, longest: int, prefix_only: bool, counts: I64) -> int:
    """Count the character sequences of texts, and return how many bytes they have.

    Parameters
    ----------
    data : uint8[…]
        Valid UTF-8.
    offsets : int64[num_texts + 1]
    shortest, longest : int
        Their numbers of characters.
    prefix_only : bool
        Whether they begin where the text does.
    counts : int64[num_texts]
    """
    total = 0
    for text in range(offsets.size - 1):
        start, stop = offsets[text], offsets[text + 1]
        counts[text] = 0
        at = start
        while at < stop:
            end, length = at, 0
            while end < stop and length < longest:
                _, end = read_character(data, end)
                length += 1
                if length >= shortest:
                    counts[text] += 1
                    total += end - at
            if prefix_only:
                break
            _, at = read_character(data, at)
    return total


@kernel
def split_grams(data: U8, offsets: I64, shortest: int, longest: int, prefix_only: bool, out: U8, ends: I64) -> int:
    """Copy the character sequences that `measure_grams` counts.

    Parameters
    ----------
    data, offsets, shortest, longest, prefix_only
        See `measure_grams`.
    out : uint8[num_bytes]
    ends : int64[num_sequences + 1]
        Set to 0, and to the end of each sequence within `out`.
    """
    count, size = 0, 0
    ends[0] = 0
    for text in range(offsets.size - 1):
        at, stop = offsets[text], offsets[text + 1]
        while at < stop:
            end, length = at, 0
            while end < stop and length < longest:
                _, end = read_character(data, end)
                length += 1
                if length >= shortest:
                    for index in range(at, end):
                        out[size] = data[index]
                        size += 1
                    count += 1
                    ends[count] = size
            if prefix_only:
                break
            _, at = read_character(data, at)
    return count
