"""Parts of stored values that Spark does not see: nanoseconds, and the milliseconds of dates.

Spark returns a value that it did not change as it saw it. The stored value, which it stands for, is kept then.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connector.types.arrays import convert, is_rounded, valid_rows, with_fields
from connector.types.equality import same_rows

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
        has_old = has_old & valid_rows(old)
        children = [
            _keep(stored.field(index), given.field(field.name), old.field(index), f"{path}.{field.name}", has_old)
            for index, field in enumerate(stored.type)
        ]
        return with_fields(stored, stored.type, children)
    stays = has_old & same_rows(convert(old, given.type, path), given)
    if not stays.any():
        return stored
    rows = np.arange(len(stored))
    return pa.concat_arrays([stored, old]).take(pa.array(np.where(stays, rows + len(stored), rows)))
