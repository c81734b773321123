"""Rows of Arrow data by their places or a mask.

Arrow 26 takes and filters slices of fixed-size lists of fixed-size lists of numbers wrongly: it reads values of other
rows, or beside the buffer. So such arrays are copied first.
"""

from __future__ import annotations

from typing import Any, TypeVar

import pyarrow as pa

RowsT = TypeVar("RowsT", pa.Array, pa.ChunkedArray, pa.RecordBatch, pa.Table)


def take_rows(rows: RowsT, places: pa.Array) -> RowsT:
    """Return the rows at some places, which may repeat; where a place is null, the row is."""
    return _without_slices(rows).take(places)


def keep_rows(rows: RowsT, mask: pa.BooleanArray) -> RowsT:
    """Return the rows for which a mask without nulls is true."""
    return _without_slices(rows).filter(mask)


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
