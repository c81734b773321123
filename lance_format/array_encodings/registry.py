"""Registry of the readers of array encodings, and of unsupported encodings with the reasons."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from lance_format.array_encodings.array import BITS, BYTES, WORDS, ArrayReader, ArrayShape
from lance_format.array_encodings.binary import BinaryReader
from lance_format.array_encodings.bitpacked import BitpackedReader
from lance_format.array_encodings.bitpacked_for_non_neg import BitpackedForNonNegReader
from lance_format.array_encodings.buffers import ArrayPage
from lance_format.array_encodings.constant import ConstantReader
from lance_format.array_encodings.dictionary import DictionaryReader
from lance_format.array_encodings.ends import MAX_AMOUNT
from lance_format.array_encodings.fixed_size_binary import FixedSizeBinaryReader
from lance_format.array_encodings.fixed_size_list import FixedSizeListReader
from lance_format.array_encodings.flat import FlatReader
from lance_format.array_encodings.fsst import FsstReader
from lance_format.array_encodings.nullable import AllNullReader, SomeNullReader
from lance_format.array_encodings.packed_struct import PackedStructReader
from lance_format.compression.fsst import SymbolTable
from lance_format.data_block import DataBlock, FixedWidthBlock, ValueShape, VariableWidthBlock
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import array_encodings_pb2 as pb

_MAX_VALUES = 2**48
_MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Request:
    """Shape of the values that a reader returns.

    Parameters
    ----------
    page : ArrayPage
    num_rows : int or None
        None for all.
    shape : ArrayShape
    depth : int
        Number of enclosing encodings.
    """

    page: ArrayPage
    num_rows: int | None
    shape: ArrayShape
    depth: int = 0

    def parse(self, encoding: pb.ArrayEncoding, shape: ArrayShape | None = None, times: int = 1) -> ArrayReader:
        """Build the reader of an inner encoding.

        Parameters
        ----------
        encoding : pb.ArrayEncoding
        shape : ArrayShape, optional
            Shape of its values, by default the same.
        times : int
            Number of its rows per row of this encoding.
        """
        rows = None if self.num_rows is None else self.num_rows * times
        return self.parse_rows(encoding, rows, self.shape if shape is None else shape)

    def parse_rows(self, encoding: pb.ArrayEncoding, num_rows: int | None, shape: ArrayShape) -> ArrayReader:
        """Build the reader of an inner encoding with `num_rows` rows; see `parse`."""
        return _parse(encoding, Request(self.page, num_rows, shape, self.depth + 1))

    @property
    def bits_per_offset(self) -> int:
        """The bits of the offsets of byte strings.

        Raises
        ------
        CorruptFileError
            If the column has no byte strings.
        """
        bits = self.shape.values.bits_per_offset
        if bits is None or self.shape.is_dictionary or self.shape.items is not None:
            raise CorruptFileError("a page holds byte strings, which the values of the column are not")
        return bits


def parse_array(encoding: pb.ArrayEncoding, page: ArrayPage, shape: ArrayShape) -> ArrayReader:
    """Build the reader of a page.

    Parameters
    ----------
    encoding : pb.ArrayEncoding
    page : ArrayPage
    shape : ArrayShape
        Shape of the column's values.

    Raises
    ------
    CorruptFileError
        If the encoding is empty, contradicts itself or the page, or does not fit the column's values.
    NotSupportedError
        If it is valid, but cannot be read.
    """
    return _parse(encoding, Request(page, page.num_rows, shape))


def parse_header(encoding: pb.ArrayEncoding) -> ArrayReader:
    """Build the reader of a page of structs without fields, which holds nothing.

    Raises
    ------
    CorruptFileError
        If it holds something.
    """
    if encoding.WhichOneof("array_encoding") != "struct":
        raise CorruptFileError("a page of structs without fields is not that of structs")
    return AllNullReader()


def _parse(encoding: pb.ArrayEncoding, request: Request) -> ArrayReader:
    name = encoding.WhichOneof("array_encoding")
    if name is None:
        raise CorruptFileError("a page has an array encoding that is empty or unknown")
    if request.depth > _MAX_DEPTH or (request.num_rows or 0) > _MAX_VALUES:
        raise CorruptFileError(f"a page has encodings {request.depth} deep, of {request.num_rows} values")
    if name in LAYERS:
        raise CorruptFileError(f"array encoding {name!r} stands among values; it is that of {LAYERS[name]}")
    construct = ENCODINGS.get(name)
    if construct is None:
        raise NotSupportedError(f"array encoding {name!r} of file format 2.0 cannot be read: {UNSUPPORTED[name]}")
    return construct(encoding, request)


def _parse_nullable(encoding: pb.ArrayEncoding, request: Request) -> ArrayReader:
    nullable = encoding.nullable
    kind = nullable.WhichOneof("nullability")
    if kind == "no_nulls":
        return request.parse(nullable.no_nulls.values)
    if kind == "some_nulls":
        validity = request.parse(nullable.some_nulls.validity, BITS)
        return SomeNullReader(validity, request.parse(nullable.some_nulls.values))
    if kind == "all_nulls":
        return AllNullReader()
    raise CorruptFileError("a page does not say which of its values are null")


def _parse_fixed_size_list(encoding: pb.ArrayEncoding, request: Request) -> ArrayReader:
    lists, shape = encoding.fixed_size_list, request.shape
    if shape.items is None or lists.dimension != shape.dimension:
        raise CorruptFileError(
            f"a page holds lists of {lists.dimension} items; the column has {shape.dimension} in each value"
        )
    return FixedSizeListReader(request.parse(lists.items, shape.items, lists.dimension), lists.dimension)


def _parse_binary(encoding: pb.ArrayEncoding, request: Request) -> ArrayReader:
    binary = encoding.binary
    bits = request.bits_per_offset
    if not 0 < binary.null_adjustment <= MAX_AMOUNT and request.num_rows:
        raise CorruptFileError(f"a page of byte strings has a null adjustment of {binary.null_adjustment}")
    data = request.parse_rows(binary.bytes, None, BYTES)
    return BinaryReader(request.parse(binary.indices, WORDS), data, binary.null_adjustment, bits)


def _parse_fsst(encoding: pb.ArrayEncoding, request: Request) -> ArrayReader:
    return FsstReader(SymbolTable.parse(encoding.fsst.symbol_table), request.parse(encoding.fsst.binary))


def _parse_fixed_size_binary(encoding: pb.ArrayEncoding, request: Request) -> ArrayReader:
    binary = encoding.fixed_size_binary
    if binary.byte_width == 0:
        raise CorruptFileError("a page has byte strings of a fixed size of 0")
    # The bytes are flat values of the size of a string, or of a byte each.
    bits = _innermost(binary.bytes).flat.bits_per_value
    times = 1 if bits == binary.byte_width * 8 else binary.byte_width
    shape = ArrayShape(ValueShape(bits_per_value=binary.byte_width * 8 // times))
    values = request.parse(binary.bytes, shape, times)
    return FixedSizeBinaryReader(values, times, binary.byte_width, request.bits_per_offset)


def _innermost(encoding: pb.ArrayEncoding) -> pb.ArrayEncoding:
    nullable = encoding.nullable
    return nullable.no_nulls.values if nullable.HasField("no_nulls") else encoding


def _parse_dictionary(encoding: pb.ArrayEncoding, request: Request) -> ArrayReader:
    dictionary, shape = encoding.dictionary, request.shape
    if shape.items is not None or shape.fields is not None:
        raise CorruptFileError("a page holds a dictionary, which the values of the column cannot have")
    num_items = dictionary.num_dictionary_items
    items = request.parse_rows(dictionary.items, num_items, ArrayShape(shape.values))
    keys = request.parse(dictionary.indices, WORDS)
    return DictionaryReader(keys, items, num_items, request.page, zero_is_null=not shape.is_dictionary)


def _parse_packed_struct(encoding: pb.ArrayEncoding, request: Request) -> ArrayReader:
    packed = encoding.packed_struct
    bits = tuple(_bits_of_field(inner) for inner in packed.inner)
    expected = tuple(field.bits for field in request.shape.fields or ())
    if request.shape.fields is None or bits != expected:
        raise CorruptFileError(
            f"a page holds packed structs with fields of {list(bits)} bits; those of the column have {list(expected)}"
        )
    return PackedStructReader(bits, request.page.buffer(packed.buffer), request.num_rows)


def _bits_of_field(encoding: pb.ArrayEncoding) -> int:
    """Return the bits per value of a field of a packed struct, which has no nulls."""
    bits = 1
    encoding = _innermost(encoding)
    while encoding.WhichOneof("array_encoding") == "fixed_size_list":
        bits *= encoding.fixed_size_list.dimension
        encoding = _innermost(encoding.fixed_size_list.items)
    if encoding.WhichOneof("array_encoding") != "flat":
        raise NotSupportedError("a packed struct has fields that are neither flat nor lists of such")
    return bits * encoding.flat.bits_per_value


def _parse_constant(encoding: pb.ArrayEncoding, request: Request) -> ArrayReader:
    value = np.frombuffer(encoding.constant.value, np.uint8)
    block: DataBlock
    if request.shape.values.bits_per_offset is not None:
        dtype = np.int64 if request.bits_per_offset == 64 else np.int32
        block = VariableWidthBlock(value, np.array([0, value.size], dtype))
        return ConstantReader(block)
    bits = request.shape.values.bits_per_value
    if not request.shape.is_plain or bits not in (1, value.size * 8) or value.size == 0:
        raise CorruptFileError(f"a constant of {value.size} bytes is no value of the column")
    return ConstantReader(FixedWidthBlock(value, bits, 1))


Construct: TypeAlias = Callable[[pb.ArrayEncoding, Request], ArrayReader]

ENCODINGS: dict[str, Construct] = {
    "flat": lambda encoding, of: FlatReader(encoding.flat, of.page, of.num_rows, of.shape),
    "nullable": _parse_nullable,
    "fixed_size_list": _parse_fixed_size_list,
    "binary": _parse_binary,
    "dictionary": _parse_dictionary,
    "fsst": _parse_fsst,
    "packed_struct": _parse_packed_struct,
    "bitpacked": lambda encoding, of: BitpackedReader(encoding.bitpacked, of.page, of.num_rows, of.shape),
    "fixed_size_binary": _parse_fixed_size_binary,
    "bitpacked_for_non_neg": lambda encoding, of: BitpackedForNonNegReader(
        encoding.bitpacked_for_non_neg, of.page, of.num_rows, of.shape
    ),
    "constant": _parse_constant,
}
"""Constructors of readers, by the name of the protobuf member."""

LAYERS: dict[str, str] = {
    "list": "a column of lists, whose items are the next column; in files before 0.14 also text and bytes",
    "struct": "a column of structs, whose fields are the next columns",
}
"""Encodings of columns whose values are other columns: `lists.py` reads the one, and the other holds nothing."""

WRITTEN = frozenset(
    {"flat", "nullable", "fixed_size_list", "list", "struct", "binary", "dictionary", "fsst", "packed_struct"}
)
"""Encodings that are written, by `strategy.py` and for `LAYERS`; the others are those of early writers."""

_DRAFT = "a draft of file format 2.1"
UNSUPPORTED: dict[str, str] = {
    "inline_bitpacking": _DRAFT,
    "out_of_line_bitpacking": _DRAFT,
    "variable": _DRAFT,
    "packed_struct_fixed_width_mini_block": _DRAFT,
    "block": _DRAFT,
    "rle": _DRAFT,
    "general_mini_block": _DRAFT,
    "byte_stream_split": _DRAFT,
}
"""Encodings that are not read, with the reasons."""
