"""Dictionaries of pages: whether one pays, by a sample of the values, and how its items are compressed."""

from __future__ import annotations

import numpy as np

from lance_format.compression import bitpacking, dictionary, flat, general, variable
from lance_format.compression.byte_codecs import ZSTD
from lance_format.compression.choice.pages import CompressedDictionary
from lance_format.compression.codec import CompressedChunks
from lance_format.compression.options import CompressionOptions, Scheme
from lance_format.data_block import DataBlock, VariableWidthBlock

# Overhead of a dictionary besides its items: a buffer, and its description.
_DICTIONARY_BYTES = 128
_BYTES_PER_INDEX_RUN = 3
_ESTIMATE_SLACK = 1.1
_MIN_COMPRESSED_BYTES = 128
# Share of the items left by bit packing at which zstd, which is slow, is not tried by default.
_WELL_PACKED = 0.75


def max_items(block: DataBlock, bytes_per_item: float, without: float, options: CompressionOptions) -> int:
    """Return the maximum number of items for which a dictionary pays.

    Parameters
    ----------
    block : DataBlock
        The values.
    bytes_per_item : float
        Average size of an item in bytes.
    without : float
        Size of the compressed values without a dictionary, in bytes.
    options : CompressionOptions
    """
    by_count = (block.num_values - 1) // options.dict_divisor
    by_size = int((options.dict_size_ratio * without - _DICTIONARY_BYTES) / max(bytes_per_item, 1))
    if options.dict_max_size is not None:
        by_size = min(by_size, int(options.dict_max_size / max(bytes_per_item, 1)))
    return min(by_count, by_size)


def can_win(
    block: DataBlock, bytes_per_item: float, without: float, num_runs: int | None, options: CompressionOptions
) -> bool:
    """Return whether a dictionary is likely to pay, and thus worth the time to build it.

    Parameters
    ----------
    block, bytes_per_item, without, options
        See `max_items`.
    num_runs : int or None
        Number of runs of the values, if they are few.
    """
    most = max_items(block, bytes_per_item, without, options)
    if block.num_values < dictionary.MIN_VALUES or most <= 0:
        return False
    items = int(dictionary.estimate_items(block) / _ESTIMATE_SLACK)
    indices = block.num_values * items.bit_length() / 8
    if num_runs is not None:
        items = min(items, num_runs)
        indices = min(indices, num_runs * _BYTES_PER_INDEX_RUN)
    size = items * bytes_per_item + indices
    return size < options.dict_size_ratio * without and items < most


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
