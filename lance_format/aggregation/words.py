"""Arrow arrays as integers of 64 bits, and back.

Types whose values are integers of at most 64 bits are computed as such: integers, booleans, dates, times, and decimals
of up to 18 digits. Nulls have any number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.expressions.values.casts import MAX_WORD_DIGITS
from lance_format.masks import flags_of, is_true
from lance_format.memory import fixed_width

Bool = npt.NDArray[np.bool_]
F64 = npt.NDArray[np.float64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
_Item = TypeVar("_Item", bound=np.generic)

_INTEGERS: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_boolean,
    pa.types.is_signed_integer,
    lambda arrow_type: pa.types.is_unsigned_integer(arrow_type) and arrow_type.bit_width < 64,
    pa.types.is_date32,
    pa.types.is_time,
    pa.types.is_timestamp,
    pa.types.is_duration,
    lambda arrow_type: pa.types.is_decimal128(arrow_type) and arrow_type.precision <= MAX_WORD_DIGITS,
)


def is_word(arrow_type: pa.DataType) -> bool:
    """Return whether the values of a type are integers of at most 64 bits, in their order."""
    return any(is_kind(arrow_type) for is_kind in _INTEGERS)


def frozen(values: npt.NDArray[_Item]) -> npt.NDArray[_Item]:
    """Return a read-only view; kernels are compiled once for all arrays that they only read."""
    view = values.view()
    view.setflags(write=False)
    return view


def validity(array: pa.Array) -> Bool:
    """Return for each value whether it is not null; empty if no value is null."""
    if not array.null_count:
        return frozen(np.empty(0, np.bool_))
    return frozen(flags_of(array.is_valid()))


def to_words(array: pa.Array) -> I64:
    """Return the values of an array of such a type; any numbers for nulls."""
    arrow_type = array.type
    if pa.types.is_boolean(arrow_type):
        array = is_true(array).cast(pa.int8())
    elif pa.types.is_decimal128(arrow_type):
        return frozen(np.ascontiguousarray(fixed_width(array, "i8", 2)[::2]))
    kind = "u" if pa.types.is_unsigned_integer(arrow_type) else "i"
    return frozen(fixed_width(array, f"{kind}{array.type.bit_width // 8}").astype(np.int64, copy=False))


def to_floats(array: pa.Array) -> F64:
    """Return the values of an array of floating-point numbers of 32 or 64 bits; any numbers for nulls."""
    return frozen(fixed_width(array, f"f{array.type.bit_width // 8}").astype(np.float64, copy=False))


def float_bits(numbers: npt.NDArray[Any]) -> I64:
    """Return the bits of floating-point numbers as signed integers, the same ones for all NaN.

    Parameters
    ----------
    numbers : float32 or float64[num_values]
    """
    alike = np.where(np.isnan(numbers), numbers.dtype.type(np.nan), numbers)
    bits: I64 = alike.view(f"i{numbers.itemsize}").astype(np.int64, copy=False)
    return bits


def from_words(words: I64, valid: Bool, arrow_type: pa.DataType) -> pa.Array:
    """Return the array with these values.

    Parameters
    ----------
    words : int64[num_values]
    valid : bool[num_values]
        Whether a value is not null.
    arrow_type : pa.DataType
        A type for which `is_word` is true.
    """
    mask = None if valid.all() else ~valid
    if pa.types.is_decimal128(arrow_type):
        return from_halves(words.view(np.uint64), words >> 63, valid, arrow_type)
    if pa.types.is_boolean(arrow_type):
        return pa.array(words != 0, mask=mask)
    kind = "u" if pa.types.is_unsigned_integer(arrow_type) else "i"
    numbers = words.astype(f"{kind}{arrow_type.bit_width // 8 or 1}")
    return pa.array(numbers, mask=mask).view(arrow_type)


def halves(array: pa.Array) -> tuple[I64, I64]:
    """Return the lower and the upper 64 bits of decimals.

    A decimal is the lower bits, as a signed integer, plus 2**64 times the upper ones.
    """
    words = fixed_width(array, "i8", 2)
    low = np.ascontiguousarray(words[::2])
    return low, words[1::2] + (low < 0)


def from_halves(low: U64, high: I64, valid: Bool, arrow_type: pa.DataType) -> pa.Array:
    """Return decimals by the two halves of their numbers.

    Parameters
    ----------
    low : uint64[num_values]
        The lower 64 bits.
    high : int64[num_values]
        The upper 64 bits.
    valid : bool[num_values]
        Whether a value is not null.
    arrow_type : pa.DataType
        A type of decimals of 128 bits.
    """
    words = np.empty((low.size, 2), np.int64)
    words[:, 0] = low.view(np.int64)
    words[:, 1] = high
    is_valid = None if valid.all() else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(arrow_type, low.size, [is_valid, pa.py_buffer(words)])
