"""Numbers of keys that have few possible values: small integers, dates, flags, texts of which there are few."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lance_format.aggregation.words import I32, I64, Bool, frozen
from lance_format.kernels.small_keys import append_digits, look_up_codes

_MOST_CODES = 1 << 16
"""A table of more would not stay in the processor's caches beside what is aggregated."""

_LEAST_WORD = -(1 << 63)

Words = tuple[I64, Bool]
"""The words of rows, and whether each is not null; empty if all are not."""


class SmallKeys:
    """A cache of the numbers of keys that are made of integers in small ranges.

    The ranges are those of the words so far, and widened when others come. Once there are too many keys in them, the
    cache is of no use.
    """

    def __init__(self) -> None:
        self.is_of_use = True
        self._ranges: list[tuple[int, int]] = []
        """The first word and the number of words of each column."""
        self._numbers: I32 = np.empty(0, np.int32)

    def look_up(self, columns: Sequence[Words], num_rows: int) -> tuple[I32, I32] | None:
        """Return the number of the key of each row, -1 if it is not known, and a code for `learn`.

        Parameters
        ----------
        columns : sequence of (int64[num_rows], bool[num_rows])
        num_rows : int

        Returns
        -------
        (int32[num_rows], int32[num_rows]) or None
            None if the cache is of no use.
        """
        if not self.is_of_use:
            return None
        codes = self._encode(columns, num_rows) if self._ranges else None
        if codes is None:
            self._widen(columns)
            codes = self._encode(columns, num_rows) if self.is_of_use else None
        if codes is None:
            return None
        out = np.empty(num_rows, np.int32)
        look_up_codes(codes, self._numbers, out)
        return out, codes

    def learn(self, codes: I32, numbers: I32) -> None:
        """Remember the numbers of keys.

        Parameters
        ----------
        codes, numbers : int32[num_rows]
        """
        self._numbers[codes] = numbers

    def _encode(self, columns: Sequence[Words], num_rows: int) -> I32 | None:
        codes = np.zeros(num_rows, np.int32)
        for (words, valid), (base, span) in zip(columns, self._ranges, strict=True):
            if append_digits(frozen(words), valid, base, span, codes):
                return None
        return codes

    def _widen(self, columns: Sequence[Words]) -> None:
        known = self._ranges or [(0, 0)] * len(columns)
        self._ranges = [_widened(*column, *words) for column, words in zip(known, columns, strict=True)]
        num_codes = math.prod(span + 1 for _, span in self._ranges)
        self.is_of_use = num_codes <= _MOST_CODES
        self._numbers = np.full(num_codes if self.is_of_use else 0, -1, np.int32)


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
