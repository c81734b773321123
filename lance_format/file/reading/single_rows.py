"""Reading of single rows, which are given by their numbers: few at once, or many within bounded memory."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Hashable, Iterator, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.byte_io import RangeReader
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.file.columns.dictionaries import concat
from lance_format.file.container.locating import Locating
from lance_format.file.container.scheduler import run_plans
from lance_format.file.reading.batches import BatchBuilder
from lance_format.file.reading.column_reader import ColumnReader, RowsPlan
from lance_format.file.reading.cpu_threads import cpu_threads
from lance_format.file.reading.stacked_leaf import StackedLeaf
from lance_format.file.reading.structural_leaf import StructuralLeaf

_MAX_PAGES_AT_ONCE = 32  # Of a column. Single rows need little of a page, but its dictionary may have some MiB.
_ROUND_BYTES = 64 * 1024 * 1024
_FIRST_TAKE_BYTES = 4 * 1024 * 1024
_FIRST_TAKE_ROWS = 1024
"""Number of rows after which their size in memory is known, where it can be any."""
_TAKE_BYTES = 32 * 1024 * 1024
_LEAST_ALIKE = 4
"""Fewer columns of one type are not worth being put together."""
_MOST_ROWS_ALIKE = 1024
"""More rows cost more than the calls of a page."""


def take_arrays(
    source: RangeReader, leaves: Sequence[ColumnReader], rows: npt.NDArray[np.int64]
) -> list[list[pa.Array]]:
    """Read rows of leaf columns, all of them at once.

    Parameters
    ----------
    source : RangeReader
    leaves : sequence of ColumnReader
    rows : int64[…]
        Ascending; may repeat.

    Returns
    -------
    list of list of pyarrow.Array
        The pieces of each leaf.

    Raises
    ------
    CorruptFileError, NotSupportedError
        With the file and the column that it is about.
    """
    groups = alike(leaves, rows.size)
    if groups:
        # If that fails, the columns are read one by one, which tells the one that it is about.
        with contextlib.suppress(CorruptFileError, NotSupportedError):
            return _take_stacked(source, leaves, rows, groups)
    return _take_each(source, leaves, [rows] * len(leaves))


def _take_each(
    source: RangeReader, leaves: Sequence[ColumnReader], rows: Sequence[npt.NDArray[np.int64]]
) -> list[list[pa.Array]]:
    """Read rows of leaf columns, which are given for each."""
    planned: list[list[RowsPlan]] = []
    for column, own in zip(leaves, rows, strict=True):
        with Locating(source.path, column.leaf.name):
            planned.append(list(column.plan_rows(own)))
    pieces: list[list[pa.Array]] = [[] for _ in leaves]
    for round_ in _rounds(planned):
        results = run_plans(source, [part for _, part in round_], cpu_threads)
        for (number, _), found in zip(round_, results, strict=True):
            pieces[number] += found
    return pieces


def alike(leaves: Sequence[ColumnReader], num_rows: int) -> list[list[int]]:
    """Return the positions of columns whose rows are decoded together, group by group: there are few, of many columns.

    Pages that cannot be read are left to those who say what is wrong.

    Parameters
    ----------
    leaves : sequence of ColumnReader
    num_rows : int
    """
    if len(leaves) < _LEAST_ALIKE or not 0 < num_rows <= _MOST_ROWS_ALIKE:
        return []
    groups: dict[Hashable, list[int]] = {}
    for position, column in enumerate(leaves):
        if isinstance(column.pages, StructuralLeaf | StackedLeaf) and column.leaf.form is not None:
            form = None
            with contextlib.suppress(CorruptFileError, NotSupportedError):
                form = column.pages.form(0)
            if form is not None:
                groups.setdefault((column.leaf.form, form), []).append(position)
    return [group for group in groups.values() if len(group) >= _LEAST_ALIKE]


class _StackedColumn(ColumnReader):
    """Columns of one type as one, whose pages are read together however many of their rows are wanted."""

    def _is_dense(self, index: int, rows: npt.NDArray[np.int64]) -> bool:
        del index, rows
        return False


def _take_stacked(
    source: RangeReader, leaves: Sequence[ColumnReader], rows: npt.NDArray[np.int64], groups: Sequence[Sequence[int]]
) -> list[list[pa.Array]]:
    """Read rows of columns, those of each group as if they were one column."""
    stacked = {position for group in groups for position in group}
    alone = [position for position in range(len(leaves)) if position not in stacked]
    columns, wanted = [leaves[position] for position in alone], [rows] * len(alone)
    for group in groups:
        pages = [cast("StructuralLeaf | StackedLeaf", leaves[position].pages) for position in group]
        starts = np.arange(len(group)) * int(leaves[group[0]].first_rows[-1])
        columns.append(_StackedColumn(StackedLeaf(pages)))
        wanted.append((starts[:, None] + rows).reshape(-1))
    taken = _take_each(source, columns, wanted)
    found: list[list[pa.Array]] = [[] for _ in leaves]
    for position, arrays in zip(alone, taken, strict=False):
        found[position] = arrays
    for group, arrays in zip(groups, taken[len(alone) :], strict=True):
        whole = concat(arrays)
        for number, position in enumerate(group):
            found[position] = [whole.slice(number * rows.size, rows.size)]
    return found


def take_batches(
    source: RangeReader, batches: BatchBuilder, rows: npt.NDArray[np.int64], batch_size: int
) -> Iterator[pa.RecordBatch]:
    """Read any number of rows within bounded memory.

    Parameters
    ----------
    source : RangeReader
    batches : BatchBuilder
        Its cursors count the rows taken.
    rows : int64[num_rows]
        Ascending and distinct.
    batch_size : int
        Maximum number of rows per batch.

    Raises
    ------
    CorruptFileError, NotSupportedError
        With the file and the column that it is about.
    """
    leaves = [cursor.column for cursor in batches.cursors]
    ends = expected_bytes(leaves, rows)
    first, budget = 0, _FIRST_TAKE_BYTES
    most = rows.size if all(leaf.leaf.is_flat for leaf in leaves) else _FIRST_TAKE_ROWS
    while first < rows.size:
        before = ends[first - 1] if first else 0
        last = max(first + 1, min(int(np.searchsorted(ends, before + budget, side="right")), most))
        most = rows.size
        taken = take_arrays(source, leaves, rows[first:last])
        for cursor, arrays in zip(batches.cursors, taken, strict=True):
            cursor.push(arrays, last)
        # The expected size is an average of stored bytes; a filter may select just the large rows.
        excess = sum(cursor.row_bytes for cursor in batches.cursors) * (last - first) / (ends[last - 1] - before)
        budget = int(_TAKE_BYTES / max(excess, 1))
        while first < last:
            num_rows, built = batches.pop(last - first, batch_size)
            first += num_rows
            yield from built


def _rounds(planned: Sequence[Sequence[RowsPlan]]) -> Iterator[list[tuple[int, RowsPlan]]]:
    """Yield the plans that run together, with the numbers of their columns: those of the same pages of all columns."""
    most = _MAX_PAGES_AT_ONCE * len(planned)
    found: list[tuple[int, RowsPlan]] = []
    size = 0
    for parts in itertools.zip_longest(*planned):
        for number, part in enumerate(parts):
            if part is None:
                continue
            if found and (len(found) == most or size + part.result_bytes > _ROUND_BYTES):
                yield found
                found, size = [], 0
            found.append((number, part))
            size += part.result_bytes
    if found:
        yield found


def expected_bytes(columns: Sequence[ColumnReader], rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the approximate size of the rows up to and including each, ascending, `float64[num_rows]`."""
    most = 1 + sum(column.most_row_bytes for column in columns)
    if most * rows.size <= _FIRST_TAKE_BYTES:  # So few bytes are read at once, however they are distributed.
        return np.arange(1, rows.size + 1, dtype=np.float64) * most
    sizes = np.ones(rows.size)
    for column in columns:
        sizes += np.repeat(column.row_bytes, np.diff(np.searchsorted(rows, column.first_rows)))
    ends: npt.NDArray[np.float64] = np.cumsum(sizes)
    return ends
