"""Bit packing: omits the high bits that no value of a block needs.

Encoding strategy document, "Bitpacking"; `kernels/compression/bitpacking.py` has the paper and the order of bits.
Values are words of T = 8, 16, 32 or 64 bits, a block is 1,024 of them, W is the number of bits kept.

Inline, for mini-block values and levels; one block per chunk, padded with zeros:

    │ W as a word of T bits │ 1024 * W / T words │

Out of line, for levels; the encoding holds W as the width of the inner flat values. The tail is plain words if the size
of the buffer says so, else a padded block:

    │ block 0: 1024 * W / T words │ block 1 │ … │ tail │
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_format.compression import flat
from lance_format.compression.codec import CompressedChunks
from lance_format.data_block import BufferSlices, Bytes, Counts, FixedWidthBlock, places_of
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.kernels.compression import bitpacking as kernels
from lance_format.kernels.compression.bitpacking import BLOCK_VALUES
from lance_format.lazy_dataclasses import dataclass
from lance_format.memory import empty
from lance_format.proto import encodings_pb2

WORD_BITS = (8, 16, 32, 64)
_MOST_PICKED = 8  # Unpacking a whole chunk takes as long as picking so many values.
_MAX_ZEROS = 2**24  # Limit for values packed into 0 bits, which take no bytes.


def _allocate(num_values: int, word_bits: int) -> Bytes:
    """Allocate room for values and one more block, of a size that is a multiple of 8."""
    return empty(((num_values + BLOCK_VALUES) * word_bits // 8 + 7) // 8 * 8, np.uint8)


@dataclass(frozen=True, slots=True)
class InlineBitpackingDecompressor:
    """Reads chunks of one packed block, each with its own bit width."""

    word_bits: int

    @property
    def num_buffers(self) -> int:
        """Number of buffers of a chunk."""
        return 1

    def decompress(self, buffers: Sequence[BufferSlices], num_values: Counts) -> FixedWidthBlock:
        """Decompress chunks; see `Decompressor`."""
        (packed,) = buffers
        _check_counts(num_values)
        out = _allocate(int(num_values.sum()), self.word_bits)
        total = kernels.unpack_inline(packed.data, packed.starts, packed.sizes, num_values, self.word_bits, out)
        _check_chunks(total)
        return FixedWidthBlock(out, self.word_bits, total)

    def pick(
        self, buffers: Sequence[BufferSlices], num_values: Counts, chunks: Counts, positions: Counts
    ) -> FixedWidthBlock:
        """Return some values; see `PickingDecompressor`."""
        if positions.size > _MOST_PICKED * num_values.size:
            return self.decompress(buffers, num_values).take(places_of(num_values, chunks, positions))
        (packed,) = buffers
        _check_counts(num_values)
        out = empty(positions.size * self.word_bits // 8, np.uint8)
        total = kernels.pick_inline(packed.data, packed.starts, packed.sizes, chunks, positions, self.word_bits, out)
        _check_chunks(total)
        return FixedWidthBlock(out, self.word_bits, total)


def _check_counts(num_values: Counts) -> None:
    if int(num_values.max(initial=0)) > BLOCK_VALUES:
        raise CorruptFileError(f"a bit-packed chunk has {num_values.max()} values; at most {BLOCK_VALUES} fit")


def _check_chunks(found: int) -> None:
    """Raise `CorruptFileError` if a kernel found a malformed chunk."""
    if found < 0:
        raise CorruptFileError(f"bit-packed chunk {-1 - found} has a bit width that contradicts its size")


@dataclass(frozen=True, slots=True)
class OutOfLineBitpackingDecompressor:
    """Reads packed blocks that share one bit width."""

    word_bits: int
    packed_bits: int

    @property
    def num_buffers(self) -> int:
        """Number of buffers of a chunk."""
        return 1

    def decompress(self, buffers: Sequence[BufferSlices], num_values: Counts) -> FixedWidthBlock:
        """Decompress chunks; see `Decompressor`."""
        (packed,) = buffers
        most = packed.sizes * 8 // max(self.packed_bits, 1) + BLOCK_VALUES
        is_short = (num_values > most).any() if self.packed_bits else num_values.sum() > _MAX_ZEROS
        if is_short:
            raise CorruptFileError("a bit-packed buffer is shorter than its number of values says")
        out = _allocate(int(num_values.sum()), self.word_bits)
        total = kernels.unpack_blocks(
            packed.data, packed.starts, packed.sizes, num_values, self.word_bits, self.packed_bits, out
        )
        if total < 0:
            raise CorruptFileError(f"bit-packed buffer {-1 - total} has a size that contradicts its number of values")
        return FixedWidthBlock(out, self.word_bits, total)


def parse_inline(encoding: encodings_pb2.CompressiveEncoding) -> InlineBitpackingDecompressor:
    """Build the decompressor that an inline encoding describes; see `parse_decompressor`."""
    inline = encoding.inline_bitpacking
    if inline.HasField("values") and inline.values.scheme:
        raise NotSupportedError("bit-packed values whose buffer is compressed are not supported")
    return InlineBitpackingDecompressor(_word_bits(inline.uncompressed_bits_per_value))


def parse_out_of_line(encoding: encodings_pb2.CompressiveEncoding) -> OutOfLineBitpackingDecompressor:
    """Build the decompressor that an out-of-line encoding describes; see `parse_decompressor`."""
    outer = encoding.out_of_line_bitpacking
    if outer.values.WhichOneof("compression") != "flat":
        raise NotSupportedError("out-of-line bit packing is supported over flat values only")
    word_bits = _word_bits(outer.uncompressed_bits_per_value)
    packed_bits = outer.values.flat.bits_per_value
    if packed_bits > word_bits:
        raise CorruptFileError(f"words of {word_bits} bits are said to be packed into {packed_bits}")
    return OutOfLineBitpackingDecompressor(word_bits, packed_bits)


def _word_bits(bits: int) -> int:
    if bits not in WORD_BITS:
        raise CorruptFileError(f"bit-packed words of {bits} bits; expected one of {WORD_BITS}")
    return bits


def measure(block: FixedWidthBlock) -> tuple[Counts, int]:
    """Return the bits that each 1,024 values need, and the number of runs of equal values.

    Parameters
    ----------
    block : FixedWidthBlock
        At least one value; `bits_per_value` is one of `WORD_BITS`.
    """
    widths = np.empty(-(-block.num_values // BLOCK_VALUES), np.int64)
    num_runs = kernels.measure_words(block.words, widths)
    return widths, num_runs


def block_widths(block: FixedWidthBlock) -> Counts:
    """Return the bits that each 1,024 values need; see `measure`."""
    return measure(block)[0]


def inline_size(widths: Counts, word_bits: int) -> int:
    """Return the bytes of inline-packed blocks of these bit widths."""
    return int((widths * (BLOCK_VALUES // 8) + word_bits // 8).sum())


def compress_inline(block: FixedWidthBlock, widths: Counts) -> CompressedChunks:
    """Pack a block into chunks of 1,024 values; `widths` is what `block_widths` returns."""
    bits = block.bits_per_value
    out = empty(inline_size(widths, bits), np.uint8)
    kernels.pack_inline(block.data[: block.size_bytes], widths, bits, out)
    sizes = widths * (BLOCK_VALUES // 8) + bits // 8
    encoding = encodings_pb2.CompressiveEncoding(
        inline_bitpacking=encodings_pb2.InlineBitpacking(uncompressed_bits_per_value=bits)
    )
    return CompressedChunks((out,), (sizes,), flat.chunk_counts(block.num_values, BLOCK_VALUES), encoding)


def out_of_line_sizes(num_values: Counts, word_bits: int, packed_bits: int) -> Counts:
    """Return the sizes of chunks that `compress_out_of_line` packs.

    Parameters
    ----------
    num_values : int64[num_chunks]
        Number of values of each chunk.
    word_bits : int
        Bits per value.
    packed_bits : int
        Bits per packed value.

    Returns
    -------
    int64[num_chunks]
        Bytes of each chunk.
    """
    packed_bytes = packed_bits * BLOCK_VALUES // 8
    tails = num_values % BLOCK_VALUES * (word_bits // 8)
    return np.asarray(num_values // BLOCK_VALUES * packed_bytes + np.minimum(tails, packed_bytes))


def compress_out_of_line(block: FixedWidthBlock, num_values: Counts, packed_bits: int) -> CompressedChunks:
    """Pack chunks of any number of values with one bit width.

    Parameters
    ----------
    block : FixedWidthBlock
        The values of all chunks.
    num_values : int64[num_chunks]
        Number of values of each chunk.
    packed_bits : int
        Bits per packed value, which every value fits.
    """
    bits = block.bits_per_value
    sizes = np.empty(len(num_values), np.int64)
    out = empty(block.size_bytes + len(num_values) * packed_bits * BLOCK_VALUES // 8, np.uint8)
    written = kernels.pack_blocks(block.data[: block.size_bytes], num_values, bits, packed_bits, out, sizes)
    encoding = encodings_pb2.CompressiveEncoding(
        out_of_line_bitpacking=encodings_pb2.OutOfLineBitpacking(
            uncompressed_bits_per_value=bits, values=flat.describe(packed_bits)
        )
    )
    return CompressedChunks((out[:written],), (sizes,), num_values, encoding)
