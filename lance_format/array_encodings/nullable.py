"""Nullable: the validity of the rows of another encoding.

No buffer is needed if no row is null, or all are. Otherwise a bitmap has a bit per row, 1 if it is valid:

    no_nulls    values                 any encoding
    some_nulls  validity, values       the bitmap flat; values are arbitrary where they are null
    all_nulls   nothing
"""

from __future__ import annotations

from lance_format.array_encodings.array import ArrayReader, DecodedArray, Planned, both_valid, side_by_side
from lance_format.array_encodings.row_ranges import RowRanges
from lance_format.data_block import FixedWidthBlock
from lance_format.errors import CorruptFileError
from lance_format.proto import array_encodings_pb2


class AllNullReader:
    """Reads rows that are all null."""

    def plan(self, ranges: RowRanges) -> Planned[DecodedArray]:
        """Plan the reading of some rows; see `ArrayReader`."""
        yield from ()
        return DecodedArray(None, None, ranges.num_rows)


class SomeNullReader:
    """Reader of rows with nulls.

    Parameters
    ----------
    validity, values : ArrayReader
    """

    def __init__(self, validity: ArrayReader, values: ArrayReader) -> None:
        self._validity = validity
        self._values = values

    def plan(self, ranges: RowRanges) -> Planned[DecodedArray]:
        """Plan the reading of some rows; see `ArrayReader`."""
        plans = [self._validity.plan(ranges), self._values.plan(ranges)]
        validity, found = yield from side_by_side(plans)
        if not isinstance(validity.values, FixedWidthBlock) or validity.validity is not None:
            raise CorruptFileError("the validity of a page is itself null")
        return DecodedArray(found.values, both_valid(validity.values, found.validity), found.num_rows)


def no_nulls(values: array_encodings_pb2.ArrayEncoding) -> array_encodings_pb2.ArrayEncoding:
    """Return the encoding of values without nulls."""
    found = array_encodings_pb2.Nullable.NoNull(values=values)
    return array_encodings_pb2.ArrayEncoding(nullable=array_encodings_pb2.Nullable(no_nulls=found))


def some_nulls(
    validity: array_encodings_pb2.ArrayEncoding, values: array_encodings_pb2.ArrayEncoding
) -> array_encodings_pb2.ArrayEncoding:
    """Return the encoding of values with nulls."""
    found = array_encodings_pb2.Nullable.SomeNull(validity=validity, values=values)
    return array_encodings_pb2.ArrayEncoding(nullable=array_encodings_pb2.Nullable(some_nulls=found))


def all_nulls() -> array_encodings_pb2.ArrayEncoding:
    """Return the encoding of values that are all null."""
    found = array_encodings_pb2.Nullable.AllNull()
    return array_encodings_pb2.ArrayEncoding(nullable=array_encodings_pb2.Nullable(all_nulls=found))
