"""A filter for the rows that may have one of some keys, so that statistics and indices exclude others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

_MOST_VALUES = 1 << 17
"""Distinct values of a column that are compared one by one; of more, the bounds are."""

_IS_PLAIN = (
    pa.types.is_integer,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_decimal,
)
"""Types of which a filter finds the same rows as keys do: equal values have equal bits."""


def key_filter(keys: pa.Table, names: Sequence[str]) -> pc.Expression | None:
    """Return a condition that all rows with the keys fulfil; None if there is no such.

    Parameters
    ----------
    keys : pa.Table
        Columns as the table has them. A key with a null is no row's.
    names : sequence of str
        The columns of the key.
    """
    columns = ((name, keys.column(name)) for name in names)
    terms = [_among(name, values) for name, values in columns if any(is_such(values.type) for is_such in _IS_PLAIN)]
    return reduce(lambda one, other: one & other, terms) if terms else None


def _among(name: str, values: pa.ChunkedArray) -> pc.Expression:
    column = pc.field(name)
    distinct = values.drop_null().unique()
    if len(distinct) <= _MOST_VALUES:
        return column.isin(distinct)
    bounds = pc.min_max(distinct)
    return (column >= bounds["min"]) & (column <= bounds["max"])
