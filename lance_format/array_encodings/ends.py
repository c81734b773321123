"""Ends of lists and byte strings: reading and decoding those of some rows.

    │ end of value 0 │ end of value 1 │ …        words of 8 to 64 bits, the items of a page counted from its first

An amount, more than the number of items, is added to the end of a null value. A value starts at the preceding end: a
row needs two words, the first of a page just one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.array_encodings import flat, nullable
from lance_format.array_encodings.array import ArrayReader, Planned, pack_validity, unpack_validity, words_of
from lance_format.array_encodings.page_builder import PageBuilder
from lance_format.array_encodings.row_ranges import RowRanges, without_empty
from lance_format.data_block import FixedWidthBlock, Offsets
from lance_format.errors import CorruptFileError
from lance_format.kernels.pages import ends as kernels
from lance_format.lazy_dataclasses import dataclass
from lance_format.memory import empty
from lance_format.proto import array_encodings_pb2

MAX_AMOUNT = 2**62
"""Maximum amount added to the ends of nulls; sums stay within 64 bits."""
_DECREASING = -1
_TOO_NARROW = -2


@dataclass(frozen=True, slots=True)
class Extents:
    """Places of the items of values.

    Parameters
    ----------
    offsets : int32 or int64[num_values + 1]
        Offset of each value among the items of these values; the first is 0.
    validity : FixedWidthBlock or None
    items : RowRanges
        The ranges of these items in the page.
    """

    offsets: Offsets
    validity: FixedWidthBlock | None
    items: RowRanges


def plan_extents(ends: ArrayReader, amount: int, ranges: RowRanges, *, wide: bool) -> Planned[Extents]:
    """Plan the reading of the offsets of some values.

    Parameters
    ----------
    ends : ArrayReader
    amount : int
        Amount added to the ends of nulls; at least 1, at most `MAX_AMOUNT`.
    ranges : RowRanges
        The values.
    wide : bool
        Whether offsets must have 64 bits. Otherwise they have 32 if these suffice.

    Raises
    ------
    CorruptFileError
        If ends decrease, or are null.
    """
    has_previous = ranges.begins > 0
    decoded = yield from ends.plan(RowRanges(ranges.begins - has_previous, ranges.ends))
    if decoded.validity is not None:
        raise CorruptFileError("the ends of lists or byte strings are null")
    words = words_of(decoded, "ends of lists or byte strings")
    for dtype in (np.int64,) if wide else (np.int32, np.int64):
        offsets = empty(ranges.num_rows + 1, dtype)
        valid = empty(ranges.num_rows, np.bool_)
        firsts, lasts = np.empty((2, ranges.count), np.int64)
        most = int(np.iinfo(dtype).max)
        nulls = kernels.read_ends(words, ranges.sizes, has_previous, amount, most, offsets, valid, firsts, lasts)
        if nulls != _TOO_NARROW:
            break
    if nulls == _DECREASING or (firsts[1:] < lasts[:-1]).any():
        raise CorruptFileError("the ends of lists or byte strings decrease")
    return Extents(offsets, pack_validity(valid) if nulls else None, without_empty(firsts, lasts))


def encode_ends(
    ends: npt.NDArray[np.uint64], validity: FixedWidthBlock | None, amount: int, page: PageBuilder
) -> array_encodings_pb2.ArrayEncoding:
    """Encode the ends of values as words of 64 bits.

    Parameters
    ----------
    ends : uint64[num_values]
        Modified in place: `amount` is added to the ends of nulls.
    validity : FixedWidthBlock or None
        A bit per value; None if no value is null.
    amount : int
    page : PageBuilder
        The buffers are added to it.
    """
    if validity is not None:
        ends[~unpack_validity(validity)] += np.uint64(amount)
    block = FixedWidthBlock(ends.astype("<u8", copy=False).view(np.uint8), 64, ends.size)
    return nullable.no_nulls(flat.encode(block, page))
