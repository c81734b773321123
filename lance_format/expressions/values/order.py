"""Comparisons of values of one type, in the order that the reference and Spark give them.

Floating-point numbers are ordered totally: NaN equals itself and exceeds all others, and -0.0 equals 0.0. Arrow's own
comparisons follow IEEE 754, where comparisons with NaN are false.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_format.expressions.nodes import MIRRORED, ComparisonOperator
from lance_format.expressions.values.integer_set import IntegerSet
from lance_format.expressions.values.text_set import TextSet
from lance_format.masks import is_true

_FEW_CONSTANTS = 4
"""Arrow hashes values, which takes longer than to compare them with so few constants."""

_KERNELS: dict[ComparisonOperator, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def compare(operator: ComparisonOperator, left: Any, right: Any) -> Any:
    """Compare values.

    Parameters
    ----------
    operator : str
    left, right : pa.Array or pa.Scalar
        Of one type, and of one length where they are arrays.

    Returns
    -------
    pa.BooleanArray or pa.BooleanScalar
        Null where a side is.
    """
    if pa.types.is_floating(left.type):
        return _compare_floats(operator, left, right)
    if pa.types.is_decimal(left.type) and left.type.scale < 0:
        left, right = _digits(left), _digits(right)
    return _KERNELS[operator](left, right)


def _digits(decimals: Any) -> Any:
    """Return the digits of decimals as decimals without a scale; Arrow compares none of a negative one."""
    if isinstance(decimals, pa.Scalar):
        return _digits(pa.array([decimals.as_py()], decimals.type))[0]
    make = pa.decimal128 if pa.types.is_decimal128(decimals.type) else pa.decimal256
    return decimals.view(make(decimals.type.precision, 0))


def _compare_floats(operator: ComparisonOperator, left: Any, right: Any) -> Any:
    if operator == "!=":
        return pc.invert(_compare_floats("=", left, right))
    if operator in (">", ">="):
        return _compare_floats(MIRRORED[operator], right, left)
    result = _KERNELS[operator](left, right)
    if not _has_nan(right):
        return result
    above = pc.is_nan(right)
    if operator == "=":
        above = pc.and_(above, pc.is_nan(left))
    elif operator == "<":
        above = pc.and_(above, pc.invert(pc.is_nan(left)))
    return pc.or_(result, above)


def is_among(values: Any, constants: pa.Array) -> Any:
    """Return whether each value equals one of some constants, null being a value like others; never null.

    Parameters
    ----------
    values : pa.Array or pa.Scalar
    constants : pa.Array
        Of the same type.
    """
    known = IntegerSet.of(constants) or TextSet.of(constants) if isinstance(values, pa.Array) else None
    if known is not None:
        return known.contains(values)
    if 0 < len(constants) <= _FEW_CONSTANTS and not constants.null_count:
        return is_true(reduce(pc.or_, (compare("=", values, constant) for constant in constants)))
    found = pc.is_in(values, value_set=constants)
    if pa.types.is_floating(constants.type):
        # Arrow looks values up by their bits; zero and NaN have several forms.
        if pc.any(pc.equal(constants, 0.0)).as_py():
            found = pc.or_(found, is_true(pc.equal(values, 0.0)))
        if pc.any(pc.is_nan(constants)).as_py():
            found = pc.or_(found, is_true(pc.is_nan(values)))
    return found


def _has_nan(values: Any) -> bool:
    nan = pc.is_nan(values)
    return bool((nan if isinstance(nan, pa.Scalar) else pc.any(nan)).as_py())
