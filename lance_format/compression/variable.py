"""Variable: byte strings, as offsets and bytes.

Encoding strategy document, "Variable". Legal for mini-block values. A chunk's offsets count from its own first byte, so
the first is the size of the offsets; the end is filled up to a multiple of an offset:

    │ offset 0 │ … │ offset n │ bytes of value 0 │ bytes of value 1 │ … │ fill │

Legal for dictionary items, as one block whose offsets count from the first value's first byte:

    │ 32 or 64 │ start of the values    │ offset 0 = 0 │ … │ offset n │ bytes of value 0 │ bytes of value 1 │ … │

Legal for full-zip values, which the layout stores with their lengths. Offsets have 32 bits, and 64 for Arrow's large
types; the two words before a block's offsets are as wide as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_format.compression import flat
from lance_format.compression.codec import CompressedChunks
from lance_format.data_block import MAX_INT32, BufferSlices, Bytes, Counts, DataBlock, VariableWidthBlock, aligned
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.kernels.compression import variable as kernels
from lance_format.kernels.pages.mini_block import copy_slices
from lance_format.lazy_dataclasses import dataclass
from lance_format.memory import empty
from lance_format.proto import encodings_pb2

TARGET_CHUNK_BYTES = 4096
_MAX_CHUNK_VALUES = 4096
_HEADER_WORDS = 2


@dataclass(frozen=True, slots=True)
class VariableDecompressor:
    """Reads byte strings with offsets of `offset_bits` bits."""

    offset_bits: int

    @property
    def num_buffers(self) -> int:
        """Number of buffers of a chunk."""
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
        out = empty(total, np.uint8)
        wide = self.offset_bits == 64 or total > MAX_INT32
        offsets = empty(int(num_values.sum()) + 1, np.int64 if wide else np.int32)
        if kernels.unpack_chunks(words, data, chunks.starts, num_values, out, offsets) < 0:
            raise CorruptFileError("the offsets of a byte string chunk decrease")
        return VariableWidthBlock(out, offsets)

    def pick(
        self, buffers: Sequence[BufferSlices], num_values: Counts, chunks: Counts, positions: Counts
    ) -> VariableWidthBlock:
        """Return some values; see `PickingDecompressor`."""
        (stored,) = buffers
        width = self.offset_bits // 8
        data = aligned(stored.data)
        tables = (num_values + 1) * width
        if (tables > stored.sizes).any() or (stored.starts % width).any():
            raise CorruptFileError("a chunk of byte strings is shorter than its offsets")
        words = data[: data.size // width * width].view(f"<u{width}")
        first = stored.starts[chunks] // width + positions
        begins, ends = words[first].astype(np.int64), words[first + 1].astype(np.int64)
        wrong = (begins < tables[chunks]) | (ends < begins) | (ends > stored.sizes[chunks])
        if wrong.any():
            raise CorruptFileError(f"the offsets of byte string chunk {chunks[wrong][0]} decrease or lie outside of it")
        offsets = np.zeros(positions.size + 1, np.int64)
        np.cumsum(ends - begins, out=offsets[1:])
        total = int(offsets[-1])
        out = empty(total, np.uint8)
        copy_slices(data, stored.starts[chunks] + begins, ends - begins, out)
        wide = self.offset_bits == 64 or total > MAX_INT32
        return VariableWidthBlock(out, offsets if wide else offsets.astype(np.int32))


@dataclass(frozen=True, slots=True)
class BlockVariableDecompressor:
    """Reads one block of byte strings with offsets of `offset_bits` bits."""

    offset_bits: int

    @property
    def num_buffers(self) -> int:
        """Number of buffers of a chunk."""
        return 1

    def decompress(self, buffers: Sequence[BufferSlices], num_values: Counts) -> VariableWidthBlock:
        """Decompress a single chunk; see `Decompressor`. The result is a view of the buffer."""
        (block,) = buffers
        if len(num_values) != 1:
            raise NotSupportedError(f"{len(num_values)} blocks of byte strings at once are not supported")
        width = self.offset_bits // 8
        start, size, count = int(block.starts[0]), int(block.sizes[0]), int(num_values[0])
        data_start = (_HEADER_WORDS + count + 1) * width
        if size < data_start:
            raise CorruptFileError(f"a block of {count} byte strings has {size} bytes")
        data = aligned(block.data[start : start + size])
        words = data[:data_start].view(f"<u{width}")
        if words[0] != self.offset_bits or words[1] != data_start:
            raise CorruptFileError(
                f"a block of {count} byte strings starts with {words[0]} and {words[1]};"
                f" expected {self.offset_bits} and {data_start}"
            )
        offsets = words[_HEADER_WORDS:]
        if offsets[0] != 0 or (offsets[1:] < offsets[:-1]).any() or int(offsets[-1]) > size - data_start:
            raise CorruptFileError("the offsets of a block of byte strings decrease or lie outside of it")
        fits = self.offset_bits == 64 or int(offsets[-1]) <= MAX_INT32
        values = offsets.view(f"<i{width}") if fits else offsets.astype(np.int64)
        return VariableWidthBlock(data[data_start:], values)


@dataclass(frozen=True, slots=True)
class VariablePerValueDecompressor:
    """Passes on byte strings that are stored uncompressed."""

    def decompress_values(self, values: DataBlock) -> DataBlock:
        """Decompress values; see `PerValueDecompressor`."""
        if not isinstance(values, VariableWidthBlock):
            raise CorruptFileError("byte strings are stored as values of a fixed width")
        return values


def parse(encoding: encodings_pb2.CompressiveEncoding) -> VariableDecompressor:
    """Build the decompressor that an encoding of mini-block values describes."""
    return VariableDecompressor(_offset_bits(encoding.variable))


def parse_block(encoding: encodings_pb2.CompressiveEncoding) -> BlockVariableDecompressor:
    """Build the decompressor that an encoding of dictionary items describes."""
    return BlockVariableDecompressor(_offset_bits(encoding.variable))


def parse_per_value(encoding: encodings_pb2.CompressiveEncoding) -> VariablePerValueDecompressor:
    """Build the decompressor that an encoding of full-zip values describes."""
    _offset_bits(encoding.variable)
    return VariablePerValueDecompressor()


def _offset_bits(variable: encodings_pb2.Variable) -> int:
    if variable.HasField("values") and variable.values.scheme:
        raise NotSupportedError("byte strings whose buffer is compressed are not supported")
    if variable.offsets.WhichOneof("compression") != "flat":
        raise NotSupportedError("byte strings are supported with flat offsets only ('variable')")
    bits: int = variable.offsets.flat.bits_per_value
    if bits not in (32, 64):
        raise CorruptFileError(f"byte string offsets of {bits} bits; expected 32 or 64")
    return bits


def describe(bits_per_offset: int) -> encodings_pb2.CompressiveEncoding:
    """Return the encoding of byte strings."""
    variable = encodings_pb2.Variable(offsets=flat.describe(bits_per_offset))
    return encodings_pb2.CompressiveEncoding(variable=variable)


def compress_block(block: VariableWidthBlock) -> Bytes:
    """Lay out byte strings as one block."""
    offsets = block.offsets - block.offsets[0]
    data = block.data[int(block.offsets[0]) : int(block.offsets[-1])]
    header = [block.bits_per_offset, (_HEADER_WORDS + len(offsets)) * offsets.itemsize]
    words = np.concatenate([np.array(header, offsets.dtype), offsets])
    return np.concatenate([words.view(np.uint8), data])


def compress(block: VariableWidthBlock, chunk_bytes: int = TARGET_CHUNK_BYTES) -> CompressedChunks:
    """Cut byte strings into chunks of at most `chunk_bytes`, but at least two values."""
    bits = block.bits_per_offset
    width = bits // 8
    offsets = np.subtract(block.offsets, block.offsets[0], out=empty(block.offsets.size, block.offsets.dtype))
    data = block.data[int(block.offsets[0]) : int(block.offsets[-1])]
    logs = empty(block.num_values, np.int64)
    num_chunks = kernels.plan_chunks(offsets, width, chunk_bytes, _MAX_CHUNK_VALUES, logs)
    num_values = np.left_shift(np.int64(1), logs[:num_chunks])
    num_values[-1] = block.num_values - int(num_values[:-1].sum())
    room = (data.size + (block.num_values + 2 * num_chunks) * width + 7) // 8 * 8
    out = empty(room, np.uint8)
    sizes = np.empty(num_chunks, np.int64)
    written = kernels.pack_chunks(data, offsets, num_values, out.view(f"<u{width}"), out, sizes)
    return CompressedChunks((out[:written],), (sizes,), num_values, describe(bits))
