"""List: a column with the ends of lists. Their items are the next column.

    │ end of list 0 │ end of list 1 │ …        see `ends.py`; `null_offset_adjustment` is added to nulls

Ends are counted from the first item of the page, independent of the pages of the items: the sum of `num_items` of the
preceding pages is the first item of a page. A null list may have items, which are ignored.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.array_encodings.array import WORDS, Planned
from lance_format.array_encodings.buffers import ArrayPage
from lance_format.array_encodings.ends import MAX_AMOUNT, Extents, encode_ends, plan_extents
from lance_format.array_encodings.page_builder import EncodedArray, PageBuilder
from lance_format.array_encodings.registry import Request
from lance_format.array_encodings.row_ranges import RowRanges
from lance_format.data_block import FixedWidthBlock
from lance_format.errors import CorruptFileError
from lance_format.proto import array_encodings_pb2

_MAX_ITEMS = 2**48


class ListPage:
    """A page of lists.

    Parameters
    ----------
    encoding : ArrayEncoding
    page : ArrayPage

    Raises
    ------
    CorruptFileError
        If it is no list, or contradicts itself or the page.
    NotSupportedError
        If its ends cannot be read.
    """

    def __init__(self, encoding: array_encodings_pb2.ArrayEncoding, page: ArrayPage) -> None:
        lists = list_of(encoding)
        self._amount = lists.null_offset_adjustment
        self._num_items = lists.num_items
        if not 0 < self._amount <= MAX_AMOUNT and page.num_rows:
            raise CorruptFileError(f"a page of lists has a null offset adjustment of {self._amount}")
        self._ends = Request(page, page.num_rows, WORDS).parse(lists.offsets)

    def plan(self, ranges: RowRanges) -> Planned[Extents]:
        """Plan the reading of the item ranges of at least one list within the page.

        Raises
        ------
        CorruptFileError
            If lists end after the items of the page.
        """
        extents = yield from plan_extents(self._ends, self._amount, ranges, wide=True)
        if extents.items.count and int(extents.items.ends[-1]) > self._num_items:
            raise CorruptFileError(f"lists end at item {extents.items.ends[-1]} of a page of {self._num_items}")
        return extents


def list_of(encoding: array_encodings_pb2.ArrayEncoding) -> array_encodings_pb2.List:
    """Return the encoding of a page of lists.

    Raises
    ------
    CorruptFileError
        If the page is not of lists, or has more items than possible.
    """
    if encoding.WhichOneof("array_encoding") != "list":
        raise CorruptFileError(
            f"the column of a list has a page with the encoding {encoding.WhichOneof('array_encoding')!r}"
        )
    if encoding.list.num_items > _MAX_ITEMS:
        raise CorruptFileError(
            f"a page of lists has {encoding.list.num_items} items; at most {_MAX_ITEMS} are possible"
        )
    return encoding.list


def encode(offsets: npt.NDArray[np.int64], validity: FixedWidthBlock | None) -> EncodedArray:
    """Encode the column of lists.

    Parameters
    ----------
    offsets : int64[num_lists + 1]
        Where each list starts among the items that follow in the next column, and the last ends; the first is 0.
    validity : FixedWidthBlock or None
    """
    page = PageBuilder()
    num_items = int(offsets[-1])
    ends = encode_ends(offsets[1:].astype(np.uint64), validity, num_items + 1, page)
    lists = array_encodings_pb2.List(offsets=ends, null_offset_adjustment=num_items + 1, num_items=num_items)
    return page.finish(array_encodings_pb2.ArrayEncoding(list=lists), offsets.size - 1)
