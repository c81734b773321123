"""Rows of a table as the answer of a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lance_cli.output import Answer, Grid, Right, shown_value

if TYPE_CHECKING:
    import pyarrow as pa


def answer_rows(found: pa.Table, facts: Mapping[str, Any], *, wide: bool, note: str = "") -> Answer:
    """Return the answer of a command that prints rows.

    Parameters
    ----------
    found : pa.Table
    facts : mapping
        Further entries of the JSON object.
    wide : bool
        Whether to print long values in full.
    note : str
        A line below the rows.
    """
    rows = found.to_pylist()
    names = [Right(column.name) if _is_number(column.type) else column.name for column in found.schema]
    values = [[shown_value(row[name]) for name in found.schema.names] for row in rows]
    return Answer(
        {**facts, "rows": rows}, [Grid(names, values, note=note)], max_width=None if wide else Answer({}).max_width
    )


def _is_number(data_type: pa.DataType) -> bool:
    import pyarrow as pa  # imported with the table

    return bool(pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type))
