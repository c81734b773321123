"""Pages of file format 0.1: the choice of the reader for the values of a column.

A page says nothing of itself; the type of its column does. Values of a fixed width are flat, those of fixed-size lists
too, one list after the other. Byte strings are as `var_binary.py` has them. Dictionaries have keys, and items that all
pages share, stored as any other values. Nothing is null but byte strings.
"""

from __future__ import annotations

from dataclasses import replace

from lance_format.array_encodings import fixed_size_list
from lance_format.array_encodings.array import ArrayReader, ArrayShape
from lance_format.array_encodings.buffers import ArrayPage
from lance_format.array_encodings.dictionary import DictionaryReader
from lance_format.array_encodings.nullable import AllNullReader
from lance_format.array_encodings.registry import parse_array
from lance_format.array_encodings.var_binary import VarBinaryReader
from lance_format.data_block import ValueShape
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import array_encodings_pb2 as pb


@dataclass(frozen=True, slots=True)
class LegacyPage:
    """Description of a page.

    Parameters
    ----------
    file_size : int
    nullable : bool
        Whether byte strings without bytes are null.
    has_values : bool
        Whether there are values at all.
    key_bits : int
        Of dictionaries.
    num_items : int
        Of dictionaries: how many items the buffer of the column holds.
    """

    file_size: int
    nullable: bool
    has_values: bool = True
    key_bits: int = 0
    num_items: int = 0

    def reader(self, page: ArrayPage, shape: ArrayShape) -> ArrayReader:
        """Build the reader of a page.

        Parameters
        ----------
        page : ArrayPage
            Its first buffer has the values, the keys, or the starts of byte strings. That of the column has the items,
            or where they start.
        shape : ArrayShape

        Raises
        ------
        CorruptFileError
            If buffers are too small.
        """
        if not self.has_values:
            return AllNullReader()
        if not shape.is_dictionary:
            return self._values(page, shape)
        keys = parse_array(_flat(self.key_bits), page, ArrayShape(ValueShape(bits_per_value=self.key_bits)))
        if not page.column_buffers:
            raise CorruptFileError("a column that is a dictionary has no items")
        items = ArrayPage(page.column_buffers, self.num_items)
        values = replace(self, nullable=False)._values(items, ArrayShape(shape.values))
        return DictionaryReader(keys, values, self.num_items, page, zero_is_null=False)

    def _values(self, page: ArrayPage, shape: ArrayShape) -> ArrayReader:
        bits = shape.values.bits_per_offset
        if bits is not None and shape.items is None:
            return VarBinaryReader(page.buffers[0], page.num_rows, self.file_size, bits, nullable=self.nullable)
        return parse_array(_plain(shape), page, shape)


def _plain(shape: ArrayShape) -> pb.ArrayEncoding:
    """Return the encoding of values of a fixed width."""
    if shape.items is not None:
        return fixed_size_list.encode(_plain(shape.items), shape.dimension)
    if shape.fields is not None or not shape.values.bits_per_value:
        raise NotSupportedError("packed structs, and values that have no bytes, are not in files of format 0.1")
    return _flat(shape.values.bits_per_value)


def _flat(bits: int) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(flat=pb.Flat(bits_per_value=bits, buffer=pb.Buffer()))
