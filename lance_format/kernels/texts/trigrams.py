"""Trigrams of texts: three consecutive characters that are letters or digits of ASCII, once each is folded to such.

A character becomes up to seven symbols of a byte each in a number, the first one lowest: 1 to 10 for a digit, 11 to 36
for a lower-case letter, `OTHER` for what is no letter or digit, and 0 after the last. The token of a trigram is the
number of its symbols to base 37. In the reference, upper-case letters have the symbols that the distance from `a` has
as a byte: A to U have 235 to 255, V 0, for which `ZERO` stands here, and W to Z 1 to 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

NUM_SYMBOLS = 37
"""The base of tokens."""

NUM_TOKENS = 255 * (NUM_SYMBOLS**2 + NUM_SYMBOLS + 1) + 1
"""Tokens are below it."""

OTHER, ZERO = 99, 100

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Words = npt.NDArray[Any]


@kernel
def gather_trigrams(
    data: U8, offsets: Words, symbols: U64, low: int, high: int, seen: I64, ends: I64, out: U32, store: bool
) -> int:
    """Count the rows that have each trigram, or gather them, in their order.

    Parameters
    ----------
    data : uint8[…], read-only
        The texts in UTF-8. Malformed characters are like those that are no letters.
    offsets : integer[num_rows + 1], read-only
        Ascending byte offsets of the rows within `data`.
    symbols : uint64[…]
        The symbols of each code point. Those from its end on are no letters.
    low, high : int
        The tokens of interest, from `low` on and below `high`.
    seen : int64[NUM_TOKENS]
        -1; set to the last row that has each token.
    ends : int64[NUM_TOKENS]
        Increased by the number of rows of each token.
    out : uint32[…]
        If `store`: the rows of each token are put from its `ends` on.
    store : bool
        Otherwise the rows are only counted.

    Returns
    -------
    int
        The number of pairs of a token and a row.
    """
    count = 0
    for row in range(offsets.size - 1):
        position, stop = np.int64(offsets[row]), np.int64(offsets[row + 1])
        one, two, run = 0, 0, 0
        while position < stop:
            code = np.int64(data[position])
            size = 1
            if code >= 0xF0:
                size, code = 4, code & 0x07
            elif code >= 0xE0:
                size, code = 3, code & 0x0F
            elif code >= 0xC0:
                size, code = 2, code & 0x1F
            for _ in range(1, size):
                position += 1
                code = (code << 6) | (np.int64(data[position]) & 0x3F if position < stop else 0)
            position += 1
            word = np.int64(symbols[code]) if code < symbols.size else OTHER
            while word:
                symbol = word & 255
                word >>= 8
                if symbol == OTHER:
                    run = 0
                    continue
                if symbol == ZERO:
                    symbol = 0
                run += 1
                token = one * 1369 + two * 37 + symbol
                one, two = two, symbol
                if run >= 3 and low <= token < high and seen[token] != row:
                    seen[token] = row
                    if store:
                        out[ends[token]] = row
                    ends[token] += 1
                    count += 1
    return count
