"""Byte stream split: the first bytes of all values, then the second bytes, and so on.

Encoding strategy document, "Byte Stream Split (BSS)". It saves nothing alone; general compression finds more repetition
in the result. Values have 32 or 64 bits. Legal for mini-block values; of a chunk of n values:

    │ byte 0 of value 0 … n-1 │ byte 1 of value 0 … n-1 │ …
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_format.compression import flat
from lance_format.compression.codec import CompressedChunks
from lance_format.data_block import BufferSlices, Counts, FixedWidthBlock
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.kernels.compression import byte_stream_split as kernels
from lance_format.lazy_dataclasses import dataclass
from lance_format.memory import empty
from lance_format.proto import encodings_pb2

WORD_BITS = (32, 64)
CHUNK_BYTES = 8192
"""Maximum size of a written chunk; large enough for general compression to find repetitions."""


@dataclass(frozen=True, slots=True)
class ByteStreamSplitDecompressor:
    """Reads chunks of planes of bytes."""

    bits_per_value: int

    @property
    def num_buffers(self) -> int:
        """Number of buffers of a chunk."""
        return 1

    def decompress(self, buffers: Sequence[BufferSlices], num_values: Counts) -> FixedWidthBlock:
        """Decompress chunks; see `Decompressor`."""
        (planes,) = buffers
        width = self.bits_per_value // 8
        wrong = planes.sizes != num_values * width
        if wrong.any():
            chunk = int(wrong.argmax())
            raise CorruptFileError(
                f"byte-split chunk {chunk} has {planes.sizes[chunk]} bytes for {num_values[chunk]} values of"
                f" {self.bits_per_value} bits"
            )
        total = int(num_values.sum())
        out = empty(total, f"<u{width}")
        join = kernels.join4 if width == 4 else kernels.join8
        join(planes.data, planes.starts, num_values, out)
        return FixedWidthBlock(out.view(np.uint8), self.bits_per_value, total)


def parse(encoding: encodings_pb2.CompressiveEncoding) -> ByteStreamSplitDecompressor:
    """Build the decompressor that an encoding describes; see `parse_decompressor`."""
    values = encoding.byte_stream_split.values
    if values.WhichOneof("compression") != "flat":
        raise NotSupportedError("byte stream split ('byte_stream_split') is supported over flat values only")
    bits = values.flat.bits_per_value
    if bits not in WORD_BITS:
        raise CorruptFileError(f"byte-split values of {bits} bits; expected one of {WORD_BITS}")
    return ByteStreamSplitDecompressor(bits)


def compress(block: FixedWidthBlock, chunk_bytes: int = CHUNK_BYTES) -> CompressedChunks:
    """Split a block into chunks of planes; `chunk_bytes` is a power of two."""
    num_values = flat.chunk_counts(block.num_values, chunk_bytes // block.bytes_per_value)
    out = empty(block.size_bytes, np.uint8)
    kernels.split(block.words, num_values, out)
    inner = encodings_pb2.ByteStreamSplit(values=flat.describe(block.bits_per_value))
    encoding = encodings_pb2.CompressiveEncoding(byte_stream_split=inner)
    return CompressedChunks((out,), (num_values * block.bytes_per_value,), num_values, encoding)
