"""Packed structs with fields of any length: adjacent fields of a struct, as one byte string per row.

Encoding strategy document, "Struct Packing"; from file format 2.2 on. Fields of a fixed width have whole bytes; others
follow their length of 32 or 64 bits. Each field is compressed separately, value by value. Legal for full-zip values.
The layout stores the length of a row, which is:

    │ field 0, fixed │ length of field 1 │ bytes of field 1 │ …
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lance_format.compression import flat, variable
from lance_format.compression.codec import PerValueDecompressor
from lance_format.data_block import (
    MAX_INT32,
    Bytes,
    Counts,
    DataBlock,
    FixedWidthBlock,
    PackedStructBlock,
    ValueBlock,
    VariableWidthBlock,
)
from lance_format.errors import CorruptFileError
from lance_format.kernels.compression import packed_struct as kernels
from lance_format.kernels.pages import mini_block as copying
from lance_format.lazy_dataclasses import dataclass
from lance_format.memory import empty
from lance_format.proto import encodings_pb2

_MAX_FIELDS = 1024
_OF_ANY_LENGTH = -1


@dataclass(frozen=True, slots=True)
class PackedField:
    """A field of a row.

    Parameters
    ----------
    bits_per_value : int or None
        A multiple of 8; None if values have any length.
    bits_per_length : int or None
        32 or 64, of the length before each value; exactly one of the two is None.
    values : PerValueDecompressor
    """

    bits_per_value: int | None
    bits_per_length: int | None
    values: PerValueDecompressor


@dataclass(frozen=True, slots=True)
class VariablePackedStructDecompressor:
    """Passes on full-zip rows, which `split_rows` takes apart."""

    fields: tuple[PackedField, ...]
    encoding: encodings_pb2.CompressiveEncoding

    def decompress_values(self, values: DataBlock) -> PackedStructBlock:
        """Decompress values; see `PerValueDecompressor`."""
        return PackedStructBlock(values, self)

    def split_rows(self, rows: DataBlock) -> list[ValueBlock]:
        """Take rows apart; see `RowCodec`. Fields fill their row exactly; a null row is empty and becomes zeros."""
        if not isinstance(rows, VariableWidthBlock):
            raise CorruptFileError("packed structs with fields of any length are stored as values of a fixed width")
        widths = [_OF_ANY_LENGTH if bits is None else bits // 8 for bits in (f.bits_per_value for f in self.fields)]
        prefixes = [(field.bits_per_length or 0) // 8 for field in self.fields]
        starts = np.empty((len(self.fields), rows.num_values), np.int64)
        sizes = np.empty_like(starts)
        found = kernels.locate_fields(rows.data, rows.offsets, np.array(widths), np.array(prefixes), starts, sizes)
        if found < 0:
            raise CorruptFileError(f"the fields of packed struct {-1 - found} do not fill it")
        blocks: list[ValueBlock] = []
        for field, begins, lengths in zip(self.fields, starts, sizes, strict=True):
            block = field.values.decompress_values(_gather(rows.data, begins, lengths, field))
            if block.num_values != rows.num_values:
                raise CorruptFileError(f"a packed struct has {block.num_values} values in {rows.num_values} rows")
            blocks.append(block)
        return blocks


def _gather(data: Bytes, starts: Counts, sizes: Counts, field: PackedField) -> DataBlock:
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    out = empty(int(offsets[-1]), np.uint8)
    copying.copy_slices(data, starts, sizes, out)
    if field.bits_per_value is not None:
        width = field.bits_per_value // 8
        if out.size < len(sizes) * width:
            whole = np.zeros((len(sizes), width), np.uint8)
            whole[sizes > 0] = out.reshape(-1, width)
            out = whole.ravel()
        return FixedWidthBlock(out, field.bits_per_value, len(sizes))
    narrow = field.bits_per_length == 32 and out.size <= MAX_INT32
    return VariableWidthBlock(out, offsets.astype(np.int32) if narrow else offsets)


def parse_fields(
    encoding: encodings_pb2.CompressiveEncoding,
    parse_values: Callable[[encodings_pb2.CompressiveEncoding], PerValueDecompressor],
) -> VariablePackedStructDecompressor:
    """Build the decompressor that an encoding describes; `parse_values` builds those of its fields.

    Raises
    ------
    CorruptFileError
        If the number of fields, or the width of one, is impossible.
    """
    messages = encoding.variable_packed_struct.fields
    if not 0 < len(messages) <= _MAX_FIELDS:
        raise CorruptFileError(f"a packed struct has {len(messages)} fields; expected 1 to {_MAX_FIELDS}")
    fields = []
    for message in messages:
        layout = message.WhichOneof("layout")
        bits = getattr(message, layout) if layout is not None else 0
        if layout == "bits_per_value" and flat.is_width(bits) and bits % 8 == 0:
            fields.append(PackedField(bits, None, parse_values(message.value)))
        elif layout == "bits_per_length" and bits in (32, 64):
            fields.append(PackedField(None, bits, parse_values(message.value)))
        else:
            raise CorruptFileError(f"a field of a packed struct has {bits} bits as its {layout}")
    return VariablePackedStructDecompressor(tuple(fields), encoding)


def describe(fields: Sequence[DataBlock]) -> encodings_pb2.CompressiveEncoding:
    """Return the encoding of rows of these fields, which are not compressed."""
    messages = []
    for field in fields:
        if isinstance(field, FixedWidthBlock):
            bits = field.bits_per_value
            message = encodings_pb2.VariablePackedStruct.FieldEncoding(value=flat.describe(bits), bits_per_value=bits)
        else:
            bits = field.bits_per_offset
            value = variable.describe(bits)
            message = encodings_pb2.VariablePackedStruct.FieldEncoding(value=value, bits_per_length=bits)
        messages.append(message)
    packed = encodings_pb2.VariablePackedStruct(fields=messages)
    return encodings_pb2.CompressiveEncoding(variable_packed_struct=packed)


def codec_of(fields: Sequence[DataBlock]) -> VariablePackedStructDecompressor:
    """Return what takes rows of these fields, which are not compressed, apart."""
    packed = []
    for field in fields:
        if isinstance(field, FixedWidthBlock):
            values = flat.parse_per_value(flat.describe(field.bits_per_value))
            packed.append(PackedField(field.bits_per_value, None, values))
        else:
            bits = field.bits_per_offset
            packed.append(PackedField(None, bits, variable.parse_per_value(variable.describe(bits))))
    return VariablePackedStructDecompressor(tuple(packed), describe(fields))


def join_rows(fields: Sequence[DataBlock]) -> VariableWidthBlock:
    """Put rows together from one block a field, all of the same length and of whole bytes."""
    num_values = fields[0].num_values
    sizes = []
    row_sizes = np.zeros(num_values, np.int64)
    for field in fields:
        if isinstance(field, FixedWidthBlock):
            sizes.append(np.full(num_values, field.bytes_per_value, np.int64))
        else:
            sizes.append(np.diff(field.offsets).astype(np.int64))
            row_sizes += field.bits_per_offset // 8
        row_sizes += sizes[-1]
    offsets = np.zeros(num_values + 1, np.int64)
    np.cumsum(row_sizes, out=offsets[1:])
    out = empty(int(offsets[-1]), np.uint8)
    position = offsets[:-1].copy()
    for field, lengths in zip(fields, sizes, strict=True):
        begin = 0
        if isinstance(field, VariableWidthBlock):
            prefix = field.bits_per_offset // 8
            copying.write_integers(lengths, prefix, position, out)
            position += prefix
            begin = int(field.offsets[0])
        copying.scatter(field.data[begin:], lengths, position, out)
        position += lengths
    return VariableWidthBlock(out, offsets.astype(np.int32) if out.size <= MAX_INT32 else offsets)
