"""Packed structs: the fields of a struct side by side, as one value of a fixed width.

Encoding strategy document, "Struct Packing". Fields have a fixed width and whole bytes. Legal for mini-block values:

    │ field 0 of row 0 │ field 1 of row 0 │ … │ field 0 of row 1 │ …

Chunks are those of flat values of a row's width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lance_format.compression import flat
from lance_format.compression.codec import CompressedChunks
from lance_format.data_block import BufferSlices, Counts, DataBlock, FixedWidthBlock, PackedStructBlock, ValueBlock
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import encodings_pb2


@dataclass(frozen=True, slots=True)
class PackedStructDecompressor:
    """Reads chunks of rows, which `split_rows` takes apart.

    Parameters
    ----------
    bits_per_field : tuple of int
        Multiples of 8.
    """

    bits_per_field: tuple[int, ...]

    @property
    def encoding(self) -> encodings_pb2.CompressiveEncoding:
        """The encoding of the rows."""
        values = flat.describe(sum(self.bits_per_field))
        packed = encodings_pb2.PackedStruct(bits_per_value=self.bits_per_field, values=values)
        return encodings_pb2.CompressiveEncoding(packed_struct=packed)

    @property
    def num_buffers(self) -> int:
        """Number of buffers of a chunk."""
        return 1

    def decompress(self, buffers: Sequence[BufferSlices], num_values: Counts) -> PackedStructBlock:
        """Decompress chunks; see `Decompressor`."""
        rows = flat.FlatDecompressor(sum(self.bits_per_field)).decompress(buffers, num_values)
        return PackedStructBlock(rows, self)

    def split_rows(self, rows: DataBlock) -> list[ValueBlock]:
        """Take rows apart; see `RowCodec`."""
        if not isinstance(rows, FixedWidthBlock) or rows.bits_per_value != sum(self.bits_per_field):
            raise CorruptFileError(f"packed structs of {sum(self.bits_per_field)} bits are stored with another width")
        return [*split_rows(rows, self.bits_per_field)]


def parse(encoding: encodings_pb2.CompressiveEncoding) -> PackedStructDecompressor:
    """Build the decompressor that an encoding describes; see `parse_decompressor`."""
    packed = encoding.packed_struct
    if packed.values.WhichOneof("compression") != "flat":
        raise NotSupportedError("packed structs ('packed_struct') are supported over flat values only")
    bits = tuple(packed.bits_per_value)
    if not bits or any(field == 0 or field % 8 for field in bits):
        raise CorruptFileError(f"a packed struct has fields of {list(bits)} bits; expected multiples of 8")
    if flat.parse(packed.values).bits_per_value != sum(bits):
        raise CorruptFileError(
            f"rows of {packed.values.flat.bits_per_value} bits hold a packed struct of {sum(bits)} bits"
        )
    return PackedStructDecompressor(bits)


def split_rows(rows: FixedWidthBlock, bits_per_field: Sequence[int]) -> list[FixedWidthBlock]:
    """Take rows apart into one block per field."""
    table = rows.data[: rows.size_bytes].reshape(rows.num_values, rows.bytes_per_value)
    fields = []
    begin = 0
    for bits in bits_per_field:
        end = begin + bits // 8
        fields.append(FixedWidthBlock(np.ascontiguousarray(table[:, begin:end]).ravel(), bits, rows.num_values))
        begin = end
    return fields


def join_rows(fields: Sequence[FixedWidthBlock]) -> FixedWidthBlock:
    """Put rows together from one block per field, all of the same length and of whole bytes."""
    num_values = fields[0].num_values
    columns = [field.data[: field.size_bytes].reshape(num_values, field.bytes_per_value) for field in fields]
    rows = np.concatenate(columns, axis=1)
    return FixedWidthBlock(rows.ravel(), rows.shape[1] * 8, num_values)


def compress(block: PackedStructBlock) -> CompressedChunks:
    """Cut rows, which have a fixed width, into chunks.

    Raises
    ------
    TypeError
        If the rows have no fixed width.
    """
    if not isinstance(block.rows, FixedWidthBlock):
        raise TypeError("rows of any length are full-zip values")
    return replace(flat.compress(block.rows), encoding=block.codec.encoding)
