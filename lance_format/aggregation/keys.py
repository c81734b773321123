"""Keys of groups: rows with equal keys get one number.

A key is a row of 64-bit words: those of its columns, and words with a bit per column that is null. Strings become their
numbers in a table of distinct strings. -0.0 equals 0.0, and NaN equals NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.aggregation.words import (
    I64,
    U64,
    Bool,
    fixed_width,
    from_halves,
    from_words,
    halves,
    is_text,
    is_word,
    text_parts,
    to_words,
    validity,
)
from lance_format.kernels.grouping import SLACK, number_rows, number_texts, place_hashes, place_keys

I32 = npt.NDArray[np.int32]
_Item = TypeVar("_Item", bound=np.generic)

_FEWEST_SLOTS = 1 << 10
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
        size = self.type.bit_width // 8
        values = fixed_width(array, f"f{size}") + 0.0  # -0.0 becomes 0.0
        values[np.isnan(values)] = np.nan
        return [values.astype(f"f{size}").view(f"i{size}").astype(np.int64, copy=False)]

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


class _Texts:
    """Strings or binaries, numbered in a table that grows."""

    width = 1

    def __init__(self, arrow_type: pa.DataType) -> None:
        self.type = arrow_type
        self.clear()

    def clear(self) -> None:
        self._count = 0
        self._slots = np.full(_FEWEST_SLOTS, -1, np.int32)
        self._hashes: U64 = np.empty(_FEWEST_SLOTS // 2, np.uint64)
        self._ends: I64 = np.zeros(_FEWEST_SLOTS // 2 + 1, np.int64)
        self._arena: npt.NDArray[np.uint8] = np.empty(1 << 14, np.uint8)

    @property
    def size_bytes(self) -> int:
        return int(self._ends[self._count]) + 24 * self._count

    def encode(self, array: pa.Array, valid: Bool) -> list[I64]:
        data, offsets = text_parts(array)
        self._reserve(len(array), int(offsets[-1] - offsets[0]))
        out = np.empty(len(array), np.int64)
        self._count = number_texts(
            data, offsets, valid, self._slots, self._hashes, self._ends, self._arena, self._count, out
        )
        return [out]

    def decode(self, words: I64, valid: Bool) -> pa.Array:
        ends = self._ends[: self._count + 1]
        is_long = pa.types.is_large_string(self.type) or pa.types.is_large_binary(self.type) or ends[-1] >= 1 << 31
        stored = pa.large_binary() if is_long else pa.binary()
        offsets = pa.py_buffer(ends if is_long else ends.astype(np.int32))
        known = pa.Array.from_buffers(stored, self._count, [None, offsets, pa.py_buffer(self._arena)])
        found = known.take(pa.array(words[:, 0], mask=None if valid.all() else ~valid))
        if pa.types.is_string(self.type) or pa.types.is_large_string(self.type):
            found = found.view(pa.large_string() if is_long else pa.string())
        return found.cast(self.type)

    def _reserve(self, num_values: int, num_bytes: int) -> None:
        """Make room for one new string per value."""
        needed = self._count + num_values
        if needed > self._hashes.size:
            self._hashes = _grown(self._hashes, self._count, needed)
            self._ends = _grown(self._ends, self._count + 1, needed + 1)
        if 2 * needed >= self._slots.size:
            self._slots = _empty_slots(needed)
            place_hashes(self._hashes, self._count, self._slots)
        used = int(self._ends[self._count])
        if used + num_bytes + SLACK > self._arena.size:
            self._arena = _grown(self._arena, used, used + num_bytes + SLACK)


_COLUMNS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], _Column]], ...] = (
    (is_word, _Words),
    (lambda arrow_type: pa.types.is_float32(arrow_type) or pa.types.is_float64(arrow_type), _Floats),
    (pa.types.is_decimal128, _WideDecimals),
    (is_text, _Texts),
)


def is_key(arrow_type: pa.DataType) -> bool:
    """Return whether rows can be grouped by values of a type."""
    return any(is_kind(arrow_type) for is_kind, _ in _COLUMNS)


class KeyTable:
    """Numbers of the distinct keys of some columns, in the order of their first rows.

    Parameters
    ----------
    types : sequence of pa.DataType
        Types for which `is_key` is true.
    """

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._columns = [next(make(t) for is_kind, make in _COLUMNS if is_kind(t)) for t in types]
        self._null_words = -(-len(types) // _NULLS_PER_WORD)
        self._width = sum(column.width for column in self._columns) + self._null_words
        self.clear()

    def clear(self) -> None:
        """Forget all keys."""
        self.count = 0
        self._slots = np.full(_FEWEST_SLOTS, -1, np.int32)
        self._keys: I64 = np.empty((_FEWEST_SLOTS // 2, self._width), np.int64)
        for column in self._columns:
            column.clear()

    @property
    def size_bytes(self) -> int:
        """Bytes that the known keys take."""
        return self.count * (8 * self._width + 12) + sum(column.size_bytes for column in self._columns)

    def number(self, arrays: Sequence[pa.Array], num_rows: int) -> I32:
        """Return the number of the key of each row.

        Parameters
        ----------
        arrays : sequence of pa.Array
            The columns of the keys.
        num_rows : int
        """
        out = np.empty(num_rows, np.int32)
        if not self._columns:
            self.count = 1
            out[:] = 0
            return out
        words = self._encode(arrays, num_rows)
        needed = self.count + num_rows
        if needed > self._keys.shape[0]:
            self._keys = _grown(self._keys, self.count, needed)
        if 2 * needed >= self._slots.size:
            self._slots = _empty_slots(needed)
            place_keys(self._keys, self.count, self._slots)
        self.count = number_rows(words, self._slots, self._keys, self.count, out)
        return out

    def keys(self) -> list[pa.Array]:
        """Return the columns of the known keys, by number."""
        words, found, start = self._keys[: self.count], [], 0
        nulls = words[:, self._width - self._null_words :]
        for index, column in enumerate(self._columns):
            valid = nulls[:, index // _NULLS_PER_WORD] >> (index % _NULLS_PER_WORD) & 1 == 0
            found.append(column.decode(words[:, start : start + column.width], valid))
            start += column.width
        return found

    def _encode(self, arrays: Sequence[pa.Array], num_rows: int) -> I64:
        words = np.empty((num_rows, self._width), np.int64)
        nulls = words[:, self._width - self._null_words :]
        nulls[:] = 0
        start = 0
        for index, (column, array) in enumerate(zip(self._columns, arrays, strict=True)):
            valid = validity(array)
            for part, values in enumerate(column.encode(array, valid), start):
                words[:, part] = values
            if valid.size:
                words[~valid, start : start + column.width] = 0
                nulls[~valid, index // _NULLS_PER_WORD] |= 1 << (index % _NULLS_PER_WORD)
            start += column.width
        return words


def _grown(values: npt.NDArray[_Item], used: int, needed: int) -> npt.NDArray[_Item]:
    """Return a larger array with the used items."""
    larger = np.empty((max(needed, 2 * values.shape[0]), *values.shape[1:]), values.dtype)
    larger[:used] = values[:used]
    return larger


def _empty_slots(num_keys: int) -> I32:
    return np.full(1 << (4 * num_keys).bit_length(), -1, np.int32)
