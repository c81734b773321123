"""Run-length encoding: every run of equal values once, and its length.

Encoding strategy document, "RLE". Read for levels, in the block form:

    │ u64 bytes of values │ value 0 │ value 1 │ … │ u8 length 0 │ u8 length 1 │ … │

Runs of more than 255 values are split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lance_format.data_block import BufferSlices, Counts, FixedWidthBlock
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.kernels import rle as kernels
from lance_format.proto import encodings_pb2

_LENGTH_BITS = 8
_MAX_RUN = 255


@dataclass(frozen=True, slots=True)
class BlockRleDecompressor:
    """Reads run-length encoded blocks."""

    bits_per_value: int

    @property
    def num_buffers(self) -> int:
        """How many buffers a chunk has."""
        return 1

    def decompress(self, buffers: Sequence[BufferSlices], num_values: Counts) -> FixedWidthBlock:
        """Decompress chunks; see `Decompressor`."""
        (runs,) = buffers
        if (num_values > runs.sizes * _MAX_RUN).any():
            raise CorruptFileError("a run-length encoded buffer is shorter than its number of values says")
        width = self.bits_per_value // 8
        out = np.empty(int(num_values.sum()) * width, np.uint8)
        total = kernels.expand_blocks(runs.data, runs.starts, runs.sizes, num_values, width, out)
        if total < 0:
            raise CorruptFileError(f"run-length encoded buffer {-1 - total} contradicts its number of values")
        return FixedWidthBlock(out, self.bits_per_value, total)


def parse_block(encoding: encodings_pb2.CompressiveEncoding) -> BlockRleDecompressor:
    """Build the decompressor that an encoding of a block describes."""
    values, lengths = encoding.rle.values, encoding.rle.run_lengths
    if values.WhichOneof("compression") != "flat" or lengths.WhichOneof("compression") != "flat":
        raise NotSupportedError("run-length encoding is supported over flat values and lengths only")
    if lengths.flat.bits_per_value != _LENGTH_BITS:
        raise CorruptFileError(f"run lengths of {lengths.flat.bits_per_value} bits; expected {_LENGTH_BITS}")
    bits = values.flat.bits_per_value
    if bits not in (8, 16, 32, 64):
        raise CorruptFileError(f"run-length encoded values of {bits} bits; expected 8, 16, 32 or 64")
    return BlockRleDecompressor(bits)
