"""Checks for invalid values: strings that are not UTF-8, and decimals of too many digits.

Arrow arrays can hold them, and Lance pages cannot detect them. They are refused on writing, because readers refuse
them, and on reading, because consumers rely on valid values.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_format.data_block import Bytes, DataBlock, FixedWidthBlock, VariableWidthBlock
from lance_format.errors import CorruptFileError, InvalidInputError
from lance_format.kernels.columns.decimals import are_within

_FIRST_NOT_ASCII = 0x80
_KIND_OF_BYTE, _CONTINUATION_BYTE = 0xC0, 0x80
_MOST_DIGITS = 18
"""Numbers of so many digits fit 64 bits."""
_UTF8 = (pa.string(), pa.large_string())
_CURES = {True: "store it as binary", False: "cast it to a decimal of more digits"}


def check_read(array: pa.Array) -> None:
    """Check the values of an array that was read.

    Raises
    ------
    CorruptFileError
    """
    if _has_few_digits(array.type, array.buffers()[1], len(array)):
        return
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptFileError(f"a value is not of type {array.type}: {error}") from error


def check_written(block: DataBlock, arrow_type: pa.DataType) -> None:
    """Check values before writing, with nulls as zeros and empty strings.

    Raises
    ------
    InvalidInputError
    """
    if isinstance(block, VariableWidthBlock):
        if arrow_type not in _UTF8 or is_utf8(block):
            return
        buffers = [pa.py_buffer(block.offsets), pa.py_buffer(block.data)]
    elif pa.types.is_decimal(arrow_type):
        assert isinstance(block, FixedWidthBlock)
        if _has_few_digits(arrow_type, block.data, block.num_values):
            return
        buffers = [pa.py_buffer(block.data)]
    else:
        return
    try:
        pa.Array.from_buffers(arrow_type, block.num_values, [None, *buffers]).validate(full=True)
    except pa.ArrowInvalid as error:
        what = f"a value is not of type {arrow_type}, and could not be read back: {error}"
        raise InvalidInputError(f"{what}; {_CURES[arrow_type in _UTF8]}") from error


def _has_few_digits(arrow_type: pa.DataType, data: pa.Buffer | Bytes, num_values: int) -> bool:
    """Return whether values are known to have few enough digits: those of 64 bits are looked at sooner."""
    if not pa.types.is_decimal128(arrow_type) or arrow_type.precision > _MOST_DIGITS:
        return False
    return are_within(np.frombuffer(data, "<i8", 2 * num_values), 10**arrow_type.precision - 1)


def is_utf8(block: VariableWidthBlock) -> bool:
    """Return whether byte strings are UTF-8.

    All of them are looked at as one, which is faster: they are if that is, and none begins within a character.
    """
    begin, end = int(block.offsets[0]), int(block.offsets[-1])
    used = block.data[begin:end]
    if int(np.max(used, initial=0)) < _FIRST_NOT_ASCII:
        return True
    starts = block.offsets[:-1]
    if ((block.data[starts[starts < end]] & _KIND_OF_BYTE) == _CONTINUATION_BYTE).any():
        return False
    whole = pa.py_buffer(np.array([0, end - begin], np.int64))
    try:
        pa.Array.from_buffers(pa.large_string(), 1, [None, whole, pa.py_buffer(used)]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
