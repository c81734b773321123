"""Many constant strings or binaries as a set, made once for all batches in which values are looked up."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.expressions.values.integer_set import empty_filter, made_once
from lance_format.kernels.columns.text_hashes import SLACK, find_texts, mark_text_hashes, number_texts
from lance_format.kernels.jit import read_only
from lance_format.lazy_properties import cached_property
from lance_format.list_items import offsets_of
from lance_format.masks import flags_of, is_text

_MIN_CONSTANTS = 64
"""Number of constants from which a set pays off: for fewer, Arrow hashes values faster."""


def text_parts(array: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes of strings or binaries, with `SLACK` bytes after them, and their offsets."""
    data = array.buffers()[2]
    offsets = offsets_of(array).astype(np.int64)
    found = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    if found.size < offsets[-1] + SLACK:
        kept = found[offsets[0] : offsets[-1]]
        found = np.concatenate([kept, np.zeros(SLACK, np.uint8)])
        offsets -= offsets[0]
    return read_only(found), read_only(offsets)


class TextSet:
    """Distinct byte strings, numbered from 0 by their first occurrence.

    Parameters
    ----------
    texts : pa.Array
        Without nulls.

    Attributes
    ----------
    count : int
        Number of distinct byte strings.
    """

    def __init__(self, texts: pa.Array) -> None:
        self._texts = texts
        data, offsets = text_parts(texts)
        size = len(texts)
        slots = np.full(1 << (2 * size).bit_length(), -1, np.int32)
        hashes, ends = np.empty(size, np.uint64), np.zeros(size + 1, np.int64)
        arena = np.empty(int(offsets[-1] - offsets[0]) + SLACK, np.uint8)
        no_nulls = read_only(np.empty(0, np.bool_))
        self.count = number_texts(data, offsets, no_nulls, slots, hashes, ends, arena, 0, np.empty(size, np.int64))
        shift, bits = empty_filter(self.count)
        mark_text_hashes(hashes[: self.count], shift, bits)
        self._table = slots, hashes, ends, arena, shift, bits

    @staticmethod
    def of(constants: pa.Array) -> TextSet | None:
        """Return the set of some constants; None if they are few, null or no byte strings."""
        if len(constants) < _MIN_CONSTANTS or constants.null_count or not is_text(constants.type):
            return None
        return made_once(TextSet, constants)

    def find(self, values: pa.Array) -> npt.NDArray[np.int64]:
        """Return the numbers of values, -1 for other values, and any number for null."""
        found = np.empty(len(values), np.int64)
        data, offsets = text_parts(values)
        find_texts(data, offsets, *self._table, found)
        return found

    def among(self, lower: pa.Array, upper: pa.Array) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return which ranges of values, both ends included, may hold a constant, and which may hold another value.

        Parameters
        ----------
        lower, upper : pa.Array
            Of the type of the constants; null for no bound.
        """
        ordered, least = self._ordered, pc.fill_null(lower, pa.scalar(b"", pa.binary()).cast(lower.type))
        low, high = np.zeros(len(lower), np.int64), np.full(len(lower), len(ordered))
        while (low < high).any():  # Each range becomes half as long; those that are found stay.
            middle = np.minimum((low + high) // 2, len(ordered) - 1)
            is_less = flags_of(pc.less(ordered.take(pa.array(middle)), least))
            low, high = (
                np.where((low < high) & is_less, middle + 1, low),
                np.where(is_less, high, np.minimum(middle, high)),
            )
        is_there = low < len(ordered)
        found = ordered.take(pa.array(np.minimum(low, len(ordered) - 1)))
        may_be_in = is_there & flags_of(pc.fill_null(pc.less_equal(found, upper), True))
        is_one = is_there & flags_of(pc.fill_null(pc.and_(pc.equal(found, lower), pc.equal(found, upper)), False))
        return may_be_in, ~is_one

    @cached_property
    def _ordered(self) -> pa.Array:
        """The distinct constants, ascending."""
        distinct = pc.unique(self._texts)
        return distinct.take(pc.array_sort_indices(distinct))

    def contains(self, values: pa.Array) -> pa.BooleanArray:
        """Return which values of the type of the constants are among them; null is not."""
        among = pa.array(self.find(values) >= 0)
        return pc.and_(among, values.is_valid()) if values.null_count else among
