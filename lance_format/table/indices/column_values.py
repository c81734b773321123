"""Reading the column of an index, which may be a field below structs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lance_format.datatypes import Field
from lance_format.extension_types import storage_of


def narrowed(path: Sequence[Field]) -> Field:
    """Return the first field, reduced to the path that leads to the last."""
    if len(path) == 1:
        return path[0]
    return dataclasses.replace(path[0], children=(narrowed(path[1:]),))


def values_below(array: pa.Array, fields: Iterable[Field]) -> pa.Array:
    """Return a field below structs; it is null if one of these is.

    Parameters
    ----------
    array : pa.Array
        Values of the outermost struct.
    fields : iterable of Field
        Those below, the innermost last.
    """
    for field in fields:
        array = pc.struct_field(array, field.name)
    return storage_of(array)
