"""Equality of values of any type, nested ones among them, row by row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connector.types.arrays import has_items, items_of, offsets_of, valid_rows

_Flags = npt.NDArray[np.bool_]


def same_rows(one: pa.Array, other: pa.Array) -> _Flags:
    """Return in which rows two arrays have the same value, `bool[num_rows]`.

    Nulls equal each other, and so does NaN; 0.0 and -0.0 differ, as in keys.

    Parameters
    ----------
    one, other : pyarrow.Array
        Of the same type and length, without extension types and dictionaries.
    """
    valid, valid_other = valid_rows(one), valid_rows(other)
    both, neither = valid & valid_other, ~(valid | valid_other)
    return (both & _same_values(one, other)) | neither if both.any() else neither


def _same_values(one: pa.Array, other: pa.Array) -> _Flags:
    """Compare rows; those with a null may have any result."""
    if pa.types.is_struct(one.type):
        found = np.ones(len(one), np.bool_)
        for index in range(one.type.num_fields):
            found &= same_rows(one.field(index), other.field(index))
        return found
    if pa.types.is_map(one.type) or has_items(one.type):
        return _same_items(one, other)
    if pa.types.is_floating(one.type):  # The only values whose bits tell more than a comparison.
        bits = {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[one.type.bit_width]
        one, other = one.view(bits), other.view(bits)
    equal: _Flags = pc.fill_null(pc.equal(one, other), False).to_numpy(zero_copy_only=False)
    return equal


def _same_items(one: pa.Array, other: pa.Array) -> _Flags:
    sizes = np.diff(offsets_of(one))
    found: _Flags = (sizes == np.diff(offsets_of(other))) & valid_rows(one) & valid_rows(other)
    rows = pa.array(found)
    differences = np.append(0, np.cumsum(~same_rows(items_of(one.filter(rows)), items_of(other.filter(rows)))))
    ends = np.cumsum(sizes[found])
    found[found] = differences[ends] == differences[ends - sizes[found]]
    return found
