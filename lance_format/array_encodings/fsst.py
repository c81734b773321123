"""FSST: byte strings whose frequent pieces are replaced by one byte each.

`compression/fsst.py` has the algorithm and the table of symbols. Each value is compressed separately, and the results
are stored as byte strings.
"""

from __future__ import annotations

from lance_format.array_encodings.array import ArrayReader, DecodedArray, Planned
from lance_format.array_encodings.row_ranges import RowRanges
from lance_format.compression.fsst import SymbolTable
from lance_format.data_block import VariableWidthBlock
from lance_format.errors import CorruptFileError
from lance_format.proto import array_encodings_pb2


class FsstReader:
    """Reads byte strings by a table of symbols.

    Parameters
    ----------
    table : SymbolTable
    values : ArrayReader
        Of the compressed byte strings.
    """

    def __init__(self, table: SymbolTable, values: ArrayReader) -> None:
        self._table = table
        self._values = values

    def plan(self, ranges: RowRanges) -> Planned[DecodedArray]:
        """Plan the reading of some rows; see `ArrayReader`."""
        found = yield from self._values.plan(ranges)
        if found.values is None:
            return found
        if not isinstance(found.values, VariableWidthBlock):
            raise CorruptFileError("FSST encodes values that are not byte strings")
        return DecodedArray(self._table.decode(found.values), found.validity, found.num_rows)


def encode(values: array_encodings_pb2.ArrayEncoding, table: SymbolTable) -> array_encodings_pb2.ArrayEncoding:
    """Return the encoding of byte strings that a table has compressed."""
    fsst = array_encodings_pb2.Fsst(binary=values, symbol_table=table.serialize())
    return array_encodings_pb2.ArrayEncoding(fsst=fsst)
