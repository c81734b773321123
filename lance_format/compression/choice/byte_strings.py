"""Choice of the compression of byte strings: plain, FSST or a dictionary, and zstd or LZ4 on top if requested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lance_format.compression import dictionary, fsst, general, variable
from lance_format.compression.byte_codecs import ZSTD
from lance_format.compression.choice import dictionaries, fixed_width
from lance_format.compression.choice.nulls import spread_out
from lance_format.compression.choice.pages import CompressedPage, PerValuePage
from lance_format.compression.codec import CompressedChunks
from lance_format.compression.dictionary import IndexedPage
from lance_format.compression.options import CompressionOptions, Scheme
from lance_format.compression.samples import spread
from lance_format.data_block import DictionaryBlock, VariableWidthBlock
from lance_format.kernels.compression.nulls import keep_offsets
from lance_format.kernels.jit import read_only
from lance_format.memory import empty
from lance_format.version import FileVersion

_LARGE_VALUE_BYTES = 32 * 1024
# A dictionary of values that are read one by one: as much as a few requests of its reader.
_MAX_LARGE_ITEMS_BYTES = 1024 * 1024
_SAMPLED_BYTES = 128 * 1024
# Requested sizes from here on, which other writers may have set, do not fit chunk words of 16 bits.
_SMALL_CHUNK_BYTES = 32 * 1024


def compress(
    block: VariableWidthBlock,
    definition: npt.NDArray[np.uint16] | None,
    options: CompressionOptions,
    version: FileVersion,
) -> CompressedPage:
    """Compress the byte strings of a mini-block page in the smallest way, judged by estimates.

    Parameters
    ----------
    block : VariableWidthBlock
        At least one value.
    definition : uint16[num_values] or None
        0 for valid values, of which there is one; None if all are valid.
    options : CompressionOptions
    version : FileVersion
    """
    tries_fsst = _tries_fsst(block, options)
    found = _try_dictionary(block, definition, _share_per_value if tries_fsst else _whole_share, options)
    if found is not None:
        return fixed_width.compress_indexed(*found, options, version)
    if tries_fsst:
        compressed = fsst.compress(block)
        if compressed is not None:
            values, table = compressed
            return CompressedPage(_with_symbols(_cut(values, options, version), table), None)
    chunks = _cut(block, options, version)
    if options.general_scheme is not None:
        chunks = general.compress(chunks, options.general_scheme, options.level)
    return CompressedPage(chunks, None)


def split_large(
    block: VariableWidthBlock, definition: npt.NDArray[np.uint16] | None, options: CompressionOptions
) -> DictionaryBlock | None:
    """Take byte strings that are better read one by one apart, if a dictionary pays.

    It is kept small, since a reader of a single value needs all of it.

    Parameters
    ----------
    block, definition, options
        See `compress`.

    Returns
    -------
    DictionaryBlock or None
        None if the values are better stored as they are, each compressed for itself.
    """
    if options.dict_max_size is None:
        options = replace(options, dict_max_size=_MAX_LARGE_ITEMS_BYTES)
    found = _try_dictionary(block, definition, _share_per_value, options)
    return None if found is None else DictionaryBlock(found[0].items, found[0].indices)


def _share_per_value(block: VariableWidthBlock, options: CompressionOptions) -> float:
    """Return the size of byte strings compressed one by one relative to their size, judged by a sample."""
    count = max(min(block.num_values, _SAMPLED_BYTES * block.num_values // max(block.size_bytes, 1)), 1)
    sample = block.take(spread(block.num_values, count))
    small = compress_per_value(sample, has_nulls=False, options=options).values
    return small.size_bytes / max(sample.size_bytes, 1)


def _whole_share(_: VariableWidthBlock, __: CompressionOptions) -> float:
    return 1


def _least_share(block: VariableWidthBlock, options: CompressionOptions) -> float:
    """Return the least size that compression may leave of byte strings, relative to their size."""
    return 0 if _per_value_scheme(block, options) is not None else 1 / fsst.SYMBOL_BYTES


def _try_dictionary(
    block: VariableWidthBlock,
    definition: npt.NDArray[np.uint16] | None,
    measure: Callable[[VariableWidthBlock, CompressionOptions], float],
    options: CompressionOptions,
) -> tuple[IndexedPage, fixed_width.FixedWidthChoice] | None:
    """Take byte strings apart; return them, and how their indices are compressed, or None if that does not pay.

    Parameters
    ----------
    block, definition, options
        See `compress`.
    measure : callable
        Returns the size of the values compressed otherwise, relative to their size.
    """
    present = block if definition is None else _present(block, definition)
    bytes_per_item = (present.size_bytes + _offset_bytes(present)) / present.num_values
    without: float = block.size_bytes + _offset_bytes(block)
    most = dictionaries.max_items(block, bytes_per_item, without, options)
    expected = dictionaries.Expected.of(present, bytes_per_item) if most > 0 else None
    if expected is None or not expected.pays(most, without, options):
        return None
    for share in (_least_share, measure):  # Few items pay in any case, and to measure takes long.
        without = block.size_bytes * share(present, options) + _offset_bytes(block)
        most = dictionaries.max_items(block, bytes_per_item, without, options)
        page = dictionary.split(present, most) if expected.pays(most, without, options) else None
        if page is None:
            continue
        if definition is not None:
            page = IndexedPage(page.items, spread_out(page.indices, definition))
        items = page.items.size_bytes + page.items.num_values * block.bits_per_offset // 8
        if options.dict_max_size is not None and items > options.dict_max_size:
            return None  # Items that are longer than the average value may be as few as allowed.
        indices = fixed_width.choose(page.indices, options)
        if indices.size_bytes + items < options.dict_size_ratio * without:
            return page, indices
    return None


def _present(block: VariableWidthBlock, definition: npt.NDArray[np.uint16]) -> VariableWidthBlock:
    """Return the byte strings that are not null, without a copy of their bytes if nulls have none."""
    offsets = empty(block.num_values + 1, block.offsets.dtype)
    count = keep_offsets(read_only(block.offsets), definition, offsets)
    if count < 0:
        return block.take(np.flatnonzero(definition == 0))
    return VariableWidthBlock(block.data, offsets[: count + 1])


def _offset_bytes(block: VariableWidthBlock) -> int:
    return block.num_values * block.bits_per_offset // 8


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


def _per_value_scheme(block: VariableWidthBlock, options: CompressionOptions) -> int | None:
    """Return how byte strings are compressed one by one, unless by FSST."""
    return ZSTD if options.scheme is None and block.longest > _LARGE_VALUE_BYTES else options.general_scheme


def compress_per_value(block: VariableWidthBlock, *, has_nulls: bool, options: CompressionOptions) -> PerValuePage:
    """Compress each byte string of a full-zip page separately.

    With nulls zstd replaces LZ4: nulls have no bytes, and pylance tries to expand them too, which LZ4 does not allow.
    pylance itself never writes LZ4 here.

    Parameters
    ----------
    block : VariableWidthBlock
    has_nulls : bool
    options : CompressionOptions
    """
    plain = variable.describe(block.bits_per_offset)
    if options.scheme is Scheme.NONE or block.size_bytes < fsst.MIN_BYTES:
        return PerValuePage(block, plain)
    scheme = _per_value_scheme(block, options)
    if scheme is not None:
        small, encoding = general.compress_values(block, plain, ZSTD if has_nulls else scheme, options.level)
        return PerValuePage(small, encoding) if small.size_bytes < block.size_bytes else PerValuePage(block, plain)
    compressed = fsst.compress(block) if _tries_fsst(block, options) else None
    if compressed is None:
        return PerValuePage(block, plain)
    values, table = compressed
    return PerValuePage(values, fsst.describe(plain, table))
