"""Packed struct: the fields of a struct side by side in one buffer. Fields have a fixed width, and no nulls.

│ field 0 of row 0 │ field 1 of row 0 │ … │ field 0 of row 1 │ …
"""

from __future__ import annotations

from collections.abc import Sequence

from lance_format.array_encodings import fixed_size_list, nullable
from lance_format.array_encodings.array import ArrayShape, DecodedArray, Planned
from lance_format.array_encodings.flat import check_room
from lance_format.array_encodings.page_builder import PageBuilder
from lance_format.array_encodings.row_ranges import RowRanges
from lance_format.array_encodings.value_slices import plan_slices
from lance_format.byte_io import ByteRange
from lance_format.compression.packed_struct import PackedStructDecompressor
from lance_format.data_block import FixedWidthBlock, PackedStructBlock
from lance_format.proto import array_encodings_pb2


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


def encode(rows: FixedWidthBlock, fields: Sequence[ArrayShape], page: PageBuilder) -> array_encodings_pb2.ArrayEncoding:
    """Encode the rows of packed structs.

    Parameters
    ----------
    rows : FixedWidthBlock
    fields : sequence of ArrayShape
        The shapes of the fields.
    page : PageBuilder
        The buffer is added to it.
    """
    # The encoding of a field only describes its form in the struct's buffer; it has no own buffer.
    inner = [_describe(field) for field in fields]
    packed = array_encodings_pb2.PackedStruct(inner=inner, buffer=page.add(rows.data[: rows.size_bytes]))
    return array_encodings_pb2.ArrayEncoding(packed_struct=packed)


def _describe(shape: ArrayShape) -> array_encodings_pb2.ArrayEncoding:
    if shape.items is not None:
        return nullable.no_nulls(fixed_size_list.encode(_describe(shape.items), shape.dimension))
    flat = array_encodings_pb2.Flat(bits_per_value=shape.bits, buffer=array_encodings_pb2.Buffer())
    return nullable.no_nulls(array_encodings_pb2.ArrayEncoding(flat=flat))
