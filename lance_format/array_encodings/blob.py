"""Blob: a column of descriptions, whose payloads stand elsewhere in the file, each at a multiple of 64 bytes.

The values are packed structs without nulls of their own:

    │ u64 position │ u64 size │        of the payload, in bytes from the start of the file

An empty payload has neither, and what is null has position 1 and size 0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.array_encodings.array import ArrayReader, DecodedArray, Planned, pack_validity
from lance_format.array_encodings.row_ranges import RowRanges
from lance_format.data_block import PackedStructBlock
from lance_format.errors import CorruptFileError
from lance_format.structural.blob import join

FIELDS = (64, 64)
"""The bits of each field of a description."""
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
        """Plan the reading of some rows; see `ArrayReader`. What is null or empty has position 0."""
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
