"""One leaf column of a file: which pages hold which rows, and what to read for some of them."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.byte_io import ByteRange
from lance_format.data_block import Bytes, Counts
from lance_format.errors import CorruptFileError
from lance_format.file.array_limits import rows_that_fit
from lance_format.file.column_pages import ColumnPages
from lance_format.file.dictionary_arrays import concat
from lance_format.file.nesting import Leaf, build_leaf
from lance_format.file.scheduler import NamedPlan
from lance_format.structural.page import Page, Plan, RowSelection, rows_within_answer
from lance_format.structural.row_index import expand_ranges

_MAX_WINDOW_ROWS = 1024 * 1024
_LARGE_ROW_BYTES = 128
_DENSE_SHARE = 0.1
_DENSE_SHARE_OF_LARGE_ROWS = 0.5
"""From which share of its rows on a stretch of a page is read whole, and the others dropped.

Measured: finding and copying a single row costs 50 ns and its bytes twice; a row of a range costs 5 ns, and those of
large rows their bytes. Chunks of small rows are decoded as a whole in either case.
"""


@dataclass(frozen=True, slots=True)
class PlannedRows:
    """A part of the rows that are asked for, and what it will take in memory, about.

    Parameters
    ----------
    plan : NamedPlan
    size_bytes : int
    """

    plan: NamedPlan[list[pa.Array]]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PageSizes:
    """Sizes of the pages of a leaf column in the file.

    Parameters
    ----------
    first_rows : int64[num_pages + 1]
        The first row of each page, and the number of all rows.
    size_bytes : int64[num_pages]
    """

    first_rows: Counts
    size_bytes: Counts


class ColumnReader:
    """One leaf column of the file: its pages, and which rows they hold.

    Parameters
    ----------
    leaf : Leaf
    pages : ColumnPages

    Attributes
    ----------
    first_rows : int64[num_pages + 1]
        The first row of each page, and the number of all rows.

    Raises
    ------
    CorruptFileError
        If a row lies in two pages.
    """

    def __init__(self, leaf: Leaf, pages: ColumnPages) -> None:
        self.leaf = leaf
        self._pages = pages
        self._items_per_row = leaf.items_per_row
        self._most_rows = min(_MAX_WINDOW_ROWS, rows_within_answer(leaf.slot_bytes))  # nulls have no bytes in the file
        self.first_rows: Counts = pages.first_items
        if self._items_per_row > 1:
            if (pages.first_items % self._items_per_row).any():
                raise CorruptFileError("a page of fixed-size lists ends within a row")
            self.first_rows = pages.first_items // self._items_per_row

    @cached_property
    def row_bytes(self) -> npt.NDArray[np.float64]:
        """Approximate size of a row of each page in memory, `float64[num_pages]`."""
        return np.maximum(self._pages.size_bytes / np.maximum(np.diff(self.first_rows), 1), self.leaf.slot_bytes)

    @property
    def page_sizes(self) -> PageSizes:
        """Sizes of the pages."""
        return PageSizes(self.first_rows, self._pages.size_bytes)

    def _rows_at_once(self, page: Page) -> int:
        """Return how many rows of a page one answer may hold."""
        return max(1, min(self._most_rows, page.rows_at_once // self._items_per_row))

    def _plan(self, page: Page, rows: RowSelection) -> NamedPlan[list[pa.Array]]:
        return NamedPlan(self.leaf.name, self._build(page.plan(rows)))

    def _build(self, plan: Plan) -> Generator[Sequence[ByteRange], Sequence[Bytes], list[pa.Array]]:
        return build_leaf((yield from plan), self.leaf)

    def plan_window(self, row: int, stop: int, share: int = 1) -> tuple[int, NamedPlan[list[pa.Array]]]:
        """Plan the reading of what one answer may hold of the rows from `row` to `stop`; returns where it ends.

        It holds one part in `share` of what it might if no other column were read.
        """
        index = int(self.first_rows.searchsorted(row, "right")) - 1
        first = int(self.first_rows[index])
        page = self._pages.page(index, self.leaf.shape)
        size = max(1, self._rows_at_once(page) // share)
        end = min(stop, int(self.first_rows[index + 1]), row + size)
        items = range((row - first) * self._items_per_row, (end - first) * self._items_per_row)
        return end, self._plan(page, items)

    def plan_rows(self, rows: Counts) -> Iterator[PlannedRows]:
        """Plan the reading of rows that ascend, page by page.

        Where most rows of a stretch are wanted it is read as a range, of which the others are dropped.
        """
        bounds = np.searchsorted(rows, self.first_rows)
        for index in np.flatnonzero(np.diff(bounds)).tolist():
            first = int(self.first_rows[index])
            yield from self._plan_page(index, rows[bounds[index] : bounds[index + 1]] - first)

    def _plan_page(self, index: int, rows: Counts) -> Iterator[PlannedRows]:
        """Plan the reading of some of the rows of a page, counted from its first."""
        page = self._pages.page(index, self.leaf.shape)
        row_bytes = self.row_bytes[index]
        share = _DENSE_SHARE if row_bytes < _LARGE_ROW_BYTES else _DENSE_SHARE_OF_LARGE_ROWS
        span = int(rows[-1] - rows[0]) + 1
        if rows.size < share * span or rows.size == 1 or (rows[1:] <= rows[:-1]).any():
            items = rows
            if self._items_per_row > 1:
                items = expand_ranges(rows * self._items_per_row, (rows + 1) * self._items_per_row)
            yield PlannedRows(self._plan(page, items), int(rows.size * row_bytes))
            return
        size = self._rows_at_once(page)
        begin, end = int(rows[0]), int(rows[-1]) + 1
        for start in range(begin, end, size):
            stop = min(start + size, end)
            wanted = rows[slice(*np.searchsorted(rows, (start, stop)))]
            if wanted.size:
                start, stop = int(wanted[0]), int(wanted[-1]) + 1
                plan = page.plan(range(start * self._items_per_row, stop * self._items_per_row))
                picked = NamedPlan(self.leaf.name, self._pick(plan, wanted - start, stop - start))
                yield PlannedRows(picked, int((stop - start) * row_bytes))

    def _pick(
        self, plan: Plan, rows: Counts, num_rows: int
    ) -> Generator[Sequence[ByteRange], Sequence[Bytes], list[pa.Array]]:
        """Drop all rows of a range but some."""
        arrays = yield from self._build(plan)
        if rows.size == num_rows:
            return arrays
        mask = np.zeros(num_rows, np.bool_)
        mask[rows] = True
        kept, start, picked = pa.array(mask), 0, []
        for array in arrays:
            picked.append(array.filter(kept.slice(start, len(array))))
            start += len(array)
        return picked


class Cursor:
    """Hands out the rows of a column batch by batch; holds the arrays decoded but not handed out yet."""

    def __init__(self, column: ColumnReader, start: int) -> None:
        self.column = column
        self.next_row = start
        self._arrays: list[pa.Array] = []
        self.available = 0

    def push(self, arrays: list[pa.Array], stop: int) -> None:
        """Take the rows up to `stop`, which have been decoded."""
        if sum(map(len, arrays)) != stop - self.next_row:
            raise CorruptFileError(f"a page does not hold its {stop - self.next_row} rows")
        self._arrays += arrays
        self.available += stop - self.next_row
        self.next_row = stop

    def fits(self, num_rows: int) -> int:
        """Return how many of the next rows one array can hold."""
        return num_rows if len(self._arrays[0]) >= num_rows else rows_that_fit(self._arrays, num_rows)

    def pop(self, num_rows: int) -> pa.Array:
        """Return the next rows, which are available."""
        pieces = []
        left = num_rows
        while left:
            head = self._arrays[0]
            if len(head) <= left:
                pieces.append(self._arrays.pop(0))
                left -= len(head)
            else:
                pieces.append(head.slice(0, left))
                self._arrays[0] = head.slice(left)
                left = 0
        self.available -= num_rows
        return concat(pieces)
