"""Which compression a page gets when it is written."""

from __future__ import annotations

import numpy as np

from lance_format.compression import bitpacking, flat, variable
from lance_format.compression.codec import CompressedChunks
from lance_format.data_block import Counts, DataBlock, FixedWidthBlock, VariableWidthBlock

_LEVEL_BITS = 16
_MIN_PACKED_LEVELS = 64


def compress_values(block: DataBlock) -> CompressedChunks:
    """Compress the values of a mini-block page: bit-packed where that saves bytes."""
    if isinstance(block, VariableWidthBlock):
        return variable.compress(block)
    if block.bits_per_value in bitpacking.WORD_BITS:
        widths = bitpacking.block_widths(block)
        if bitpacking.inline_size(widths, block.bits_per_value) < block.size_bytes:
            return bitpacking.compress_inline(block, widths)
    return flat.compress(block)


def compress_levels(levels: FixedWidthBlock, num_levels: Counts) -> CompressedChunks:
    """Compress levels, cut into chunks of the given numbers, as blocks of 16-bit words."""
    if levels.num_values >= _MIN_PACKED_LEVELS:
        widths = bitpacking.block_widths(levels)
        packed_bits = max(int(widths.max()), 1)
        if packed_bits < _LEVEL_BITS:
            return bitpacking.compress_out_of_line(levels, num_levels, packed_bits)
    sizes = np.asarray(num_levels * (_LEVEL_BITS // 8))
    return CompressedChunks((levels.data[: levels.size_bytes],), (sizes,), num_levels, flat.describe(_LEVEL_BITS))
