"""Run-length encoding: every run of equal values once, and its length.

Encoding strategy document, "Run Length Encoding (RLE)". Values have 8, 16, 32 or 64 bits, lengths a byte; runs of more
than 255 values are split. Legal for mini-block values, as two buffers:

    │ value 0 │ value 1 │ … │        │ u8 length 0 │ u8 length 1 │ … │

and for levels, as one:

    │ u64 bytes of values │ value 0 │ value 1 │ … │ u8 length 0 │ u8 length 1 │ … │

A written mini-block chunk holds at most 4,096 values and 4 KiB of runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.compression import flat
from lance_format.compression.codec import CompressedChunks
from lance_format.data_block import BufferSlices, Bytes, Counts, FixedWidthBlock
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.kernels.compression import rle as kernels
from lance_format.lazy_dataclasses import dataclass
from lance_format.memory import empty
from lance_format.proto import encodings_pb2

WORD_BITS = (8, 16, 32, 64)
MAX_RUN = 255
_LENGTH_BITS = 8
_HEADER_BYTES = 8
_MAX_CHUNK_VALUES = 4096
_MAX_CHUNK_BYTES = 4096


@dataclass(frozen=True, slots=True)
class RleDecompressor:
    """Reads mini-block chunks of runs."""

    bits_per_value: int

    @property
    def num_buffers(self) -> int:
        """Number of buffers of a chunk."""
        return 2

    def decompress(self, buffers: Sequence[BufferSlices], num_values: Counts) -> FixedWidthBlock:
        """Decompress chunks; see `Decompressor`."""
        values, lengths = self._split(buffers)
        return _expand(values, lengths, num_values, self.bits_per_value)

    def values_of_runs(self, buffers: Sequence[BufferSlices]) -> FixedWidthBlock:
        """Return the value of each run of all chunks, one after the other."""
        values, lengths = self._split(buffers)
        return flat.FlatDecompressor(self.bits_per_value).decompress([values], lengths.sizes)

    def pick(
        self, buffers: Sequence[BufferSlices], num_values: Counts, chunks: Counts, positions: Counts
    ) -> FixedWidthBlock:
        """Return some values; see `PickingDecompressor`."""
        values, lengths = self._split(buffers)
        words, firsts = _words_of_runs(values, lengths, num_values, self.bits_per_value)
        out = empty(positions.size, words.dtype)
        found = kernels.pick_runs(words, firsts, lengths.sizes, lengths.data, lengths.starts, chunks, positions, out)
        if found < 0:
            raise _too_short(-1 - found)
        return FixedWidthBlock(out.view(np.uint8), self.bits_per_value, out.size)

    def _split(self, buffers: Sequence[BufferSlices]) -> tuple[BufferSlices, BufferSlices]:
        """Return the values and the lengths of runs."""
        values, lengths = buffers
        if (values.sizes != lengths.sizes * (self.bits_per_value // 8)).any():
            raise CorruptFileError("a run-length encoded chunk has another number of values than of lengths")
        return values, lengths


@dataclass(frozen=True, slots=True)
class BlockRleDecompressor:
    """Reads run-length encoded blocks."""

    bits_per_value: int

    @property
    def num_buffers(self) -> int:
        """Number of buffers of a chunk."""
        return 1

    def decompress(self, buffers: Sequence[BufferSlices], num_values: Counts) -> FixedWidthBlock:
        """Decompress chunks; see `Decompressor`."""
        (runs,) = buffers
        if (runs.sizes < _HEADER_BYTES).any():
            raise CorruptFileError("a run-length encoded buffer is shorter than its header")
        width = self.bits_per_value // 8
        header = runs.data[runs.starts[:, np.newaxis] + np.arange(_HEADER_BYTES)]
        value_bytes = np.ascontiguousarray(header).view("<u8").ravel()
        num_runs = (value_bytes // np.uint64(width)).astype(np.int64)
        wrong = (value_bytes % np.uint64(width) != 0) | (value_bytes > runs.sizes.astype(np.uint64))
        if (wrong | (runs.sizes != _HEADER_BYTES + num_runs * (width + 1))).any():
            raise CorruptFileError("the size of a run-length encoded buffer contradicts its header")
        values = BufferSlices(runs.data, runs.starts + _HEADER_BYTES, num_runs * width)
        lengths = BufferSlices(runs.data, values.starts + values.sizes, num_runs)
        return _expand(values, lengths, num_values, self.bits_per_value)


def _expand(values: BufferSlices, lengths: BufferSlices, num_values: Counts, bits: int) -> FixedWidthBlock:
    words, firsts = _words_of_runs(values, lengths, num_values, bits)
    out = empty(int(num_values.sum()) + kernels.FILL_VALUES, words.dtype)
    total = kernels.expand_runs(words, firsts, lengths.sizes, lengths.data, lengths.starts, num_values, out)
    if total < 0:
        raise _too_short(-1 - total)
    return FixedWidthBlock(out[:total].view(np.uint8), bits, total)


def _words_of_runs(
    values: BufferSlices, lengths: BufferSlices, num_values: Counts, bits: int
) -> tuple[npt.NDArray[Any], Counts]:
    """Return the data of values as words, and the index of the first value of each chunk."""
    width = bits // 8
    if (num_values > lengths.sizes * MAX_RUN).any():
        raise CorruptFileError("a run-length encoded buffer is shorter than its number of values says")
    if (values.starts % width).any():
        raise CorruptFileError("a run-length encoded buffer starts between two words")
    return values.data[: values.data.size // width * width].view(f"<u{width}"), values.starts // width


def _too_short(number: int) -> CorruptFileError:
    return CorruptFileError(f"run-length encoded buffer {number} contradicts its number of values")


def parse(encoding: encodings_pb2.CompressiveEncoding) -> RleDecompressor:
    """Build the decompressor that an encoding of mini-block values describes."""
    return RleDecompressor(_bits_per_value(encoding.rle))


def parse_block(encoding: encodings_pb2.CompressiveEncoding) -> BlockRleDecompressor:
    """Build the decompressor that an encoding of a block describes."""
    return BlockRleDecompressor(_bits_per_value(encoding.rle))


def _bits_per_value(rle: encodings_pb2.Rle) -> int:
    values, lengths = rle.values, rle.run_lengths
    if values.WhichOneof("compression") != "flat" or lengths.WhichOneof("compression") != "flat":
        raise NotSupportedError("run-length encoding ('rle') is supported over flat values and lengths only")
    if lengths.flat.bits_per_value != _LENGTH_BITS:
        raise CorruptFileError(f"run lengths of {lengths.flat.bits_per_value} bits; expected {_LENGTH_BITS}")
    bits = values.flat.bits_per_value
    if bits not in WORD_BITS:
        raise CorruptFileError(f"run-length encoded values of {bits} bits; expected one of {WORD_BITS}")
    return bits


def describe(bits_per_value: int) -> encodings_pb2.CompressiveEncoding:
    """Return the encoding of runs."""
    rle = encodings_pb2.Rle(values=flat.describe(bits_per_value), run_lengths=flat.describe(_LENGTH_BITS))
    return encodings_pb2.CompressiveEncoding(rle=rle)


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of equal values, of any lengths.

    Parameters
    ----------
    values : FixedWidthBlock
        The value of each; at least one.
    ends : int64[num_runs]
        The index after the last value of each.
    """

    values: FixedWidthBlock
    ends: Counts

    @classmethod
    def find(cls, block: FixedWidthBlock, num_runs: int) -> Runs:
        """Find the runs of a non-empty block that has so many."""
        words = block.words
        values, ends = empty(num_runs, words.dtype), np.empty(num_runs, np.int64)
        kernels.find_runs(words, values, ends)
        return cls(FixedWidthBlock(values.view(np.uint8), block.bits_per_value, num_runs), ends)

    def num_not_zero(self) -> int:
        """Return the number of values that are not 0."""
        return int(np.diff(self.ends, prepend=0)[self.values.words != 0].sum())

    def expand(self) -> FixedWidthBlock:
        """Return the block that has these runs."""
        words = np.repeat(self.values.words, np.diff(self.ends, prepend=0))
        return FixedWidthBlock(words.view(np.uint8), self.values.bits_per_value, words.size)

    def compress(self) -> CompressedChunks:
        """Encode the block that has these runs."""
        num_runs, num_values = self.ends.size, int(self.ends[-1])
        words, width = self.values.words, self.values.bytes_per_value
        max_runs = _MAX_CHUNK_BYTES // (width + 1)
        room = num_runs + num_values // MAX_RUN + num_values // max_runs * 2 + 2 * max_runs
        values, lengths = empty(room, words.dtype), empty(room, np.uint8)
        chunk_values = np.empty(num_values // (max_runs // 2) + 2, np.int64)
        chunk_runs = np.empty_like(chunk_values)
        chunks = kernels.pack_chunks(
            words, self.ends, _MAX_CHUNK_VALUES, max_runs, values, lengths, chunk_values, chunk_runs
        )
        chunk_runs = chunk_runs[:chunks]
        runs = int(chunk_runs.sum())
        buffers: tuple[Bytes, ...] = (values[:runs].view(np.uint8), lengths[:runs])
        encoding = describe(self.values.bits_per_value)
        return CompressedChunks(buffers, (chunk_runs * width, chunk_runs), chunk_values[:chunks], encoding)


def estimate_size(num_runs: int, num_values: int, bits_per_value: int) -> int:
    """Estimate the bytes of runs.

    Parameters
    ----------
    num_runs, num_values : int
    bits_per_value : int
    """
    return (num_runs + num_values // MAX_RUN) * (bits_per_value // 8 + 1)


def compress(block: FixedWidthBlock, num_runs: int) -> CompressedChunks:
    """Encode a non-empty block; `num_runs` is the number of its runs."""
    return Runs.find(block, num_runs).compress()


def block_sizes(block: FixedWidthBlock, num_values: Counts) -> Counts:
    """Return the bytes of chunks that `compress_blocks` encodes."""
    num_runs = np.empty(len(num_values), np.int64)
    kernels.measure_blocks(block.words, num_values, num_runs)
    return np.asarray(_HEADER_BYTES + num_runs * (block.bytes_per_value + 1))


def compress_blocks(block: FixedWidthBlock, num_values: Counts) -> CompressedChunks:
    """Encode chunks of any number of values as blocks."""
    sizes = block_sizes(block, num_values)
    out = empty(int(sizes.sum()), np.uint8)
    kernels.pack_blocks(block.words, num_values, sizes, out)
    return CompressedChunks((out,), (sizes,), num_values, describe(block.bits_per_value))
