"""Byte planes under LZ4, for integers of both signs, and for values that differ only in their low bytes.

The high bytes of such values are alike, so byte stream split makes planes that repeat one byte, or the preceding plane.
LZ4 stores a repeated plane as one sequence of a few bytes, which expands at the speed of copying. The format needs only
two existing compressions for that, byte stream split and general; `kernels/compression/lz4.py` searches only these
repetitions.

A chunk holds 4 KiB of values like chunks of flat values, so a single value costs as little to read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_format.compression import byte_codecs, byte_stream_split, general
from lance_format.compression.codec import CompressedChunks
from lance_format.data_block import BufferSlices, Counts, FixedWidthBlock
from lance_format.errors import CorruptFileError
from lance_format.kernels.compression import byte_stream_split as kernels
from lance_format.kernels.compression import lz4
from lance_format.lazy_dataclasses import dataclass
from lance_format.memory import empty
from lance_format.proto import encodings_pb2

WORD_BITS = byte_stream_split.WORD_BITS

_CHUNK_BYTES = 4096
_SAMPLED_CHUNKS = 16


@dataclass(frozen=True, slots=True)
class PlanesDecompressor:
    """Decompressor of chunks of byte planes under LZ4, which expands and joins each chunk while it is in the cache."""

    bits_per_value: int

    @property
    def num_buffers(self) -> int:
        """Number of buffers of a chunk."""
        return 1

    def decompress(self, buffers: Sequence[BufferSlices], num_values: Counts) -> FixedWidthBlock:
        """Decompress chunks; see `Decompressor`."""
        blocks, sizes = byte_codecs.locate_lz4_blocks(buffers[0])
        width = self.bits_per_value // 8
        wrong = sizes != num_values * width
        if wrong.any():
            chunk = int(wrong.argmax())
            raise CorruptFileError(
                f"byte-split chunk {chunk} has {sizes[chunk]} bytes for {num_values[chunk]} values of"
                f" {self.bits_per_value} bits"
            )
        scratch = np.empty(int(sizes.max()) + lz4.SLACK, np.uint8)
        out = empty(int(num_values.sum()), f"<u{width}")
        expand = kernels.expand_join4 if width == 4 else kernels.expand_join8
        found = expand(blocks.data, blocks.starts, blocks.sizes, num_values, scratch, out)
        if found < 0:
            raise CorruptFileError(f"LZ4 buffer {-1 - found} cannot be decompressed to the size that it says")
        return FixedWidthBlock(out.view(np.uint8), self.bits_per_value, out.size)


def parse(encoding: encodings_pb2.CompressiveEncoding) -> PlanesDecompressor:
    """Build the decompressor of byte stream split under LZ4; `encoding` is that of byte stream split."""
    return PlanesDecompressor(byte_stream_split.parse(encoding).bits_per_value)


def estimate_size(block: FixedWidthBlock) -> int:
    """Return the size of a compressed block; of a larger one an estimate from some of its chunks.

    Parameters
    ----------
    block : FixedWidthBlock
        At least one value; `bits_per_value` is one of `WORD_BITS`.
    """
    scratch, out = np.empty(_CHUNK_BYTES, np.uint8), np.empty(2 * _CHUNK_BYTES, np.uint8)
    return kernels.measure_encoded(block.words, _CHUNK_BYTES // block.bytes_per_value, _SAMPLED_CHUNKS, scratch, out)


def compress(block: FixedWidthBlock) -> CompressedChunks:
    """Split a block into chunks of planes, and compress each by LZ4."""
    chunks = byte_stream_split.compress(block, _CHUNK_BYTES)
    return general.compress_planes(chunks, chunks.num_values)
