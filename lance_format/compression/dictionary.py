"""Dictionaries: every distinct value once, and for each value of the page the index of its item.

Encoding strategy document, "Dictionary Encoding". The layout of a mini-block page has a separate block for the items,
which readers cache. The values of the page are the indices, unsigned integers of 8, 16 or 32 bits:

    │ items, compressed as a block │        │ index of value 0 │ index of value 1 │ …

Whether a dictionary pays is estimated from a sample first, so that pages of distinct values cost little.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.compression import bitpacking, flat, general, variable
from lance_format.compression.byte_codecs import ZSTD
from lance_format.compression.codec import CompressedChunks
from lance_format.compression.options import CompressionOptions, Scheme
from lance_format.data_block import Bytes, Counts, DataBlock, FixedWidthBlock, VariableWidthBlock
from lance_format.kernels.compression import dictionary as kernels
from lance_format.lazy_dataclasses import dataclass
from lance_format.memory import empty
from lance_format.proto import encodings_pb2

MIN_VALUES = 100
"""Minimum number of values that is worth a dictionary."""

_SAMPLED_VALUES = 4096
_ESTIMATION_STEPS = 30
_MIN_COMPRESSED_BYTES = 128
# Share of the items left by bit packing at which zstd, which is slow, is not tried by default.
_WELL_PACKED = 0.75


@dataclass(frozen=True, slots=True)
class CompressedDictionary:
    """The items of a page, ready to be written.

    Parameters
    ----------
    buffer : uint8[…]
    encoding : CompressiveEncoding
        Of the buffer, a block.
    num_items : int
    """

    buffer: Bytes
    encoding: encodings_pb2.CompressiveEncoding
    num_items: int


@dataclass(frozen=True, slots=True)
class IndexedPage:
    """A block taken apart into its distinct values and their numbers."""

    items: DataBlock
    indices: FixedWidthBlock


def estimate_items(block: DataBlock) -> int:
    """Estimate from a sample how many distinct values a block has.

    Of n values drawn from D equally frequent ones, D * (1 - exp(-n / D)) are distinct on average. The result is the D
    for which this equals the number found.
    """
    size = min(block.num_values, _SAMPLED_VALUES)
    chosen = np.linspace(0, block.num_values - 1, size).astype(np.int64)
    sample = split(block.take(chosen), size)
    distinct = size if sample is None else sample.items.num_values
    if distinct == size or size == block.num_values:
        return block.num_values if distinct == size else distinct
    low, high = float(distinct), float(block.num_values)
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
    if isinstance(block, FixedWidthBlock) and block.bits_per_value in (8, 16, 32, 64):
        words = block.data[: block.size_bytes].view(f"<u{block.bytes_per_value}")
        distinct = empty(max_items, words.dtype)
        count = kernels.index_words(words, max_items, slots, distinct, indices)
        items: DataBlock = FixedWidthBlock(distinct[: max(count, 0)].view(np.uint8), block.bits_per_value, count)
    else:
        firsts = empty(max_items, np.int64)
        count = _index_bytes(block, max_items, slots, firsts, indices)
        items = block.take(firsts[: max(count, 0)])
    if count < 0:
        return None
    width = 1 if count <= 2**8 else 2 if count <= 2**16 else 4
    narrow = indices.astype(f"<u{width}", copy=False).view(np.uint8)
    return IndexedPage(items, FixedWidthBlock(narrow, width * 8, block.num_values))


def _index_bytes(
    block: DataBlock,
    max_items: int,
    slots: npt.NDArray[np.int32],
    firsts: Counts,
    indices: npt.NDArray[Any],
) -> int:
    """Number the distinct values; see `kernels.index_bytes`."""
    if isinstance(block, FixedWidthBlock):
        offsets: npt.NDArray[np.int64] = np.arange(block.num_values + 1, dtype=np.int64) * block.bytes_per_value
        used = block.data[: block.size_bytes]
    else:
        offsets = block.offsets
        used = block.data[: int(block.offsets[-1])]
    data = block.data
    if data.size < used.size + kernels.SLACK:
        data = empty(used.size + kernels.SLACK, np.uint8)
        data[: used.size], data[used.size :] = used, 0
    return kernels.index_bytes(data, offsets, max_items, slots, empty(max_items, np.uint32), firsts, indices)


def compress_items(items: DataBlock, options: CompressionOptions, *, may_use_general: bool) -> CompressedDictionary:
    """Compress the items of a page as a block.

    Parameters
    ----------
    items : DataBlock
    options : CompressionOptions
    may_use_general : bool
        Whether the file's version allows general compression here.
    """
    if isinstance(items, VariableWidthBlock):
        buffer = variable.compress_block(items)
        encoding = variable.describe(items.bits_per_offset)
    else:
        buffer = items.data[: items.size_bytes]
        encoding = flat.describe(items.bits_per_value)
    asked = options.dict_values_scheme or options.scheme
    scheme = ZSTD if asked is None else asked.general
    packed = _pack_items(items, options)
    packs_well = packed is not None and asked is None and packed.buffers[0].size < buffer.size * _WELL_PACKED
    if may_use_general and scheme is not None and buffer.size >= _MIN_COMPRESSED_BYTES and not packs_well:
        level = options.level if options.dict_values_level is None else options.dict_values_level
        buffer, encoding = general.compress_block(buffer, encoding, scheme, level)
    if packed is not None and packed.buffers[0].size < buffer.size:
        buffer, encoding = packed.buffers[0], packed.encoding
    return CompressedDictionary(buffer, encoding, items.num_values)


def _pack_items(items: DataBlock, options: CompressionOptions) -> CompressedChunks | None:
    """Pack integer items; return None for other items, and if the options forbid packing."""
    if isinstance(items, VariableWidthBlock) or items.bits_per_value not in bitpacking.WORD_BITS:
        return None
    if Scheme.NONE in (options.scheme, options.dict_values_scheme):
        return None
    packed_bits = max(int(bitpacking.block_widths(items).max()), 1)
    if packed_bits == items.bits_per_value:
        return None
    return bitpacking.compress_out_of_line(items, np.array([items.num_values], np.int64), packed_bits)
