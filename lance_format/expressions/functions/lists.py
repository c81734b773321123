"""Questions about lists, answered for whole columns: each looks at all items at once, then counts by list."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.arrow_rows import take_rows
from lance_format.errors import InvalidInputError
from lance_format.expressions.constants import as_array
from lance_format.expressions.values.casts import cast
from lance_format.expressions.values.coercion import common_type
from lance_format.expressions.values.order import compare, is_among
from lance_format.kernels.columns.list_hits import mark_lists
from lance_format.kernels.jit import read_only
from lance_format.list_items import items_of
from lance_format.masks import is_true


def contains(lists: pa.Array, items: pa.Array) -> pa.BooleanArray:
    """Return whether each list has the item of its row; null if either is."""
    values, rows = items_of(lists)
    values, wanted = _meet(values, items)
    found = is_true(compare("=", values, wanted.take(rows)))
    return _with_nulls(_any_by_list(lists, found), pc.or_(pc.is_null(lists), pc.is_null(items)))


def contains_constant(lists: pa.Array, item: pa.Scalar) -> pa.BooleanArray:
    """Return whether each list has an item; null if either is."""
    if not item.is_valid:
        return pa.nulls(len(lists), pa.bool_())
    values, wanted = _meet(pc.list_flatten(lists), as_array(item))
    return _with_nulls(_any_by_list(lists, is_true(compare("=", values, wanted[0]))), pc.is_null(lists))


def contains_any(lists: pa.Array, wanted: pa.Scalar) -> pa.BooleanArray:
    """Return whether each list has one of the items of another, null being an item too; null if the list is."""
    items = _items(wanted)
    if not len(items):
        return pa.array(np.zeros(len(lists), dtype=bool))
    values, items = _meet(pc.list_flatten(lists), items)
    return _with_nulls(_any_by_list(lists, is_among(values, items)), pc.is_null(lists))


def contains_all(lists: pa.Array, wanted: pa.Scalar) -> pa.BooleanArray:
    """Return whether each list has all items of another, null being an item too; null if the list is."""
    items = _items(wanted)
    if not len(items):
        return pa.array(np.ones(len(lists), dtype=bool))
    values, items = _meet(pc.list_flatten(lists), pc.unique(items))
    result = np.ones(len(lists), dtype=bool)
    for position in range(len(items)):
        result &= _any_by_list(lists, is_among(values, items.slice(position, 1)))
    return _with_nulls(result, pc.is_null(lists))


def lengths(lists: pa.Array) -> pa.UInt64Array:
    """Return the number of items of each list."""
    return pc.cast(pc.list_value_length(lists), pa.uint64())


def element(lists: pa.Array, positions: pa.Array) -> pa.Array:
    """Return an item of each list, counted from 1, or from -1 backwards; null if the list has no such item."""
    size = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    first = np.cumsum(size) - size
    position = pc.fill_null(positions, 0).to_numpy(zero_copy_only=False)
    index = np.where(position > 0, position - 1, position + size)
    there = (position != 0) & (index >= 0) & (index < size)
    return take_rows(pc.list_flatten(lists), pa.array(first + index, mask=~there))


def is_empty(lists: pa.Array) -> pa.BooleanArray:
    """Return whether each list has no items."""
    return pc.equal(pc.list_value_length(lists), 0)


def _items(wanted: Any) -> pa.Array:
    if not isinstance(wanted, pa.Scalar):
        raise InvalidInputError("lists can be searched only for items of a constant list, such as [1, 2]")
    return wanted.values if wanted.is_valid else pa.nulls(0)


def _meet(values: pa.Array, items: pa.Array) -> tuple[pa.Array, pa.Array]:
    arrow_type = common_type(values.type, items.type)
    if arrow_type is None or pa.types.is_nested(arrow_type):
        raise InvalidInputError(f"a list of {values.type} cannot have items of {items.type}; cast them")
    return cast(values, arrow_type), cast(items, arrow_type)


def _any_by_list(lists: pa.Array, found: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    """Return for each list whether `found`, which has a value for each item, is true for one of its items."""
    any_found = np.zeros(len(lists), np.bool_)
    if len(found):
        size = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
        bits = np.frombuffer(found.buffers()[1], np.uint8)
        mark_lists(read_only(bits), found.offset, np.cumsum(size, dtype=np.int64), any_found)
    return any_found


def _with_nulls(result: npt.NDArray[np.bool_], nulls: pa.BooleanArray) -> pa.BooleanArray:
    return pa.array(result, mask=nulls.to_numpy(zero_copy_only=False) if nulls.true_count else None)
