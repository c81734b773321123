"""Bitpacked: integers with the bits that the largest needs, side by side without gaps.

    │ value 0: W bits │ value 1: W bits │ …        the least significant bit first

If some are negative, each has a sign bit, which is repeated when they are widened to the bits of their type. Early
writers made such pages.
"""

from __future__ import annotations

from lance_format.array_encodings.array import ArrayShape, DecodedArray, Planned
from lance_format.array_encodings.buffers import ArrayPage
from lance_format.array_encodings.flat import check_room
from lance_format.array_encodings.row_ranges import RowRanges
from lance_format.array_encodings.value_slices import plan_slices
from lance_format.errors import CorruptFileError
from lance_format.proto import array_encodings_pb2

_WORD_BITS = (8, 16, 32, 64)


class BitpackedReader:
    """Reads packed integers.

    Parameters
    ----------
    encoding : Bitpacked
    page : ArrayPage
    num_rows : int or None
    shape : ArrayShape

    Raises
    ------
    CorruptFileError
        If the values are not those of the column, or the buffer lacks some of them.
    """

    def __init__(
        self, encoding: array_encodings_pb2.Bitpacked, page: ArrayPage, num_rows: int | None, shape: ArrayShape
    ) -> None:
        self._bits, self._word_bits = packed_bits(encoding, shape)
        self._signed = encoding.signed
        self._buffer = page.buffer(encoding.buffer)
        check_room(self._buffer.size, self._bits, num_rows)

    def plan(self, ranges: RowRanges) -> Planned[DecodedArray]:
        """Plan the reading of some rows; see `ArrayReader`."""
        check_room(self._buffer.size, self._bits, int(ranges.ends[-1]))
        slices = yield from plan_slices(self._buffer, self._bits, ranges)
        block = slices.join(self._word_bits, signed=self._signed)
        return DecodedArray(block, None, block.num_values)


def packed_bits(
    encoding: array_encodings_pb2.Bitpacked | array_encodings_pb2.BitpackedForNonNeg, shape: ArrayShape
) -> tuple[int, int]:
    """Return the bits of a stored value, and of a value in memory.

    Raises
    ------
    CorruptFileError
        If the column has other values, or values are wider stored than read.
    """
    stored, read = encoding.compressed_bits_per_value, encoding.uncompressed_bits_per_value
    if read not in _WORD_BITS or not 0 < stored <= read:
        raise CorruptFileError(f"a page has values of {read} bits packed into {stored}")
    if not shape.is_plain or shape.values.bits_per_value not in (None, read):
        raise CorruptFileError(f"a page holds packed integers of {read} bits, which those of the column are not")
    return stored, read
