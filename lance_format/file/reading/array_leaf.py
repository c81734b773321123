"""A leaf of a column in file format 2.0: lists are separate columns, whose items are the rows of the next column.

Reading descends from the top-level field to the leaf: the ends of the requested lists give the rows to read of the
column below. Page boundaries of the columns are independent. Structs have an empty column too: structs are never null.

Releases before 0.14 wrote byte strings as lists of bytes, whose bytes are the next column.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa

from lance_format.array_encodings.array import ArrayReader, Planned, pack_validity, side_by_side, unpack_validity
from lance_format.array_encodings.blob import BlobReader
from lance_format.array_encodings.buffers import ArrayPage
from lance_format.array_encodings.ends import Extents
from lance_format.array_encodings.legacy import LegacyPage
from lance_format.array_encodings.lists import ListPage, list_of
from lance_format.array_encodings.registry import parse_array, parse_header
from lance_format.array_encodings.row_ranges import RowRanges, without_empty
from lance_format.arrow_rows import take_rows
from lance_format.byte_io import ByteRange
from lance_format.data_block import Counts, FixedWidthBlock
from lance_format.datatypes import Field
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.file.columns.array_values import array_shape, build_values
from lance_format.file.columns.dictionaries import concat
from lance_format.file.columns.leaf_columns import Kind, Leaf, has_large_offsets, kind_of
from lance_format.file.columns.leaves import BLOB_SHAPE, is_empty_struct, shape_of
from lance_format.file.columns.limits import MAX_OFFSET
from lance_format.file.container.column_metadata import PageMetadata
from lance_format.file.container.column_pages import ColumnPages
from lance_format.file.container.search_cache import CacheSlot
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import array_encodings_pb2
from lance_format.structural.page import RowSelection, rows_within_answer

_KINDS = frozenset({Kind.STRUCT, Kind.LIST, Kind.LEAF})

PageT = TypeVar("PageT")
T = TypeVar("T")


def list_fields(leaf: Leaf) -> tuple[Field, ...]:
    """Return the lists around a leaf, outermost first.

    Raises
    ------
    NotSupportedError
        If files of format 2.0 cannot hold such columns.
    """
    if any(kind_of(field) not in _KINDS for field in leaf.path):
        raise NotSupportedError(
            f"column {leaf.name!r} is in a map or a fixed-size list of structs, which files of format 2.0 cannot hold"
        )
    return tuple(field for field in leaf.path if kind_of(field) is Kind.LIST)


def has_byte_lists(leaf: Leaf, values: ColumnPages) -> bool:
    """Return whether the column of a leaf holds its byte strings as lists of bytes."""
    layout = values.metadata[0].layout if values.metadata else None
    is_list = isinstance(layout, array_encodings_pb2.ArrayEncoding) and layout.WhichOneof("array_encoding") == "list"
    return is_list and leaf.shape.bits_per_offset is not None and not pa.types.is_dictionary(leaf.arrow_type)


def _as_byte_lists(leaf: Leaf) -> Leaf:
    byte = Field("item", "uint8", nullable=False)
    kind = "large_list" if leaf.shape.bits_per_offset == 64 else "list"
    lists = dataclasses.replace(leaf.field, logical_type=kind, children=(byte,), extension_name="")
    return Leaf((*leaf.path[:-1], lists, byte), pa.uint8(), shape_of(pa.uint8(), leaf.name))


@dataclass(frozen=True, slots=True)
class _Lists:
    """The column of a list.

    Parameters
    ----------
    field : Field
    pages : ColumnPages
    first_items : int64[num_pages + 1]
        The first item of each page among the rows of the column below, and the number of all items.
    """

    field: Field
    pages: ColumnPages
    first_items: Counts


class ArrayLeaf:
    """Reads the columns that a leaf needs; see `LeafPages`. Its pages are those of the outermost column.

    Parameters
    ----------
    leaf : Leaf
    lists : sequence of ColumnPages
        The columns of the lists around it, outermost first, and its own if that holds lists of bytes.
    values : ColumnPages
        Its own, or that of the bytes.
    file_buffers : tuple of ByteRange

    Raises
    ------
    CorruptFileError
        If lists have more items than the column below has rows.
    NotSupportedError
        If files of format 2.0 cannot hold such columns.
    """

    def __init__(
        self, leaf: Leaf, lists: Sequence[ColumnPages], values: ColumnPages, file_buffers: tuple[ByteRange, ...]
    ) -> None:
        self.leaf = leaf
        self._has_byte_lists = len(lists) > len(list_fields(leaf))
        self._stored = _as_byte_lists(leaf) if self._has_byte_lists else leaf
        self._values = values
        self._file_buffers = file_buffers
        self._shape = array_shape(self._stored)
        self._lists = [
            _Lists(field, pages, _first_items(pages, below))
            for field, (pages, below) in zip(list_fields(self._stored), pairwise([*lists, values]), strict=True)
        ]
        self._pages = lists[0] if lists else values
        self.first_rows: Counts = self._pages.first_items

    @property
    def size_bytes(self) -> Counts:
        """See `LeafPages`; the items of lists count among the bytes of the lists' pages."""
        sizes = self._values.size_bytes.astype(np.float64)
        rows = self._values.first_items
        for lists in reversed(self._lists):
            # Approximate bytes of the items before each item give those of the items of each page.
            ends = np.interp(lists.first_items, rows, np.concatenate([[0.0], np.cumsum(sizes)]))
            sizes = lists.pages.size_bytes + np.diff(ends)
            rows = lists.pages.first_items
        return sizes.astype(np.int64)

    def extent(self, index: int) -> None:
        """See `LeafPages`; pages of format 2.0 refer to buffers of several columns."""
        del index

    def rows_at_once(self, index: int) -> int:
        """See `LeafPages`."""
        num_rows = int(self.first_rows[index + 1] - self.first_rows[index])
        size = max(float(self.size_bytes[index]), self._slots(index) * self.leaf.slot_bytes)
        return rows_within_answer(size / max(num_rows, 1))

    def _slots(self, index: int) -> int:
        """Return how many values of the leaf the lists of a page hold."""
        first, last = int(self.first_rows[index]), int(self.first_rows[index + 1])
        for lists in self._lists:
            bounds = np.interp([first, last], lists.pages.first_items, lists.first_items)
            first, last = int(bounds[0]), int(bounds[1])
        return last - first

    def plan(self, index: int, rows: RowSelection) -> Planned[list[pa.Array]]:
        """See `LeafPages`."""
        if not isinstance(rows, range) and (rows[1:] == rows[:-1]).any():
            once, positions = np.unique(rows, return_inverse=True)
            arrays = yield from self.plan(index, once)
            return [take_rows(concat(arrays), pa.array(positions))]
        ranges = RowRanges.select(rows).moved(int(self.first_rows[index]))
        return (yield from self._plan_path(self._stored.path, self._lists, ranges))

    def form(self, index: int) -> None:
        """See `LeafPages`; pages of format 2.0 are read alone."""

    def plan_single_rows(self, indices: Sequence[int], rows: Sequence[Counts]) -> Planned[list[pa.Array]]:
        """See `LeafPages`."""
        found: list[pa.Array] = []
        for index, own in zip(indices, rows, strict=True):
            found += yield from self.plan(index, own)
        return found

    def _plan_path(self, path: Sequence[Field], lists: Sequence[_Lists], ranges: RowRanges) -> Planned[list[pa.Array]]:
        """Plan the reading of rows of the outermost column of a path, counted over all its pages."""
        field, *below = path
        kind = kind_of(field)
        if kind is Kind.LEAF:
            return (yield from self._plan_values(ranges))
        if kind is Kind.STRUCT:
            inner = yield from self._plan_path(below, lists, ranges)
            return [_wrap_in_structs(array) for array in inner]
        extents = yield from self._plan_lists(lists[0], ranges)
        items = yield from self._plan_path(below, lists[1:], extents.items)
        wrapped = _wrap_in_lists(extents, items, field)
        if self._has_byte_lists and len(lists) == 1:
            return [_to_byte_strings(array, self.leaf.arrow_type) for array in wrapped]
        return wrapped

    def _plan_values(self, ranges: RowRanges) -> Planned[list[pa.Array]]:
        parts = [
            self._page(self._values, index, self._parse_values).plan(part)
            for index, part in _by_page(self._values, ranges)
        ]
        if not parts:
            return [_empty(self._stored.arrow_type)]
        decoded = yield from side_by_side(parts)
        return [array for found in decoded for array in build_values(found, self._stored)]

    def _plan_lists(self, lists: _Lists, ranges: RowRanges) -> Planned[Extents]:
        """Return where the items of some lists are among the rows of the column below."""
        parts = _by_page(lists.pages, ranges)
        if not parts:
            return Extents(np.zeros(1, np.int64), None, ranges)
        plans = [self._page(lists.pages, index, self._parse_list).plan(part) for index, part in parts]
        found = yield from side_by_side(plans)
        moved = [
            extents.items.moved(int(lists.first_items[index])) for extents, (index, _) in zip(found, parts, strict=True)
        ]
        if len(found) == 1:
            return Extents(found[0].offsets, found[0].validity, moved[0])
        return _join(found, moved)

    def _page(self, pages: ColumnPages, index: int, parse: Callable[[PageMetadata, ArrayPage], PageT]) -> PageT:
        def build(metadata: PageMetadata, cache: CacheSlot) -> PageT:
            page = ArrayPage(metadata.buffers, metadata.num_rows, pages.column.buffers, self._file_buffers, cache)
            return parse(metadata, page)

        return pages.page(index, (parse.__name__, self._shape), build)

    def _parse_list(self, metadata: PageMetadata, page: ArrayPage) -> ListPage:
        return ListPage(_encoding(metadata), page)

    def _parse_values(self, metadata: PageMetadata, page: ArrayPage) -> ArrayReader:
        if is_empty_struct(self.leaf.arrow_type):
            return parse_header(_encoding(metadata))
        if isinstance(metadata.layout, LegacyPage):
            return metadata.layout.reader(page, self._shape)
        values = parse_array(_encoding(metadata), page, self._shape)
        if (self.leaf.shape is BLOB_SHAPE) != self._values.column.is_blob:
            raise CorruptFileError("a column of blobs is not marked as such, or another one is")
        return BlobReader(values) if self._values.column.is_blob else values


