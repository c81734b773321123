"""Dictionaries: every distinct value once, and for each value of the page the index of its item.

Encoding strategy document, "Dictionary Encoding". The layout of a mini-block page has a separate block for the items,
which readers cache. The values of the page are the indices, unsigned integers of 8, 16 or 32 bits:

    │ items, compressed as a block │        │ index of value 0 │ index of value 1 │ …

Whether a dictionary pays is estimated from a sample first, so that pages of distinct values cost little.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lance_format.compression.samples import scatter, spread
from lance_format.data_block import DataBlock, FixedWidthBlock, Offsets, VariableWidthBlock
from lance_format.kernels.compression import dictionary as kernels
from lance_format.kernels.jit import read_only
from lance_format.lazy_dataclasses import dataclass
from lance_format.memory import empty

MIN_VALUES = 100
"""Minimum number of values that is worth a dictionary."""

Slots: TypeAlias = npt.NDArray[np.int32]
Indices: TypeAlias = npt.NDArray[Any]

_PAIR_BITS = 128

_SAMPLED_VALUES = 4096
_SAMPLED_BYTES = 1024 * 1024
_ESTIMATION_STEPS = 30


@dataclass(frozen=True, slots=True)
class IndexedPage:
    """A block taken apart into its distinct values and their numbers."""

    items: DataBlock
    indices: FixedWidthBlock


def estimate_items(block: DataBlock, definition: npt.NDArray[np.uint16] | None = None) -> int:
    """Estimate from a sample how many distinct values a block has.

    Of n values drawn from D equally frequent ones, D * (1 - exp(-n / D)) are distinct on average. The result is the D
    for which this equals the number found.

    Parameters
    ----------
    block : DataBlock
    definition : uint16[num_values], optional
        0 for the values that count.
    """
    affordable = _SAMPLED_BYTES * block.num_values // max(block.size_bytes, 1)
    size = min(block.num_values, max(min(affordable, _SAMPLED_VALUES), MIN_VALUES))
    chosen = spread(size, size) if size == block.num_values else scatter(block.num_values, size)
    total = block.num_values
    if definition is not None:
        chosen = chosen[definition[chosen] == 0]
        total = int(np.count_nonzero(definition == 0))
    size = chosen.size
    sample = split(block.take(chosen), size)
    distinct = size if sample is None else sample.items.num_values
    if distinct == size or size == total:
        return total if distinct == size else distinct
    low, high = float(distinct), float(total)
    for _ in range(_ESTIMATION_STEPS):
        middle = (low + high) / 2
        if middle * -math.expm1(-size / middle) < distinct:
            low = middle
        else:
            high = middle
    return int(high)


def split(block: DataBlock, max_items: int) -> IndexedPage | None:
    """Take a block apart, or return None if it has more than `max_items` distinct values."""
    slots = empty(1 << (2 * max_items + 1).bit_length(), np.int32)
    slots.fill(-1)
    indices = empty(block.num_values, "<u2" if max_items <= 2**16 else "<u4")
    if isinstance(block, VariableWidthBlock):
        items = _index_bytes(block, max_items, slots, indices)
    elif block.bits_per_value in (8, 16, 32, 64):
        words = block.words
        distinct = empty(max_items, words.dtype)
        count = kernels.index_words(words, max_items, slots, distinct, indices)
        items = FixedWidthBlock(distinct[:count].view(np.uint8), block.bits_per_value, count) if count >= 0 else None
    elif block.bits_per_value == _PAIR_BITS:
        items = _index_pairs(block, max_items, slots, indices)
    else:
        items = _index_bytes(block, max_items, slots, indices)
    if items is None:
        return None
    width = 1 if items.num_values <= 2**8 else 2 if items.num_values <= 2**16 else 4
    narrow = indices.astype(f"<u{width}", copy=False).view(np.uint8)
    return IndexedPage(items, FixedWidthBlock(narrow, width * 8, block.num_values))


def _index_pairs(block: FixedWidthBlock, max_items: int, slots: Slots, indices: Indices) -> DataBlock | None:
    """Number distinct values of two words; return them, None if there are more."""
    distinct = empty(max_items * 2, np.uint64)
    words = block.data[: block.size_bytes].view("<u8")
    count = kernels.index_pairs(read_only(words), max_items, slots, distinct, indices)
    return None if count < 0 else FixedWidthBlock(distinct[: count * 2].view(np.uint8), _PAIR_BITS, count)


def _index_bytes(block: DataBlock, max_items: int, slots: Slots, indices: Indices) -> DataBlock | None:
    """Number distinct byte strings, or values of a fixed width; return them, None if there are more."""
    if isinstance(block, FixedWidthBlock):
        offsets: Offsets = np.arange(block.num_values + 1, dtype=np.int64) * block.bytes_per_value
    else:
        offsets = block.offsets
    firsts, keys = empty(max_items, np.int64), empty(max_items * int(kernels.KEY_WORDS), np.uint64)
    data, offsets = read_only(block.data), read_only(offsets)
    count = kernels.index_bytes(data, offsets, max_items, True, slots, keys, firsts, indices)
    if count == kernels.ALIKE:
        slots.fill(-1)
        count = kernels.index_bytes(data, offsets, max_items, False, slots, keys, firsts, indices)
    return None if count < 0 else block.take(firsts[:count])
