"""Which layout a page gets when it is written."""

from __future__ import annotations

import numpy as np

from lance_format.data_block import DataBlock, FixedWidthBlock, VariableWidthBlock
from lance_format.structural import constant, mini_block
from lance_format.structural.page import EncodedPage, Levels
from lance_format.version import FileVersion

_NULL = 1


def encode_page(
    values: DataBlock | None, definition: Levels | None, num_rows: int, version: FileVersion
) -> EncodedPage:
    """Lay out the rows of a flat column.

    Parameters
    ----------
    values : DataBlock or None
        One value a row; what stands in the place of nulls is arbitrary. None if the type has no values.
    definition : uint16[num_rows] or None
        0 where the value is there, 1 where it is null; None if none is null.
    num_rows : int
        At least 1.
    version : FileVersion
    """
    if values is None or (definition is not None and bool(definition.all())):
        return constant.encode_nulls(num_rows)
    first = 0 if definition is None else int(np.argmin(definition))
    if version.has_constant_values and _constant_pays(values, definition) and _is_constant(values, definition, first):
        return constant.encode_value(values.slice(first, first + 1), definition, num_rows)
    return mini_block.encode(values, definition, large_chunks=version.has_large_chunks)


def _constant_pays(values: DataBlock, definition: Levels | None) -> bool:
    """Return whether a constant page is smaller; with nulls it has two bytes of levels a row."""
    if definition is None:
        return True
    return isinstance(values, VariableWidthBlock) or values.bits_per_value not in (1, 8, 16, 32, 64)


def _is_constant(values: DataBlock, definition: Levels | None, first: int) -> bool:
    """Return whether all values that are there equal the one at `first`."""
    valid = None if definition is None else definition != _NULL
    if isinstance(values, VariableWidthBlock):
        sizes = np.diff(values.offsets)
        size = int(sizes[first])
        if (sizes != size).any() if valid is None else (sizes[valid] != size).any():
            return False
        begin = int(values.offsets[first])
        if valid is None:
            data = values.data[begin : begin + size * values.num_values]
        else:
            data = values.slice(0, values.num_values).take(np.flatnonzero(valid)).data
        rows = data.reshape(-1, size) if size else data.reshape(0, 1)
        return bool((rows == values.data[begin : begin + size]).all()) if size else True
    return _is_constant_fixed(values, valid, first)


def _is_constant_fixed(
    values: FixedWidthBlock, valid: np.ndarray[tuple[int], np.dtype[np.bool_]] | None, first: int
) -> bool:
    if values.bits_per_value == 1:
        bits = np.unpackbits(values.data, count=values.num_values, bitorder="little")
        return bool((bits if valid is None else bits[valid]).min() == (bits if valid is None else bits[valid]).max())
    width = values.bytes_per_value
    rows = values.data[: values.size_bytes].reshape(-1, width)
    if (rows[-1] != rows[first]).any() and valid is None:
        return False
    if width in (1, 2, 4, 8):
        words = values.data[: values.size_bytes].view(f"<u{width}")
        same = words == words[first]
    else:
        same = (rows == rows[first]).all(axis=1)
    return bool(same.all() if valid is None else same[valid].all())
