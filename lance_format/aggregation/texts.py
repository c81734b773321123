"""Strings and binaries as keys of groups: equal ones get one number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.aggregation.word_table import FEWEST_SLOTS, empty_slots, grown
from lance_format.aggregation.words import I32, I64, U64, Bool, frozen, validity
from lance_format.data_block import MAX_INT32
from lance_format.expressions.values.text_set import text_parts
from lance_format.kernels.columns.text_hashes import SLACK, number_texts, place_hashes
from lance_format.masks import filled

_NO_NULLS = frozen(np.empty(0, np.bool_))


class TextTable:
    """A column of keys of several, as words: the numbers of the strings, in the order of their first rows.

    Parameters
    ----------
    arrow_type : pa.DataType
        A type for which `is_text` is true.
    """

    width = 1

    def __init__(self, arrow_type: pa.DataType) -> None:
        self.type = arrow_type
        self.clear()

    def clear(self) -> None:
        """Forget all strings."""
        self.count = 0
        self._slots = np.full(FEWEST_SLOTS, -1, np.int32)
        self._hashes: U64 = np.empty(FEWEST_SLOTS // 2, np.uint64)
        self._ends: I64 = np.zeros(FEWEST_SLOTS // 2 + 1, np.int64)
        self._arena: npt.NDArray[np.uint8] = np.empty(1 << 14, np.uint8)
        self._items: pa.Array | None = None
        self._numbers: I64 = np.empty(0, np.int64)

    @property
    def size_bytes(self) -> int:
        """Bytes that the known strings take."""
        return int(self._ends[self.count]) + 24 * self.count

    def encode(self, array: pa.Array, valid: Bool) -> list[I64]:
        """Return the number of the string of each row, which may be one of a dictionary; any for nulls."""
        return [self._number_items(array) if isinstance(array, pa.DictionaryArray) else self._number(array, valid)]

    def _number_items(self, array: pa.DictionaryArray) -> I64:
        """Number strings by their keys; those of a dictionary are looked up once, and only if a row has them."""
        items = array.dictionary
        if self._items is None or not _are_same(items, self._items):
            self._items, self._numbers = items, np.full(max(len(items), 1), -1)
        keys = filled(array.indices, 0).to_numpy()
        numbers: I64 = self._numbers[keys]
        unknown = numbers < 0
        if array.indices.null_count:
            numbers = np.maximum(numbers, 0)
            unknown &= validity(array)
        if unknown.any():
            is_new = np.zeros(len(items), np.bool_)
            is_new[keys[unknown]] = True
            new = np.flatnonzero(is_new)
            self._numbers[new] = self._number(items.take(pa.array(new)), _NO_NULLS)
            numbers = np.maximum(self._numbers[keys], 0)
        return numbers

    def _number(self, array: pa.Array, valid: Bool) -> I64:
        data, offsets = text_parts(array)
        self._reserve(len(array), int(offsets[-1] - offsets[0]))
        out = np.empty(len(array), np.int64)
        self.count = number_texts(
            data, offsets, valid, self._slots, self._hashes, self._ends, self._arena, self.count, out
        )
        return out

    def decode(self, words: I64, valid: Bool) -> pa.Array:
        """Return the strings that have numbers."""
        return self.known().take(pa.array(words[:, 0], mask=None if valid.all() else ~valid))

    def known(self) -> pa.Array:
        """Return all strings, by number. They are not copied, and change when the table does."""
        ends = self._ends[: self.count + 1]
        is_long = pa.types.is_large_string(self.type) or pa.types.is_large_binary(self.type) or ends[-1] > MAX_INT32
        stored = pa.large_binary() if is_long else pa.binary()
        offsets = pa.py_buffer(ends if is_long else ends.astype(np.int32))
        known = pa.Array.from_buffers(stored, self.count, [None, offsets, pa.py_buffer(self._arena)])
        if pa.types.is_string(self.type) or pa.types.is_large_string(self.type):
            known = known.view(pa.large_string() if is_long else pa.string())
        return known.cast(self.type)

    def _reserve(self, num_values: int, num_bytes: int) -> None:
        """Make room for one new string per value."""
        needed = self.count + num_values
        if needed > self._hashes.size:
            self._hashes = grown(self._hashes, self.count, needed)
            self._ends = grown(self._ends, self.count + 1, needed + 1)
        if 2 * needed >= self._slots.size:
            self._slots = empty_slots(needed)
            place_hashes(self._hashes, self.count, self._slots)
        used = int(self._ends[self.count])
        if used + num_bytes + SLACK > self._arena.size:
            self._arena = grown(self._arena, used, used + num_bytes + SLACK)


def _are_same(items: pa.Array, others: pa.Array) -> bool:
    """Return whether arrays are views of the same memory."""
    places = [
        (len(array), array.offset, [buffer and buffer.address for buffer in array.buffers()])
        for array in (items, others)
    ]
    return places[0] == places[1]


class TextKeys:
    """A `KeyTable` of one column of strings: their numbers in a table are those of the groups, but for that of null.

    Parameters
    ----------
    arrow_type : pa.DataType
        A type for which `is_text` is true.
    """

    def __init__(self, arrow_type: pa.DataType) -> None:
        self._texts = TextTable(arrow_type)
        self._null: int | None = None

    def clear(self) -> None:
        """See `KeyTable`."""
        self._texts.clear()
        self._null = None

    @property
    def count(self) -> int:
        """See `KeyTable`."""
        return self._texts.count + (self._null is not None)

    @property
    def size_bytes(self) -> int:
        """See `KeyTable`."""
        return self._texts.size_bytes

    def number(self, arrays: Sequence[pa.Array], num_rows: int) -> I32:  # noqa: ARG002
        """See `KeyTable`."""
        valid = validity(arrays[0])
        numbers = self._texts.encode(arrays[0], valid)[0].astype(np.int32)
        if self._null is not None:
            numbers += numbers >= self._null
        if valid.size and not valid.all():
            if self._null is None:
                self._null = self._texts.count
            numbers[~valid] = self._null
        return numbers

    def keys(self) -> list[pa.Array]:
        """See `KeyTable`."""
        known = self._texts.known()
        if self._null is None:
            return [known]
        return [pa.concat_arrays([known[: self._null], pa.nulls(1, known.type), known[self._null :]])]
