"""Bitpacked for non-negative: integers with the bits that the largest needs, in blocks of the FastLanes order.

`kernels/compression/bitpacking.py` has the order. Each block holds 1,024 values, the last one padded by zeros, in
W * 128 bytes:

    │ block 0 │ block 1 │ …
"""

from __future__ import annotations

import numpy as np

from lance_format.array_encodings.array import ArrayShape, DecodedArray, Planned
from lance_format.array_encodings.bitpacked import packed_bits
from lance_format.array_encodings.buffers import ArrayPage
from lance_format.array_encodings.row_ranges import RowRanges, without_empty
from lance_format.array_encodings.value_slices import ValueSlices, plan_slices
from lance_format.data_block import Bytes, Counts
from lance_format.errors import CorruptFileError
from lance_format.kernels.compression import bitpacking as kernels
from lance_format.memory import empty
from lance_format.proto import array_encodings_pb2

_BLOCK = kernels.BLOCK_VALUES


class BitpackedForNonNegReader:
    """Reads blocks of packed integers.

    Parameters
    ----------
    encoding : BitpackedForNonNeg
    page : ArrayPage
    num_rows : int or None
    shape : ArrayShape

    Raises
    ------
    CorruptFileError
        If the values are not those of the column, or the buffer lacks some of them.
    """

    def __init__(
        self,
        encoding: array_encodings_pb2.BitpackedForNonNeg,
        page: ArrayPage,
        num_rows: int | None,
        shape: ArrayShape,
    ) -> None:
        self._bits, self._word_bits = packed_bits(encoding, shape)
        self._buffer = page.buffer(encoding.buffer)
        self._check(0 if num_rows is None else num_rows)

    def _check(self, num_rows: int) -> None:
        blocks = -(-num_rows // _BLOCK)
        if self._buffer.size < blocks * self._bits * _BLOCK // 8:
            raise CorruptFileError(
                f"a buffer of {self._buffer.size} bytes is to hold {blocks} blocks of values of {self._bits} bits"
            )

    def plan(self, ranges: RowRanges) -> Planned[DecodedArray]:
        """Plan the reading of some rows; see `ArrayReader`. Each block with wanted rows is read once."""
        self._check(int(ranges.ends[-1]))
        wanted = without_empty(ranges.begins // _BLOCK, -(-ranges.ends // _BLOCK))
        blocks = _union(wanted)
        packed = yield from plan_slices(self._buffer, self._bits * _BLOCK, blocks)
        words = self._unpack(packed.join(self._bits * _BLOCK).data, blocks.num_rows)
        firsts = np.cumsum(blocks.sizes) - blocks.sizes
        positions = np.searchsorted(blocks.begins, ranges.begins // _BLOCK, side="right") - 1
        starts: Counts = ranges.begins + (firsts[positions] - blocks.begins[positions]) * _BLOCK
        block = ValueSlices(words, starts * self._word_bits, ranges.sizes, self._word_bits).join(self._word_bits)
        return DecodedArray(block, None, block.num_values)

    def _unpack(self, packed: Bytes, num_blocks: int) -> Bytes:
        out = empty((num_blocks + 1) * _BLOCK * self._word_bits // 8, np.uint8)
        sizes = np.array([packed.size], np.int64)
        counts = np.array([num_blocks * _BLOCK], np.int64)
        kernels.unpack_blocks(packed, np.zeros(1, np.int64), sizes, counts, self._word_bits, self._bits, out)
        return out


def _union(ranges: RowRanges) -> RowRanges:
    """Merge overlapping ranges."""
    starts = np.ones(ranges.count, np.bool_)
    starts[1:] = ranges.begins[1:] > ranges.ends[:-1]
    firsts = np.flatnonzero(starts)
    return RowRanges(ranges.begins[firsts], ranges.ends[np.append(firsts[1:], ranges.count) - 1])
