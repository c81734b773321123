"""The order of sorted rows: ranks of their values, and the rows that can precede a given one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.arrow_rows import take_rows
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.expressions import Expression, conjunction, disjunction
from lance_format.expressions.nodes import Column, Comparison, ComparisonOperator, IsNull, Literal, Not
from lance_format.half_floats import widened
from lance_format.table.fragments.row_columns import ROW_OFFSET
from lance_format.table.scan.options import ColumnOrdering

Ranks = npt.NDArray[np.int64]
_SELECTED_SHARE = 16
"""How many rows there are for each wanted one, at least, where a selection costs less than to sort all."""


def as_ordering(ordering: Any) -> ColumnOrdering:
    """Return an ordering in any of its forms: a name, or that of pylance.

    Raises
    ------
    InvalidInputError
        If it is none.
    """
    if isinstance(ordering, str):
        return ColumnOrdering(ordering)
    if not hasattr(ordering, "column_name"):
        raise InvalidInputError(f"order_by has {ordering!r}; names of columns or ColumnOrdering are needed")
    return ColumnOrdering(ordering.column_name, bool(ordering.ascending), bool(ordering.nulls_first))


def sorted_indices(keys: pa.Table, orderings: list[ColumnOrdering]) -> Ranks:
    """Return the indices of rows in their order. Equal rows keep the order of the table.

    Parameters
    ----------
    keys : pa.Table
        The sort columns, and `_rowoffset`.
    orderings : list of ColumnOrdering
        The first is the most significant.
    """
    ranks = [rank(keys[ordering.column_name], ordering) for ordering in reversed(orderings)]
    return np.lexsort([keys[ROW_OFFSET].to_numpy(), *ranks])


def first_indices(keys: pa.Table, orderings: list[ColumnOrdering], count: int) -> Ranks:
    """Return the indices of the first rows in their order; see `sorted_indices`.

    Rows whose number in the first column already puts them after `count` others are not sorted: finding these is a
    selection, which takes a tenth of the time.

    Parameters
    ----------
    keys, orderings
        See `sorted_indices`.
    count : int
        At least 1.
    """
    near = _not_after_the_last(keys[orderings[0].column_name], count, ascending=orderings[0].ascending)
    if near is None:
        return sorted_indices(keys, orderings)[:count]
    return near[sorted_indices(take_rows(keys, pa.array(near)), orderings)[:count]]


def _not_after_the_last(column: pa.ChunkedArray, count: int, *, ascending: bool) -> Ranks | None:
    """Return the rows whose number is at most the `count`-th one; None if it would not help, or is not that simple."""
    kind = column.type
    is_plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_timestamp(kind)
    if not is_plain or column.null_count or len(column) < _SELECTED_SHARE * count:
        return None
    numbers = (column.cast(pa.int64()) if pa.types.is_timestamp(kind) else column).to_numpy()
    place = count - 1 if ascending else len(numbers) - count
    last = np.partition(numbers, place)[place]  # It puts NaN last, as the order does.
    if last != last:
        return None
    return np.flatnonzero(numbers <= last if ascending else ~(numbers < last))


def rank(column: pa.ChunkedArray, ordering: ColumnOrdering) -> Ranks:
    """Return numbers that order like the values. NaN exceeds all other numbers.

    Raises
    ------
    NotSupportedError
        If values of the type have no order.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not len(column):
        return np.zeros(0, np.int64)  # Early releases of Arrow cannot rank a column without chunks.
    try:
        ranks: Ranks = pc.rank(widened(column), sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise NotSupportedError(
            f"rows cannot be sorted by column {ordering.column_name!r} of type {column.type}"
        ) from error
    if not ordering.ascending:
        ranks = -ranks
    ranks[column.is_null().to_numpy()] = -len(ranks) - 1 if ordering.nulls_first else len(ranks) + 1
    return ranks


def not_after(values: Sequence[pa.Scalar], orderings: Sequence[ColumnOrdering]) -> Expression:
    """Return the predicate of the rows that precede or equal one in an order.

    Parameters
    ----------
    values : sequence of pa.Scalar
        Those of the row in the sort columns; see `is_comparable`.
    orderings : sequence of ColumnOrdering
        At least one.
    """
    value, ordering = values[0], orderings[0]
    column = Column((ordering.column_name,))
    is_null = IsNull(column)
    is_last = len(values) == 1
    if not value.is_valid:
        sooner: tuple[Expression, ...] = () if ordering.nulls_first else (Not(is_null),)
        same: tuple[Expression, ...] = (is_null,)
    else:
        operator: ComparisonOperator = ("<=" if is_last else "<") if ordering.ascending else (">=" if is_last else ">")
        sooner = (Comparison(operator, column, Literal(value)), *((is_null,) if ordering.nulls_first else ()))
        same = () if is_last else (Comparison("=", column, Literal(value)),)
    if same and not is_last:
        same = (conjunction((*same, not_after(values[1:], orderings[1:]))),)
    return disjunction((*sooner, *same))


def is_comparable(arrow_type: pa.DataType) -> bool:
    """Return whether `not_after` can compare values of a type."""
    return bool(
        pa.types.is_integer(arrow_type)
        or pa.types.is_floating(arrow_type)
        or pa.types.is_decimal(arrow_type)
        or pa.types.is_temporal(arrow_type)
        or pa.types.is_boolean(arrow_type)
        or arrow_type in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    ) and not pa.types.is_float16(arrow_type)
