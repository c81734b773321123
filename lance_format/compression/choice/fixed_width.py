"""Choice of the compression of values of a fixed width: flat, bit packing, runs, byte planes or a dictionary."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from lance_format.compression import bitpacking, byte_stream_split, dictionary, flat, general, planes, rle
from lance_format.compression.choice import dictionaries
from lance_format.compression.choice.pages import CompressedPage
from lance_format.compression.codec import CompressedChunks
from lance_format.compression.dictionary import IndexedPage
from lance_format.compression.options import ByteStreamSplitMode, CompressionOptions, Scheme
from lance_format.data_block import Counts, DataBlock, FixedWidthBlock
from lance_format.lazy_dataclasses import dataclass
from lance_format.version import FileVersion

_SAMPLED_VALUES = 8192
# Packed blocks of 1,024 values are not smaller, and buffers are padded to half of it.
_MOST_PLAIN_BYTES = 128
# Maximum size of byte planes relative to the smallest other compression.
_MOST_OF_PLAIN = 0.8
# Dictionaries of smaller integers are not tried: these are a block of a disk in either case.
_MIN_TRIED_BYTES = 4096
# Byte planes of fewer are not, such as those of the bounds of some zones: trying takes longer than writing them.
_MIN_SPLIT_BYTES = 512


@dataclass(frozen=True, slots=True)
class FixedWidthChoice:
    """A compression of values of a fixed width, and its actual or estimated size.

    At most one of `num_runs`, `widths` and `instead_of` is not None. It stands for runs, bit packing, or byte planes if
    these turn out to be smaller than another compression. If all are None, the compression is flat.

    `bits_per_item` is the number of bits per item of a dictionary of the values.
    """

    size_bytes: int
    bits_per_item: int
    num_runs: int | None = None
    widths: Counts | None = None
    instead_of: FixedWidthChoice | None = None

    def compress(self, block: FixedWidthBlock) -> CompressedChunks:
        """Compress the block that was measured as chosen."""
        if self.instead_of is not None:
            chunks = planes.compress(block)
            return chunks if chunks.buffers[0].size < self.instead_of.size_bytes else self.instead_of.compress(block)
        if self.num_runs is not None:
            return rle.compress(block, self.num_runs)
        if self.widths is not None:
            return bitpacking.compress_inline(block, self.widths)
        return flat.compress(block)


def choose(block: FixedWidthBlock, options: CompressionOptions) -> FixedWidthChoice:
    """Return the smallest of flat, bit packing, runs and byte planes."""
    bits = block.bits_per_value
    if bits not in bitpacking.WORD_BITS or options.scheme is Scheme.NONE or block.size_bytes <= _MOST_PLAIN_BYTES:
        return FixedWidthChoice(block.size_bytes, bits)
    widths, num_runs = bitpacking.measure(block)
    item_bits = max(int(widths.max()), 1)
    packed = bitpacking.inline_size(widths, bits)
    best = FixedWidthChoice(block.size_bytes, item_bits)
    if packed < best.size_bytes:
        best = FixedWidthChoice(packed, item_bits, widths=widths)
    runs = rle.estimate_size(num_runs, block.num_values, bits)
    if num_runs < options.rle_threshold * block.num_values and runs < best.size_bytes:
        best = FixedWidthChoice(runs, item_bits, num_runs=num_runs)
    may_split = options.scheme is None and options.byte_stream_split is ByteStreamSplitMode.AUTO
    if may_split and bits in planes.WORD_BITS and best.size_bytes >= _MIN_SPLIT_BYTES:
        split = planes.estimate_size(block)
        if split < _MOST_OF_PLAIN * best.size_bytes:
            best = FixedWidthChoice(split, item_bits, instead_of=best)
    return best


def compress(
    block: FixedWidthBlock,
    definition: npt.NDArray[np.uint16] | None,
    options: CompressionOptions,
    version: FileVersion,
) -> CompressedPage:
    """Compress the values of a mini-block page in the smallest way, through a dictionary if that is smaller still.

    Parameters
    ----------
    block : FixedWidthBlock
        At least one value.
    definition : uint16[num_values] or None
        0 for valid values; the others do not count. None if all are valid.
    options : CompressionOptions
    version : FileVersion
    """
    best = choose(block, options)
    improvable = block.bits_per_value > 8 and best.size_bytes * 8 > block.num_values
    improvable = improvable and best.size_bytes >= _MIN_TRIED_BYTES
    if improvable:
        item_bytes = best.bits_per_item / 8
        most = dictionaries.max_items(block, item_bytes, best.size_bytes, options)
        expected = dictionaries.Expected.of(block, item_bytes, best.num_runs, definition) if most > 0 else None
        if expected is not None and expected.pays(most, best.size_bytes, options):
            found = _split(block, best.num_runs, most, options)
            if found is not None:
                items = dictionaries.compress_items(
                    found.items, options, may_use_general=version.has_compressed_dictionaries
                )
                if found.size_bytes + items.buffer.size < options.dict_size_ratio * best.size_bytes:
                    return CompressedPage(found.compress_indices(), items)
    return CompressedPage(_compress_words(block, best, options), None)


@dataclass(frozen=True, slots=True)
class _Split:
    """The distinct values of a block, and how the numbers of all values are compressed.

    Parameters
    ----------
    items : DataBlock
    size_bytes : int
        Actual or estimated size of the compressed numbers.
    compress_indices : callable
    """

    items: DataBlock
    size_bytes: int
    compress_indices: Callable[[], CompressedChunks]


def _split(block: FixedWidthBlock, num_runs: int | None, max_items: int, options: CompressionOptions) -> _Split | None:
    """Take a block apart, or return None if it has more than `max_items` distinct values.

    Parameters
    ----------
    block : FixedWidthBlock
    num_runs : int or None
        Number of runs, if they are few: values are then looked up run by run.
    max_items : int
    options : CompressionOptions
    """
    runs = None if num_runs is None else rle.Runs.find(block, num_runs)
    values, most = (block, max_items) if runs is None else (runs.values, min(max_items, runs.values.num_values))
    page = dictionary.split(values, most)
    if page is None:
        return None
    indices = page.indices
    if runs is not None:
        index_runs = rle.Runs(indices, runs.ends)
        if options.general_scheme is None and indices.bits_per_value not in planes.WORD_BITS:
            size = rle.estimate_size(indices.num_values, block.num_values, indices.bits_per_value)
            # Bit packing takes at least a bit for each value, but for blocks that are 0 throughout.
            if size * 8 < index_runs.num_not_zero():
                return _Split(page.items, size, index_runs.compress)
        indices = index_runs.expand()
    choice = choose(indices, options)
    return _Split(page.items, choice.size_bytes, partial(_compress_words, indices, choice, options))


def _compress_words(block: FixedWidthBlock, best: FixedWidthChoice, options: CompressionOptions) -> CompressedChunks:
    """Compress values or indices as chosen, or as suits the requested general compression best."""
    if options.general_scheme is not None:
        return _compress_twice(block, best, options.general_scheme, options)
    return best.compress(block)


def _sample(block: FixedWidthBlock) -> FixedWidthBlock:
    """Return some values from the middle of a block."""
    begin = max((block.num_values - _SAMPLED_VALUES) // 2, 0) // 8 * 8
    return block.slice(begin, min(begin + _SAMPLED_VALUES, block.num_values))


def _compress_twice(
    block: FixedWidthBlock, best: FixedWidthChoice, scheme: int, options: CompressionOptions
) -> CompressedChunks:
    """Compress by the technique whose result is smallest after zstd or LZ4."""
    split = options.byte_stream_split
    splittable = block.bits_per_value in byte_stream_split.WORD_BITS
    if splittable and split is ByteStreamSplitMode.ON:
        return general.compress(byte_stream_split.compress(block), scheme, options.level)
    candidates = [_compress_flat, _compress_packed, _compress_runs]
    if splittable and split is ByteStreamSplitMode.AUTO:
        candidates.append(byte_stream_split.compress)
    if block.bits_per_value not in bitpacking.WORD_BITS:
        return general.compress(best.compress(block), scheme, options.level)
    if best.num_runs is None:
        candidates.remove(_compress_runs)
    sample = _sample(block)
    sizes = []
    for compress in candidates:
        chunks = general.compress(compress(sample), scheme, options.level)
        sizes.append(sum(buffer.size for buffer in chunks.buffers))
    return general.compress(candidates[int(np.argmin(sizes))](block), scheme, options.level)


def _compress_flat(block: FixedWidthBlock) -> CompressedChunks:
    return flat.compress(block)


def _compress_packed(block: FixedWidthBlock) -> CompressedChunks:
    return bitpacking.compress_inline(block, bitpacking.block_widths(block))


def _compress_runs(block: FixedWidthBlock) -> CompressedChunks:
    return rle.compress(block, bitpacking.measure(block)[1])


def compress_indexed(
    page: IndexedPage, choice: FixedWidthChoice, options: CompressionOptions, version: FileVersion
) -> CompressedPage:
    """Compress a block that was taken apart.

    Parameters
    ----------
    page : IndexedPage
    choice : FixedWidthChoice
        The compression of its indices.
    options : CompressionOptions
    version : FileVersion
    """
    indices = _compress_words(page.indices, choice, options)
    items = dictionaries.compress_items(page.items, options, may_use_general=version.has_compressed_dictionaries)
    return CompressedPage(indices, items)
