"""Dictionary: one key per row, and each item stored once.

In dictionary columns a key is the number of an item, and null rows have the key of a null item. In other columns, which
have few distinct values, key 0 is null and key `k` is item `k - 1`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.array_encodings import flat, nullable
from lance_format.array_encodings.array import (
    ArrayReader,
    DecodedArray,
    Planned,
    both_valid,
    pack_validity,
    side_by_side,
    unpack_validity,
    words_of,
)
from lance_format.array_encodings.buffers import ArrayPage
from lance_format.array_encodings.page_builder import PageBuilder
from lance_format.array_encodings.row_ranges import RowRanges
from lance_format.data_block import (
    DataBlock,
    DictionaryBlock,
    FixedWidthBlock,
    VariableWidthBlock,
    detached,
    memory_bytes,
)
from lance_format.errors import CorruptFileError
from lance_format.kernels.compression.dictionary import gather_words
from lance_format.lazy_dataclasses import dataclass
from lance_format.memory import empty
from lance_format.proto import array_encodings_pb2

_PART = "items"


@dataclass(frozen=True, slots=True)
class _Items:
    """The valid items, and the meaning of each key.

    Parameters
    ----------
    values : DataBlock or None
        None if there are none.
    numbers : unsigned words[num_keys]
        The item of each key; 0 for null.
    valid : bool[num_keys] or None
        Whether a key is not null; None if none is null.
    num_keys : int
    """

    values: DataBlock | None
    numbers: npt.NDArray[Any]
    valid: npt.NDArray[np.bool_] | None
    num_keys: int

    @classmethod
    def of(cls, items: DecodedArray, *, zero_is_null: bool) -> _Items:
        """Return a copy of the items that have been read.

        Raises
        ------
        CorruptFileError
            If they are nested.
        """
        num_keys = items.num_rows + zero_is_null
        if items.values is None:
            return cls(None, np.empty(0, np.uint8), None, num_keys)
        if not isinstance(items.values, FixedWidthBlock | VariableWidthBlock):
            raise CorruptFileError("the items of a dictionary are not plain values")
        valid = np.ones(items.num_rows, np.bool_) if items.validity is None else unpack_validity(items.validity)
        if not valid.any():
            return cls(None, np.empty(0, np.uint8), None, num_keys)
        values = detached(items.values.take(np.flatnonzero(valid)) if items.validity is not None else items.values)
        if zero_is_null:
            valid = np.concatenate([np.zeros(1, np.bool_), valid])
        dtype = next(word for word in (np.uint8, np.uint16, np.uint32) if num_keys - 1 <= np.iinfo(word).max)
        numbers = np.where(valid, np.cumsum(valid) - 1, 0).astype(dtype)
        return cls(values, numbers, None if valid.all() else valid, num_keys)

    @property
    def size_bytes(self) -> int:
        """Size in memory."""
        size = self.numbers.nbytes + (0 if self.valid is None else self.valid.nbytes)
        return size + (0 if self.values is None else memory_bytes(self.values))


class DictionaryReader:
    """Reads values by their keys.

    Parameters
    ----------
    keys, items : ArrayReader
    num_items : int
    page : ArrayPage
        Its cache keeps the items between reads.
    zero_is_null : bool
        Whether key 0 is null, and others are one more than the number of their item.
    """

    def __init__(
        self, keys: ArrayReader, items: ArrayReader, num_items: int, page: ArrayPage, *, zero_is_null: bool
    ) -> None:
        self._keys = keys
        self._items = items
        self._num_items = num_items
        self._page = page
        self._zero_is_null = zero_is_null

    def plan(self, ranges: RowRanges) -> Planned[DecodedArray]:
        """Plan the reading of some rows; see `ArrayReader`. All items are read and cached."""
        found = self._page.kept(_PART)
        plans: list[Planned[DecodedArray]] = [self._keys.plan(ranges)]
        if not isinstance(found, _Items) and self._num_items:
            plans.append(self._items.plan(RowRanges.single(0, self._num_items)))
        keys, *read = yield from side_by_side(plans)
        if isinstance(found, _Items):
            return _look_up(keys, found)
        items = _Items.of(read[0] if read else DecodedArray(None, None, 0), zero_is_null=self._zero_is_null)
        self._page.keep(_PART, items, items.size_bytes)
        return _look_up(keys, items)


def _look_up(keys: DecodedArray, items: _Items) -> DecodedArray:
    if keys.values is None:
        return keys
    words = words_of(keys, "keys of a dictionary")
    if keys.validity is not None:
        words = np.where(unpack_validity(keys.validity), words, words.dtype.type(0))
    highest = int(words.max(initial=0))
    if highest >= items.num_keys:
        raise CorruptFileError(f"a dictionary key is {highest}; there are {items.num_keys} keys")
    if items.values is None:
        return DecodedArray(None, None, keys.num_rows)
    validity = keys.validity
    if items.valid is not None:
        validity = both_valid(pack_validity(items.valid[words]), validity)
    numbers = empty(words.size, items.numbers.dtype)
    gather_words(items.numbers, words, numbers)
    block = FixedWidthBlock(numbers.view(np.uint8), numbers.itemsize * 8, numbers.size)
    return DecodedArray(DictionaryBlock(items.values, block), validity, keys.num_rows)


def encode(
    keys: FixedWidthBlock,
    num_items: int,
    encode_items: Callable[[PageBuilder], array_encodings_pb2.ArrayEncoding],
    page: PageBuilder,
) -> array_encodings_pb2.ArrayEncoding:
    """Encode keys, and then items.

    Parameters
    ----------
    keys : FixedWidthBlock
    num_items : int
    encode_items : callable
    page : PageBuilder
    """
    indices = nullable.no_nulls(flat.encode(keys, page))
    items = encode_items(page)
    found = array_encodings_pb2.Dictionary(indices=indices, items=items, num_dictionary_items=num_items)
    return array_encodings_pb2.ArrayEncoding(dictionary=found)
