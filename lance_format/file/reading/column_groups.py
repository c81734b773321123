"""Decoding of the windows of many columns as if they were one.

A table of a thousand columns is read by small windows, since they share the memory, and a small window costs as many
calls as a large one. Windows of pages whose layouts are alike follow each other in one block of values, and each column
gets its part of the array.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence

import pyarrow as pa

from lance_format.byte_io import RangeReader
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.file.container.scheduler import NamedPlan, run_plans
from lance_format.file.reading.column_reader import Cursor, RowsPlan
from lance_format.file.reading.cpu_threads import cpu_threads
from lance_format.file.reading.structural_leaf import StructuralLeaf, plan_together
from lance_format.lazy_dataclasses import dataclass

_LEAST_WINDOWS = 8
"""Fewer windows are decoded one by one: they are large, unless the table is small."""

_MOST_WINDOW_BYTES = 1024 * 1024
"""A larger window costs its bytes rather than its calls."""

_GROUP_BYTES = 4 * 1024 * 1024
"""Bytes of the windows of a group: larger ones save few calls, and threads share a small number of groups badly."""


@dataclass(frozen=True, slots=True)
class Window:
    """Rows of a column that are to be decoded.

    Parameters
    ----------
    cursor : Cursor
    start, end : int
        Rows `start <= row < end`, of one page.
    result_bytes : int
        About their size in memory.
    """

    cursor: Cursor
    start: int
    end: int
    result_bytes: int

    def plan(self) -> RowsPlan:
        """Plan the reading of the window alone."""
        return self.cursor.column.plan_range(self.start, self.end, self.result_bytes)

    @property
    def form(self) -> Hashable:
        """Property that windows share which are decoded together; None if this one is decoded alone."""
        pages = self.cursor.column.pages
        if self.result_bytes > _MOST_WINDOW_BYTES or not isinstance(pages, StructuralLeaf):
            return None
        return pages.range_form(self.cursor.column.page_of(self.start))


def run_windows(
    source: RangeReader, windows: Sequence[Window], after_round: Callable[[], None] = lambda: None
) -> list[list[pa.Array]]:
    """Read and decode windows.

    Parameters
    ----------
    source : RangeReader
    windows : sequence of Window
    after_round : callable
        See `run_plans`.

    Returns
    -------
    list of list of pyarrow.Array
        The rows of each window.

    Raises
    ------
    CorruptFileError, NotSupportedError
        With the file and the column that it is about.
    """
    groups = list(_groups(windows)) if len(windows) >= _LEAST_WINDOWS else []
    if any(len(group) > 1 for group in groups):
        try:
            return _run_groups(source, windows, groups, after_round)
        except (CorruptFileError, NotSupportedError):
            pass  # One by one, either all can be read, or the error names its column.
    return run_plans(source, [window.plan() for window in windows], cpu_threads, after_round)


def _groups(windows: Sequence[Window]) -> Iterator[list[int]]:
    """Yield the positions of windows that are decoded together, or alone."""
    by_form: dict[Hashable, list[int]] = {}
    held: dict[Hashable, int] = {}
    for position, window in enumerate(windows):
        form = window.form
        if form is None:
            yield [position]
            continue
        members = by_form.setdefault(form, [])
        held[form] = held.get(form, 0) + window.result_bytes
        members.append(position)
        if held[form] >= _GROUP_BYTES:
            yield by_form.pop(form)
            del held[form]
    yield from by_form.values()


def _run_groups(
    source: RangeReader,
    windows: Sequence[Window],
    groups: Sequence[Sequence[int]],
    after_round: Callable[[], None],
) -> list[list[pa.Array]]:
    results: list[list[pa.Array]] = [[] for _ in windows]
    plans = [_plan([windows[position] for position in group]) for group in groups]
    found = run_plans(source, plans, cpu_threads, after_round)
    for group, arrays in zip(groups, found, strict=True):
        if len(group) == 1:
            results[group[0]] = arrays
            continue
        for position, array in zip(group, arrays, strict=True):
            results[position] = [array]
    return results


def _plan(windows: Sequence[Window]) -> RowsPlan:
    """Plan the reading of windows of one form; the result is an array of each, if there are several."""
    if len(windows) == 1:
        return windows[0].plan()
    columns = [window.cursor.column for window in windows]
    indices = [column.page_of(window.start) for column, window in zip(columns, windows, strict=True)]
    leaves: list[StructuralLeaf] = []
    rows, extents = [], []
    for column, index, window in zip(columns, indices, windows, strict=True):
        assert isinstance(column.pages, StructuralLeaf)
        leaves.append(column.pages)
        first = int(column.first_rows[index])
        rows.append(range(window.start - first, window.end - first))
        extent = column.pages.extent(index)
        extents += [] if extent is None else [extent]
    plan = plan_together(leaves, indices, rows)
    return NamedPlan(columns[0].leaf.name, plan, extents, sum(window.result_bytes for window in windows))
