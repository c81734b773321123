"""Flat: values of one width, adjacent in a buffer.

    │ value 0 │ value 1 │ …        of any number of bits, the least significant first

The whole buffer may be compressed by zstd or LZ4 (`compression/byte_codecs.py` has the bytes): reading any value then
reads all of them. Writers compress only the bytes of strings.
"""

from __future__ import annotations

import numpy as np

from lance_format.array_encodings.array import ArrayShape, DecodedArray, Planned
from lance_format.array_encodings.buffers import ArrayPage
from lance_format.array_encodings.page_builder import PageBuilder
from lance_format.array_encodings.row_ranges import RowRanges
from lance_format.array_encodings.value_slices import ValueSlices, plan_slices
from lance_format.compression import byte_codecs
from lance_format.compression.options import CompressionOptions
from lance_format.data_block import BufferSlices, Bytes, FixedWidthBlock
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.proto import array_encodings_pb2

SCHEMES: dict[str, int | None] = {"none": None, "zstd": byte_codecs.ZSTD, "lz4": byte_codecs.LZ4}
"""Compressions of a buffer, by their names in files."""

_WORD_BITS = (8, 16, 32, 64)
_MAX_BITS = 2**32


class FlatReader:
    """Reads flat values.

    Parameters
    ----------
    encoding : Flat
    page : ArrayPage
    num_rows : int or None
        None for all values of the buffer.
    shape : ArrayShape

    Raises
    ------
    CorruptFileError
        If the values are not those of the column, or the buffer lacks some of them.
    NotSupportedError
        If the buffer is compressed in an unknown way.
    """

    def __init__(
        self, encoding: array_encodings_pb2.Flat, page: ArrayPage, num_rows: int | None, shape: ArrayShape
    ) -> None:
        self._page = page
        self._bits = encoding.bits_per_value
        self._word_bits = word_bits(self._bits, shape)
        self._buffer = page.buffer(encoding.buffer)
        self._scheme = _scheme_of(encoding)
        self._num_rows = num_rows
        if self._scheme is None:
            check_room(self._buffer.size, self._bits, num_rows)

    def plan(self, ranges: RowRanges) -> Planned[DecodedArray]:
        """Plan the reading of some rows; see `ArrayReader`."""
        last = int(ranges.ends[-1])
        if self._scheme is None:
            check_room(self._buffer.size, self._bits, last)
            slices = yield from plan_slices(self._buffer, self._bits, ranges)
        else:
            data = yield from self._expand(self._scheme)
            check_room(data.size, self._bits, last)
            slices = ValueSlices(data, ranges.begins * self._bits, ranges.sizes, self._bits)
        block = slices.join(self._word_bits)
        return DecodedArray(block, None, block.num_values)

    def _expand(self, scheme: int) -> Planned[Bytes]:
        """Return the whole buffer as it was before compression, and keep it for later reads."""
        part = (self._buffer.offset, self._buffer.size)
        found = self._page.kept(part)
        if isinstance(found, np.ndarray):
            return found
        (data,) = yield [self._buffer]
        limits = None
        if self._num_rows is not None:
            limits = np.array([(self._num_rows * self._bits + 7) // 8], np.int64)
        expanded = byte_codecs.expand(scheme, BufferSlices.whole(data), limits, 8).data
        self._page.keep(part, expanded, expanded.nbytes)
        return expanded


def _scheme_of(encoding: array_encodings_pb2.Flat) -> int | None:
    if not encoding.HasField("compression"):
        return None
    name = encoding.compression.scheme
    if name not in SCHEMES:
        raise NotSupportedError(
            f"a buffer is compressed by {name!r}, which cannot be read; known are {', '.join(sorted(SCHEMES))}"
        )
    return SCHEMES[name]


def check_room(size_bytes: int, bits_per_value: int, num_values: int | None) -> None:
    """Raise `CorruptFileError` if a buffer is too small for its values.

    Parameters
    ----------
    size_bytes : int
        Size of the buffer.
    bits_per_value : int
    num_values : int or None
        None if unknown; any size is allowed then.
    """
    if num_values is not None and size_bytes * 8 < num_values * bits_per_value:
        raise CorruptFileError(
            f"a buffer of {size_bytes} bytes is to hold {num_values} values of {bits_per_value} bits"
        )


def word_bits(bits: int, shape: ArrayShape) -> int:
    """Return the bits of each value once it is read, for values stored in some number of bits.

    Raises
    ------
    CorruptFileError
        If the column has other values.
    """
    expected = shape.values.bits_per_value
    if not 0 < bits <= _MAX_BITS:
        raise CorruptFileError(f"a page has values of {bits} bits")
    if not shape.is_plain:
        raise CorruptFileError(f"a page holds plain values of {bits} bits, which those of the column are not")
    if bits == expected or (expected is None and bits in _WORD_BITS):
        return bits
    if expected is None:
        expected = next((width for width in _WORD_BITS if width > bits), 0)
    if bits < expected and bits % 8 and expected in _WORD_BITS:
        return expected
    raise CorruptFileError(f"a page holds values of {bits} bits; the column has values of {expected} bits")


def encode(block: FixedWidthBlock, page: PageBuilder) -> array_encodings_pb2.ArrayEncoding:
    """Encode values as they are."""
    buffer = page.add(block.data[: block.size_bytes])
    flat = array_encodings_pb2.Flat(bits_per_value=block.bits_per_value, buffer=buffer)
    return array_encodings_pb2.ArrayEncoding(flat=flat)


def encode_bytes(data: Bytes, page: PageBuilder, options: CompressionOptions) -> array_encodings_pb2.ArrayEncoding:
    """Encode bytes, compressed as a whole if requested and smaller.

    Parameters
    ----------
    data : uint8[…]
    page : PageBuilder
        The buffer is added to it.
    options : CompressionOptions
    """
    scheme = options.general_scheme
    if scheme is not None and data.size:
        small, _ = byte_codecs.shrink(scheme, options.level, BufferSlices.whole(data))
        if small.size < data.size:
            name = next(name for name, known in SCHEMES.items() if known == scheme)
            compression = array_encodings_pb2.Compression(scheme=name, level=options.level)
            flat = array_encodings_pb2.Flat(bits_per_value=8, buffer=page.add(small), compression=compression)
            return array_encodings_pb2.ArrayEncoding(flat=flat)
    return encode(FixedWidthBlock(data, 8, data.size), page)