def _encoding(metadata: PageMetadata) -> array_encodings_pb2.ArrayEncoding:
    assert isinstance(metadata.layout, array_encodings_pb2.ArrayEncoding)
    return metadata.layout


def _first_items(pages: ColumnPages, below: ColumnPages) -> Counts:
    counts = np.array([list_of(_encoding(metadata)).num_items for metadata in pages.metadata], np.int64)
    first_items = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    if first_items[-1] > below.first_items[-1]:
        raise CorruptFileError(
            f"the pages of a list have {first_items[-1]} items, the column below {below.first_items[-1]} rows"
        )
    return first_items


def _by_page(pages: ColumnPages, ranges: RowRanges) -> list[tuple[int, RowRanges]]:
    """Return the parts of ranges in each page, counted from its first row, without pages that have none."""
    if ranges.count == 0:
        return []
    first = int(pages.first_items.searchsorted(ranges.begins[0], "right")) - 1
    last = int(pages.first_items.searchsorted(ranges.ends[-1], "left"))
    parts = []
    for index in range(first, last):
        start, stop = int(pages.first_items[index]), int(pages.first_items[index + 1])
        part = ranges.within(start, stop)
        if part.count:
            parts.append((index, part.moved(-start)))
    return parts


def _join(found: Sequence[Extents], items: Sequence[RowRanges]) -> Extents:
    """Put the extents of lists of consecutive pages together."""
    offsets = [np.zeros(1, np.int64)]
    for extents in found:
        offsets.append(extents.offsets[1:] + offsets[-1][-1])
    validity: FixedWidthBlock | None = None
    if any(extents.validity is not None for extents in found):
        valid = [
            np.ones(extents.offsets.size - 1, np.bool_)
            if extents.validity is None
            else unpack_validity(extents.validity)
            for extents in found
        ]
        validity = pack_validity(np.concatenate(valid))
    joined = without_empty(
        np.concatenate([ranges.begins for ranges in items]), np.concatenate([ranges.ends for ranges in items])
    )
    return Extents(np.concatenate(offsets), validity, joined)


