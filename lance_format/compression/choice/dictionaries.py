"""Dictionaries of pages: whether one pays, by a sample of the values, and how its items are compressed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.compression import bitpacking, dictionary, flat, general, variable
from lance_format.compression.byte_codecs import ZSTD
from lance_format.compression.choice.pages import CompressedDictionary
from lance_format.compression.codec import CompressedChunks
from lance_format.compression.options import CompressionOptions, Scheme
from lance_format.data_block import DataBlock, VariableWidthBlock
from lance_format.lazy_dataclasses import dataclass

# Overhead of a dictionary besides its items: a buffer, and its description.
_DICTIONARY_BYTES = 128
_BYTES_PER_INDEX_RUN = 3
_ESTIMATE_SLACK = 1.1
_MIN_COMPRESSED_BYTES = 128
# Share of the items left by bit packing at which zstd, which is slow, is not tried by default.
_WELL_PACKED = 0.75


def max_items(block: DataBlock, bytes_per_item: float, without: float, options: CompressionOptions) -> int:
    """Return the maximum number of items for which a dictionary pays; 0 or less if none does.

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
    if block.num_values < dictionary.MIN_VALUES:
        return 0
    by_count = (block.num_values - 1) // options.dict_divisor
    by_size = int((options.dict_size_ratio * without - _DICTIONARY_BYTES) / max(bytes_per_item, 1))
    if options.dict_max_size is not None:
        by_size = min(by_size, int(options.dict_max_size / max(bytes_per_item, 1)))
    return min(by_count, by_size)


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected size of a dictionary, judged by a sample of the values.

    Parameters
    ----------
    num_items : int
    size_bytes : float
        The size of the items and of the indices.
    """

    num_items: int
    size_bytes: float

    @classmethod
    def of(
        cls,
        block: DataBlock,
        bytes_per_item: float,
        num_runs: int | None = None,
        definition: npt.NDArray[np.uint16] | None = None,
    ) -> Expected:
        """Expect a dictionary.

        Parameters
        ----------
        block, bytes_per_item
            See `max_items`.
        num_runs : int, optional
            Number of runs of the values, if they are few.
        definition : uint16[num_values], optional
            0 for valid values; the others do not count.
        """
        items = int(dictionary.estimate_items(block, definition) / _ESTIMATE_SLACK)
        indices = block.num_values * items.bit_length() / 8
        if num_runs is not None:
            items = min(items, num_runs)
            indices = min(indices, num_runs * _BYTES_PER_INDEX_RUN)
        return cls(items, items * bytes_per_item + indices)

    def pays(self, most_items: int, without: float, options: CompressionOptions) -> bool:
        """Return whether it is worth the time to build it; see `max_items`."""
        return self.size_bytes < options.dict_size_ratio * without and self.num_items < most_items


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
