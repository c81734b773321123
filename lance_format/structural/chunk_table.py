"""Chunk tables of mini-block pages: where chunks are, and which of them hold rows.

`mini_block.py` has the bytes of their words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_format.data_block import Bytes, Counts, places_of, starts_of
from lance_format.errors import CorruptFileError
from lance_format.kernels.pages import mini_block as kernels
from lance_format.lazy_dataclasses import dataclass
from lance_format.structural.page import RowSelection

_SHARED_WORDS = 4096
"""Maximum number of words of pages whose tables share memory, all of which one of them keeps alive."""


@dataclass(frozen=True, slots=True)
class ChunkTable:
    """Places and contents of the chunks of a page.

    Parameters
    ----------
    offsets : int64[num_chunks + 1]
        Bytes into the chunk buffer.
    num_values : int64[num_chunks]
    first_rows : int64[num_chunks + 1]
        The first row that starts in each chunk or after it.
    ended_rows : int64[num_chunks]
        The rows that have ended with each chunk.
    """

    offsets: Counts
    num_values: Counts
    first_rows: Counts
    ended_rows: Counts

    @property
    def size_bytes(self) -> int:
        """Size in memory."""
        return 32 * self.num_values.size + 16

    def chunks_of(self, rows: RowSelection) -> Counts:
        """Return the chunks that hold the rows, ascending, each once."""
        if isinstance(rows, range):
            first = np.searchsorted(self.first_rows, rows.start, side="right") - 1
            last = np.searchsorted(self.ended_rows, rows.stop - 1, side="right")
            return np.arange(first, last + 1, dtype=np.int64)
        firsts = np.searchsorted(self.first_rows, rows, side="right") - 1
        lasts = np.searchsorted(self.ended_rows, rows, side="right")
        if (firsts == lasts).all():
            is_next = np.ones(firsts.size, np.bool_)
            np.not_equal(firsts[1:], firsts[:-1], out=is_next[1:])
            return firsts[is_next]
        marks = np.zeros(len(self.num_values) + 1, np.int64)
        np.add.at(marks, firsts, 1)
        np.add.at(marks, lasts + 1, -1)
        return np.flatnonzero(np.cumsum(marks[:-1]))


@dataclass(frozen=True, slots=True)
class PickedRows:
    """Single rows of chunks, where every value is a row.

    Parameters
    ----------
    begins, ends : int64[num_chunks]
        The bytes in the file of the chunks that hold them, ascending within a page.
    num_values : int64[num_chunks]
    chunks : int64[num_rows]
        The chunk of each row, among these.
    within : int64[num_rows]
        The position of each row in its chunk.
    num_rows : list of int
        For each page, the number of its rows.
    """

    begins: Counts
    ends: Counts
    num_values: Counts
    chunks: Counts
    within: Counts
    num_rows: list[int]

    @property
    def positions(self) -> Counts:
        """The position of each row among the values of all these chunks."""
        return places_of(self.num_values, self.chunks, self.within)


def pick_rows(tables: Sequence[ChunkTable], chunks_begin: Sequence[int], rows: Sequence[Counts]) -> PickedRows:
    """Find single rows of pages.

    Parameters
    ----------
    tables : sequence of ChunkTable
        Those of pages where every value is a row.
    chunks_begin : sequence of int
        Offset of the chunks of each page.
    rows : sequence of int64[…]
        The rows of each page, which ascend and may repeat; at least one.
    """
    if len(tables) == 1:
        return _pick_of_page(tables[0], chunks_begin[0], rows[0])
    num_values = np.concatenate([table.num_values for table in tables])
    first_rows = np.zeros(num_values.size + 1, np.int64)
    np.cumsum(num_values, out=first_rows[1:])
    num_chunks = [table.num_values.size for table in tables]
    bases = first_rows[starts_of(np.array(num_chunks, np.int64))]
    num_rows = [own.size for own in rows]
    wanted = np.concatenate(rows) + bases.repeat(num_rows)
    chunks, numbers, within = np.empty((3, wanted.size), np.int64)
    found = chunks[: kernels.find_rows(wanted, first_rows, chunks, numbers, within)]
    moved = np.array(chunks_begin, np.int64).repeat(num_chunks)[found]
    begins = np.concatenate([table.offsets[:-1] for table in tables])[found] + moved
    ends = np.concatenate([table.offsets[1:] for table in tables])[found] + moved
    return PickedRows(begins, ends, num_values[found], numbers, within, num_rows)


def _pick_of_page(table: ChunkTable, chunks_begin: int, rows: Counts) -> PickedRows:
    chunks, numbers, within = np.empty((3, rows.size), np.int64)
    found = chunks[: kernels.find_rows(rows, table.first_rows, chunks, numbers, within)]
    begins, ends = table.offsets[found] + chunks_begin, table.offsets[found + 1] + chunks_begin
    return PickedRows(begins, ends, table.num_values[found], numbers, within, [rows.size])


def parse_tables(
    words: Sequence[Bytes], word_bytes: int, chunk_bytes: Sequence[int], num_values: Sequence[int]
) -> list[ChunkTable]:
    """Return the chunk tables of pages where every value is a row; small ones of several share memory.

    Parameters
    ----------
    words : sequence of uint8[…]
        The words of each page.
    word_bytes : int
        2 or 4.
    chunk_bytes, num_values : sequence of int
        For each page, the size of its chunks, and the number of its values.

    Raises
    ------
    CorruptFileError
        If the words of a page contradict it.
    """
    table_bytes = [part.size for part in words]
    if len(words) > 1 and sum(table_bytes) > _SHARED_WORDS * word_bytes:
        pages = zip(words, chunk_bytes, num_values, strict=True)
        return [parse_tables([part], word_bytes, [size], [count])[0] for part, size, count in pages]
    sizes, counts = measure_chunks(
        words[0] if len(words) == 1 else np.concatenate(words),
        word_bytes,
        np.array(table_bytes, np.int64),
        np.array(chunk_bytes, np.int64),
        np.array(num_values, np.int64),
    )
    if len(words) == 1:
        offsets, first_rows = np.zeros((2, counts.size + 1), np.int64)
        sizes.cumsum(out=offsets[1:])
        counts.cumsum(out=first_rows[1:])
        return [ChunkTable(offsets, counts, first_rows, first_rows[1:])]
    per_page = [size // word_bytes for size in table_bytes]
    # Each page has one offset and one first row more than it has chunks.
    places = np.arange(1, counts.size + 1) + np.arange(len(words)).repeat(per_page)
    bounds = np.zeros((2, counts.size + len(words)), np.int64)
    for bound, summed in zip(bounds, (sizes, counts), strict=True):
        ends = summed.cumsum()
        bound[places] = ends - (ends - summed)[starts_of(np.array(per_page, np.int64))].repeat(per_page)
    found, start = [], 0
    for page, size in enumerate(per_page):
        stop = start + size
        offsets, first_rows = bounds[:, start + page : stop + page + 1]
        found.append(ChunkTable(offsets, counts[start:stop], first_rows, first_rows[1:]))
        start = stop
    return found


def measure_chunks(
    words: Bytes, word_bytes: int, table_bytes: Counts, chunk_bytes: Counts, num_values: Counts
) -> tuple[Counts, Counts]:
    """Return the size and the number of values of every chunk of some pages.

    Parameters
    ----------
    words : uint8[table_bytes.sum()]
        The words of all chunks.
    word_bytes : int
        2 or 4.
    table_bytes, chunk_bytes, num_values : int64[num_pages]
        For each page, the size of its words and of its chunks, and the number of its values.

    Raises
    ------
    CorruptFileError
        If the words contradict the page.
    """
    parsed = words[: words.size // word_bytes * word_bytes].view(f"<u{word_bytes}").astype(np.int64)
    sizes, counts = np.empty((2, parsed.size), np.int64)
    found = kernels.measure_chunks(parsed, word_bytes, table_bytes, chunk_bytes, num_values, sizes, counts)
    if found < 0:
        page = -1 - found
        raise CorruptFileError(
            f"a chunk table of {table_bytes[page]} bytes does not say how {chunk_bytes[page]} bytes of chunks hold"
            f" {num_values[page]} values"
        )
    return sizes, counts
