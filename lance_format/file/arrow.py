"""Arrow arrays <-> blocks of values and definition levels, for columns without nesting."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.data_block import (
    Bytes,
    DataBlock,
    FixedWidthBlock,
    ValueShape,
    VariableWidthBlock,
    aligned,
)
from lance_format.datatypes import Field
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.kernels import variable as kernels
from lance_format.structural.page import DecodedRows, Levels

_MAX_INT32 = 2**31 - 1
_UTF8 = (pa.string(), pa.large_string())
_SHAPES: dict[pa.DataType, ValueShape] = {
    pa.bool_(): ValueShape(bits_per_value=1),
    pa.string(): ValueShape(bits_per_offset=32),
    pa.binary(): ValueShape(bits_per_offset=32),
    pa.large_string(): ValueShape(bits_per_offset=64),
    pa.large_binary(): ValueShape(bits_per_offset=64),
}
_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
NULL_SHAPE = ValueShape()
"""The shape of the null type, which has no values."""


def shape_of(field: Field) -> ValueShape:
    """Return the kind of block that a column's values form.

    Raises
    ------
    NotSupportedError
        If columns of its type can be neither read nor written yet.
    """
    if not field.children and not field.logical_type.startswith(("fixed_size_list:", "dict:")):
        arrow_type = field.to_arrow_type()
        if pa.types.is_null(arrow_type):
            return NULL_SHAPE
        shape = _SHAPES.get(arrow_type)
        if shape is not None:
            return shape
        return ValueShape(bits_per_value=arrow_type.bit_width)
    raise NotSupportedError(f"column {field.name!r} has type {field.logical_type!r}, which is not supported yet")


def to_arrow(rows: DecodedRows, arrow_type: pa.DataType, shape: ValueShape) -> list[pa.Array]:
    """Build an array of decoded rows; several where the offsets of one would overflow.

    Raises
    ------
    CorruptFileError
        If the values are not of the type: strings that are not UTF-8, say.
    """
    if rows.values is None:
        return [pa.nulls(rows.num_rows, arrow_type)]
    if shape is NULL_SHAPE or not shape.matches(rows.values) or rows.values.num_values != rows.num_rows:
        raise CorruptFileError(f"a page does not hold {rows.num_rows} values of type {arrow_type}")
    if isinstance(rows.values, FixedWidthBlock):
        array = _build(arrow_type, rows.num_rows, rows.definition, [aligned(rows.values.data)])
        if pa.types.is_decimal(arrow_type):
            _validate(array)
        return [array]
    return _strings_to_arrow(rows.values, rows.definition, arrow_type, shape)


def _strings_to_arrow(
    values: VariableWidthBlock, definition: Levels | None, arrow_type: pa.DataType, shape: ValueShape
) -> list[pa.Array]:
    if values.bits_per_offset == shape.bits_per_offset:
        array = _build(arrow_type, values.num_values, definition, [values.offsets.view(np.uint8), values.data])
        if arrow_type in _UTF8:
            _validate(array)
        return [array]
    if values.size_bytes > _MAX_INT32 and values.num_values > 1:
        middle = values.num_values // 2
        halves = ((0, middle), (middle, values.num_values))
        return [
            array
            for start, stop in halves
            for array in _strings_to_arrow(
                values.slice(start, stop), None if definition is None else definition[start:stop], arrow_type, shape
            )
        ]
    if values.size_bytes > _MAX_INT32:
        raise CorruptFileError(f"a value has {values.size_bytes} bytes, more than type {arrow_type} allows")
    begin = int(values.offsets[0])
    narrow = VariableWidthBlock(values.data[begin : int(values.offsets[-1])], (values.offsets - begin).astype(np.int32))
    return _strings_to_arrow(narrow, definition, arrow_type, shape)


def _build(arrow_type: pa.DataType, num_rows: int, definition: Levels | None, buffers: list[Bytes]) -> pa.Array:
    validity = None
    if definition is not None and definition.any():
        validity = pa.py_buffer(np.packbits(definition == 0, bitorder="little"))
    return pa.Array.from_buffers(arrow_type, num_rows, [validity, *(pa.py_buffer(buffer) for buffer in buffers)])


def _validate(array: pa.Array) -> None:
    """Refuse strings that are not UTF-8 and decimals of too many digits, which would poison whatever comes next."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptFileError(f"a value is not of type {array.type}: {error}") from error


def from_arrow(array: pa.Array) -> tuple[DataBlock | None, Levels | None]:
    """Take an array apart into values and definition levels.

    The array may be a slice; nulls become zeros or empty strings, whatever stood in their place.

    Returns
    -------
    values : DataBlock or None
        One a row; None for the null type.
    definition : uint16[num_rows] or None
        0 where the value is there, 1 where it is null; None if none is null.
    """
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array.type in _VIEWS:
        array = array.cast(_VIEWS[array.type])
    if pa.types.is_null(array.type):
        return None, None
    valid = _validity(array)
    definition = None if valid is None else (~valid).astype(np.uint16)
    if array.type in _SHAPES and not pa.types.is_boolean(array.type):
        return _from_strings(array, valid), definition
    if pa.types.is_boolean(array.type):
        bits = _bits(array.buffers()[1], array.offset, len(array))
        if valid is not None:
            bits &= valid
        return FixedWidthBlock(np.packbits(bits, bitorder="little"), 1, len(array)), definition
    return _from_fixed_width(array, valid), definition


def _from_fixed_width(array: pa.Array, valid: npt.NDArray[np.bool_] | None) -> FixedWidthBlock:
    width = array.type.bit_width // 8
    data = _bytes(array.buffers()[1])[array.offset * width : (array.offset + len(array)) * width]
    if valid is not None:
        data = data.copy()
        if width in (1, 2, 4, 8):
            data.view(f"<u{width}")[~valid] = 0
        else:
            data.reshape(-1, width)[~valid] = 0
    return FixedWidthBlock(aligned(data), width * 8, len(array))


def _from_strings(array: pa.Array, valid: npt.NDArray[np.bool_] | None) -> VariableWidthBlock:
    _, offset_buffer, data_buffer = array.buffers()
    dtype: type[np.int32] | type[np.int64] = np.int32 if _SHAPES[array.type].bits_per_offset == 32 else np.int64
    offsets: npt.NDArray[Any]
    if offset_buffer is None or offset_buffer.size == 0:
        offsets = np.zeros(1, dtype)
    else:
        offsets = np.frombuffer(offset_buffer, dtype)[array.offset : array.offset + len(array) + 1]
    data = _bytes(data_buffer)
    if valid is not None and (np.diff(offsets)[~valid] != 0).any():
        out = np.empty(int(offsets[-1] - offsets[0]), np.uint8)
        out_offsets = np.empty_like(offsets)
        written = kernels.drop_null_bytes(data, offsets, valid, out, out_offsets)
        return VariableWidthBlock(out[:written], out_offsets)
    return VariableWidthBlock(data, offsets)


def _validity(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    if array.null_count == 0:
        return None
    return _bits(array.buffers()[0], array.offset, len(array))


def _bits(buffer: pa.Buffer | None, offset: int, count: int) -> npt.NDArray[np.bool_]:
    first = offset // 8
    packed = _bytes(buffer)[first : (offset + count + 7) // 8]
    bits = np.unpackbits(packed, count=offset - first * 8 + count, bitorder="little")
    return bits[offset - first * 8 :].view(np.bool_)


def _bytes(buffer: pa.Buffer | None) -> Bytes:
    return np.empty(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)
