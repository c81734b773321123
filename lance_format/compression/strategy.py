"""Choice of the compression of a page when it is written.

Encoding strategy document, "Compression". Statistics of the page estimate the size of each compression, and the
smallest is chosen: for values of a fixed width flat, bit packing, runs or a dictionary; for byte strings variable, FSST
or a dictionary. If the user requests zstd or LZ4 on top, a sample decides what it compresses. By default LZ4 is used
only over repeating byte planes (`planes.py`), where it costs no time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from lance_format.compression import (
    bitpacking,
    byte_stream_split,
    dictionary,
    fixed_size_list,
    flat,
    fsst,
    general,
    packed_struct,
    planes,
    rle,
    variable,
)
from lance_format.compression.byte_codecs import ZSTD
from lance_format.compression.codec import CompressedChunks
from lance_format.compression.dictionary import CompressedDictionary
from lance_format.compression.options import ByteStreamSplitMode, CompressionOptions, Scheme
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
from lance_format.kernels.compression import nulls as kernels
from lance_format.lazy_dataclasses import dataclass
from lance_format.memory import empty
from lance_format.proto import encodings_pb2
from lance_format.version import FileVersion

_LEVEL_BITS = 16
_MIN_PACKED_LEVELS = 64
_SAMPLED_VALUES = 8192
_SAMPLED_BYTES = 65_536
# Maximum size of byte planes relative to the smallest other compression.
_MOST_OF_PLAIN = 0.8
# Dictionaries of smaller integers are not tried: these are a block of a disk in either case.
_MIN_TRIED_BYTES = 4096
# Overhead of a dictionary besides its items: a buffer, and its description.
_DICTIONARY_BYTES = 128
_BYTES_PER_INDEX_RUN = 3
_ESTIMATE_SLACK = 1.1
# Assumed share of byte strings after FSST, for the comparison with a dictionary.
_FSST_SHARE = 0.5
_LARGE_VALUE_BYTES = 32 * 1024
# Requested sizes from here on, which other writers may have set, do not fit chunk words of 16 bits.
_SMALL_CHUNK_BYTES = 32 * 1024


@dataclass(frozen=True, slots=True)
class CompressedPage:
    """The values of a page, compressed and cut into chunks.

    Parameters
    ----------
    chunks : CompressedChunks
        Values, or indices into the dictionary.
    dictionary : CompressedDictionary or None
    """

    chunks: CompressedChunks
    dictionary: CompressedDictionary | None


@dataclass(frozen=True, slots=True)
class PerValuePage:
    """The values of a full-zip page, each compressed separately."""

    values: DataBlock
    encoding: encodings_pb2.CompressiveEncoding


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
        return _compress_byte_strings(block, options, version)
    if isinstance(block, DictionaryBlock):
        indices = block.indices if definition is None else _fill_nulls(block.indices, definition)
        page = dictionary.IndexedPage(block.items, indices)
        return _indexed(page, _choose_fixed(indices, options), options, version)
    if definition is not None:
        block = _fill_nulls(block, definition)
    return _compress_fixed(block, options, version)


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


def _fill_nulls(block: FixedWidthBlock, definition: npt.NDArray[np.uint16]) -> FixedWidthBlock:
    """Replace nulls by the preceding value, so that they add no runs, bits or items."""
    if block.bits_per_value == 1:
        return block
    first = int((definition == 0).argmax())
    if block.bits_per_value in bitpacking.WORD_BITS:
        words = block.data[: block.size_bytes].view(f"<u{block.bytes_per_value}")
        out = empty(words.size, words.dtype)
        kernels.fill_forward(words, definition, first, out)
        return FixedWidthBlock(out.view(np.uint8), block.bits_per_value, block.num_values)
    rows = block.data[: block.size_bytes].reshape(block.num_values, block.bytes_per_value).copy()
    rows[definition != 0] = rows[first]
    return FixedWidthBlock(rows.ravel(), block.bits_per_value, block.num_values)


@dataclass(frozen=True, slots=True)
class _FixedChoice:
    """A compression of values of a fixed width, and its actual or estimated size.

    At most one of `num_runs`, `widths` and `instead_of` is not None. It stands for runs, bit packing, or byte planes if
    these turn out to be smaller than another compression. If all are None, the compression is flat.

    `bits_per_item` is the number of bits per item of a dictionary of the values. `chunks` is the compressed block, if
    it is known.
    """

    size_bytes: int
    bits_per_item: int
    num_runs: int | None = None
    widths: Counts | None = None
    instead_of: _FixedChoice | None = None
    chunks: CompressedChunks | None = None

    def compress(self, block: FixedWidthBlock) -> CompressedChunks:
        """Compress the block that was measured as chosen."""
        if self.chunks is not None:
            return self.chunks
        if self.instead_of is not None:
            chunks = planes.compress(block)
            return chunks if chunks.buffers[0].size < self.instead_of.size_bytes else self.instead_of.compress(block)
        if self.num_runs is not None:
            return rle.compress(block, self.num_runs)
        if self.widths is not None:
            return bitpacking.compress_inline(block, self.widths)
        return flat.compress(block)


def _choose_fixed(block: FixedWidthBlock, options: CompressionOptions) -> _FixedChoice:
    """Return the smallest of flat, bit packing, runs and byte planes."""
    bits = block.bits_per_value
    if bits not in bitpacking.WORD_BITS or options.scheme is Scheme.NONE:
        return _FixedChoice(block.size_bytes, bits)
    widths, num_runs = bitpacking.measure(block)
    item_bits = max(int(widths.max()), 1)
    packed = bitpacking.inline_size(widths, bits)
    best = _FixedChoice(block.size_bytes, item_bits)
    if packed < best.size_bytes:
        best = _FixedChoice(packed, item_bits, widths=widths)
    runs = rle.estimate_size(num_runs, block.num_values, bits)
    if num_runs < options.rle_threshold * block.num_values and runs < best.size_bytes:
        best = _FixedChoice(runs, item_bits, num_runs=num_runs)
    if options.scheme is None and options.byte_stream_split is ByteStreamSplitMode.AUTO and bits in planes.WORD_BITS:
        split, chunks = planes.try_out(block)
        if split < _MOST_OF_PLAIN * best.size_bytes:
            best = _FixedChoice(split, item_bits, instead_of=best, chunks=chunks)
    return best


def _compress_fixed(block: FixedWidthBlock, options: CompressionOptions, version: FileVersion) -> CompressedPage:
    best = _choose_fixed(block, options)
    improvable = block.bits_per_value > 8 and best.size_bytes * 8 > block.num_values
    improvable = improvable and best.size_bytes >= _MIN_TRIED_BYTES
    if improvable:
        item_bytes = best.bits_per_item / 8
        if _dictionary_can_win(block, item_bytes, best.size_bytes, best.num_runs, options):
            most = _max_items(block, item_bytes, best.size_bytes, options)
            found = _split(block, best.num_runs, most, options)
            if found is not None:
                items = dictionary.compress_items(
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
    choice = _choose_fixed(indices, options)
    return _Split(page.items, choice.size_bytes, partial(_compress_words, indices, choice, options))


def _compress_words(block: FixedWidthBlock, best: _FixedChoice, options: CompressionOptions) -> CompressedChunks:
    """Compress values or indices as chosen, or as suits the requested general compression best."""
    if options.general_scheme is not None:
        return _compress_twice(block, best, options.general_scheme, options)
    return best.compress(block)


def _sample(block: FixedWidthBlock) -> FixedWidthBlock:
    """Return some values from the middle of a block."""
    begin = max((block.num_values - _SAMPLED_VALUES) // 2, 0) // 8 * 8
    return block.slice(begin, min(begin + _SAMPLED_VALUES, block.num_values))


def _compress_twice(
    block: FixedWidthBlock, best: _FixedChoice, scheme: int, options: CompressionOptions
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


def _max_items(block: DataBlock, bytes_per_item: float, without: float, options: CompressionOptions) -> int:
    """Return the maximum number of items for which a dictionary pays."""
    by_count = (block.num_values - 1) // options.dict_divisor
    by_size = int((options.dict_size_ratio * without - _DICTIONARY_BYTES) / max(bytes_per_item, 1))
    if options.dict_max_size is not None:
        by_size = min(by_size, int(options.dict_max_size / max(bytes_per_item, 1)))
    return min(by_count, by_size)


def _dictionary_can_win(
    block: DataBlock, bytes_per_item: float, without: float, num_runs: int | None, options: CompressionOptions
) -> bool:
    """Return whether a dictionary is likely to pay, and thus worth the time to build it."""
    most = _max_items(block, bytes_per_item, without, options)
    if block.num_values < dictionary.MIN_VALUES or most <= 0:
        return False
    items = int(dictionary.estimate_items(block) / _ESTIMATE_SLACK)
    indices = block.num_values * items.bit_length() / 8
    if num_runs is not None:
        items = min(items, num_runs)
        indices = min(indices, num_runs * _BYTES_PER_INDEX_RUN)
    size = items * bytes_per_item + indices
    return size < options.dict_size_ratio * without and items < most


def _indexed(
    page: dictionary.IndexedPage, choice: _FixedChoice, options: CompressionOptions, version: FileVersion
) -> CompressedPage:
    indices = _compress_words(page.indices, choice, options)
    items = dictionary.compress_items(page.items, options, may_use_general=version.has_compressed_dictionaries)
    return CompressedPage(indices, items)


def _compress_byte_strings(
    block: VariableWidthBlock, options: CompressionOptions, version: FileVersion
) -> CompressedPage:
    offset_bytes = block.num_values * block.bits_per_offset // 8
    bytes_per_item = (block.size_bytes + offset_bytes) / block.num_values
    tries_fsst = _tries_fsst(block, options)
    without = offset_bytes + block.size_bytes * (_FSST_SHARE if tries_fsst else 1)
    if _dictionary_can_win(block, bytes_per_item, without, None, options):
        page = dictionary.split(block, _max_items(block, bytes_per_item, without, options))
        if page is not None:
            indices = _choose_fixed(page.indices, options)
            items = page.items.size_bytes + page.items.num_values * block.bits_per_offset // 8
            if indices.size_bytes + items < options.dict_size_ratio * without:
                return _indexed(page, indices, options, version)
    if tries_fsst:
        compressed = fsst.compress(block)
        if compressed is not None:
            values, table = compressed
            return CompressedPage(_with_symbols(_cut(values, options, version), table), None)
    chunks = _cut(block, options, version)
    if options.general_scheme is not None:
        chunks = general.compress(chunks, options.general_scheme, options.level)
    return CompressedPage(chunks, None)


def _cut(block: VariableWidthBlock, options: CompressionOptions, version: FileVersion) -> CompressedChunks:
    """Cut byte strings into chunks of the requested size, if the version allows it."""
    asked = options.minichunk_size
    if asked is None or (asked >= _SMALL_CHUNK_BYTES and not version.has_large_chunks):
        return variable.compress(block)
    return variable.compress(block, asked)


def _tries_fsst(block: VariableWidthBlock, options: CompressionOptions) -> bool:
    if options.scheme not in (None, Scheme.FSST) or block.size_bytes < fsst.MIN_BYTES:
        return False
    return options.scheme is Scheme.FSST or block.longest >= fsst.MIN_LONGEST_VALUE


def _with_symbols(chunks: CompressedChunks, table: fsst.SymbolTable) -> CompressedChunks:
    return CompressedChunks(chunks.buffers, chunks.sizes, chunks.num_values, fsst.describe(chunks.encoding, table))


def compress_per_value(
    block: ValueBlock, definition: npt.NDArray[np.uint16] | None, options: CompressionOptions
) -> PerValuePage:
    """Compress the values of a full-zip page separately; those of a fixed width stay flat.

    With nulls zstd replaces LZ4: nulls have no bytes, and pylance tries to expand them too, which LZ4 does not allow.
    pylance itself never writes LZ4 here.

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
    plain = variable.describe(block.bits_per_offset)
    if options.scheme is Scheme.NONE or block.size_bytes < fsst.MIN_BYTES:
        return PerValuePage(block, plain)
    scheme = options.general_scheme
    if options.scheme is None and block.longest > _LARGE_VALUE_BYTES:
        scheme = ZSTD
    if scheme is not None:
        scheme = ZSTD if definition is not None and definition.any() else scheme
        small, encoding = general.compress_values(block, plain, scheme, options.level)
        return PerValuePage(small, encoding) if small.size_bytes < block.size_bytes else PerValuePage(block, plain)
    compressed = fsst.compress(block) if _tries_fsst(block, options) else None
    if compressed is None:
        return PerValuePage(block, plain)
    values, table = compressed
    return PerValuePage(values, fsst.describe(plain, table))


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
