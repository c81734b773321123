"""Constant: the same value for every row, in the encoding itself."""

from __future__ import annotations

import numpy as np

from lance_format.array_encodings.array import DecodedArray, Planned
from lance_format.array_encodings.row_ranges import RowRanges
from lance_format.data_block import DataBlock
from lance_format.errors import NotSupportedError

_MAX_BYTES = 2**30


class ConstantReader:
    """Repeats a value.

    Parameters
    ----------
    value : DataBlock
        Of one row.
    """

    def __init__(self, value: DataBlock) -> None:
        self._value = value

    def plan(self, ranges: RowRanges) -> Planned[DecodedArray]:
        """Plan the reading of some rows; see `ArrayReader`."""
        yield from ()
        if ranges.num_rows * max(self._value.size_bytes, 1) > _MAX_BYTES:
            raise NotSupportedError(f"{ranges.num_rows} rows of a constant take too much memory; read fewer at once")
        repeated = self._value.take(np.zeros(ranges.num_rows, np.uint8))
        return DecodedArray(repeated, None, ranges.num_rows)
