"""Choice of the compression of a page when it is written.

Encoding strategy document, "Compression". Statistics of the page estimate the size of each compression, and the
smallest is chosen: for values of a fixed width flat, bit packing, runs or a dictionary; for byte strings variable, FSST
or a dictionary. If the user requests zstd or LZ4 on top, a sample decides what it compresses. By default LZ4 is used
only over repeating byte planes (`compression/planes.py`), where it costs no time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.compression import bitpacking, fixed_size_list, flat, general, packed_struct, rle
from lance_format.compression.choice import byte_strings, fixed_width
from lance_format.compression.choice.nulls import fill_nulls
from lance_format.compression.choice.pages import CompressedPage, PerValuePage
from lance_format.compression.codec import CompressedChunks
from lance_format.compression.dictionary import IndexedPage
from lance_format.compression.options import CompressionOptions
from lance_format.data_block import (
    Counts,
    DataBlock,
    DictionaryBlock,
    FixedSizeListBlock,
    FixedWidthBlock,
    PackedStructBlock,
    ValueBlock,
    VariableWidthBlock,
)
from lance_format.version import FileVersion

_LEVEL_BITS = 16
_MIN_PACKED_LEVELS = 64
_SAMPLED_BYTES = 65_536


def compress_page(
    block: ValueBlock,
    definition: npt.NDArray[np.uint16] | None,
    options: CompressionOptions,
    version: FileVersion,
) -> CompressedPage:
    """Compress the values of a mini-block page.

    Parameters
    ----------
    block : ValueBlock
        At least one value.
    definition : uint16[num_values] or None
        0 for valid values; the others are arbitrary, and are not preserved. None if all are valid.
    options : CompressionOptions
    version : FileVersion
    """
    if isinstance(block, FixedSizeListBlock):
        return CompressedPage(_compress_rows(fixed_size_list.compress(block), options), None)
    if isinstance(block, PackedStructBlock):
        return CompressedPage(_compress_rows(packed_struct.compress(block), options), None)
    if isinstance(block, VariableWidthBlock):
        return byte_strings.compress(block, definition, options, version)
    if isinstance(block, DictionaryBlock):
        indices = block.indices if definition is None else fill_nulls(block.indices, definition)
        page = IndexedPage(block.items, indices)
        return fixed_width.compress_indexed(page, fixed_width.choose(indices, options), options, version)
    if definition is not None:
        block = fill_nulls(block, definition)
    return fixed_width.compress(block, definition, options, version)


def _compress_rows(chunks: CompressedChunks, options: CompressionOptions) -> CompressedChunks:
    """Compress flat rows again if requested, except those with null items, since General has one buffer."""
    if options.general_scheme is None or len(chunks.buffers) > 1:
        return chunks
    return general.compress(chunks, options.general_scheme, options.level)


def chunks_shrink(block: DataBlock | FixedSizeListBlock, options: CompressionOptions) -> bool:
    """Return whether zstd or LZ4, if requested, shrinks chunks of values of a fixed width, judged by a sample."""
    rows = block.rows if isinstance(block, FixedSizeListBlock) else block
    if options.general_scheme is None or not isinstance(rows, FixedWidthBlock):
        return False
    if isinstance(block, FixedSizeListBlock) and len(block.shape.parts) > 1:
        return False
    begin = (rows.num_values - min(rows.num_values, max(_SAMPLED_BYTES // rows.bytes_per_value, 1))) // 2
    sample = flat.compress(rows.slice(begin, rows.num_values - begin))
    return general.compress(sample, options.general_scheme, options.level) is not sample


def compress_per_value(
    block: ValueBlock, definition: npt.NDArray[np.uint16] | None, options: CompressionOptions
) -> PerValuePage:
    """Compress the values of a full-zip page separately; those of a fixed width stay flat.

    Parameters
    ----------
    block, definition, options
        See `compress_page`.
    """
    if isinstance(block, FixedSizeListBlock):
        return PerValuePage(block.rows, fixed_size_list.describe(block.shape))
    if isinstance(block, PackedStructBlock):
        return PerValuePage(block.rows, block.codec.encoding)
    if isinstance(block, DictionaryBlock):
        raise TypeError("full-zip pages have no dictionary")
    if isinstance(block, FixedWidthBlock):
        return PerValuePage(block, flat.describe(block.bits_per_value))
    has_nulls = definition is not None and bool(definition.any())
    return byte_strings.compress_per_value(block, has_nulls=has_nulls, options=options)


def compress_levels(levels: FixedWidthBlock, num_levels: Counts, version: FileVersion) -> CompressedChunks:
    """Compress levels as blocks of 16-bit words, by the smallest compression.

    Parameters
    ----------
    levels : FixedWidthBlock
        The levels of all chunks.
    num_levels : int64[num_chunks]
        Number of levels of each chunk.
    version : FileVersion
    """
    sizes = np.asarray(num_levels * (_LEVEL_BITS // 8))
    best = CompressedChunks((levels.data[: levels.size_bytes],), (sizes,), num_levels, flat.describe(_LEVEL_BITS))
    if levels.num_values < _MIN_PACKED_LEVELS:
        return best
    packed_bits = max(int(bitpacking.block_widths(levels).max()), 1)
    packed_sizes = bitpacking.out_of_line_sizes(num_levels, _LEVEL_BITS, packed_bits)
    smallest = min(_padded_size(sizes), _padded_size(packed_sizes))
    if version.has_run_length_levels and _padded_size(rle.block_sizes(levels, num_levels)) < smallest:
        return rle.compress_blocks(levels, num_levels)
    return bitpacking.compress_out_of_line(levels, num_levels, packed_bits) if packed_bits < _LEVEL_BITS else best


def _padded_size(sizes: Counts) -> int:
    """Return the bytes of buffers of these sizes in chunks, each filled up to a multiple of 8."""
    return int(((sizes + 7) // 8 * 8).sum())
