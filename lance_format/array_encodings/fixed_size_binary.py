"""Fixed-size binary: byte strings that are all of the same size, one after the other. Early writers made such pages.

│ bytes of value 0 │ bytes of value 1 │ …
"""

from __future__ import annotations

import numpy as np

from lance_format.array_encodings.array import ArrayReader, DecodedArray, Planned
from lance_format.array_encodings.row_ranges import RowRanges
from lance_format.data_block import FixedWidthBlock, VariableWidthBlock
from lance_format.errors import CorruptFileError

_MAX_INT32 = 2**31 - 1


class FixedSizeBinaryReader:
    """Reader of byte strings of one size.

    Parameters
    ----------
    values : ArrayReader
    values_per_row : int
        Number of values per string: one, or its number of bytes.
    byte_width : int
        At least 1.
    bits_per_offset : int
        32 or 64: bits of an offset of the result.
    """

    def __init__(self, values: ArrayReader, values_per_row: int, byte_width: int, bits_per_offset: int) -> None:
        self._values = values
        self._values_per_row = values_per_row
        self._width = byte_width
        self._wide = bits_per_offset == 64

    def plan(self, ranges: RowRanges) -> Planned[DecodedArray]:
        """Plan the reading of some rows; see `ArrayReader`."""
        found = yield from self._values.plan(ranges.scaled(self._values_per_row))
        if found.values is None:
            return DecodedArray(None, None, ranges.num_rows)
        if not isinstance(found.values, FixedWidthBlock) or found.validity is not None:
            raise CorruptFileError("byte strings of a fixed size are not flat, or are null")
        data = found.values.data[: found.values.size_bytes]
        wide = self._wide or data.size > _MAX_INT32
        offsets = np.arange(ranges.num_rows + 1, dtype=np.int64 if wide else np.int32) * self._width
        return DecodedArray(VariableWidthBlock(data, offsets), None, ranges.num_rows)
