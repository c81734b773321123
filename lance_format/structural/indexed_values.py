"""Values of mini-block pages that are indices into the dictionaries of their pages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_format.compression.codec import Decompressor
from lance_format.compression.rle import WORD_BITS, RleDecompressor
from lance_format.data_block import (
    BufferSlices,
    Bytes,
    Counts,
    DataBlock,
    DictionaryBlock,
    FixedWidthBlock,
    ValueBlock,
    VariableWidthBlock,
    join_byte_strings,
    starts_of,
)
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.kernels.compression.dictionary import number_together
from lance_format.lazy_dataclasses import dataclass


def decompress_items(items: Decompressor, data: Bytes, count: int) -> DataBlock:
    """Return the items of a dictionary.

    Parameters
    ----------
    items : Decompressor
    data : uint8[…]
        The buffer of the page.
    count : int
        Number of items according to the page.

    Raises
    ------
    CorruptFileError
        If there are more or fewer, or something else.
    """
    found = items.decompress([BufferSlices.whole(data)], np.array([count], np.int64))
    if not isinstance(found, FixedWidthBlock | VariableWidthBlock):
        raise CorruptFileError("the items of a dictionary are neither numbers nor byte strings")
    if found.num_values != count:
        raise CorruptFileError(f"the dictionary has {found.num_values} items")
    return found


def index_into(dictionary: DataBlock, indices: ValueBlock) -> DictionaryBlock:
    """Join indices and the items of a dictionary.

    Raises
    ------
    CorruptFileError
        If an index has no item.
    """
    block = DictionaryBlock(dictionary, _of_words(indices))
    highest = int(block.words.max(initial=0))
    if block.num_values and highest >= dictionary.num_values:
        raise CorruptFileError(f"dictionary index {highest}; there are {dictionary.num_values} items")
    return block


@dataclass(frozen=True, slots=True)
class ItemRunDecompressor:
    """Reads mini-block chunks of runs of indices as runs of items, so that an item is looked up once a run.

    Parameters
    ----------
    indices : RleDecompressor
    items : FixedWidthBlock
        Items of 8, 16, 32 or 64 bits.
    """

    indices: RleDecompressor
    items: FixedWidthBlock

    @property
    def num_buffers(self) -> int:
        """Number of buffers of a chunk."""
        return self.indices.num_buffers

    def decompress(self, buffers: Sequence[BufferSlices], num_values: Counts) -> FixedWidthBlock:
        """Decompress chunks; see `Decompressor`."""
        found = index_into(self.items, self.indices.values_of_runs(buffers)).look_up()
        lengths = buffers[1]
        sizes = lengths.sizes * self.items.bytes_per_value
        values = BufferSlices(found.data, starts_of(sizes), sizes)
        return RleDecompressor(self.items.bits_per_value).decompress([values, lengths], num_values)


def reading_items(indices: Decompressor, dictionary: DataBlock) -> ItemRunDecompressor | None:
    """Return what reads items instead of their indices, where that is faster than to look each index up."""
    if isinstance(indices, RleDecompressor) and isinstance(dictionary, FixedWidthBlock):
        return ItemRunDecompressor(indices, dictionary) if dictionary.bits_per_value in WORD_BITS else None
    return None


def index_into_several(
    dictionaries: Sequence[DataBlock], indices: ValueBlock, num_values: Sequence[int]
) -> DictionaryBlock:
    """Join indices and the items of the dictionaries of several pages.

    Parameters
    ----------
    dictionaries : sequence of DataBlock
        That of each page, detached.
    indices : ValueBlock
        Those of all pages, one after the other.
    num_values : sequence of int
        Number of indices of each page.

    Raises
    ------
    CorruptFileError
        If an index has no item in the dictionary of its page.
    NotSupportedError
        If items are single bits.
    """
    if len(dictionaries) == 1:
        return index_into(dictionaries[0], indices)
    block = DictionaryBlock(_join(dictionaries), _of_words(indices))
    sizes = np.array([items.num_values for items in dictionaries], np.int64)
    words = np.empty(block.num_values, np.uint32 if sizes.sum() <= 2**32 else np.uint64)
    if number_together(block.words, np.array(num_values, np.int64), sizes, words) >= 0:
        raise CorruptFileError("a dictionary index of a page has no item")
    numbered = FixedWidthBlock(words.view(np.uint8), 8 * words.itemsize, words.size)
    return DictionaryBlock(block.items, numbered, is_joined=True)


def _of_words(indices: ValueBlock) -> FixedWidthBlock:
    if not isinstance(indices, FixedWidthBlock) or indices.bits_per_value not in (8, 16, 32, 64):
        raise CorruptFileError("the indices of a dictionary are not integers")
    return indices


def _join(dictionaries: Sequence[DataBlock]) -> DataBlock:
    """Return the items of dictionaries, one after the other."""
    strings = [items for items in dictionaries if isinstance(items, VariableWidthBlock)]
    if strings:
        return join_byte_strings(strings)
    bits = {items.bits_per_value for items in dictionaries if isinstance(items, FixedWidthBlock)}
    if bits == {1}:
        raise NotSupportedError("the items of a dictionary are single bits")
    data = np.concatenate([items.data[: items.size_bytes] for items in dictionaries])
    return FixedWidthBlock(data, bits.pop(), sum(items.num_values for items in dictionaries))
