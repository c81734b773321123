"""Values of one width in a buffer, and reading ranges of them."""

from __future__ import annotations

import numpy as np

from lance_format.array_encodings.array import Planned
from lance_format.array_encodings.row_ranges import RowRanges
from lance_format.byte_io import ByteRange
from lance_format.data_block import Bytes, Counts, FixedWidthBlock
from lance_format.kernels.compression import bits as kernels
from lance_format.kernels.pages.mini_block import copy_slices
from lance_format.lazy_dataclasses import dataclass
from lance_format.memory import empty
from lance_format.structural.page import merge_extents


@dataclass(frozen=True, slots=True)
class ValueSlices:
    """Slices of values, side by side within each slice.

    Parameters
    ----------
    data : uint8[…]
    starts : int64[num_slices]
        The bit of `data` at which each slice starts.
    counts : int64[num_slices]
        The values of each slice, which lie within `data`.
    bits_per_value : int
    """

    data: Bytes
    starts: Counts
    counts: Counts
    bits_per_value: int

    def join(self, word_bits: int, *, signed: bool = False) -> FixedWidthBlock:
        """Return the values of all slices, one after the other.

        Parameters
        ----------
        word_bits : int
            Bits of a value in the result: those of a stored value if these are 1 or a multiple of 8, else 8, 16, 32 or
            64.
        signed : bool
            Whether the highest bit of a value is repeated when it is widened.
        """
        bits, count = self.bits_per_value, int(self.counts.sum())
        if bits != word_bits:
            words = empty(count, f"<u{word_bits // 8}")
            kernels.unpack_values(self.data, self.starts, self.counts, bits, signed, words)
            return FixedWidthBlock(words.view(np.uint8), word_bits, count)
        if self.starts.size == 1 and self.starts[0] % 8 == 0:
            first = int(self.starts[0]) // 8
            return FixedWidthBlock(self.data[first : first + (count * bits + 7) // 8], bits, count)
        if bits % 8:
            packed = np.zeros((count + 7) // 8, np.uint8)
            kernels.gather_bits(self.data, self.starts, self.counts, packed)
            return FixedWidthBlock(packed, bits, count)
        out = empty(count * bits // 8, np.uint8)
        copy_slices(self.data, self.starts // 8, self.counts * (bits // 8), out)
        return FixedWidthBlock(out, bits, count)


def plan_slices(buffer: ByteRange, bits_per_value: int, ranges: RowRanges) -> Planned[ValueSlices]:
    """Plan the reading of ranges of values within a buffer.

    Parameters
    ----------
    buffer : ByteRange
    bits_per_value : int
    ranges : RowRanges
    """
    begins, ends = ranges.begins * bits_per_value, ranges.ends * bits_per_value
    first_bytes, end_bytes = begins // 8, (ends + 7) // 8
    if ranges.count == 1:
        first, end = int(first_bytes[0]), int(end_bytes[0])
        (data,) = yield [ByteRange(buffer.offset + first, end - first)]
        return ValueSlices(data, begins % 8, ranges.sizes, bits_per_value)
    extents = merge_extents(buffer.offset, first_bytes, end_bytes)
    data = extents.join((yield extents.ranges))
    return ValueSlices(data, extents.positions * 8 + begins % 8, ranges.sizes, bits_per_value)
