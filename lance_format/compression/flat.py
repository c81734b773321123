"""Flat: fixed-width values, uncompressed.

Encoding strategy document, "Flat". Legal for mini-block values, levels, dictionary items and full-zip values.

    │ value 0 │ value 1 │ …        each bits_per_value wide, little-endian; single bits least significant first

A mini-block chunk holds at most 4,096 values and 4 KiB.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from lance_format.compression.codec import CompressedChunks
from lance_format.data_block import BufferSlices, Bytes, Counts, DataBlock, FixedWidthBlock
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.kernels.pages import mini_block as kernels
from lance_format.lazy_dataclasses import dataclass
from lance_format.memory import empty
from lance_format.proto import encodings_pb2

MAX_CHUNK_VALUES = 4096
_MAX_CHUNK_BYTES = 4096
_MAX_BITS_PER_VALUE = 2**34
_WORD_BYTES = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class FlatDecompressor:
    """Reads flat values; `bits_per_value` is 1 or a multiple of 8."""

    bits_per_value: int

    @property
    def num_buffers(self) -> int:
        """Number of buffers of a chunk."""
        return 1

    def decompress(self, buffers: Sequence[BufferSlices], num_values: Counts) -> FixedWidthBlock:
        """Decompress chunks; see `Decompressor`."""
        (values,) = buffers
        total = int(num_values.sum())
        if self.bits_per_value == 1:
            return self._decompress_bits(values, num_values, total)
        self._check(values, num_values)
        needed = num_values * (self.bits_per_value // 8)
        if len(num_values) == 1:
            start = int(values.starts[0])
            return FixedWidthBlock(values.data[start : start + int(needed[0])], self.bits_per_value, total)
        out = empty(int(needed.sum()), np.uint8)
        kernels.copy_slices(values.data, values.starts, needed, out)
        return FixedWidthBlock(out, self.bits_per_value, total)

    def pick(
        self, buffers: Sequence[BufferSlices], num_values: Counts, chunks: Counts, positions: Counts
    ) -> FixedWidthBlock:
        """Return some values; see `PickingDecompressor`."""
        (values,) = buffers
        self._check(values, num_values)
        bits, width = self.bits_per_value, self.bits_per_value // 8
        starts = values.starts[chunks]
        if width in _WORD_BYTES and not (starts % width).any():
            return FixedWidthBlock(values.data, bits, values.data.size // width).take(starts // width + positions)
        out: Bytes
        if bits == 1:
            found = values.data[starts + (positions >> 3)] >> (positions & 7).astype(np.uint8) & 1
            out = np.packbits(found, bitorder="little")
        else:
            out = empty(positions.size * width, np.uint8)
            kernels.copy_slices(values.data, starts + positions * width, np.full(positions.size, width, np.int64), out)
        return FixedWidthBlock(out, bits, positions.size)

    def _check(self, values: BufferSlices, num_values: Counts) -> None:
        """Refuse chunks that are shorter than their values."""
        bits = self.bits_per_value
        most = values.sizes * 8 if bits == 1 else values.sizes // (bits // 8)  # Dividing avoids overflows of products.
        wrong = num_values > most
        if wrong.any():
            chunk = int(wrong.argmax())
            raise CorruptFileError(
                f"chunk {chunk} has {values.sizes[chunk]} bytes for {num_values[chunk]} values of {bits} bits"
            )

    def _decompress_bits(self, values: BufferSlices, num_values: Counts, total: int) -> FixedWidthBlock:
        self._check(values, num_values)
        out = np.zeros((total + 7) // 8 + 1, np.uint8)
        kernels.copy_bits(values.data, values.starts, num_values, out)
        return FixedWidthBlock(out, 1, total)


@dataclass(frozen=True, slots=True)
class FlatPerValueDecompressor:
    """Passes on values that are stored uncompressed."""

    bits_per_value: int

    def decompress_values(self, values: DataBlock) -> DataBlock:
        """Decompress values; see `PerValueDecompressor`."""
        if not isinstance(values, FixedWidthBlock) or values.bits_per_value != self.bits_per_value:
            raise CorruptFileError(f"flat values of {self.bits_per_value} bits are stored with another width")
        return values


def is_width(bits: int) -> bool:
    """Return whether flat values may have a number of bits."""
    return bits == 1 or (bits % 8 == 0 and 0 < bits <= _MAX_BITS_PER_VALUE)


def parse(encoding: encodings_pb2.CompressiveEncoding) -> FlatDecompressor:
    """Build the decompressor that an encoding describes; see `parse_decompressor`."""
    flat = encoding.flat
    if flat.HasField("data") and flat.data.scheme:
        raise NotSupportedError("flat values whose buffer is compressed are not supported")
    bits = flat.bits_per_value
    if bits == 0:
        raise NotSupportedError(
            "values without a bit are read from constant pages alone, by pylance too; write them again"
        )
    if not is_width(bits):
        raise CorruptFileError(f"flat values of {bits} bits; expected 1 or a multiple of 8")
    return FlatDecompressor(bits)


def parse_per_value(encoding: encodings_pb2.CompressiveEncoding) -> FlatPerValueDecompressor:
    """Build the decompressor that an encoding of full-zip values describes."""
    return FlatPerValueDecompressor(parse(encoding).bits_per_value)


@functools.lru_cache(maxsize=64)
def describe(bits_per_value: int) -> encodings_pb2.CompressiveEncoding:
    """Return the encoding of flat values, a message that all pages share: it must not be modified."""
    return encodings_pb2.CompressiveEncoding(flat=encodings_pb2.Flat(bits_per_value=bits_per_value))


def compress(block: FixedWidthBlock) -> CompressedChunks:
    """Cut a block into the largest chunks allowed, of at least two values: pylance rejects smaller ones as damaged."""
    per_chunk = MAX_CHUNK_VALUES
    while per_chunk > 2 and per_chunk * block.bits_per_value > _MAX_CHUNK_BYTES * 8:
        per_chunk //= 2
    num_values = chunk_counts(block.num_values, per_chunk)
    sizes = (num_values * block.bits_per_value + 7) // 8
    return CompressedChunks((block.data[: block.size_bytes],), (sizes,), num_values, describe(block.bits_per_value))


def chunk_counts(num_values: int, per_chunk: int) -> Counts:
    """Return the number of values of each chunk: `per_chunk`, and the rest in the last."""
    counts = np.empty(-(-num_values // per_chunk), np.int64)
    counts.fill(per_chunk)
    counts[-1] = num_values - per_chunk * (len(counts) - 1)
    return counts