def _empty(arrow_type: pa.DataType) -> pa.Array:
    return pa.nulls(0, arrow_type)


def _to_byte_strings(lists: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """Return lists of bytes as byte strings.

    Raises
    ------
    CorruptFileError
        If a byte is null, or text is not UTF-8.
    """
    items = lists.values
    if items.null_count:
        raise CorruptFileError("byte strings are lists with null bytes")
    validity, offsets = lists.buffers()[:2]
    data = items.buffers()[1].slice(items.offset) if len(items) else pa.py_buffer(b"")
    strings = pa.Array.from_buffers(arrow_type, len(lists), [validity, offsets, data])
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptFileError(f"byte strings are malformed: {error}") from error
    return strings


def _wrap_in_structs(array: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(pa.struct([pa.field("", array.type)]), len(array), [None], children=[array])


def _wrap_in_lists(extents: Extents, items: list[pa.Array], field: Field) -> list[pa.Array]:
    """Wrap items in lists; return several arrays if the offsets of one, or of its items, would overflow."""
    count = extents.offsets.size - 1
    large = has_large_offsets(field)
    fits = large or int(extents.offsets[-1] - extents.offsets[0]) <= MAX_OFFSET
    try:
        if not fits:
            raise NotSupportedError(f"{count} rows have more than {MAX_OFFSET} items, more than offsets reach")
        joined = concat(items)
    except NotSupportedError:
        if count < 2:
            raise
        return [array for half in _halve(extents, items) for array in _wrap_in_lists(*half, field)]
    inner = pa.field("", joined.type)
    offsets = pa.py_buffer(extents.offsets.astype(np.int64 if large else np.int32))
    validity = None if extents.validity is None else pa.py_buffer(extents.validity.data)
    nested = pa.large_list(inner) if large else pa.list_(inner)
    return [pa.Array.from_buffers(nested, count, [validity, offsets], children=[joined])]


def _halve(extents: Extents, items: list[pa.Array]) -> list[tuple[Extents, list[pa.Array]]]:
    """Cut lists in two."""
    count = extents.offsets.size - 1
    middle = count // 2
    cut = int(extents.offsets[middle])
    before, after, position = [], [], 0
    for array in items:
        here = min(max(cut - position, 0), len(array))
        before.append(array.slice(0, here))
        after.append(array.slice(here))
        position += len(array)
    validity = extents.validity
    return [
        (
            Extents(
                extents.offsets[start : stop + 1] - extents.offsets[start],
                None if validity is None else validity.slice(start, stop),
                extents.items,
            ),
            [part for part in parts if len(part)] or parts[:1],
        )
        for start, stop, parts in ((0, middle, before), (middle, count, after))
    ]
