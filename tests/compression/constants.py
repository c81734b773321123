"""Constants in blocks, which readers know and no writer writes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lance_format.compression.codec import CompressedChunks
from lance_format.data_block import Counts, FixedWidthBlock
from lance_format.proto import encodings_pb2
from lance_format.version import FileVersion


def constant_of(value: bytes) -> encodings_pb2.CompressiveEncoding:
    """Return the encoding of a block that repeats a value."""
    return encodings_pb2.CompressiveEncoding(constant=encodings_pb2.Constant(value=value))


def with_constants(compress: Callable[..., CompressedChunks]) -> Callable[..., CompressedChunks]:
    """Return a function that compresses levels which are all the same to a constant, others as before."""

    def compress_levels(levels: FixedWidthBlock, num_levels: Counts, version: FileVersion) -> CompressedChunks:
        words = levels.data[: levels.size_bytes].view("<u2")
        if (words != words[0]).any():
            return compress(levels, num_levels, version)
        sizes = np.zeros_like(num_levels)
        return CompressedChunks((np.empty(0, np.uint8),), (sizes,), num_levels, constant_of(words[:1].tobytes()))

    return compress_levels
