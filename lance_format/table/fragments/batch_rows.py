"""Size of batches where nobody asks for one."""

from __future__ import annotations

from collections.abc import Iterable

from lance_format.datatypes import Field, Schema

BATCH_ROWS = 8192
"""As in the reference."""

BATCH_BYTES = 64 * 1024 * 1024
"""Approximate maximum size of a batch in memory: rows can be documents and pictures."""

_MOST_ROWS = 64 * 1024
_MOST_BYTES = 4 * 1024 * 1024


def rows_at_once(schema: Schema) -> int:
    """Return the number of rows of some columns: more than `BATCH_ROWS` if these are small values of a fixed width.

    What is done once per batch costs less then, and memory remains small.

    Parameters
    ----------
    schema : Schema
    """
    bits = _bits_of(schema.fields)
    if not bits:
        return BATCH_ROWS
    return max(min(_MOST_ROWS, _MOST_BYTES * 8 // bits), BATCH_ROWS)


def _bits_of(fields: Iterable[Field]) -> int:
    """Return the bits of a row; 0 if they are not the same for all rows."""
    total = 0
    for field in fields:
        if field.logical_type == "struct":
            bits = _bits_of(field.children)
        else:
            try:
                bits = 0 if field.children else int(field.to_arrow_type().bit_width)
            except ValueError:
                bits = 0
        if not bits:
            return 0
        total += bits
    return total
