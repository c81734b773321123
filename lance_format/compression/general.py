"""General: the bytes of another compression, compressed again by zstd or LZ4.

Encoding strategy document, "General"; `byte_codecs.py` has the bytes. Legal for mini-block values, where it applies to
the first value buffer of each chunk and to no other; for blocks; and for full-zip byte strings, where it applies to
each value separately:

    │ expanded size │ compressed bytes of the inner compression │
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lance_format.compression import byte_codecs, fixed_size_list
from lance_format.compression.byte_codecs import LZ4, ZSTD
from lance_format.compression.codec import CompressedChunks, Decompressor, PerValueDecompressor
from lance_format.data_block import (
    MAX_INT32,
    BufferSlices,
    Bytes,
    Counts,
    DataBlock,
    ValueBlock,
    VariableWidthBlock,
    starts_of,
)
from lance_format.errors import CorruptFileError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import encodings_pb2

_MIN_BUFFER_BYTES = 4096
_ALIGNMENT = 8
_BLOCK_VALUES = 1024
_MAX_PACKED_BITS = 64


@dataclass(frozen=True, slots=True)
class GeneralDecompressor:
    """Expands the first buffer of each chunk, then lets another decompressor read the chunk.

    Parameters
    ----------
    scheme : int
        `LZ4` or `ZSTD`.
    inner : Decompressor
    max_bits_per_value : int or None
        Maximum bits of the expanded buffer per value; it may have one packed block more than the values of the chunk.
        None if values have any size.
    """

    scheme: int
    inner: Decompressor
    max_bits_per_value: int | None

    @property
    def num_buffers(self) -> int:
        """Number of buffers of a chunk."""
        return self.inner.num_buffers

    def decompress(self, buffers: Sequence[BufferSlices], num_values: Counts) -> ValueBlock:
        """Decompress chunks; see `Decompressor`."""
        limits = None
        if self.max_bits_per_value is not None:
            spare = _BLOCK_VALUES + 1 if self.max_bits_per_value <= _MAX_PACKED_BITS else 1
            limits = (num_values + spare) * self.max_bits_per_value // 8
        expanded = byte_codecs.expand(self.scheme, buffers[0], limits, _ALIGNMENT)
        return self.inner.decompress([expanded, *buffers[1:]], num_values)


@dataclass(frozen=True, slots=True)
class GeneralPerValueDecompressor:
    """Decompressor that expands each byte string, then passes it to another decompressor."""

    scheme: int
    inner: PerValueDecompressor

    def decompress_values(self, values: DataBlock) -> ValueBlock:
        """Decompress values; see `PerValueDecompressor`."""
        if not isinstance(values, VariableWidthBlock):
            raise CorruptFileError("values of a fixed width cannot be compressed by zstd or LZ4 one by one")
        sizes = np.diff(values.offsets).astype(np.int64)
        slices = BufferSlices(values.data, values.offsets[:-1].astype(np.int64), sizes)
        expanded = byte_codecs.expand(self.scheme, slices, None, alignment=1)
        offsets = np.append(expanded.starts, expanded.data.size)
        narrow = values.bits_per_offset == 32 and expanded.data.size <= MAX_INT32
        block = VariableWidthBlock(expanded.data, offsets.astype(np.int32) if narrow else offsets)
        return self.inner.decompress_values(block)


def parse_scheme(encoding: encodings_pb2.CompressiveEncoding) -> int:
    """Return the scheme of a general encoding; the inner encoding is parsed separately.

    Raises
    ------
    CorruptFileError
        If the scheme or the inner encoding is missing.
    """
    general = encoding.general
    scheme: int = general.compression.scheme
    if scheme not in (LZ4, ZSTD):
        raise CorruptFileError(f"general compression has the scheme {scheme}; expected {LZ4} (LZ4) or {ZSTD} (zstd)")
    if general.values.WhichOneof("compression") in (None, "general"):
        raise CorruptFileError("general compression does not say what it was applied to")
    return scheme


def max_bits_per_value(encoding: encodings_pb2.CompressiveEncoding) -> int | None:
    """Return the bits per value of an encoding in a chunk's first buffer, or None if they vary."""
    match encoding.WhichOneof("compression"):
        case "flat":
            return encoding.flat.bits_per_value
        case "inline_bitpacking":
            return encoding.inline_bitpacking.uncompressed_bits_per_value
        case "out_of_line_bitpacking":
            return encoding.out_of_line_bitpacking.uncompressed_bits_per_value
        case "rle":
            # The block form has lengths in the same buffer.
            return encoding.rle.values.flat.bits_per_value + encoding.rle.run_lengths.flat.bits_per_value
        case "fixed_size_list":
            return fixed_size_list.parse_shape(encoding).parts[0]
        case "packed_struct":
            return sum(encoding.packed_struct.bits_per_value)
        case "byte_stream_split":
            return encoding.byte_stream_split.values.flat.bits_per_value
        case _:
            return None


