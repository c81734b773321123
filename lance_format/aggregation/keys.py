"""Keys of groups: rows with equal keys get one number.

A key is a row of 64-bit words: those of its columns, and words with a bit per column that is null. Strings become their
numbers in a table of distinct strings. -0.0 equals 0.0, and NaN equals NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from lance_format.aggregation.small_keys import SmallKeys
from lance_format.aggregation.texts import TextKeys, TextTable
from lance_format.aggregation.word_table import WordTable
from lance_format.aggregation.words import (
    I32,
    I64,
    Bool,
    float_bits,
    from_halves,
    from_words,
    halves,
    is_word,
    to_words,
    validity,
)
from lance_format.masks import is_text
from lance_format.memory import fixed_width

_NULLS_PER_WORD = 62


class _Column(Protocol):
    """A column of keys, as words."""

    width: int
    """Number of words per key."""

    def encode(self, array: pa.Array, valid: Bool) -> list[I64]: ...

    def decode(self, words: I64, valid: Bool) -> pa.Array: ...

    def clear(self) -> None: ...

    @property
    def size_bytes(self) -> int: ...


class _Plain:
    """A column that needs no state."""

    width = 1
    size_bytes = 0

    def __init__(self, arrow_type: pa.DataType) -> None:
        self.type = arrow_type

    def clear(self) -> None:
        pass


class _Words(_Plain):
    def encode(self, array: pa.Array, valid: Bool) -> list[I64]:  # noqa: ARG002
        return [to_words(array)]

    def decode(self, words: I64, valid: Bool) -> pa.Array:
        return from_words(words[:, 0], valid, self.type)


class _Floats(_Plain):
    def encode(self, array: pa.Array, valid: Bool) -> list[I64]:  # noqa: ARG002
        return [float_bits(fixed_width(array, f"f{self.type.bit_width // 8}") + 0.0)]  # -0.0 becomes 0.0

    def decode(self, words: I64, valid: Bool) -> pa.Array:
        size = self.type.bit_width // 8
        values = words[:, 0].astype(f"i{size}").view(f"f{size}")
        return pa.array(values, self.type, mask=None if valid.all() else ~valid)


class _WideDecimals(_Plain):
    width = 2

    def encode(self, array: pa.Array, valid: Bool) -> list[I64]:  # noqa: ARG002
        return list(halves(array))

    def decode(self, words: I64, valid: Bool) -> pa.Array:
        low = np.ascontiguousarray(words[:, 0])
        return from_halves(low.view(np.uint64), words[:, 1] - (low < 0), valid, self.type)


_COLUMNS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], _Column]], ...] = (
    (is_word, _Words),
    (lambda arrow_type: pa.types.is_float32(arrow_type) or pa.types.is_float64(arrow_type), _Floats),
    (pa.types.is_decimal128, _WideDecimals),
    (is_text, TextTable),
)


def is_key(arrow_type: pa.DataType) -> bool:
    """Return whether rows can be grouped by values of a type."""
    return any(is_kind(arrow_type) for is_kind, _ in _COLUMNS)


class KeyTable(Protocol):
    """Numbers of distinct keys, in about the order in which they are found."""

    @property
    def count(self) -> int:
        """The number of known keys."""

    @property
    def size_bytes(self) -> int:
        """Bytes that the known keys take."""

    def clear(self) -> None:
        """Forget all keys."""

    def number(self, arrays: Sequence[pa.Array], num_rows: int) -> I32:
        """Return the number of the key of each row.

        Parameters
        ----------
        arrays : sequence of pa.Array
            The columns of the keys.
        num_rows : int
        """

    def keys(self) -> list[pa.Array]:
        """Return the columns of the known keys, by number."""


def make_key_table(types: Sequence[pa.DataType]) -> KeyTable:
    """Return an empty table of keys of columns with types for which `is_key` is true."""
    if not types:
        return _OneKey()
    return TextKeys(types[0]) if len(types) == 1 and is_text(types[0]) else _WordKeys(types)


class _OneKey:
    """The key of all rows where there is no column of keys."""

    count = 0
    size_bytes = 0

    def clear(self) -> None:
        self.count = 0

    def number(self, arrays: Sequence[pa.Array], num_rows: int) -> I32:  # noqa: ARG002
        self.count = 1
        return np.zeros(num_rows, np.int32)

    def keys(self) -> list[pa.Array]:
        return []


class _WordKeys:
    """Keys of any columns, as words."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._columns = [next(make(t) for is_kind, make in _COLUMNS if is_kind(t)) for t in types]
        self._null_words = -(-len(types) // _NULLS_PER_WORD)
        self._width = sum(column.width for column in self._columns) + self._null_words
        self._table = WordTable(self._width)
        self._small = SmallKeys(self._width - self._null_words)

    def clear(self) -> None:
        self._table.clear()
        self._small = SmallKeys(self._width - self._null_words)
        for column in self._columns:
            column.clear()

    @property
    def count(self) -> int:
        return self._table.count

    @property
    def size_bytes(self) -> int:
        return self.count * (8 * self._width + 12) + sum(column.size_bytes for column in self._columns)

    def number(self, arrays: Sequence[pa.Array], num_rows: int) -> I32:
        columns = []
        for column, array in zip(self._columns, arrays, strict=True):
            valid = validity(array)
            columns.append((column.encode(array, valid), valid))
        found = self._small.look_up([(part, valid) for parts, valid in columns for part in parts], num_rows)
        if found is None:
            return self._table.number(self._join(columns, num_rows))
        numbers, codes, unknown = found
        if unknown.size:
            rest = [
                ([part[unknown] for part in parts], valid[unknown] if valid.size else valid) for parts, valid in columns
            ]
            numbers[unknown] = self._table.number(self._join(rest, unknown.size))
            self._small.learn(codes[unknown], numbers[unknown])
        return numbers

    def keys(self) -> list[pa.Array]:
        words, found, start = self._table.keys, [], 0
        nulls = words[:, self._width - self._null_words :]
        for index, column in enumerate(self._columns):
            valid = nulls[:, index // _NULLS_PER_WORD] >> (index % _NULLS_PER_WORD) & 1 == 0
            found.append(column.decode(words[:, start : start + column.width], valid))
            start += column.width
        return found

    def _join(self, columns: Sequence[tuple[Sequence[I64], Bool]], num_rows: int) -> I64:
        """Return the keys of rows: int64[num_rows, width]."""
        words = np.empty((num_rows, self._width), np.int64)
        nulls = words[:, self._width - self._null_words :]
        nulls[:] = 0
        start = 0
        for index, (parts, valid) in enumerate(columns):
            stop = start + len(parts)
            for position, values in enumerate(parts, start):
                words[:, position] = values
            if valid.size:
                words[~valid, start:stop] = 0
                nulls[~valid, index // _NULLS_PER_WORD] |= 1 << (index % _NULLS_PER_WORD)
            start = stop
        return words
