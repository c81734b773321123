"""Byte planes under LZ4: what is written of integers of both signs, and of values that differ in their low bytes only.

Of values whose high bytes are alike, as those above the highest bit of integers of either sign are, byte stream split
makes planes that repeat: one byte over and over, or the plane before. LZ4 stores a repeated plane as one sequence of a
few bytes, which expands at the speed of copying. This takes no more than two compressions that the format has, byte
stream split and general; `kernels/lz4.py` looks for these repetitions alone.

A chunk holds 4 KiB of values, as chunks of flat values do, so that a single value costs as little to read.
"""

from __future__ import annotations

import numpy as np

from lance_format.compression import byte_stream_split, general
from lance_format.compression.codec import CompressedChunks
from lance_format.data_block import FixedWidthBlock

WORD_BITS = byte_stream_split.WORD_BITS

_CHUNK_BYTES = 4096
_SAMPLED_CHUNKS = 16


def estimate_size(block: FixedWidthBlock) -> int:
    """Return about how many bytes a block takes; `bits_per_value` is one of `WORD_BITS`."""
    per_chunk = _CHUNK_BYTES // block.bytes_per_value
    chunks = block.num_values // per_chunk
    if chunks <= _SAMPLED_CHUNKS:
        return compress(block).buffers[0].size
    rows = block.data[: chunks * _CHUNK_BYTES].reshape(chunks, _CHUNK_BYTES)
    chosen = np.linspace(0, chunks - 1, _SAMPLED_CHUNKS).astype(np.int64)
    sample = FixedWidthBlock(rows[chosen].ravel(), block.bits_per_value, _SAMPLED_CHUNKS * per_chunk)
    return compress(sample).buffers[0].size * block.num_values // sample.num_values


def compress(block: FixedWidthBlock) -> CompressedChunks:
    """Split a block into chunks of planes, and compress each by LZ4."""
    chunks = byte_stream_split.compress(block, _CHUNK_BYTES)
    return general.compress_planes(chunks, chunks.num_values)
