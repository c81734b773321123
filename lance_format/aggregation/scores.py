"""Scores of values: integers of 64 bits in the order of the values, the best value first by the greatest score.

Different values may have one score, but never in another order: those of strings that begin with the same eight bytes,
decimals beyond 64 bits, and nulls, which have the least or the greatest number. Floating-point numbers are in Spark's
order: -0.0 equals 0.0, and NaN equals itself and exceeds all others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lance_format.aggregation.words import (
    I64,
    float_bits,
    frozen,
    halves,
    is_word,
    to_words,
    validity,
)
from lance_format.expressions.values.text_set import text_parts
from lance_format.kernels.aggregation.best_values import GREATEST, LEAST, score_texts
from lance_format.masks import is_text
from lance_format.memory import fixed_width

_Score: TypeAlias = Callable[[pa.Array], I64]


def _of_floats(array: pa.Array) -> I64:
    """Order the bits: those of negative numbers are in the opposite order."""
    size = array.type.bit_width // 8
    bits = float_bits(fixed_width(array, f"f{size}").astype(np.float64) + 0.0)  # -0.0 becomes 0.0
    return bits ^ (bits >> 63 & GREATEST)


def _of_decimals(array: pa.Array) -> I64:
    """Replace numbers beyond 64 bits by the nearest that fits."""
    low, high = halves(array)
    # The upper half counts multiples of 2**64 to add to the lower half as a signed integer.
    scores = np.where(high > 0, GREATEST, np.where(high < 0, LEAST, low))
    return scores.astype(np.int64, copy=False)


def _of_texts(array: pa.Array) -> I64:
    data, offsets = text_parts(array)
    scores = np.empty(len(array), np.int64)
    score_texts(data, offsets, scores)
    return scores


_SCORES: tuple[tuple[Callable[[pa.DataType], bool], _Score], ...] = (
    (is_word, to_words),
    (lambda arrow_type: pa.types.is_float32(arrow_type) or pa.types.is_float64(arrow_type), _of_floats),
    (pa.types.is_decimal128, _of_decimals),
    (is_text, _of_texts),
)


def are_exact(arrow_type: pa.DataType) -> bool:
    """Return whether different values of a type have different scores, except the least and the greatest score."""
    return not is_text(arrow_type)


def score(array: pa.Array, *, ascending: bool, nulls_first: bool) -> I64:
    """Return the scores of values.

    Parameters
    ----------
    array : pa.Array
        Of a type for which `lance_format.aggregation.keys.is_key` is true.
    ascending : bool
        Whether the least value is the best.
    nulls_first : bool
        Whether nulls are better than all values, or worse.

    Returns
    -------
    int64[num_values], read-only
    """
    compute = next(compute for is_kind, compute in _SCORES if is_kind(array.type))
    scores = compute(array)
    if ascending:
        scores = ~scores
    valid = validity(array)
    if valid.size:
        scores = np.where(valid, scores, GREATEST if nulls_first else LEAST)
    return frozen(scores)