def describe(
    inner: encodings_pb2.CompressiveEncoding, scheme: int, level: int | None
) -> encodings_pb2.CompressiveEncoding:
    """Return the encoding of values that were compressed twice; see `compress`."""
    compression = encodings_pb2.BufferCompression(scheme=scheme, level=level)  # type: ignore[arg-type]
    return encodings_pb2.CompressiveEncoding(general=encodings_pb2.General(compression=compression, values=inner))


def compress(chunks: CompressedChunks, scheme: int, level: int | None) -> CompressedChunks:
    """Compress the first buffer of every chunk again.

    Parameters
    ----------
    chunks : CompressedChunks
    scheme : int
        zstd or LZ4, as in the protobuf.
    level : int or None
        Level of zstd, None for its default.

    Returns
    -------
    CompressedChunks
        The smaller chunks; `chunks` if that saves nothing.
    """
    first = chunks.buffers[0]
    if first.size < _MIN_BUFFER_BYTES:
        return chunks
    data, sizes = byte_codecs.shrink(scheme, level, BufferSlices(first, starts_of(chunks.sizes[0]), chunks.sizes[0]))
    if data.size >= first.size:
        return chunks
    encoding = describe(chunks.encoding, scheme, level)
    return replace(chunks, buffers=(data, *chunks.buffers[1:]), sizes=(sizes, *chunks.sizes[1:]), encoding=encoding)


def compress_planes(chunks: CompressedChunks, planes: Counts) -> CompressedChunks:
    """Compress chunks of byte planes, which are `planes` bytes long, once more by LZ4."""
    slices = BufferSlices(chunks.buffers[0], starts_of(chunks.sizes[0]), chunks.sizes[0])
    data, sizes = byte_codecs.shrink_planes(slices, planes)
    return replace(chunks, buffers=(data,), sizes=(sizes,), encoding=describe(chunks.encoding, LZ4, None))


def compress_block(
    data: Bytes, inner: encodings_pb2.CompressiveEncoding, scheme: int, level: int | None
) -> tuple[Bytes, encodings_pb2.CompressiveEncoding]:
    """Compress a block again; return it unchanged if that saves nothing. See `compress`."""
    small, _ = byte_codecs.shrink(scheme, level, BufferSlices.whole(data))
    if small.size >= data.size:
        return data, inner
    return small, describe(inner, scheme, level)


def compress_values(
    block: VariableWidthBlock, inner: encodings_pb2.CompressiveEncoding, scheme: int, level: int | None
) -> tuple[VariableWidthBlock, encodings_pb2.CompressiveEncoding]:
    """Compress each byte string separately; see `compress`."""
    starts = block.offsets[:-1].astype(np.int64)
    slices = BufferSlices(block.data, starts, np.diff(block.offsets).astype(np.int64))
    data, sizes = byte_codecs.shrink(scheme, level, slices)
    offsets = np.zeros(block.num_values + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    narrow = block.bits_per_offset == 32 and data.size <= MAX_INT32
    small = VariableWidthBlock(data, offsets.astype(np.int32) if narrow else offsets)
    return small, describe(inner, scheme, level)
