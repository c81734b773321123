"""Fixed-size list: the items of all lists in another encoding, which may be nullable. The type has their number.

│ items of list 0 │ items of list 1 │ …
"""

from __future__ import annotations

from lance_format.array_encodings.array import ArrayReader, DecodedArray, ItemsBlock, Planned
from lance_format.array_encodings.row_ranges import RowRanges
from lance_format.proto import array_encodings_pb2


class FixedSizeListReader:
    """Reads fixed-size lists.

    Parameters
    ----------
    items : ArrayReader
    dimension : int
        At least 1.
    """

    def __init__(self, items: ArrayReader, dimension: int) -> None:
        self._items = items
        self._dimension = dimension

    def plan(self, ranges: RowRanges) -> Planned[DecodedArray]:
        """Plan the reading of some rows; see `ArrayReader`."""
        items = yield from self._items.plan(ranges.scaled(self._dimension))
        return DecodedArray(ItemsBlock(items), None, ranges.num_rows)


def encode(items: array_encodings_pb2.ArrayEncoding, dimension: int) -> array_encodings_pb2.ArrayEncoding:
    """Return the encoding of lists of some items each."""
    lists = array_encodings_pb2.FixedSizeList(dimension=dimension, items=items)
    return array_encodings_pb2.ArrayEncoding(fixed_size_list=lists)
