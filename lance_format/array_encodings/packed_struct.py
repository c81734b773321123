"""Packed struct: the fields of a struct side by side in one buffer. Fields have a fixed width, and no nulls.

│ field 0 of row 0 │ field 1 of row 0 │ … │ field 0 of row 1 │ …
"""

from __future__ import annotations

from collections.abc import Sequence

from lance_format.array_encodings.array import DecodedArray, Planned
from lance_format.array_encodings.flat import check_room
from lance_format.array_encodings.row_ranges import RowRanges
from lance_format.array_encodings.value_slices import plan_slices
from lance_format.byte_io import ByteRange
from lance_format.compression.packed_struct import PackedStructDecompressor
from lance_format.data_block import PackedStructBlock


class PackedStructReader:
    """Reads packed structs.

    Parameters
    ----------
    bits_per_field : sequence of int
        Multiples of 8; at least one.
    buffer : ByteRange
    num_rows : int or None

    Raises
    ------
    CorruptFileError
        If the buffer lacks some rows.
    """

    def __init__(self, bits_per_field: Sequence[int], buffer: ByteRange, num_rows: int | None) -> None:
        self._codec = PackedStructDecompressor(tuple(bits_per_field))
        self._bits = sum(bits_per_field)
        self._buffer = buffer
        check_room(buffer.size, self._bits, num_rows)

    def plan(self, ranges: RowRanges) -> Planned[DecodedArray]:
        """Plan the reading of some rows; see `ArrayReader`."""
        check_room(self._buffer.size, self._bits, int(ranges.ends[-1]))
        slices = yield from plan_slices(self._buffer, self._bits, ranges)
        rows = slices.join(self._bits)
        return DecodedArray(PackedStructBlock(rows, self._codec), None, rows.num_values)
