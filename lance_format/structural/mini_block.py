"""The mini-block layout: pages of small values, cut into chunks that are compressed and read separately.

Encoding strategy document, "Mini-block page layout". The page has two to four buffers: a word per chunk, the chunks,
the dictionary if there is one, the repetition index if there are lists. The word has 16 bits up to file format 2.1 and
32 from 2.2 on:

    │ size in bytes / 8 - 1 │ log2 of the number of values: 4 bits │

The last chunk may have 0 as its logarithm; it holds the remaining values. A chunk is

    │ u16 levels │ u16 bytes of rep? │ u16 bytes of def? │ bytes of each value buffer: u16, u32 from 2.2 on │ fill │
    │ repetition levels? │ fill │ definition levels? │ fill │ value buffer 0 │ fill │ …

Chunks and their buffers start at multiples of 8 bytes; fill is 0xFE. Values are those of visible entries; invisible
ones are in the chunk of the next value, or in the last.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Generator, Hashable, Sequence
from typing import TypeAlias, cast

import numpy as np

from lance_format.byte_io import ByteRange
from lance_format.compression.codec import Decompressor, pick
from lance_format.compression.fsst import FsstDecompressor, pick_from_pages
from lance_format.data_block import (
    BufferSlices,
    Bytes,
    Counts,
    DataBlock,
    ValueBlock,
    aligned,
    detached,
    memory_bytes,
    starts_of,
)
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.kernels.pages import levels as level_kernels
from lance_format.kernels.pages import mini_block as kernels
from lance_format.kernels.pages.mini_block import ALIGNMENT
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import encodings_pb2
from lance_format.structural.chunk_table import ChunkTable, PickedRows, measure_chunks, parse_tables, pick_rows
from lance_format.structural.indexed_values import decompress_items, index_into, index_into_several, reading_items
from lance_format.structural.layers import Levels
from lance_format.structural.mini_block_layout import MAX_DICTIONARY_ITEMS, parse_layout
from lance_format.structural.page import (
    DecodedRows,
    PageDescription,
    PlacedPage,
    Plan,
    RowSelection,
    as_levels,
    merge_extents,
    rows_within_answer,
)
from lance_format.structural.rep_def import LevelPair, check_levels
from lance_format.structural.row_index import parse_repetition_index, select_rows, select_single_rows

_MAX_VALUES_TOGETHER = 2**20
_MAX_DICTIONARY_BYTES_TOGETHER = 16 * 1024  # Dictionaries of pages whose rows are read together are copied.
_MAX_ITEM_BYTES_TOGETHER = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Search:
    """Parts of a page that every read needs: the offsets of its chunks, and its dictionary if it has one."""

    table: ChunkTable
    dictionary: DataBlock | None

    @property
    def size_bytes(self) -> int:
        """Size in memory."""
        return self.table.size_bytes + (0 if self.dictionary is None else memory_bytes(self.dictionary))


_Fetching: TypeAlias = Generator[Sequence[ByteRange], Sequence[Bytes], tuple[Counts, Bytes, Counts]]
RangesPlan: TypeAlias = Generator[Sequence[ByteRange], Sequence[Bytes], tuple[DecodedRows, list[int]]]
_Searching: TypeAlias = Generator[Sequence[ByteRange], Sequence[Bytes], list[_Search]]


class MiniBlockPage:
    """A page of chunks.

    Parameters
    ----------
    layout : MiniBlockLayout
    page : PageDescription

    Raises
    ------
    CorruptFileError
        If the layout contradicts itself or the page.
    NotSupportedError
        If the layout uses unsupported features.
    """

    def __init__(self, layout: encodings_pb2.MiniBlockLayout, page: PageDescription) -> None:
        self._page = page
        self._layout = found = parse_layout(layout)
        if page.large_chunks and not found.has_large_chunks:
            raise NotSupportedError(
                "chunk words have 16 bits, as in files of 2.2 that pylance 1 and older wrote before that version was"
                " stable: read the file there, and write it as 2.1"
            )
        if found.has_large_chunks != page.large_chunks:
            raise CorruptFileError("the width of the page's chunk words is not that of the file's version")
        if not found.stack.lists and found.num_values != page.num_rows:
            raise CorruptFileError(f"the page has {page.num_rows} rows but {found.num_values} values")
        if len(page.buffers) < found.num_buffers:
            raise CorruptFileError(
                f"a mini-block page has {len(page.buffers)} buffers; expected at least {found.num_buffers}"
            )

    @property
    def rows_at_once(self) -> int:
        """See `Page`; assumes that compressed pages were written from some tens of MiB, as by all known writers."""
        item_bytes = 0.0
        if self._layout.items is not None:
            item_bytes = self._page.buffers[2].size / max(self._layout.num_dictionary_items, 1)
        return rows_within_answer(self._page.buffers[1].size / max(self._page.num_rows, 1) + item_bytes)

    @property
    def num_items(self) -> int | None:
        """Number of items of the dictionary; None if there is none."""
        return None if self._layout.items is None else self._layout.num_dictionary_items

    @property
    def form(self) -> Hashable:
        """Properties that `plan_single_rows` wants pages to share; None if the rows of this one are read alone."""
        dictionary_bytes = self._page.buffers[2].size if self._layout.items is not None else 0
        if dictionary_bytes > _MAX_DICTIONARY_BYTES_TOGETHER or (self._layout.stack.lists and self._has_own_items):
            return None
        return self._layout.form

    @property
    def _has_own_items(self) -> bool:
        """True if its values are read by something that it alone has: a dictionary, or symbols."""
        return self._layout.items is not None or isinstance(self._layout.values, FsstDecompressor)

    @property
    def range_form(self) -> Hashable:
        """Properties that `plan_ranges` wants pages to share; None if the ranges of this one are read alone."""
        return None if self._has_own_items or self._layout.stack.lists else self.form

    def plan(self, rows: RowSelection) -> Plan:
        """Plan the reading of some rows; see `Page`. A whole page is one read, and adds nothing to the cache."""
        if not isinstance(rows, range) and not self._layout.stack.lists:
            return (yield from plan_single_rows([self], [rows], [0]))
        search = self._page.cache.get()
        if not isinstance(search, _Search) and isinstance(rows, range) and len(rows) == self._page.num_rows:
            *parts, data = yield [*self._search_ranges(), self._page.buffers[1]]
            search = self._parse_search(parts)
            chunks, starts = np.arange(search.table.num_values.size), search.table.offsets[:-1]
        else:
            (search,) = yield from _search([self], [0])
            chunks, data, starts = yield from self._fetch_chunks(search.table, rows)
        table = search.table
        counts = table.num_values[chunks]
        sizes = table.offsets[chunks + 1] - table.offsets[chunks]
        dictionary = search.dictionary
        reader = None
        if dictionary is not None and not self._page.keeps_dictionaries:
            reader = reading_items(self._layout.values, dictionary)
        values, levels, num_levels = self._decode(data, starts, sizes, counts, reader)
        if self._layout.stack.lists:
            decoded = select_rows(values, levels, self._layout.stack, rows, table.first_rows, num_levels, chunks)
        else:
            assert isinstance(rows, range)
            start, stop = rows.start - int(table.first_rows[chunks[0]]), rows.stop - int(table.first_rows[chunks[0]])
            decoded = DecodedRows(values.slice(start, stop), levels.select(start, stop), self._layout.stack)
        if dictionary is None or reader is not None or decoded.values is None:
            return decoded
        return dataclasses.replace(decoded, values=index_into(dictionary, decoded.values))

    def _fetch_chunks(self, table: ChunkTable, rows: RowSelection) -> _Fetching:
        """Return the chunks that hold the rows, their bytes, and the begin of each chunk within them."""
        chunks = table.chunks_of(rows)
        extents = merge_extents(self._page.buffers[1].offset, table.offsets[chunks], table.offsets[chunks + 1])
        return chunks, aligned(extents.join((yield extents.ranges))), extents.positions

    def _search_ranges(self) -> list[ByteRange]:
        """Return the locations of the chunk table, the dictionary and the repetition index."""
        return [self._page.buffers[0], *self._page.buffers[2 : self._layout.num_buffers]]

    def _parse_search(self, parts: Sequence[Bytes], table: ChunkTable | None = None) -> _Search:
        """Parse what finds rows, given its bytes, and its chunk table if that is parsed."""
        layout = self._layout
        dictionary = None
        if layout.items is not None:
            dictionary = detached(decompress_items(layout.items, parts[1], layout.num_dictionary_items))
        if table is None:
            (table,) = self._parse_tables([self], [parts[0]])
        if layout.stack.lists:
            num_chunks, num_rows = table.num_values.size, self._page.num_rows
            first_rows, ended = parse_repetition_index(parts[-1], layout.depth, num_chunks, num_rows)
            table = ChunkTable(table.offsets, table.num_values, first_rows, ended)
        return _Search(table, dictionary)

    def _parse_tables(self, pages: Sequence[MiniBlockPage], words: Sequence[Bytes]) -> list[ChunkTable]:
        """Return the chunk tables of pages of the form of this one; rows are counted as if there were no lists."""
        num_values = [page._layout.num_values for page in pages]
        return parse_tables(words, self._layout.word_bytes, [page._page.buffers[1].size for page in pages], num_values)

    def decode_together(self, pages: Sequence[PlacedPage], data: Bytes) -> DecodedRows:
        """Decode whole pages that share the layout of this one, except its number of values; see `together`."""
        if any(len(page.buffers) < self._layout.num_buffers for page in pages):
            raise NotSupportedError("these pages cannot be decoded at once")
        num_values = [page.layout.mini_block_layout.num_items for page in pages]
        num_rows = [page.num_rows for page in pages]
        if not self._layout.stack.lists and num_values != num_rows:
            raise CorruptFileError("a page has another number of values than of rows")
        if sum(num_values) > _MAX_VALUES_TOGETHER:
            raise NotSupportedError("these pages cannot be decoded at once")
        places = [(page.base + buffer.offset, buffer.size) for page in pages for buffer in page.buffers[:2]]
        extents = np.array(places, np.int64).reshape(-1, 2, 2)
        table_bytes, chunk_bytes = extents[:, 0, 1].copy(), extents[:, 1, 1].copy()  # Others are kernels of their own.
        tables = np.concatenate([data[start : start + size] for start, size in extents[:, 0].tolist()])
        sizes, counts = measure_chunks(
            tables, self._layout.word_bytes, table_bytes, chunk_bytes, np.array(num_values, np.int64)
        )
        per_page = table_bytes // (tables.size // sizes.size)
        firsts = starts_of(per_page)
        starts = starts_of(sizes)
        starts += np.repeat(extents[:, 1, 0] - starts[firsts], per_page)
        if (starts % ALIGNMENT).any():
            raise NotSupportedError("these pages cannot be decoded at once")
        values, levels, num_levels = self._decode(data, starts, sizes, counts)
        if self._layout.items is not None:
            values = index_into_several(self._items_of(pages, data), values, np.add.reduceat(counts, firsts).tolist())
        if levels.repetition is not None:
            begins = starts_of(np.add.reduceat(num_levels, firsts))
            starts_row = levels.repetition == self._layout.stack.max_repetition
            if (np.diff(begins, append=starts_row.size) < 1).any() or not starts_row[begins].all():
                raise CorruptFileError("a page begins within a row")
            if np.add.reduceat(starts_row, begins, dtype=np.int64).tolist() != num_rows:
                raise CorruptFileError("the levels of a page have another number of rows")
        return DecodedRows(values, levels, self._layout.stack)

    def _items_of(self, pages: Sequence[PlacedPage], data: Bytes) -> list[DataBlock]:
        """Return the dictionary of each page; see `decode_together`."""
        assert self._layout.items is not None
        dictionaries: list[DataBlock] = []
        left = _MAX_ITEM_BYTES_TOGETHER
        for page in pages:
            start, size = page.base + page.buffers[2].offset, page.buffers[2].size
            count = page.layout.mini_block_layout.num_dictionary_items
            if size > _MAX_DICTIONARY_BYTES_TOGETHER or count > MAX_DICTIONARY_ITEMS:
                raise NotSupportedError("these pages cannot be decoded at once")
            dictionaries.append(decompress_items(self._layout.items, aligned(data[start : start + size]), count))
            left -= memory_bytes(dictionaries[-1])
            if left < 0:
                raise NotSupportedError("these pages cannot be decoded at once")
        return dictionaries

    def _decode(
        self,
        data: Bytes,
        chunk_starts: Counts,
        chunk_sizes: Counts,
        counts: Counts,
        reader: Decompressor | None = None,
        picked: PickedRows | None = None,
        pages: Sequence[MiniBlockPage] = (),
    ) -> tuple[ValueBlock, LevelPair, Counts]:
        """Return the values and levels of chunks, or of some rows of pages, and the number of levels of each chunk.

        Parameters
        ----------
        data : uint8[…]
        chunk_starts, chunk_sizes, counts : int64[num_chunks]
            Place of each chunk within `data`, and its number of values.
        reader : Decompressor or None
            Reads the values, if not as the page stores them.
        picked : PickedRows or None
        pages : sequence of MiniBlockPage
            Those of the picked rows.
        """
        num_chunks = len(chunk_sizes)
        rows = 2 + self._layout.values.num_buffers
        sizes = np.zeros((rows, num_chunks), np.int64)
        sizes[0] = -1 if self._layout.repetition is None else 0
        sizes[1] = -1 if self._layout.definition is None else 0
        starts = np.zeros((rows, num_chunks), np.int64)
        num_levels = np.zeros(num_chunks, np.int64)
        word_bytes = self._layout.word_bytes
        found = kernels.parse_headers(data, chunk_starts, chunk_sizes, word_bytes, num_levels, starts, sizes)
        if found < 0:
            raise CorruptFileError(f"the buffers of chunk {-1 - found} do not fit into it")
        slices = [BufferSlices(data, starts[row], sizes[row]) for row in range(2, rows)]
        reader = reader or self._layout.values
        values = reader.decompress(slices, counts) if picked is None else _pick(pages, slices, picked)
        if self._layout.repetition is None and self._layout.definition is None:
            return values, LevelPair(None, None, values.num_values), counts
        levels = LevelPair(
            _decode_levels(self._layout.repetition, BufferSlices(data, starts[0], sizes[0]), num_levels),
            _decode_levels(self._layout.definition, BufferSlices(data, starts[1], sizes[1]), num_levels),
            int(num_levels.sum()),
        )
        check_levels(levels, self._layout.stack)
        self._check_counts(levels, num_levels, counts)
        return values, levels if picked is None else levels.take(picked.positions), num_levels

    def _check_counts(self, levels: LevelPair, num_levels: Counts, counts: Counts) -> None:
        found = num_levels
        if levels.definition is not None and self._layout.stack.max_visible < self._layout.stack.max_definition:
            found = np.empty_like(counts)
            level_kernels.count_visible(levels.definition, self._layout.stack.max_visible, num_levels, found)
        wrong = found != counts
        if wrong.any():
            raise CorruptFileError("a chunk has another number of visible levels than of values")


def plan_single_rows(pages: Sequence[MiniBlockPage], rows: Sequence[Counts], bases: Sequence[int]) -> Plan:
    """Plan the reading of single rows of pages of one form; a page costs hardly fewer calls than all.

    Parameters
    ----------
    pages : sequence of MiniBlockPage
    rows : sequence of int64[…]
        Rows of each page, counted from its first; at least one.
    bases : sequence of int
        What is added to the offsets of each page.
    """
    searches = yield from _search(pages, bases)
    begins = [page._page.buffers[1].offset + base for page, base in zip(pages, bases, strict=True)]
    if pages[0]._layout.stack.lists:
        return (yield from _plan_lists(pages, [search.table for search in searches], begins, rows))
    picked = pick_rows([search.table for search in searches], begins, rows)
    extents = merge_extents(0, picked.begins, picked.ends)
    data = aligned(extents.join((yield extents.ranges)))
    sizes = picked.ends - picked.begins
    chunks = extents.positions, sizes, picked.num_values
    values, levels, _ = pages[0]._decode(data, *chunks, picked=picked, pages=pages)
    dictionaries = [search.dictionary for search in searches if search.dictionary is not None]
    if dictionaries:
        values = index_into_several(dictionaries, values, picked.num_rows)
    return DecodedRows(values, levels, pages[0]._layout.stack)


def _plan_lists(
    pages: Sequence[MiniBlockPage], tables: Sequence[ChunkTable], begins: Sequence[int], rows: Sequence[Counts]
) -> Plan:
    """Plan the reading of single rows of pages with lists; see `plan_single_rows`."""
    chunks = [table.chunks_of(own) for table, own in zip(tables, rows, strict=True)]
    chosen = list(zip(tables, chunks, strict=True))
    bases = list(itertools.accumulate((page._page.num_rows for page in pages), initial=0))[:-1]
    places = [table.offsets[own] + begin for (table, own), begin in zip(chosen, begins, strict=True)]
    starts, sizes = np.concatenate(places), np.concatenate([np.diff(table.offsets)[own] for table, own in chosen])
    extents = merge_extents(0, starts, starts + sizes)
    data = aligned(extents.join((yield extents.ranges)))
    counts = np.concatenate([table.num_values[own] for table, own in chosen])
    values, levels, num_levels = pages[0]._decode(data, extents.positions, sizes, counts)
    first_rows = [table.first_rows[own] + base for (table, own), base in zip(chosen, bases, strict=True)]
    wanted = np.concatenate([own + base for own, base in zip(rows, bases, strict=True)])
    begins_run = np.concatenate([np.diff(own, prepend=-2) != 1 for own in chunks])
    stack = pages[0]._layout.stack
    return select_single_rows(values, levels, stack, wanted, np.concatenate(first_rows), num_levels, begins_run)


def plan_ranges(pages: Sequence[MiniBlockPage], rows: Sequence[range]) -> RangesPlan:
    """Plan the reading of a range of rows of each of some pages.

    Parameters
    ----------
    pages : sequence of MiniBlockPage
        They share a `range_form`.
    rows : sequence of range
        Rows of each page, counted from its first; at least one.

    Returns
    -------
    rows : DecodedRows
        Those of all pages, one after the other, and further ones before and after those of each page.
    starts : list of int
        Where the range of each page starts among them.
    """
    searches = yield from _search(pages, [0] * len(pages))
    begins, ends, counts, starts = [], [], [], []
    num_rows = 0
    for page, search, wanted in zip(pages, searches, rows, strict=True):
        table = search.table
        first = int(table.first_rows.searchsorted(wanted.start, "right")) - 1
        past = int(table.ended_rows.searchsorted(wanted.stop - 1, "right")) + 1
        offsets = table.offsets[first : past + 1] + page._page.buffers[1].offset
        begins.append(offsets[:-1])
        ends.append(offsets[1:])
        counts.append(table.num_values[first:past])
        first_row = int(table.first_rows[first])
        starts.append(num_rows + wanted.start - first_row)
        num_rows += int(table.first_rows[past]) - first_row
    begin, end = np.concatenate(begins), np.concatenate(ends)
    extents = merge_extents(0, begin, end)
    data = aligned(extents.join((yield extents.ranges)))
    values, levels, _ = pages[0]._decode(data, extents.positions, end - begin, np.concatenate(counts))
    return DecodedRows(values, levels, pages[0]._layout.stack), starts


def _pick(pages: Sequence[MiniBlockPage], buffers: Sequence[BufferSlices], picked: PickedRows) -> ValueBlock:
    """Return the values of rows of pages of one form."""
    places = buffers, picked.num_values, picked.chunks, picked.within
    with_symbols = [page._layout.values for page in pages if isinstance(page._layout.values, FsstDecompressor)]
    if len(with_symbols) > 1:
        return pick_from_pages(with_symbols, picked.num_rows, *places)
    return pick(pages[0]._layout.values, *places)


def _search(pages: Sequence[MiniBlockPage], bases: Sequence[int]) -> _Searching:
    """Return what finds rows in pages; what is not cached is read together, and cached."""
    found = [page._page.cache.get() for page in pages]
    lacking = [number for number, search in enumerate(found) if not isinstance(search, _Search)]
    if lacking:
        wanted = [pages[number]._search_ranges() for number in lacking]
        moved = [
            [ByteRange(bases[number] + offset, size) for offset, size in ranges]
            for number, ranges in zip(lacking, wanted, strict=True)
        ]
        arrived = iter((yield list(itertools.chain(*moved))))
        parts = [[next(arrived) for _ in ranges] for ranges in wanted]
        some = [pages[number] for number in lacking]
        tables = some[0]._parse_tables(some, [words for words, *_ in parts])
        for number, own, table in zip(lacking, parts, tables, strict=True):
            search = found[number] = pages[number]._parse_search(own, table)
            pages[number]._page.cache.put(search, search.size_bytes)
    return cast("list[_Search]", found)


def _decode_levels(decompressor: Decompressor | None, slices: BufferSlices, counts: Counts) -> Levels | None:
    return None if decompressor is None else as_levels(decompressor.decompress([slices], counts))
