"""Comparison of rows that are read one by one with those that are read together.

Pages of values of any size have an index of their rows. Reading all rows leaves it out; searches need it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from lance_format.errors import CorruptFileError
from lance_format.file import ColumnProjection, FileReader


def check_single_rows(
    file: FileReader, columns: Iterable[ColumnProjection], start: int, rows: pa.RecordBatch, path: str
) -> None:
    """Read rows of the columns whose values have any size one by one.

    Parameters
    ----------
    file : FileReader
    columns : iterable of ColumnProjection
    start : int
        The number of the first row.
    rows : pa.RecordBatch
        All columns, of consecutive rows that were read together.
    path : str
        Of the file, for errors.

    Raises
    ------
    CorruptFileError
        If there is another value, or none.
    """
    sized = [column for column in columns if _has_any_size(column.field.to_arrow_type())]
    if not sized or not rows.num_rows:
        return
    numbers = np.repeat(np.arange(rows.num_rows), 2)  # Rows that repeat are not read as a stretch.
    found = file.take(sized, start + numbers)
    for column in sized:
        name = column.field.name
        if not found.column(name).equals(rows.column(name).take(pa.array(numbers))):
            raise CorruptFileError(f"rows of column {name!r} are others if they are read one by one", path=path)


def _has_any_size(value_type: pa.DataType) -> bool:
    if pa.types.is_list(value_type) or pa.types.is_large_list(value_type):
        return True
    return any(
        is_such(value_type)
        for is_such in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
        )
    )
