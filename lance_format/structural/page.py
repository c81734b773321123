"""Interface of page layouts: the description of a page, requests for rows, and results.

A layout does no I/O. It returns a *plan*: a generator that yields the byte ranges it needs next, is sent their bytes,
and returns the rows. The scheduler of plans may fetch the ranges of many pages at once, and caches the parts that every
read of a page needs: see `PageCache`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from lance_format.byte_io import ByteRange, ByteRanges
from lance_format.data_block import Bytes, Counts, FixedWidthBlock, ValueBlock
from lance_format.errors import CorruptFileError
from lance_format.kernels.pages import mini_block as kernels
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import encodings_pb2
from lance_format.structural.layers import LayerStack, Levels
from lance_format.structural.rep_def import LevelPair


@dataclass(frozen=True, slots=True)
class DecodedRows:
    """Whole rows of a page.

    Parameters
    ----------
    values : ValueBlock or None
        One per visible entry; None if all are null.
    levels : LevelPair
    stack : LayerStack
        Meaning of the levels.
    """

    values: ValueBlock | None
    levels: LevelPair
    stack: LayerStack


Plan: TypeAlias = Generator[Sequence[ByteRange], Sequence[Bytes], DecodedRows]
"""Yields byte ranges, is sent their bytes (8-byte aligned, in order), and returns the rows."""

RowSelection: TypeAlias = range | Counts
"""Rows of a page, ascending: a range of step 1, or an array that may repeat rows."""


SEEK_BYTES = 8 * 1024
"""Assumed cost of a request in bytes: ranges that lie closer together are read as one."""


class PageCache(Protocol):
    """Storage for the parts of a page that every read needs, such as chunk tables, dictionaries and indices.

    A page must not rely on it: entries may be evicted at any time.
    """

    def get(self) -> object | None:
        """Return the entry of the page, or None."""

    def put(self, found: object, size_bytes: int) -> None:
        """Store an immutable part of the page, given its size in memory."""


class _NoCache:
    """Keeps nothing."""

    def get(self) -> None:
        """See `PageCache`."""

    def put(self, found: object, size_bytes: int) -> None:
        """See `PageCache`."""


NO_CACHE = _NoCache()
"""The cache of pages that are read once."""


@dataclass(frozen=True, slots=True)
class PageDescription:
    """Place and number of rows of a page.

    Parameters
    ----------
    buffers : tuple of ByteRange
        All lie within the file.
    num_rows : int
    large_chunks : bool
        Whether the file's version has 32-bit chunk words.
    cache : PageCache
    keeps_dictionaries : bool
        Whether values that are stored as indices into a dictionary are wanted as such, wherever possible.
    """

    buffers: tuple[ByteRange, ...]
    num_rows: int
    large_chunks: bool
    cache: PageCache = NO_CACHE
    keeps_dictionaries: bool = False


@dataclass(frozen=True, slots=True)
class EncodedPage:
    """A page ready to be written: its buffers and its layout."""

    buffers: tuple[Bytes, ...]
    layout: encodings_pb2.PageLayout
    num_rows: int


@dataclass(frozen=True, slots=True)
class PlacedPage:
    """A page in memory, beside those of other files.

    Parameters
    ----------
    layout : PageLayout
    buffers : tuple of ByteRange
        All lie within the file.
    num_rows : int
    large_chunks : bool
        See `PageDescription`.
    base : int
        Offset of the file in memory, a multiple of 8.
    value : bytes, optional
        The inline value of a constant page, instead of that of `layout`, which many pages share.
    """

    layout: encodings_pb2.PageLayout
    buffers: tuple[ByteRange, ...]
    num_rows: int
    large_chunks: bool
    base: int
    value: bytes | None = None

    @property
    def inline_value(self) -> bytes:
        """The inline value of a constant page."""
        return self.layout.constant_layout.inline_value if self.value is None else self.value

    @property
    def whole_layout(self) -> encodings_pb2.PageLayout:
        """The layout of this very page."""
        return self.layout if self.value is None else with_value(self.layout, self.value)


def with_value(layout: encodings_pb2.PageLayout, value: bytes) -> encodings_pb2.PageLayout:
    """Return the layout of a constant page with another inline value."""
    found = encodings_pb2.PageLayout()
    found.CopyFrom(layout)
    found.constant_layout.inline_value = value
    return found


class Page(Protocol):
    """A page whose rows can be read."""

    @property
    def rows_at_once(self) -> int:
        """Maximum number of rows per request, so that an answer stays within some tens of MiB."""

    def plan(self, rows: RowSelection) -> Plan:
        """Plan the reading of some rows, which lie within the page; at least one."""


_ANSWER_BYTES = 32 * 1024 * 1024
_MAX_GAP_BYTES = 8 * 1024
_MANY_RANGES = 8


def rows_within_answer(bytes_per_row: float) -> int:
    """Return the number of rows of a size per answer; see `Page.rows_at_once`."""
    return max(1, int(_ANSWER_BYTES / max(bytes_per_row, 1 / 8)))


@dataclass(frozen=True, slots=True)
class MergedExtents:
    """Few ranges that hold many small ones.

    Parameters
    ----------
    ranges : sequence of ByteRange
        The ranges to read.
    positions : int64[num_extents]
        The offset of each small range in the concatenated ranges.
    """

    ranges: Sequence[ByteRange]
    positions: Counts

    def join(self, fetched: Sequence[Bytes]) -> Bytes:
        """Join the fetched ranges, if they are not yet joined, into one buffer."""
        return fetched[0] if len(fetched) == 1 else np.concatenate(fetched)


def merge_extents(base: int, begins: Counts, ends: Counts) -> MergedExtents:
    """Merge ranges with less than 8 KiB between them, so that few are left.

    Parameters
    ----------
    base : int
        Added to all of them.
    begins, ends : int64[num_extents]
        At least one. Ranges are merged where neither decreases.
    """
    offsets, sizes, positions = np.empty((3, begins.size), np.int64)
    count = kernels.merge_extents(begins, ends, _MAX_GAP_BYTES, offsets, sizes, positions)
    ranges = ByteRanges(offsets[:count] + base, sizes[:count])
    return MergedExtents(ranges if count >= _MANY_RANGES else tuple(ranges), positions)


def as_levels(block: ValueBlock) -> Levels:
    """Return a decompressed block as levels.

    Raises
    ------
    CorruptFileError
        If it does not hold 16-bit words.
    """
    if not isinstance(block, FixedWidthBlock) or block.bits_per_value != 16:
        raise CorruptFileError("levels are not stored as 16-bit words")
    return block.data[: block.num_values * 2].view("<u2")
