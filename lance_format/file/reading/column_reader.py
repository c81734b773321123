"""One leaf of a column of a file: which pages hold which rows, and what to read for some of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.array_encodings.array import Planned
from lance_format.byte_io import ByteRange
from lance_format.data_block import Counts
from lance_format.errors import CorruptFileError
from lance_format.file.columns.dictionaries import concat, expanded_bytes
from lance_format.file.columns.leaf_columns import Leaf
from lance_format.file.columns.limits import rows_that_fit
from lance_format.file.container.scheduler import NamedPlan
from lance_format.lazy_dataclasses import dataclass
from lance_format.lazy_properties import cached_property
from lance_format.masks import filter_values
from lance_format.structural.page import RowSelection, rows_within_answer

_MAX_WINDOW_ROWS = 2 * 1024 * 1024
_FIRST_ROWS = 64 * 1024
_LARGE_ROW_BYTES = 128
_DENSE_SHARE = 0.1
_DENSE_SHARE_OF_LARGE_ROWS = 0.5
"""From which share of its rows on a stretch of a page is read whole, and the others dropped.

Measured: finding and copying a single row costs 50 ns and its bytes twice; a row of a range costs 5 ns, and those of
large rows their bytes. Chunks of small rows are decoded as a whole in either case.
"""


_LEAST_DENSE_ROWS = 64
"""Fewer rows cost calls rather than bytes, and single rows of several pages are read by the same calls."""

_MAX_PAGES_TOGETHER = 32
_MAX_BYTES_TOGETHER = 1024 * 1024
"""Pages whose single rows are read together, and after so many bytes of rows no further one."""


RowsPlan: TypeAlias = NamedPlan[list[pa.Array]]
"""A plan to read rows of a leaf, whose result are their arrays."""


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


class LeafPages(Protocol):
    """The pages of a leaf, by the rows of its column.

    Attributes
    ----------
    leaf : Leaf
    first_rows : int64[num_pages + 1]
        The first row of each page, and the number of all rows.
    size_bytes : int64[num_pages]
        Bytes of each page in the file.
    """

    leaf: Leaf
    first_rows: Counts

    @property
    def size_bytes(self) -> Counts:
        """Bytes of each page in the file."""

    def extent(self, index: int) -> ByteRange | None:
        """Return the bytes of the file that contain a page and little else; None if there is no such range."""

    def rows_at_once(self, index: int) -> int:
        """Return how many rows of a page to ask for at most, so that an answer stays within some tens of MiB."""

    def plan(self, index: int, rows: RowSelection) -> Planned[list[pa.Array]]:
        """Plan the reading of some rows of a page, counted from its first; at least one.

        Returns
        -------
        list of pyarrow.Array
            The rows, nested as the column is, but with this one leaf only.
        """

    def form(self, index: int) -> Hashable:
        """Return what pages share whose single rows are read together; None if a page is read alone."""

    def plan_single_rows(self, indices: Sequence[int], rows: Sequence[Counts]) -> Planned[list[pa.Array]]:
        """Plan the reading of single rows of pages of one form, as `plan` does; at least one of each page."""


class ColumnReader:
    """One leaf of a column of the file: which pages hold which rows, and what to read of them.

    Parameters
    ----------
    pages : LeafPages

    Attributes
    ----------
    pages : LeafPages
    first_rows : int64[num_pages + 1]
        The first row of each page, and the number of all rows.
    """

    def __init__(self, pages: LeafPages) -> None:
        self.leaf = pages.leaf
        self.pages = pages
        self.first_rows: Counts = pages.first_rows

    @cached_property
    def row_bytes(self) -> npt.NDArray[np.float64]:
        """Approximate size of a row of each page in memory, `float64[num_pages]`."""
        num_rows = self.first_rows[1:] - self.first_rows[:-1]
        return np.asarray(np.maximum(self.pages.size_bytes / np.maximum(num_rows, 1), self.leaf.slot_bytes))

    @cached_property
    def most_row_bytes(self) -> float:
        """The maximum of `row_bytes`."""
        if self.first_rows.size == 2:  # Spares the calls for arrays of one page.
            return max(self.pages.size_bytes.item() / max(self.first_rows.item(1), 1), self.leaf.slot_bytes)
        return float(self.row_bytes.max(initial=0))

    @property
    def page_sizes(self) -> PageSizes:
        """Sizes of the pages."""
        return PageSizes(self.first_rows, self.pages.size_bytes)

    def extents(self) -> list[ByteRange] | None:
        """Return the ranges that have the pages; None if there are no such ranges."""
        extents = [self.pages.extent(index) for index in range(self.first_rows.size - 1)]
        return None if None in extents else [extent for extent in extents if extent is not None]

    def _rows_at_once(self, index: int) -> int:
        """Return how many rows of a page one answer may hold."""
        most_rows = rows_within_answer(self.leaf.slot_bytes)  # Nulls have no bytes in the page.
        return max(1, min(most_rows, self.pages.rows_at_once(index)))

    def _plan(self, index: int, rows: RowSelection, result_bytes: float) -> RowsPlan:
        return self._named(self.pages.plan(index, rows), [index], result_bytes)

    def _named(self, plan: Planned[list[pa.Array]], pages: Sequence[int], result_bytes: float) -> RowsPlan:
        extents = [self.pages.extent(index) for index in pages]
        found = [extent for extent in extents if extent is not None]
        return NamedPlan(self.leaf.name, plan, found, int(result_bytes))

    def page_bounds(self, row: int) -> tuple[int, int]:
        """Return the first row of the page that holds a row, and the row after the page."""
        index = self.page_of(row)
        return int(self.first_rows[index]), int(self.first_rows[index + 1])

    def stored_row_bytes(self, row: int) -> float:
        """Return the bytes that the file has for a row of the page that holds one."""
        first, end = self.page_bounds(row)
        return float(self.pages.size_bytes[self.page_of(row)]) / (end - first)

    def page_of(self, row: int) -> int:
        """Return the number of the page that holds a row."""
        return int(self.first_rows.searchsorted(row, "right")) - 1

    def plan_range(self, start: int, stop: int, result_bytes: float) -> RowsPlan:
        """Plan the reading of the rows `start <= row < stop`, which lie within a page.

        Parameters
        ----------
        start, stop : int
        result_bytes : float
            About their size in memory.
        """
        index = self.page_of(start)
        first = int(self.first_rows[index])
        return self._plan(index, range(start - first, stop - first), result_bytes)

    def window(self, row: int, stop: int, share: int = 1, row_bytes: float = 0) -> tuple[int, int]:
        """Return where the next rows end that are read at once, within the memory limit, and about their bytes.

        Parameters
        ----------
        row, stop : int
            Range of the remaining rows.
        share : int
            Number of columns that share the memory limit.
        row_bytes : float
            Size in memory of the rows before; 0 if it is unknown.
        """
        index = self.page_of(row)
        # Compressed rows may be much larger than the page tells.
        known = rows_within_answer(row_bytes * share) if row_bytes else max(_MAX_WINDOW_ROWS // share, _FIRST_ROWS)
        size = max(1, min(_MAX_WINDOW_ROWS, known, self._rows_at_once(index) // share))
        end = min(stop, int(self.first_rows[index + 1]), row + size)
        return end, int((end - row) * max(row_bytes, float(self.row_bytes[index])))

    def plan_rows(self, rows: Counts) -> Iterator[RowsPlan]:
        """Plan the reading of rows that ascend, page by page, or together from pages of one form.

        A stretch with mostly requested rows is read as a range, and the other rows are dropped.
        """
        if self.first_rows.size == 2 and rows.size:  # A single page has all rows.
            bounds, pages = np.array([0, rows.size]), [0]
        else:
            bounds = np.searchsorted(rows, self.first_rows)
            pages = np.flatnonzero(np.diff(bounds)).tolist()
        together: dict[int, Counts] = {}
        form: Hashable = None
        size = 0.0
        for index in pages:
            own = rows[bounds[index] : bounds[index + 1]] - int(self.first_rows[index])
            is_dense = self._is_dense(index, own)
            found = None if is_dense or len(pages) == 1 else self.pages.form(index)
            is_full = len(together) == _MAX_PAGES_TOGETHER or size > _MAX_BYTES_TOGETHER
            if together and (is_full or found is None or found != form):
                yield self._plan_single_rows(together, size)
                together, size = {}, 0.0
            form = found
            if is_dense:
                yield from self._plan_stretch(index, own)
            else:
                together[index] = own
                size += own.size * float(self.row_bytes[index])
        if together:
            yield self._plan_single_rows(together, size)

    def _is_dense(self, index: int, rows: Counts) -> bool:
        """Return whether to read a stretch of a page as a range for some of its rows, counted from its first."""
        share = _DENSE_SHARE if self.row_bytes[index] < _LARGE_ROW_BYTES else _DENSE_SHARE_OF_LARGE_ROWS
        span = int(rows[-1] - rows[0]) + 1
        return rows.size >= max(_LEAST_DENSE_ROWS, share * span) and not (rows[1:] <= rows[:-1]).any()

    def _plan_single_rows(self, together: Mapping[int, Counts], result_bytes: float) -> RowsPlan:
        """Plan the reading of rows of some pages, which are counted from the first row of each page."""
        if len(together) == 1:
            ((index, own),) = together.items()
            return self._plan(index, own, result_bytes)
        joined = self.pages.plan_single_rows(list(together), list(together.values()))
        return self._named(joined, list(together), result_bytes)

    def _plan_stretch(self, index: int, rows: Counts) -> Iterator[RowsPlan]:
        """Plan the reading of most rows of a stretch of a page, counted from its first."""
        size = min(_MAX_WINDOW_ROWS, self._rows_at_once(index))
        begin, end = int(rows[0]), int(rows[-1]) + 1
        for start in range(begin, end, size):
            stop = min(start + size, end)
            wanted = rows[slice(*np.searchsorted(rows, (start, stop)))]
            if wanted.size:
                start, stop = int(wanted[0]), int(wanted[-1]) + 1
                plan = self.pages.plan(index, range(start, stop))
                picked = self._pick(plan, wanted - start, stop - start)
                yield self._named(picked, [index], (stop - start) * self.row_bytes[index])

    def _pick(self, plan: Planned[list[pa.Array]], rows: Counts, num_rows: int) -> Planned[list[pa.Array]]:
        """Drop all rows of a range but some."""
        arrays = yield from plan
        if rows.size == num_rows:
            return arrays
        mask = np.zeros(num_rows, np.bool_)
        mask[rows] = True
        kept, start, picked = pa.array(mask), 0, []
        for array in arrays:
            picked.append(filter_values(array, kept.slice(start, len(array))))
            start += len(array)
        return picked


class Cursor:
    """Hands out the rows of a column batch by batch; holds the arrays decoded but not handed out yet.

    Parameters
    ----------
    column : ColumnReader
    start : int
        The first row.

    Attributes
    ----------
    next_row : int
        The first row that is not decoded.
    available : int
        Number of rows that are decoded and not handed out.
    row_bytes : float
        Size in memory of the rows that were decoded last; 0 if there are none.
    """

    def __init__(self, column: ColumnReader, start: int) -> None:
        self.column = column
        self.next_row = start
        self.available = 0
        self.row_bytes = 0.0
        self._arrays: list[pa.Array] = []

    def expected_row_bytes(self) -> float:
        """Return the approximate size of the next row in memory."""
        first_rows = self.column.first_rows
        page = int(first_rows.searchsorted(self.next_row, "right")) - 1
        return max(self.row_bytes, float(self.column.row_bytes[min(page, first_rows.size - 2)]))

    def push(self, arrays: list[pa.Array], stop: int) -> None:
        """Take the rows up to `stop`, which have been decoded.

        Raises
        ------
        CorruptFileError
            If there are more or fewer rows.
        """
        if sum(map(len, arrays)) != stop - self.next_row:
            raise CorruptFileError(f"a page does not hold its {stop - self.next_row} rows")
        self._arrays += arrays
        self.row_bytes = sum(map(expanded_bytes, arrays)) / max(stop - self.next_row, 1)
        self.available += stop - self.next_row
        self.next_row = stop

    @property
    def rows_together(self) -> int:
        """Number of the next rows that are one array."""
        return len(self._arrays[0])

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
