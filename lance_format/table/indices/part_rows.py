"""The rows of parts of an index, read while their files are written.

A part covers whole fragments, as many as have some hundred megabytes of values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lance_format.datatypes import Field
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.row_columns import row_column
from lance_format.table.indices.column_values import read_covered
from lance_format.table.indices.row_finder import RowIds
from lance_format.table.indices.value_order import ascending
from lance_format.table.versions.table_version import TableVersion

_BATCH_ROWS = 64 * 1024
_PART_BYTES = 256 << 20
"""Values and ids from which on a part gets no further fragment."""

_LARGE_BYTES = 1 << 30
_LARGE_TYPES = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


@dataclass(frozen=True, slots=True, eq=False)
class OrderedRows:
    """Rows by ascending value; see `value_order`.

    Rows of equal values are in the order of their fragments and offsets.

    Parameters
    ----------
    values : pa.Array
        Strings may be large ones.
    ids : uint64[num_rows]
    value_type : pa.DataType
        Of the column.
    """

    values: pa.Array
    ids: RowIds
    value_type: pa.DataType

    @classmethod
    def of(cls, arrays: list[pa.Array], ids: list[RowIds], value_type: pa.DataType) -> OrderedRows:
        """Sort rows. The lists are emptied, so that only one copy more of the rows is in memory.

        Parameters
        ----------
        arrays : list of pa.Array
        ids : list of uint64[…]
            Of the rows of each.
        value_type : pa.DataType
        """
        if sum(array.nbytes for array in arrays) > _LARGE_BYTES and value_type in _LARGE_TYPES:
            arrays[:] = [array.cast(_LARGE_TYPES[value_type]) for array in arrays]
        values = pa.concat_arrays(arrays) if arrays else pa.array([], value_type)
        arrays.clear()
        order = ascending(values)
        values = values.take(pa.array(order))
        joined = np.concatenate([np.zeros(0, np.uint64), *ids])
        ids.clear()
        return cls(values, joined[order], value_type)

    def column(self, start: int, stop: int) -> pa.Array:
        """Return a range of the values, of the type of the column."""
        values = self.values.slice(start, stop - start)
        if values.type != self.value_type:
            values = pa.concat_arrays([values])  # Arrow looks at the offsets of the whole array otherwise.
        return values.cast(self.value_type)


class PartRows:
    """The rows of some fragments, in their order, and those of each in their order. They can be read once.

    A fragment may be larger than memory, so that its rows are kept only where they must be sorted.

    Parameters
    ----------
    value_type : pa.DataType
        Of the column.
    rows : iterator of (pa.Array, uint64[…])
        Values, and the ids of their rows, which are of one fragment.
    """

    def __init__(self, value_type: pa.DataType, rows: Iterator[tuple[pa.Array, RowIds]]) -> None:
        self.value_type = value_type
        self._rows = rows

    def __iter__(self) -> Iterator[tuple[pa.Array, RowIds]]:
        return self._rows

    def ordered(self) -> OrderedRows:
        """Return the rows by value."""
        values, ids = list[pa.Array](), list[RowIds]()
        for some_values, some_ids in self:
            values.append(some_values)
            ids.append(some_ids)
        return OrderedRows.of(values, ids, self.value_type)


def cut(values: pa.Array, ids: RowIds, size_bytes: int) -> Iterator[tuple[pa.Array, RowIds]]:
    """Yield slices of values of about a size, and the ids of their rows.

    Parameters
    ----------
    values : pa.Array
    ids : uint64[num_rows]
    size_bytes : int
        A row that is larger is a slice by itself.
    """
    num_rows = max(len(values) * size_bytes // max(values.nbytes, 1), 1)
    for start in range(0, len(values), num_rows):
        yield values.slice(start, num_rows), ids[start : start + num_rows]


def read_parts(
    table: TableVersion, path: Sequence[Field], fragments: Sequence[FragmentMetadata], column: str
) -> Iterator[tuple[PartRows, list[int]]]:
    """Yield the rows of parts that together cover fragments; each part is to be read before the next.

    Parameters
    ----------
    table : TableVersion
    path : sequence of Field
        See `read_covered`.
    fragments : sequence of FragmentMetadata
    column : str
        The virtual column of the ids of rows.

    Yields
    ------
    (PartRows, list of int)
        The ids of the fragments are complete when the rows have been read.
    """
    steps = read_covered(table, path, fragments, batch_size=_BATCH_ROWS)
    step = next(steps, None)

    def rows_of_part(covered: list[int]) -> Iterator[tuple[pa.Array, RowIds]]:
        nonlocal step
        size_bytes = 0
        while step is not None:
            (finished, values, live), step = step, None
            covered += finished
            if finished and live and size_bytes >= _PART_BYTES:
                step = ([], values, live)
                return
            start = 0
            for ids in (row_column(column, each).to_numpy() for each in live):
                yield values.slice(start, ids.size), ids
                start += ids.size
            size_bytes += values.nbytes + start * 8
            del values, live  # They are not in memory beside the next.
            step = next(steps, None)

    while step is not None and (step[0] or step[2]):
        covered = list[int]()
        yield PartRows(path[-1].to_arrow_type(), rows_of_part(covered)), covered
