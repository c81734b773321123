"""The value of the first condition that holds, or the first that is not null, for each row.

Arrow's `case_when` moves one value after the other, with a branch for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.kernels.columns.choice import replace_words
from lance_format.kernels.jit import read_only
from lance_format.masks import flags_of, is_true
from lance_format.memory import empty, fixed_width

_WORD_BITS = (8, 16, 32, 64)

_FEW_BRANCHES = 2
"""Branches of other types that Arrow takes one after the other sooner than together."""


def choose(conditions: Sequence[pa.BooleanArray], values: Sequence[Any], default: Any) -> pa.Array:
    """Return for each row the value of the first condition that is true, else the default.

    Parameters
    ----------
    conditions : sequence of pa.BooleanArray
        At least one; null is not true.
    values : sequence of pa.Array or pa.Scalar
        The value of each condition, of one type.
    default : pa.Array or pa.Scalar
        Of that type.
    """
    arrow_type, branches = default.type, list(zip(conditions, values, strict=True))[::-1]
    if not _is_word(arrow_type) and (pa.types.is_boolean(arrow_type) or len(branches) <= _FEW_BRANCHES):
        for condition, value in branches:
            default = pc.if_else(is_true(condition), value, default)
        return default
    if not _is_word(arrow_type):
        names = [str(position) for position in range(len(conditions))]
        return pc.case_when(pa.StructArray.from_arrays(conditions, names), *values, default)
    num_rows = len(conditions[0])
    if not num_rows:
        return pa.nulls(0, arrow_type)
    arrays = [pa.repeat(value, 1) if isinstance(value, pa.Scalar) else value for _, value in branches]
    rest = pa.repeat(default, 1) if isinstance(default, pa.Scalar) else default
    words = _repeated(_words(rest), num_rows // len(rest))
    has_nulls = any(array.null_count for array in (rest, *arrays))
    is_valid = _repeated(_valid(rest), num_rows // len(rest)) if has_nulls else None
    for (condition, _), array in zip(branches, arrays, strict=True):
        flags = read_only(flags_of(is_true(condition)))
        replace_words(flags, _words(array), words)
        if is_valid is not None:
            replace_words(flags, _valid(array), is_valid)
    validity = None if is_valid is None else pa.py_buffer(np.packbits(is_valid, bitorder="little"))
    return pa.Array.from_buffers(arrow_type, num_rows, [validity, pa.py_buffer(words)])


def first_valid(*values: Any) -> Any:
    """Return the first value of each row that is not null, else null; a scalar if all are.

    Parameters
    ----------
    values : pa.Array or pa.Scalar
        At least one, of one type.
    """
    if not pa.types.is_boolean(values[0].type):
        return pc.coalesce(*values)
    found = values[-1]
    for value in values[-2::-1]:
        found = pc.if_else(pc.is_valid(value), value, found)
    return found


def _is_word(arrow_type: pa.DataType) -> bool:
    return pa.types.is_primitive(arrow_type) and arrow_type.bit_width in _WORD_BITS


def _repeated(words: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    copied = empty(words.size * count, words.dtype)
    copied.reshape(count, words.size)[:] = words
    return copied


def _valid(array: pa.Array) -> npt.NDArray[np.uint8]:
    return read_only(flags_of(array.is_valid()).view(np.uint8))


def _words(array: pa.Array) -> npt.NDArray[Any]:
    """Return the values of an array, any for nulls, as words."""
    return read_only(fixed_width(array, f"u{array.type.bit_width // 8}"))
