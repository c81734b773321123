"""Blob: a column of descriptions, whose payloads lie elsewhere in the file, each at a multiple of 64 bytes.

The values are packed structs without own nulls:

    │ u64 position │ u64 size │        of the payload, in bytes from the start of the file

An empty payload has neither, and a null has position 1 and size 0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.array_encodings.array import (
    ArrayReader,
    ArrayShape,
    DecodedArray,
    Planned,
    pack_validity,
    unpack_validity,
)
from lance_format.array_encodings.row_ranges import RowRanges
from lance_format.data_block import FixedWidthBlock, PackedStructBlock, ValueShape
from lance_format.errors import CorruptFileError
from lance_format.structural.blob import join

FIELDS = (ArrayShape(ValueShape(bits_per_value=64)),) * 2
"""Shape of a description."""
NULL_POSITION = 1


class BlobReader:
    """Reads descriptions.

    Parameters
    ----------
    descriptions : ArrayReader
        Of packed structs.
    """

    def __init__(self, descriptions: ArrayReader) -> None:
        self._descriptions = descriptions

    def plan(self, ranges: RowRanges) -> Planned[DecodedArray]:
        """Plan the reading of some rows; see `ArrayReader`. Nulls and empty payloads have position 0."""
        found = yield from self._descriptions.plan(ranges)
        if found.values is None:
            return found
        if not isinstance(found.values, PackedStructBlock) or found.validity is not None:
            raise CorruptFileError("the descriptions of blobs are not packed structs without nulls")
        numbers: npt.NDArray[np.uint64] = found.values.rows.data[: found.values.size_bytes].view("<u8").reshape(-1, 2)
        positions, sizes = numbers[:, 0], numbers[:, 1]
        is_empty = sizes == 0
        validity = pack_validity(~is_empty | (positions != NULL_POSITION))
        return DecodedArray(join(np.where(is_empty, np.uint64(0), positions), sizes), validity, found.num_rows)


def encode(descriptions: PackedStructBlock, validity: FixedWidthBlock | None) -> FixedWidthBlock:
    """Return the stored rows of descriptions, nulls included."""
    assert isinstance(descriptions.rows, FixedWidthBlock)
    numbers = descriptions.rows.data[: descriptions.size_bytes].view("<u8").reshape(-1, 2).copy()
    if validity is not None:
        numbers[~unpack_validity(validity)] = (NULL_POSITION, 0)
    return FixedWidthBlock(numbers.ravel().view(np.uint8), sum(field.bits for field in FIELDS), descriptions.num_values)
