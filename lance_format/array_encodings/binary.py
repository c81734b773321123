"""Binary: byte strings, one after the other, and the end of each.

buffer of ends  │ end of value 0 │ end of value 1 │ …        see `ends.py`; `null_adjustment` is added to nulls
buffer of bytes │ bytes of value 0 │ bytes of value 1 │ …    may be compressed as a whole
"""

from __future__ import annotations

import numpy as np

from lance_format.array_encodings import flat
from lance_format.array_encodings.array import ArrayReader, DecodedArray, Planned, words_of
from lance_format.array_encodings.ends import encode_ends, plan_extents
from lance_format.array_encodings.page_builder import PageBuilder
from lance_format.array_encodings.row_ranges import RowRanges
from lance_format.compression.options import CompressionOptions
from lance_format.data_block import Bytes, FixedWidthBlock, VariableWidthBlock
from lance_format.errors import CorruptFileError
from lance_format.proto import array_encodings_pb2


class BinaryReader:
    """Reader of byte strings.

    Parameters
    ----------
    ends, data : ArrayReader
    null_adjustment : int
    bits_per_offset : int
        32 or 64: bits of an offset of the result.
    """

    def __init__(self, ends: ArrayReader, data: ArrayReader, null_adjustment: int, bits_per_offset: int) -> None:
        self._ends = ends
        self._data = data
        self._amount = null_adjustment
        self._wide = bits_per_offset == 64

    def plan(self, ranges: RowRanges) -> Planned[DecodedArray]:
        """Plan the reading of some rows; see `ArrayReader`."""
        extents = yield from plan_extents(self._ends, self._amount, ranges, wide=self._wide)
        data: Bytes = np.empty(0, np.uint8)
        if extents.items.count:
            decoded = yield from self._data.plan(extents.items)
            if decoded.validity is not None:
                raise CorruptFileError("the bytes of byte strings are null")
            found = words_of(decoded, "bytes of byte strings")
            if found.dtype != np.uint8:
                raise CorruptFileError("the bytes of byte strings are wider than bytes")
            data = found.view(np.uint8)
        return DecodedArray(VariableWidthBlock(data, extents.offsets), extents.validity, ranges.num_rows)


def encode(
    block: VariableWidthBlock, validity: FixedWidthBlock | None, options: CompressionOptions, page: PageBuilder
) -> array_encodings_pb2.ArrayEncoding:
    """Encode byte strings.

    Parameters
    ----------
    block : VariableWidthBlock
        The byte strings; null ones are empty.
    validity : FixedWidthBlock or None
        A bit per row; None if no row is null.
    options : CompressionOptions
    page : PageBuilder
        The buffers are added to it.
    """
    begin, end = int(block.offsets[0]), int(block.offsets[-1])
    ends = block.offsets[1:].astype(np.uint64)
    ends -= np.uint64(begin)
    amount = end - begin + 1
    indices = encode_ends(ends, validity, amount, page)
    data = flat.encode_bytes(block.data[begin:end], page, options)
    binary = array_encodings_pb2.Binary(indices=indices, bytes=data, null_adjustment=amount)
    return array_encodings_pb2.ArrayEncoding(binary=binary)
