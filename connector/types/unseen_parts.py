"""Parts of stored values that Spark does not see: nanoseconds, and the milliseconds of dates.

Spark returns a value that it did not change as it saw it. The stored value, which it stands for, is kept then.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connector.types.arrays import convert, has_items, is_rounded, items_of, offsets_of

_Flags = npt.NDArray[np.bool_]


def keep_unseen(stored: pa.Array, given: pa.Array, old: pa.Array, path: str) -> pa.Array:
    """Return new values, except where Spark has returned what it saw of the old ones: these stay as they are.

    Structs are compared field by field, lists and maps as a whole.

    Parameters
    ----------
    stored : pyarrow.Array
        The new values.
    given : pyarrow.Array
        The same, as Spark has given them.
    old : pyarrow.Array
        The values that they replace, of the type of `stored`.
    path : str
        Names of the column and of the nested fields, for messages.
    """
    return _keep(stored, given, old, path, np.ones(len(stored), np.bool_))


def _keep(stored: pa.Array, given: pa.Array, old: pa.Array, path: str, has_old: _Flags) -> pa.Array:
    """Return the values; `has_old` tells where the structs around the old ones are not null."""
    if not is_rounded(stored.type):
        return stored
    if pa.types.is_struct(stored.type):
        has_old = has_old & _is_valid(old)
        children = [
            _keep(stored.field(index), given.field(field.name), old.field(index), f"{path}.{field.name}", has_old)
            for index, field in enumerate(stored.type)
        ]
        validity = stored.is_valid().buffers()[1] if stored.null_count else None
        return pa.Array.from_buffers(stored.type, len(stored), [validity], stored.null_count, 0, children)
    stays = has_old & _same(convert(old, given.type, path), given)
    if not stays.any():
        return stored
    rows = np.arange(len(stored))
    return pa.concat_arrays([stored, old]).take(pa.array(np.where(stays, rows + len(stored), rows)))


def _same(one: pa.Array, other: pa.Array) -> _Flags:
    """Return which of two arrays of one type have the same value in a row."""
    valid, valid_other = _is_valid(one), _is_valid(other)
    return (valid & valid_other & _same_values(one, other)) | ~(valid | valid_other)


def _same_values(one: pa.Array, other: pa.Array) -> _Flags:
    """Compare rows; those with a null may have any result."""
    if pa.types.is_struct(one.type):
        found = np.ones(len(one), np.bool_)
        for index in range(one.type.num_fields):
            found &= _same(one.field(index), other.field(index))
        return found
    if pa.types.is_map(one.type) or has_items(one.type):
        return _same_items(one, other)
    if pa.types.is_floating(one.type):  # NaN equals itself here, and 0.0 is not -0.0.
        bits = {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[one.type.bit_width]
        one, other = one.view(bits), other.view(bits)
    equal: _Flags = pc.fill_null(pc.equal(one, other), False).to_numpy(zero_copy_only=False)
    return equal


def _same_items(one: pa.Array, other: pa.Array) -> _Flags:
    sizes = np.diff(offsets_of(one))
    found: _Flags = (sizes == np.diff(offsets_of(other))) & _is_valid(one) & _is_valid(other)
    rows = pa.array(found)
    differences = np.append(0, np.cumsum(~_same(items_of(one.filter(rows)), items_of(other.filter(rows)))))
    ends = np.cumsum(sizes[found])
    found[found] = differences[ends] == differences[ends - sizes[found]]
    return found


def _is_valid(array: pa.Array) -> _Flags:
    valid: _Flags = array.is_valid().to_numpy(zero_copy_only=False)
    return valid
