"""Choice of the compression of byte strings: plain, FSST or a dictionary, and zstd or LZ4 on top if requested."""

from __future__ import annotations

from lance_format.compression import dictionary, fsst, general, variable
from lance_format.compression.byte_codecs import ZSTD
from lance_format.compression.choice import dictionaries, fixed_width
from lance_format.compression.choice.pages import CompressedPage, PerValuePage
from lance_format.compression.codec import CompressedChunks
from lance_format.compression.options import CompressionOptions, Scheme
from lance_format.data_block import VariableWidthBlock
from lance_format.version import FileVersion

# Assumed share of byte strings after FSST, for the comparison with a dictionary.
_FSST_SHARE = 0.5
_LARGE_VALUE_BYTES = 32 * 1024
# Requested sizes from here on, which other writers may have set, do not fit chunk words of 16 bits.
_SMALL_CHUNK_BYTES = 32 * 1024


def compress(block: VariableWidthBlock, options: CompressionOptions, version: FileVersion) -> CompressedPage:
    """Compress the byte strings of a mini-block page in the smallest way, judged by estimates.

    Parameters
    ----------
    block : VariableWidthBlock
        At least one value.
    options : CompressionOptions
    version : FileVersion
    """
    offset_bytes = block.num_values * block.bits_per_offset // 8
    bytes_per_item = (block.size_bytes + offset_bytes) / block.num_values
    tries_fsst = _tries_fsst(block, options)
    without = offset_bytes + block.size_bytes * (_FSST_SHARE if tries_fsst else 1)
    if dictionaries.can_win(block, bytes_per_item, without, None, options):
        page = dictionary.split(block, dictionaries.max_items(block, bytes_per_item, without, options))
        if page is not None:
            indices = fixed_width.choose(page.indices, options)
            items = page.items.size_bytes + page.items.num_values * block.bits_per_offset // 8
            if indices.size_bytes + items < options.dict_size_ratio * without:
                return fixed_width.compress_indexed(page, indices, options, version)
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
    scheme = options.general_scheme
    if options.scheme is None and block.longest > _LARGE_VALUE_BYTES:
        scheme = ZSTD
    if scheme is not None:
        small, encoding = general.compress_values(block, plain, ZSTD if has_nulls else scheme, options.level)
        return PerValuePage(small, encoding) if small.size_bytes < block.size_bytes else PerValuePage(block, plain)
    compressed = fsst.compress(block) if _tries_fsst(block, options) else None
    if compressed is None:
        return PerValuePage(block, plain)
    values, table = compressed
    return PerValuePage(values, fsst.describe(plain, table))
