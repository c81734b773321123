"""Limits of the rows of one array: the reach of its 32-bit offsets, and the number of its dictionary's keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lance_format.list_items import offsets_of

MAX_OFFSET = 2**31 - 1
"""The most bytes of strings, and the most items of lists, that offsets of 32 bits reach."""

_MAX_INT64 = 2**63 - 1


def rows_that_fit(arrays: Sequence[pa.Array], num_rows: int) -> int:
    """Return how many of the next rows, up to a wanted number, one array can hold.

    Fewer where 32-bit offsets would overflow, or where the keys of a dictionary could not number the items of all.

    Parameters
    ----------
    arrays : sequence of pyarrow.Array
        Of one leaf, as `build_leaf` makes them, with at least `num_rows` rows together; at least one array.
    num_rows : int
    """
    rows, needed = 0, np.zeros(0, np.int64)
    items = None
    for array in arrays:
        parts = list(_parts(array))
        own = np.array([_extent(part, items) for part in parts], np.int64)
        room = np.array([_room(part) for part in parts], np.int64)
        needed = own if rows == 0 else needed + own
        if rows and (needed > room).any():
            return rows
        rows += len(array)
        if rows >= num_rows:
            return num_rows
        items = parts[-1].dictionary if pa.types.is_dictionary(parts[-1].type) else None
    return rows


def _parts(array: pa.Array) -> Iterator[pa.Array]:
    """Yield an array and its nested arrays, down to the leaf."""
    yield array
    if pa.types.is_struct(array.type):
        for index in range(array.type.num_fields):
            yield from _parts(array.field(index))
    elif pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        yield from _parts(array.values.slice(array.offset * size, len(array) * size))
    elif pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        offsets = offsets_of(array)
        yield from _parts(array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0])))


def _extent(part: pa.Array, items: pa.Array | None) -> int:
    """Return how far the offsets of an array reach, or how many items it has besides those of the array before it."""
    if pa.types.is_dictionary(part.type):
        return 0 if items is not None and part.dictionary.equals(items) else len(part.dictionary)
    if not _has_offsets(part.type):
        return 0
    offsets = offsets_of(part)
    return int(offsets[-1]) - int(offsets[0])


def _room(part: pa.Array) -> int:
    if pa.types.is_dictionary(part.type):
        return min(int(np.iinfo(part.type.index_type.to_pandas_dtype()).max), _MAX_INT64 - 1) + 1
    return MAX_OFFSET


def _has_offsets(arrow_type: pa.DataType) -> bool:
    """Return whether arrays have offsets of 32 bits."""
    return any(matches(arrow_type) for matches in (pa.types.is_string, pa.types.is_binary, pa.types.is_list))
