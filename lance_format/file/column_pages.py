"""The pages of a column of a file: where they are, and the objects that can be asked for their rows."""

from __future__ import annotations

import itertools
from functools import cached_property

import numpy as np

from lance_format.data_block import Counts, ValueShape
from lance_format.file.footer import PageMetadata
from lance_format.file.search_cache import CacheSlot, Key, SearchCache
from lance_format.structural.page import Page, PageDescription
from lance_format.structural.registry import parse_page
from lance_format.version import FileVersion

_PARSED_BYTES = 4  # a message of a page takes so many times its bytes once it is parsed, symbol tables included
_PAGE_BYTES = 1024


class ColumnPages:
    """The pages of one column.

    Parameters
    ----------
    metadata : list of PageMetadata
    version : FileVersion
        Of the file.
    cache : SearchCache
        Where pages leave what they need for every read.
    key : tuple
        Of the column in the cache.

    Attributes
    ----------
    metadata : list of PageMetadata
    first_items : int64[num_pages + 1]
        How many rows the pages before each have, and how many all of them; rows of a fixed-size list are its items.
    """

    def __init__(self, metadata: list[PageMetadata], version: FileVersion, cache: SearchCache, key: Key) -> None:
        self.metadata = metadata
        ends = itertools.accumulate((page.num_rows for page in metadata), initial=0)
        self.first_items: Counts = np.array(list(ends), np.int64)
        self._version = version
        self._cache = cache
        self._key = key
        self._pages: dict[tuple[int, ValueShape], Page] = {}

    @cached_property
    def size_bytes(self) -> Counts:
        """Size of the buffers of each page in the file, `int64[num_pages]`."""
        return np.array([sum(buffer.size for buffer in page.buffers) for page in self.metadata], np.int64)

    def memory_bytes(self, serialized_bytes: int) -> int:
        """Estimate the memory that it takes once all of its pages have been parsed."""
        return serialized_bytes * _PARSED_BYTES + len(self.metadata) * _PAGE_BYTES

    def page(self, index: int, shape: ValueShape) -> Page:
        """Return a page, whose values form blocks of some kind.

        Raises
        ------
        CorruptFileError, NotSupportedError
            If its layout is malformed, or cannot be read.
        """
        page = self._pages.get((index, shape))
        if page is None:
            metadata = self.metadata[index]
            description = PageDescription(
                metadata.buffers,
                metadata.num_rows,
                self._version.has_large_chunks,
                CacheSlot(self._cache, (*self._key, index)),
            )
            page = self._pages[index, shape] = parse_page(metadata.layout, description, shape)
        return page
