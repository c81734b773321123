"""Byte strings of file format 0.1: their bytes, and the start of each in the file.

    │ bytes of value 0 │ bytes of value 1 │ … │        anywhere in the file
    │ i64 start of value 0 │ i64 start of value 1 │ … │ i64 end of the last │

Nothing says which values are null: of columns that may be null, those without bytes are.
"""

from __future__ import annotations

import numpy as np

from lance_format.array_encodings.array import DecodedArray, Planned, pack_validity
from lance_format.array_encodings.flat import check_room
from lance_format.array_encodings.row_ranges import RowRanges, without_empty
from lance_format.array_encodings.value_slices import plan_slices
from lance_format.byte_io import ByteRange
from lance_format.data_block import Bytes, Offsets, VariableWidthBlock
from lance_format.errors import CorruptFileError
from lance_format.kernels.pages import ends as kernels
from lance_format.memory import empty

_WORD_BITS = 64
_MOST_BYTES = 2**62
_TOO_NARROW = -2


class VarBinaryReader:
    """Reads byte strings.

    Parameters
    ----------
    starts : ByteRange
        Location of the starts, one more than there are values.
    num_rows : int
    file_size : int
    bits_per_offset : int
        32 or 64: bits of an offset of the result.
    nullable : bool
        Whether values without bytes are null.

    Raises
    ------
    CorruptFileError
        If starts are missing.
    """

    def __init__(
        self, starts: ByteRange, num_rows: int, file_size: int, bits_per_offset: int, *, nullable: bool
    ) -> None:
        check_room(starts.size, _WORD_BITS, num_rows + 1)
        self._starts = starts
        self._file = ByteRange(0, file_size)
        self._wide = bits_per_offset == 64
        self._nullable = nullable

    def plan(self, ranges: RowRanges) -> Planned[DecodedArray]:
        """Plan the reading of some rows; see `ArrayReader`."""
        slices = yield from plan_slices(self._starts, _WORD_BITS, RowRanges(ranges.begins, ranges.ends + 1))
        block = slices.join(_WORD_BITS)
        offsets, positions = self._locate(block.data[: block.size_bytes].view("<u8"), ranges)
        data: Bytes = np.empty(0, np.uint8)
        if positions.count:
            data = (yield from plan_slices(self._file, 8, positions)).join(8).data
        validity = pack_validity(np.diff(offsets) > 0) if self._nullable else None
        return DecodedArray(VariableWidthBlock(data, offsets), validity, ranges.num_rows)

    def _locate(self, starts: Offsets, ranges: RowRanges) -> tuple[Offsets, RowRanges]:
        """Return the offsets of values among their bytes, and where in the file these are."""
        before = np.ones(ranges.count, np.bool_)
        for dtype in (np.int64,) if self._wide else (np.int32, np.int64):
            offsets = empty(ranges.num_rows + 1, dtype)
            valid = empty(ranges.num_rows, np.bool_)
            firsts, lasts = np.empty((2, ranges.count), np.int64)
            most = int(np.iinfo(dtype).max)
            found = kernels.read_ends(starts, ranges.sizes, before, _MOST_BYTES, most, offsets, valid, firsts, lasts)
            if found != _TOO_NARROW:
                break
        if found != 0 or (firsts[1:] < lasts[:-1]).any() or int(lasts[-1]) > self._file.size:
            raise CorruptFileError("the starts of byte strings decrease, or lie after the file")
        return offsets, without_empty(firsts, lasts)
