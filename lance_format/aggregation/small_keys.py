"""Numbers of keys that have few possible values: small integers, dates, flags, texts of which there are few."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lance_format.aggregation.words import I32, I64, Bool, frozen
from lance_format.kernels.aggregation.small_keys import append_digits, look_up_codes

_MOST_CODES = 1 << 16
"""A table of more would not stay in the processor's caches beside what is aggregated."""

_LEAST_WORD = -(1 << 63)
_NO_ROWS: I64 = np.empty(0, np.int64)

Words = tuple[I64, Bool]
"""The words of rows, and whether each is not null; empty if all are not."""


class SmallKeys:
    """A cache of the numbers of keys that are made of integers in small ranges.

    The ranges are those of the words so far, and widened when others come. Once there are too many keys in them, the
    cache is of no use.

    Parameters
    ----------
    num_columns : int
    """

    def __init__(self, num_columns: int) -> None:
        self._ranges = [(0, 0)] * num_columns
        """The first word and the number of words of each column."""
        self._numbers: I32 = np.full(1, -1, np.int32)
        """The number of the key with each code, -1 if it is not known; empty once the cache is of no use."""

    def look_up(self, columns: Sequence[Words], num_rows: int) -> tuple[I32, I32, I64] | None:
        """Return the number of the key of each row, and which are not known; None if the cache is of no use.

        Parameters
        ----------
        columns : sequence of (int64[num_rows], bool[num_rows])
        num_rows : int

        Returns
        -------
        numbers : int32[num_rows]
        codes : int32[num_rows]
            For `learn`.
        unknown : int64[num_unknown]
            The rows of keys that are not known.
        """
        if not self._numbers.size:
            return None
        codes = self._encode(columns, num_rows)
        if codes is None and self._widen(columns):
            codes = self._encode(columns, num_rows)
        if codes is None:
            return None
        numbers = np.empty(num_rows, np.int32)
        is_known = look_up_codes(codes, self._numbers, numbers) == 0
        return numbers, codes, _NO_ROWS if is_known else np.flatnonzero(numbers < 0)

    def learn(self, codes: I32, numbers: I32) -> None:
        """Remember the numbers of keys.

        Parameters
        ----------
        codes, numbers : int32[num_rows]
        """
        self._numbers[codes] = numbers

    def _encode(self, columns: Sequence[Words], num_rows: int) -> I32 | None:
        """Return the code of each row; None if a word is outside of the ranges."""
        codes = np.zeros(num_rows, np.int32)
        for (words, valid), (base, span) in zip(columns, self._ranges, strict=True):
            if append_digits(frozen(words), valid, base, span, codes):
                return None
        return codes

    def _widen(self, columns: Sequence[Words]) -> bool:
        """Widen the ranges and forget all numbers; return whether the cache is of use still."""
        self._ranges = [_widened(*known, *words) for known, words in zip(self._ranges, columns, strict=True)]
        num_codes = math.prod(span + 1 for _, span in self._ranges)
        is_of_use = num_codes <= _MOST_CODES
        self._numbers = np.full(num_codes if is_of_use else 0, -1, np.int32)
        return is_of_use


def _widened(base: int, span: int, words: I64, valid: Bool) -> tuple[int, int]:
    """Return a range that has more words; if it grows at all, it doubles, so that it does not grow often."""
    present = words[valid] if valid.size else words
    if not present.size:
        return base, span
    least, most = int(present.min()), int(present.max())
    if not span:
        return least, most - least + 1
    first, last = min(least, base), max(most, base + span - 1)
    grown = last - first + 1
    if grown == span:
        return base, span
    room = max(2 * span - grown, 0)
    return (max(first - room, _LEAST_WORD) if least < base else first), grown + room
