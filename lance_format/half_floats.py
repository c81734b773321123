"""Half floats in Arrow arrays, of which early releases of Arrow lack most functions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def widened(values: pa.Array) -> pa.Array:
    """Return half floats as floats of 32 bits, and other values as they are."""
    return values.cast(pa.float32()) if pa.types.is_float16(values.type) else values


def is_nan(values: pa.Array) -> pa.BooleanArray:
    """Return whether floating-point numbers are NaN; null if they are null."""
    return pc.is_nan(widened(values))


def nan_of(arrow_type: pa.DataType) -> pa.Scalar:
    """Return NaN of a floating-point type."""
    return pa.scalar(np.array(np.nan, arrow_type.to_pandas_dtype())[()], arrow_type)


def if_else(condition: pa.BooleanArray, chosen: pa.Array | pa.Scalar, others: pa.Array | pa.Scalar) -> pa.Array:
    """Return `chosen` where a condition is true, and otherwise `others`; null where the condition is null.

    Parameters
    ----------
    condition : pa.BooleanArray
    chosen, others : pa.Array or pa.Scalar
        Values of one type.
    """
    if not pa.types.is_float16(chosen.type):
        return pc.if_else(condition, chosen, others)
    found = pc.if_else(condition, _bits(chosen), _bits(others))
    return found.view(pa.float16()) if len(found) else pa.array([], pa.float16())


def _bits(values: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    if isinstance(values, pa.Scalar):
        return pa.scalar(int(np.float16(values.as_py()).view(np.uint16)) if values.is_valid else None, pa.uint16())
    return values.view(pa.uint16()) if len(values) else pa.array([], pa.uint16())  # Without rows it may lack buffers.
