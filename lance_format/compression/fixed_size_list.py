"""Fixed-size lists of primitive items, nested to any depth, that may be null at every level.

Encoding strategy document, "Fixed Size List". Items are flat, or constant if all are null: then they have no bytes, as
pylance writes them in full-zip pages. A list of any depth is one value of a fixed width: a *row*, the value of full-zip
pages. Each level whose items may be null has its validity before the items, outermost first, filled up to a whole byte;
set bits are valid items, least significant first:

    │ validity of level 0? │ … │ validity of level k? │ item 0 │ item 1 │ … │

Legal for full-zip values and for mini-block values. In a mini-block chunk each part of the row has a buffer, in the
same order. All rows follow each other in it bit by bit:

    │ validity of level 0, row 0 │ row 1 │ … │        …        │ items of row 0 │ items of row 1 │ … │

A chunk that is written holds at most 4,096 rows and 4 KiB; a larger row has a chunk to itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_format.compression import flat
from lance_format.compression.codec import CompressedChunks
from lance_format.data_block import (
    BufferSlices,
    Bytes,
    Counts,
    DataBlock,
    FixedSizeListBlock,
    FixedWidthBlock,
    ListLevel,
    ListShape,
    whole_bytes,
)
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.kernels.compression import fixed_size_list as kernels
from lance_format.lazy_dataclasses import dataclass
from lance_format.memory import empty
from lance_format.proto import encodings_pb2

_MAX_CHUNK_BYTES = 4096
_MAX_ROW_BYTES = 2**31
_MAX_LEVELS = 32


@dataclass(frozen=True, slots=True)
class FixedSizeListDecompressor:
    """Reads mini-block chunks of lists; the result holds rows, which `split_rows` takes apart."""

    shape: ListShape

    @property
    def num_buffers(self) -> int:
        """Number of buffers of a chunk."""
        return len(self.shape.parts)

    def decompress(self, buffers: Sequence[BufferSlices], num_values: Counts) -> FixedSizeListBlock:
        """Decompress chunks; see `Decompressor`."""
        return FixedSizeListBlock(self._rows(buffers, num_values), self.shape)

    def _rows(self, buffers: Sequence[BufferSlices], num_values: Counts) -> FixedWidthBlock:
        parts = self.shape.parts
        for bits, buffer in zip(parts, buffers, strict=True):
            # Dividing the rest avoids overflows of products.
            if (num_values > buffer.sizes * 8 // bits).any():
                raise CorruptFileError("a chunk of fixed-size lists is shorter than its number of values says")
        if len(parts) == 1 and parts[0] % 8 == 0:
            return flat.FlatDecompressor(parts[0]).decompress(buffers, num_values)
        total = int(num_values.sum())
        row_bytes = self.shape.bits_per_value // 8
        out = empty(total * row_bytes, np.uint8)
        offset = 0
        for bits, buffer in zip(parts, buffers, strict=True):
            kernels.spread(buffer.data, buffer.starts, num_values, bits, row_bytes, offset, out)
            offset += whole_bytes(bits)
        return FixedWidthBlock(out, self.shape.bits_per_value, total)


@dataclass(frozen=True, slots=True)
class FixedSizeListPerValueDecompressor:
    """Passes on full-zip rows, which `split_rows` takes apart."""

    shape: ListShape

    def decompress_values(self, values: DataBlock) -> FixedSizeListBlock:
        """Decompress values; see `PerValueDecompressor`."""
        expected = self.shape.bits_per_value
        if not isinstance(values, FixedWidthBlock) or values.bits_per_value != expected:
            raise CorruptFileError(f"fixed-size lists of {expected} bits are stored with another width")
        return FixedSizeListBlock(values, self.shape)


def parse(encoding: encodings_pb2.CompressiveEncoding) -> FixedSizeListDecompressor:
    """Build the decompressor that an encoding of mini-block values describes.

    Raises
    ------
    NotSupportedError
        If the lists have only nulls.
    """
    shape = parse_shape(encoding)
    if not shape.bits_per_item:
        raise NotSupportedError(
            "fixed-size lists ('fixed_size_list') of nulls alone are supported in full-zip pages only"
        )
    return FixedSizeListDecompressor(shape)


def parse_per_value(encoding: encodings_pb2.CompressiveEncoding) -> FixedSizeListPerValueDecompressor:
    """Build the decompressor that an encoding of full-zip values describes."""
    return FixedSizeListPerValueDecompressor(parse_shape(encoding))


def parse_shape(encoding: encodings_pb2.CompressiveEncoding) -> ListShape:
    """Return the shape of the rows of an encoding.

    Raises
    ------
    CorruptFileError
        If a level has no items, or a row more bytes than any file.
    NotSupportedError
        If the items are not flat.
    """
    levels: list[ListLevel] = []
    items = 1
    while encoding.WhichOneof("compression") == "fixed_size_list":
        level = encoding.fixed_size_list
        items *= level.items_per_value
        if not 0 < items <= _MAX_ROW_BYTES or len(levels) == _MAX_LEVELS:
            raise CorruptFileError(f"fixed-size lists of {items} items in {len(levels) + 1} levels")
        levels.append(ListLevel(level.items_per_value, level.has_validity))
        encoding = level.values
    kind = encoding.WhichOneof("compression")
    if kind == "constant" and not encoding.constant.HasField("value") and levels[-1].has_validity:
        return ListShape(tuple(levels), bits_per_item=0)
    if kind != "flat":
        raise NotSupportedError("fixed-size lists ('fixed_size_list') are supported over flat items only")
    shape = ListShape(tuple(levels), flat.parse(encoding).bits_per_value)
    if shape.bits_per_value > _MAX_ROW_BYTES * 8:
        raise CorruptFileError(f"a fixed-size list has {shape.bits_per_value} bits")
    return shape


def describe(shape: ListShape) -> encodings_pb2.CompressiveEncoding:
    """Return the encoding of rows."""
    encoding = flat.describe(shape.bits_per_item)
    for level in reversed(shape.levels):
        lists = encodings_pb2.FixedSizeList(
            items_per_value=level.dimension, has_validity=level.has_validity, values=encoding
        )
        encoding = encodings_pb2.CompressiveEncoding(fixed_size_list=lists)
    return encoding


def split_rows(rows: FixedWidthBlock, shape: ListShape) -> tuple[list[Bytes], FixedWidthBlock]:
    """Take rows apart.

    Returns
    -------
    validities : list of uint8[…]
        A bitmap over all items of each level that has one, outermost first.
    items : FixedWidthBlock
        The innermost items of all rows.
    """
    num_items = rows.num_values * shape.items_per_value
    if len(shape.parts) == 1 and shape.parts[0] % 8 == 0:
        return [], FixedWidthBlock(rows.data[: rows.size_bytes], shape.bits_per_item, num_items)
    *validities, items = _gather_parts(rows, shape, np.array([rows.num_values], np.int64))
    return validities, FixedWidthBlock(items, shape.bits_per_item, num_items)


def join_rows(validities: Sequence[Bytes], items: FixedWidthBlock, shape: ListShape) -> FixedWidthBlock:
    """Join the results of `split_rows` to rows; see `split_rows`."""
    num_values = items.num_values // shape.items_per_value
    if not validities and shape.parts[0] % 8 == 0:
        return FixedWidthBlock(items.data[: items.size_bytes], shape.bits_per_value, num_values)
    whole = [BufferSlices.whole(part) for part in (*validities, items.data[: items.size_bytes])]
    return FixedSizeListDecompressor(shape).decompress(whole, np.array([num_values], np.int64)).rows


def compress(block: FixedSizeListBlock) -> CompressedChunks:
    """Cut rows into chunks, of at least two rows as `flat.compress` does."""
    rows, shape = block.rows, block.shape
    per_chunk = flat.MAX_CHUNK_VALUES
    while per_chunk > 2 and per_chunk * shape.bits_per_value > _MAX_CHUNK_BYTES * 8:
        per_chunk //= 2
    num_values = flat.chunk_counts(rows.num_values, per_chunk)
    buffers = _gather_parts(rows, shape, num_values)
    sizes = tuple(np.asarray((num_values * bits + 7) // 8) for bits in shape.parts)
    return CompressedChunks(tuple(buffers), sizes, num_values, describe(shape))


def _gather_parts(rows: FixedWidthBlock, shape: ListShape, num_values: Counts) -> list[Bytes]:
    if len(shape.parts) == 1 and shape.parts[0] % 8 == 0:
        return [rows.data[: rows.size_bytes]]
    buffers = []
    offset = 0
    for bits in shape.parts:
        out = np.zeros(int(((num_values * bits + 7) // 8).sum()), np.uint8)
        kernels.gather(rows.data, num_values, bits, rows.bytes_per_value, offset, out)
        buffers.append(out)
        offset += whole_bytes(bits)
    return buffers
