"""Chunk tables of mini-block pages: where chunks are, and which of them hold rows.

`mini_block.py` has the bytes of their words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_format.data_block import Bytes, Counts, places_of
from lance_format.errors import CorruptFileError
from lance_format.kernels.pages import mini_block as kernels
from lance_format.lazy_dataclasses import dataclass
from lance_format.structural.page import RowSelection


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
        return sum(part.nbytes for part in (self.offsets, self.num_values, self.first_rows, self.ended_rows))

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
    first_rows, counted, begins, ends, base = [], [], [], [], 0
    for table, start, own in zip(tables, chunks_begin, rows, strict=True):
        first_rows.append(table.first_rows[:-1] + base)
        counted.append(own + base)
        begins.append(table.offsets[:-1] + start)
        ends.append(table.offsets[1:] + start)
        base += int(table.first_rows[-1])
    first_rows.append(np.array([base]))
    wanted = np.concatenate(counted)
    chunks, numbers, within = np.empty((3, wanted.size), np.int64)
    count = kernels.find_rows(wanted, np.concatenate(first_rows), chunks, numbers, within)
    found = chunks[:count]
    num_values = np.concatenate([table.num_values for table in tables])[found]
    num_rows = [own.size for own in rows]
    return PickedRows(np.concatenate(begins)[found], np.concatenate(ends)[found], num_values, numbers, within, num_rows)


def _pick_of_page(table: ChunkTable, chunks_begin: int, rows: Counts) -> PickedRows:
    chunks, numbers, within = np.empty((3, rows.size), np.int64)
    found = chunks[: kernels.find_rows(rows, table.first_rows, chunks, numbers, within)]
    begins, ends = table.offsets[found] + chunks_begin, table.offsets[found + 1] + chunks_begin
    return PickedRows(begins, ends, table.num_values[found], numbers, within, [rows.size])


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
