"""Variable: byte strings, as offsets and bytes.

Encoding strategy document, "Variable". Legal for mini-block values. A chunk's offsets count from its own first byte, so
the first is the size of the offsets; the end is filled up to a multiple of an offset:

    │ offset 0 │ … │ offset n │ bytes of value 0 │ bytes of value 1 │ … │ fill │

Offsets have 32 bits, and 64 for Arrow's large types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lance_format.compression import flat
from lance_format.compression.codec import CompressedChunks
from lance_format.data_block import BufferSlices, Counts, VariableWidthBlock, aligned
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.kernels import variable as kernels
from lance_format.proto import encodings_pb2

_TARGET_CHUNK_BYTES = 4096
_MAX_CHUNK_VALUES = 4096
_MAX_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True)
class VariableDecompressor:
    """Reads byte strings with offsets of `offset_bits` bits."""

    offset_bits: int

    @property
    def num_buffers(self) -> int:
        """How many buffers a chunk has."""
        return 1

    def decompress(self, buffers: Sequence[BufferSlices], num_values: Counts) -> VariableWidthBlock:
        """Decompress chunks; see `Decompressor`. Offsets have 64 bits if 32 do not suffice."""
        (chunks,) = buffers
        width = self.offset_bits // 8
        data = aligned(chunks.data)
        words = data[: data.size // width * width].view(f"<u{width}")
        if ((chunks.starts + (num_values + 1) * width) > words.size * width).any():
            raise CorruptFileError("a chunk of byte strings is shorter than its offsets")
        total = kernels.measure_chunks(words, chunks.starts, chunks.sizes, num_values)
        if total < 0:
            raise CorruptFileError(f"the offsets of byte string chunk {-1 - total} lie outside of it")
        out = np.empty(total, np.uint8)
        wide = self.offset_bits == 64 or total > _MAX_INT32
        offsets = np.empty(int(num_values.sum()) + 1, np.int64 if wide else np.int32)
        if kernels.unpack_chunks(words, data, chunks.starts, num_values, out, offsets) < 0:
            raise CorruptFileError("the offsets of a byte string chunk decrease")
        return VariableWidthBlock(out, offsets)


def parse(encoding: encodings_pb2.CompressiveEncoding) -> VariableDecompressor:
    """Build the decompressor that an encoding describes."""
    variable = encoding.variable
    if variable.HasField("values") and variable.values.scheme:
        raise NotSupportedError("byte strings whose buffer is compressed are not supported")
    if variable.offsets.WhichOneof("compression") != "flat":
        raise NotSupportedError("byte strings are supported with flat offsets only")
    bits = variable.offsets.flat.bits_per_value
    if bits not in (32, 64):
        raise CorruptFileError(f"byte string offsets of {bits} bits; expected 32 or 64")
    return VariableDecompressor(bits)


def compress(block: VariableWidthBlock) -> CompressedChunks:
    """Cut byte strings into chunks of about 4 KiB; a larger value has a chunk to itself."""
    bits = block.bits_per_offset
    width = bits // 8
    offsets = block.offsets - block.offsets[0]
    data = block.data[int(block.offsets[0]) : int(block.offsets[-1])]
    logs = np.empty(block.num_values, np.int64)
    num_chunks = kernels.plan_chunks(offsets, width, _TARGET_CHUNK_BYTES, _MAX_CHUNK_VALUES, logs)
    num_values = np.left_shift(np.int64(1), logs[:num_chunks])
    num_values[-1] = block.num_values - int(num_values[:-1].sum())
    room = (data.size + (block.num_values + 2 * num_chunks) * width + 7) // 8 * 8
    out = np.empty(room, np.uint8)
    sizes = np.empty(num_chunks, np.int64)
    written = kernels.pack_chunks(data, offsets, num_values, out.view(f"<u{width}"), out, sizes)
    encoding = encodings_pb2.CompressiveEncoding(variable=encodings_pb2.Variable(offsets=flat.describe(bits)))
    return CompressedChunks((out[:written],), (sizes,), num_values, encoding)
