"""The pages of a column of a file: their locations, and the objects that read their rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from typing import TypeVar

import numpy as np

from lance_format.byte_io import ByteRange
from lance_format.data_block import Counts
from lance_format.file.container.column_metadata import ColumnMetadata, PageMetadata
from lance_format.file.container.search_cache import CacheSlot, Key, SearchCache
from lance_format.lazy_properties import cached_property

_PARSED_BYTES = 4  # Memory of a parsed message of a page, symbol tables included, per byte in the file.
_PAGE_BYTES = 1024

PageT = TypeVar("PageT")
KeptT = TypeVar("KeptT")


class ColumnPages:
    """The pages of one column.

    Parameters
    ----------
    column : ColumnMetadata
    cache : SearchCache
        Cache for the parts of pages that every read needs.
    key : tuple
        Key of the column in the cache.

    Attributes
    ----------
    column : ColumnMetadata
    metadata : list of PageMetadata
    first_items : int64[num_pages + 1]
        Number of rows before each page, and of all rows; rows of a fixed-size list are its items.
    """

    def __init__(self, column: ColumnMetadata, cache: SearchCache, key: Key) -> None:
        self.column = column
        self.metadata: list[PageMetadata] = column.pages
        ends = itertools.accumulate([page.num_rows for page in self.metadata], initial=0)
        self.first_items: Counts = np.array(list(ends), np.int64)
        self._cache = cache
        self._key = key
        self._pages: dict[tuple[int, Hashable], object] = {}
        self._kept: tuple[object, object] = (None, None)

    @cached_property
    def size_bytes(self) -> Counts:
        """Size of the buffers of each page in the file, `int64[num_pages]`."""
        return np.array([sum([size for _, size in page.buffers]) for page in self.metadata], np.int64)

    def extent(self, index: int) -> ByteRange | None:
        """Return the bytes of the file that contain a page and little else; None if there is no such range."""
        buffers = self.metadata[index].buffers
        if not buffers:
            return None
        start, end = buffers[0].offset, 0
        num_bytes = 0
        for offset, size in buffers:
            start, end = min(start, offset), max(end, offset + size)
            num_bytes += size
        return ByteRange(start, end - start) if end - start <= 2 * num_bytes else None

    def memory_bytes(self, serialized_bytes: int) -> int:
        """Estimate the memory of the column with all of its pages parsed."""
        return serialized_bytes * _PARSED_BYTES + len(self.metadata) * _PAGE_BYTES

    def kept(self, use: object, make: Callable[[], KeptT]) -> KeptT:
        """Return what reads the pages for a use of the column, made anew if it is not the last use, the very object."""
        known, made = self._kept
        if known is not use:
            made = make()
            self._kept = use, made
        return made  # type: ignore[return-value]  # Of one use all are made alike.

    def page(self, index: int, shape: Hashable, parse: Callable[[PageMetadata, CacheSlot], PageT]) -> PageT:
        """Return a page, parsed on first use.

        Parameters
        ----------
        index : int
        shape : hashable
            The shape of its values.
        parse : callable
            Builds the page from its metadata and its slot in the cache.

        Raises
        ------
        CorruptFileError, NotSupportedError
            If its layout is malformed, or cannot be read.
        """
        page = self._pages.get((index, shape))
        if page is None:
            page = parse(self.metadata[index], CacheSlot(self._cache, (*self._key, index)))
            self._pages[index, shape] = page
        return page  # type: ignore[return-value]  # Of one shape all pages are parsed alike.
