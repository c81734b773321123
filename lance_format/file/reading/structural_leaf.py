"""A leaf column from file format 2.1 on: its pages hold values, and levels that encode all layers above them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias, cast

import pyarrow as pa

from lance_format.array_encodings.array import Planned
from lance_format.byte_io import ByteRange
from lance_format.data_block import Counts
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.file.columns.assembly import build_leaf
from lance_format.file.columns.leaf_columns import Kind, Leaf, kind_of
from lance_format.file.container.column_metadata import PageMetadata
from lance_format.file.container.column_pages import ColumnPages
from lance_format.file.container.search_cache import CacheSlot
from lance_format.lazy_properties import cached_property
from lance_format.proto import encodings_pb2
from lance_format.structural.constant import ConstantPage
from lance_format.structural.mini_block import MiniBlockPage, plan_ranges, plan_single_rows
from lance_format.structural.page import Page, PageDescription, RowSelection
from lance_format.structural.registry import parse_page
from lance_format.structural.row_index import expand_ranges
from lance_format.version import FileVersion

PlacedRows: TypeAlias = tuple[MiniBlockPage, Counts, int]
"""A page, items in it, which are counted from its first, and what is added to its offsets."""


class StructuralLeaf:
    """Reads the pages of one leaf column; see `LeafPages`.

    Parameters
    ----------
    leaf : Leaf
    pages : ColumnPages
    version : FileVersion

    Raises
    ------
    CorruptFileError
        If a row lies in two pages.
    """

    def __init__(self, leaf: Leaf, pages: ColumnPages, version: FileVersion) -> None:
        self.leaf = leaf
        self._pages = pages
        self._large_chunks = version.has_large_chunks
        self._parsed: dict[int, Page] = {}
        self._items_per_row = leaf.items_per_row
        self.first_rows: Counts = pages.first_items
        if self._items_per_row > 1:
            if (pages.first_items % self._items_per_row).any():
                raise CorruptFileError("a page of fixed-size lists ends within a row")
            self.first_rows = pages.first_items // self._items_per_row

    @property
    def size_bytes(self) -> Counts:
        """See `LeafPages`."""
        return self._pages.size_bytes

    def extent(self, index: int) -> ByteRange | None:
        """See `LeafPages`."""
        return self._pages.extent(index)

    def rows_at_once(self, index: int) -> int:
        """See `LeafPages`."""
        return self._page(index).rows_at_once // self._items_per_row

    def form(self, index: int) -> Hashable:
        """See `LeafPages`."""
        page = self._page(index)
        if not isinstance(page, MiniBlockPage) or pa.types.is_dictionary(self.leaf.arrow_type):
            return None
        return page.form

    def range_form(self, index: int) -> Hashable:
        """Return what pages of any columns share whose ranges of rows are read together; None if one is read alone."""
        page = self._page(index)
        if self._array_form is None or not isinstance(page, MiniBlockPage) or page.range_form is None:
            return None
        return self._array_form, page.range_form

    @cached_property
    def _array_form(self) -> str | None:
        """Properties that leaves share whose arrays are built alike, apart from their pages; None without such ones."""
        above = self.leaf.path[:-1]
        if self._items_per_row > 1 or any(kind_of(field) is not Kind.STRUCT for field in above):
            return None
        return repr((len(above), self.leaf.arrow_type, self.leaf.shape, self._large_chunks))

    def has_dictionaries(self, most_items: int) -> bool:
        """Return whether every page holds keys of distinct values, at most so many, or one value alone."""
        pages = (self._page(index) for index in range(len(self._pages.metadata)))
        return all(
            isinstance(page, ConstantPage)
            or (isinstance(page, MiniBlockPage) and page.num_items is not None and page.num_items <= most_items)
            for page in pages
        )

    def plan(self, index: int, rows: RowSelection) -> Planned[list[pa.Array]]:
        """See `LeafPages`."""
        items: RowSelection
        if isinstance(rows, range):
            items = range(rows.start * self._items_per_row, rows.stop * self._items_per_row)
        else:
            items = self._items_of(rows)
        return build_leaf((yield from self._page(index).plan(items)), self.leaf)

    def plan_single_rows(self, indices: Sequence[int], rows: Sequence[Counts]) -> Planned[list[pa.Array]]:
        """See `LeafPages`."""
        return plan_pages(self.leaf, [self.placed(index, own) for index, own in zip(indices, rows, strict=True)])

    def placed(self, index: int, rows: Counts) -> PlacedRows:
        """Return rows of a page that has a form; they are counted from its first."""
        return cast("MiniBlockPage", self._page(index)), self._items_of(rows), 0

    def _items_of(self, rows: Counts) -> Counts:
        if self._items_per_row == 1:
            return rows
        return expand_ranges(rows * self._items_per_row, (rows + 1) * self._items_per_row)

    def _page(self, index: int) -> Page:
        page = self._parsed.get(index)
        if page is None:
            page = self._parsed[index] = self._pages.page(index, self.leaf.shape, self._parse)
        return page

    def _parse(self, metadata: PageMetadata, cache: CacheSlot) -> Page:
        assert isinstance(metadata.layout, encodings_pb2.PageLayout)
        keeps_dictionaries = pa.types.is_dictionary(self.leaf.arrow_type)
        page = PageDescription(metadata.buffers, metadata.num_rows, self._large_chunks, cache, keeps_dictionaries)
        return parse_page(metadata.layout, page, self.leaf.shape)


def plan_together(
    leaves: Sequence[StructuralLeaf], indices: Sequence[int], rows: Sequence[range]
) -> Planned[list[pa.Array]]:
    """Plan the reading of a range of rows of a page of each of some leaves.

    Parameters
    ----------
    leaves : sequence of StructuralLeaf
    indices : sequence of int
        Their pages, which share a `range_form`.
    rows : sequence of range
        Rows of each page, counted from its first; at least one.

    Returns
    -------
    list of pyarrow.Array
        The rows of each leaf.

    Raises
    ------
    NotSupportedError
        If one array cannot hold all of them.
    """
    pages = [cast("MiniBlockPage", leaf._page(index)) for leaf, index in zip(leaves, indices, strict=True)]
    decoded, starts = yield from plan_ranges(pages, rows)
    arrays = build_leaf(decoded, leaves[0].leaf)
    if len(arrays) > 1:
        raise NotSupportedError("one array cannot hold the rows of all these columns")
    return [arrays[0].slice(start, len(wanted)) for start, wanted in zip(starts, rows, strict=True)]


def plan_pages(leaf: Leaf, pages: Sequence[PlacedRows]) -> Planned[list[pa.Array]]:
    """Plan the reading of single rows of pages of one form; see `StructuralLeaf.placed`."""
    found, items, bases = zip(*pages, strict=True)
    return build_leaf((yield from plan_single_rows(found, items, bases)), leaf)
