"""Constants: one value for a whole block, which the encoding itself holds.

Encoding strategy document, "Constant". Legal for blocks of levels and of dictionary items, whose buffer is then empty.
No known writer writes them, and pylance reads none either.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_format.data_block import BufferSlices, Bytes, Counts, FixedWidthBlock
from lance_format.errors import CorruptFileError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import encodings_pb2

_MAX_VALUE_BYTES = 4096
_MAX_BLOCK_BYTES = 2**26
"""Levels and dictionaries of known writers are far smaller; a few bytes of a file do not claim more memory."""


@dataclass(frozen=True, slots=True)
class ConstantDecompressor:
    """Repeats a value of whole bytes."""

    value: Bytes

    @property
    def num_buffers(self) -> int:
        """Number of buffers of a chunk."""
        return 1

    def decompress(self, buffers: Sequence[BufferSlices], num_values: Counts) -> FixedWidthBlock:
        """Decompress chunks; see `Decompressor`."""
        (empty,) = buffers
        if empty.sizes.any():
            raise CorruptFileError(f"a block of a constant has {int(empty.sizes.max())} bytes; expected none")
        total = int(num_values.sum())
        if total * self.value.size > _MAX_BLOCK_BYTES:
            raise CorruptFileError(f"a constant is said to be repeated {total} times")
        return FixedWidthBlock(np.tile(self.value, total), self.value.size * 8, total)


def parse(encoding: encodings_pb2.CompressiveEncoding) -> ConstantDecompressor:
    """Build the decompressor that an encoding of a block describes.

    Raises
    ------
    CorruptFileError
        If the constant is empty or too large.
    """
    value = encoding.constant.value
    if not 0 < len(value) <= _MAX_VALUE_BYTES:
        raise CorruptFileError(f"the constant of a block has {len(value)} bytes; expected 1 to {_MAX_VALUE_BYTES}")
    return ConstantDecompressor(np.frombuffer(value, np.uint8))
