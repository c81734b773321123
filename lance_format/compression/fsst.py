"""FSST: byte strings whose frequent pieces are replaced by one byte each.

Boncz, Neumann and Leis, "FSST: Fast Random Access String Compression", VLDB 2020; encoding strategy document, "Fsst".
Each value is compressed separately, so this is legal both for mini-block and for full-zip values. The compressed values
are byte strings again, which an inner compression stores. The symbol table is part of the encoding:

    │ symbols: u8 │ terminator: u8 │ suffix limit: u8 │ switch: u8 │ "TSSF" │
    │ symbol 0: 8 bytes │ symbol 1 │ … │ length of symbol 0: u8 │ length of symbol 1 │ … │ zeros up to 2,312 bytes │

Terminator and suffix limit help some encoders only. A switch of 0 means that the values are not compressed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lance_format.compression.codec import Decompressor, PerValueDecompressor, pick
from lance_format.compression.samples import spread
from lance_format.data_block import (
    MAX_INT32,
    BufferSlices,
    Bytes,
    Counts,
    DataBlock,
    ValueBlock,
    VariableWidthBlock,
    join_byte_strings,
)
from lance_format.errors import CorruptFileError
from lance_format.kernels.compression import fsst as kernels
from lance_format.kernels.compression import fsst_training
from lance_format.kernels.pages.mini_block import copy_slices
from lance_format.lazy_dataclasses import dataclass
from lance_format.memory import empty
from lance_format.proto import encodings_pb2

MIN_BYTES = 32 * 1024
"""Minimum size that is worth a symbol table."""

MIN_LONGEST_VALUE = 5
"""Minimum length of the longest string: shorter strings gain nothing."""

SYMBOL_BYTES = 8
"""Maximum size of the bytes that a code stands for."""

_TABLE_BYTES = 2312
_HEADER_BYTES = 8
_MAGIC = b"TSSF"
_SWITCH = 3
_LEAST_SAMPLE_BYTES = 16 * 1024
_MOST_SAMPLE_BYTES = 32 * 1024
_SAMPLED_PART = 8  # Training takes longer than encoding as many bytes.
_MAX_SAMPLE_PIECE = 512
_MOST_OF_SAMPLE = 0.95
_SAMPLED_CODES = 4096
_ROOM = 1.06
_LEAST_ROOM = 64 * 1024


@dataclass(frozen=True, slots=True)
class SymbolTable:
    """The symbols of codes 0, 1, …

    Parameters
    ----------
    symbols : uint64[256]
        Bytes, the first lowest; 0 for codes without a symbol.
    lengths : uint8[256]
        Bytes, 0 for codes without a symbol.
    is_used : bool
        Whether values are compressed at all.
    """

    symbols: npt.NDArray[np.uint64]
    lengths: Bytes
    is_used: bool

    @classmethod
    def parse(cls, table: bytes) -> SymbolTable:
        """Read a symbol table.

        Raises
        ------
        CorruptFileError
            If its size, mark or a symbol's length is wrong.
        """
        if len(table) != _TABLE_BYTES or table[4:_HEADER_BYTES] != _MAGIC:
            raise CorruptFileError(f"an FSST symbol table of {len(table)} bytes; expected {_TABLE_BYTES} and a mark")
        count = table[0]
        symbols = np.zeros(256, np.uint64)
        lengths = np.zeros(256, np.uint8)
        end = _HEADER_BYTES + count * SYMBOL_BYTES
        symbols[:count] = np.frombuffer(table, "<u8", count, _HEADER_BYTES)
        lengths[:count] = np.frombuffer(table, np.uint8, count, end)
        if count and not 1 <= lengths[:count].min() <= lengths[:count].max() <= SYMBOL_BYTES:
            raise CorruptFileError("an FSST symbol has a length that is not 1 to 8")
        return cls(symbols, lengths, bool(table[_SWITCH] & 1))

    def serialize(self) -> bytes:
        """Write the symbol table."""
        count = int(np.count_nonzero(self.lengths))
        header = bytes([count, 0, 0, int(self.is_used)]) + _MAGIC
        table = header + self.symbols[:count].astype("<u8").tobytes() + self.lengths[:count].tobytes()
        return table.ljust(_TABLE_BYTES, b"\0")

    def _likely_bytes(self, values: VariableWidthBlock) -> int:
        """Return somewhat more than the bytes that values probably have, of which all could be the longest symbols."""
        codes = values.data[int(values.offsets[0]) : int(values.offsets[-1])]
        sample = codes[:: codes.size // _SAMPLED_CODES + 1]
        lengths = np.maximum(self.lengths, 1)  # An escape and the byte after it count as at least one.
        return int(codes.size * lengths[sample].mean() * _ROOM) + _LEAST_ROOM if codes.size else _LEAST_ROOM

    def decode(self, values: VariableWidthBlock) -> VariableWidthBlock:
        """Decompress values.

        Raises
        ------
        CorruptFileError
            If a value has a code without a symbol or ends within an escape.
        """
        if not self.is_used:
            return values
        longest = max(int(self.lengths.max()), 1)
        most = values.size_bytes * longest + kernels.SLACK
        wide = values.bits_per_offset == 64 or most > MAX_INT32
        offsets = empty(values.num_values + 1, np.int64 if wide else np.int32)
        for room in (min(self._likely_bytes(values), most), most):
            out = empty(room, np.uint8)
            size = kernels.decode(values.data, values.offsets, self.symbols, self.lengths, longest, out, offsets)
            if size != kernels.NO_ROOM:
                break
        if size < 0:
            raise CorruptFileError(f"FSST value {-1 - size} has a code without a symbol or ends within an escape")
        return VariableWidthBlock(out[:size], offsets)


@dataclass(frozen=True, slots=True)
class FsstDecompressor:
    """Reads mini-block chunks of compressed byte strings."""

    table: SymbolTable
    inner: Decompressor

    @property
    def num_buffers(self) -> int:
        """Number of buffers of a chunk."""
        return self.inner.num_buffers

    def decompress(self, buffers: Sequence[BufferSlices], num_values: Counts) -> DataBlock:
        """Decompress chunks; see `Decompressor`."""
        return self.table.decode(_byte_strings(self.inner.decompress(buffers, num_values)))

    def pick(
        self, buffers: Sequence[BufferSlices], num_values: Counts, chunks: Counts, positions: Counts
    ) -> VariableWidthBlock:
        """Return some values; see `PickingDecompressor`."""
        return self.table.decode(_byte_strings(pick(self.inner, buffers, num_values, chunks, positions)))


def pick_from_pages(
    pages: Sequence[FsstDecompressor],
    num_picked: Sequence[int],
    buffers: Sequence[BufferSlices],
    num_values: Counts,
    chunks: Counts,
    positions: Counts,
) -> VariableWidthBlock:
    """Return some values of the chunks of pages, each of which has its own symbols.

    Parameters
    ----------
    pages : sequence of FsstDecompressor
        Their inner compressions are the same.
    num_picked : sequence of int
        For each page, the number of values; those of a page follow each other.
    buffers, num_values, chunks, positions
        See `PickingDecompressor.pick`.

    Raises
    ------
    CorruptFileError
        If the bytes contradict the encoding.
    """
    codes, start, decoded = _byte_strings(pick(pages[0].inner, buffers, num_values, chunks, positions)), 0, []
    for page, count in zip(pages, num_picked, strict=True):
        decoded.append(page.table.decode(codes.slice(start, start + count)))
        start += count
    return join_byte_strings(decoded)


@dataclass(frozen=True, slots=True)
class FsstPerValueDecompressor:
    """Decompresses full-zip byte strings."""

    table: SymbolTable
    inner: PerValueDecompressor

    def decompress_values(self, values: DataBlock) -> DataBlock:
        """Decompress values; see `PerValueDecompressor`."""
        return self.table.decode(_byte_strings(self.inner.decompress_values(values)))


def _byte_strings(block: ValueBlock) -> VariableWidthBlock:
    if not isinstance(block, VariableWidthBlock):
        raise CorruptFileError("FSST is applied to values of a fixed width")
    return block


def compress(block: VariableWidthBlock) -> tuple[VariableWidthBlock, SymbolTable] | None:
    """Compress values, or return None if that does not make them shorter.

    The encoding is that of `describe`, given the table and the encoding of the result.
    """
    offsets = block.offsets - block.offsets[0]
    first, last = int(block.offsets[0]), int(block.offsets[-1])
    data = np.empty(last - first + kernels.SLACK, np.uint8)
    data[: last - first] = block.data[first:last]
    data[last - first :] = 0
    table = _train(data, offsets)
    if table is None:
        return None
    byte_codes = np.empty(256, np.uint16)
    pair_codes = np.empty(65536, np.uint16)
    slot_codes = np.zeros(kernels.HASH_SLOTS, np.uint16)
    slot_lengths = np.empty(kernels.HASH_SLOTS, np.uint8)
    count = int(np.count_nonzero(table.lengths))
    kernels.index_symbols(table.symbols, table.lengths, count, byte_codes, pair_codes, slot_codes, slot_lengths)
    out = empty(2 * data.size, np.uint8)
    out_offsets = empty(offsets.size, offsets.dtype)
    size = kernels.encode(
        data, offsets, table.symbols, byte_codes, pair_codes, slot_codes, slot_lengths, out, out_offsets
    )
    if size + _TABLE_BYTES >= last - first:
        return None
    return VariableWidthBlock(out[:size], out_offsets), table


def _train(data: Bytes, offsets: npt.NDArray[np.int32] | npt.NDArray[np.int64]) -> SymbolTable | None:
    """Find symbols for byte strings in a sample of them; return None if the gain is too small."""
    sizes, total = np.diff(offsets), int(offsets[-1])
    mean = min(total // sizes.size, _MAX_SAMPLE_PIECE)
    sampled = min(max(total // _SAMPLED_PART, _LEAST_SAMPLE_BYTES), _MOST_SAMPLE_BYTES)
    pieces = min(max(sampled // max(mean, 1), 1), sizes.size)
    chosen = spread(sizes.size, pieces)
    taken = np.minimum(sizes[chosen], _MAX_SAMPLE_PIECE).astype(np.int64)
    # A piece of each long value, at varied but deterministic places.
    room = sizes[chosen].astype(np.int64) - taken
    starts = offsets[chosen].astype(np.int64) + room * (np.arange(pieces) % 17) // 17
    sample_offsets = np.zeros(pieces + 1, np.int64)
    np.cumsum(taken, out=sample_offsets[1:])
    kept = int(np.searchsorted(sample_offsets, fsst_training.MAX_SAMPLE_BYTES, "right")) - 1  # All chosen may be long.
    starts, taken, sample_offsets = starts[:kept], taken[:kept], sample_offsets[: kept + 1]
    sample = np.zeros(int(sample_offsets[-1]) + kernels.SLACK, np.uint8)
    copy_slices(data, starts, taken, sample)
    symbols = np.zeros(256, np.uint64)
    lengths = np.zeros(256, np.uint8)
    most = fsst_training.MAX_SYMBOLS
    size = fsst_training.train(sample, sample_offsets, symbols[:most], lengths[:most])
    return SymbolTable(symbols, lengths, True) if size < int(sample_offsets[-1]) * _MOST_OF_SAMPLE else None


def describe(inner: encodings_pb2.CompressiveEncoding, table: SymbolTable) -> encodings_pb2.CompressiveEncoding:
    """Return the encoding of compressed byte strings, which `inner` stores."""
    return encodings_pb2.CompressiveEncoding(fsst=encodings_pb2.Fsst(symbol_table=table.serialize(), values=inner))
