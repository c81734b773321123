"""Rows of Arrow data by their places or a mask.

Arrow 26 takes and filters slices of fixed-size lists of fixed-size lists of numbers wrongly: it reads values of other
rows, or beside the buffer. So such arrays are copied first.

Arrow joins the chunks of a column before it takes rows, which fails where strings have more than 2 GiB together. So
rows are taken from each of large chunks, and become several chunks where one cannot hold them.
"""

from __future__ import annotations

import itertools
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_JOINED_BYTES = 1 << 30
"""Arrow can join chunks of so many bytes, which costs less than to take rows of each if they are many."""

RowsT = TypeVar("RowsT", pa.Array, pa.ChunkedArray, pa.RecordBatch, pa.Table)


def take_rows(rows: RowsT, places: pa.Array) -> RowsT:
    """Return the rows at some places, which may repeat; where a place is null, the row is."""
    if isinstance(rows, pa.Table) and rows.num_columns:
        return pa.Table.from_arrays([take_rows(column, places) for column in rows.columns], schema=rows.schema)
    whole = _without_slices(rows)
    if isinstance(whole, pa.ChunkedArray) and whole.num_chunks:
        return pa.chunked_array(_taken(whole, places), whole.type)
    return whole.take(places)


def keep_rows(rows: RowsT, mask: pa.BooleanArray) -> RowsT:
    """Return the rows for which a mask without nulls is true."""
    return _without_slices(rows).filter(mask)


def _taken(column: pa.ChunkedArray, places: pa.Array) -> list[pa.Array]:
    """Return rows of a column, as chunks that Arrow can hold."""
    try:
        if column.num_chunks == 1 or column.nbytes <= _JOINED_BYTES:
            return list(column.take(places).chunks)
        return _taken_of_each(column.chunks, places)
    except pa.ArrowInvalid:  # The rows have more bytes than an array can hold.
        if len(places) < 2:
            raise
    half = len(places) // 2
    return [*_taken(column, places.slice(0, half)), *_taken(column, places.slice(half))]


def _taken_of_each(chunks: list[pa.Array], places: pa.Array) -> list[pa.Array]:
    ends = np.cumsum([len(chunk) for chunk in chunks])
    rows = pc.fill_null(places, 0).to_numpy().astype(np.int64)
    numbers = np.minimum(np.searchsorted(ends, rows, side="right"), len(chunks) - 1)
    order = np.argsort(numbers, kind="stable")
    starts = np.append(0, ends)
    within = pa.array(rows - starts[numbers], mask=places.is_null().to_numpy(zero_copy_only=False)).take(order)
    bounds = itertools.pairwise(np.searchsorted(numbers[order], np.arange(len(chunks) + 1)).tolist())
    parts = [
        chunk.take(within.slice(start, stop - start))
        for chunk, (start, stop) in zip(chunks, bounds, strict=True)
        if start < stop
    ]
    if len(parts) < 2 or (order[:-1] < order[1:]).all():
        return parts
    inverse = np.empty_like(order)
    inverse[order] = np.arange(order.size)
    return [pa.concat_arrays(parts).take(pa.array(inverse))]


def _without_slices(rows: Any) -> Any:
    """Return the rows with copies of the arrays that Arrow cannot select from."""
    if isinstance(rows, pa.RecordBatch | pa.Table):
        schema = rows.schema
        for place, arrow_type in enumerate(schema.types):
            if _has_nested_vectors(arrow_type):
                rows = rows.set_column(place, schema.field(place), _without_slices(rows.column(place)))
        return rows
    if not _has_nested_vectors(rows.type):
        return rows
    if isinstance(rows, pa.ChunkedArray):
        return pa.chunked_array([_without_slices(chunk) for chunk in rows.chunks], rows.type)
    return pa.concat_arrays([rows]) if _has_slices(rows) else rows


def _has_slices(array: pa.Array) -> bool:
    """Return whether an array, or one in it, begins within its buffers."""
    if isinstance(array, pa.ExtensionArray):
        return _has_slices(array.storage)
    if array.offset:
        return True
    if pa.types.is_struct(array.type):
        return any(_has_slices(array.field(index)) for index in range(array.type.num_fields))
    if pa.types.is_map(array.type):
        return _has_slices(array.keys) or _has_slices(array.items)
    return bool(array.type.num_fields) and _has_slices(array.values)


def _has_nested_vectors(arrow_type: pa.DataType) -> bool:
    """Return whether fixed-size lists of fixed-size lists are in a type."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _has_nested_vectors(arrow_type.storage_type)
    if not arrow_type.num_fields:
        return False
    if pa.types.is_fixed_size_list(arrow_type) and pa.types.is_fixed_size_list(arrow_type.value_type):
        return True
    return any(_has_nested_vectors(arrow_type.field(index).type) for index in range(arrow_type.num_fields))
