"""Which rows a range of levels holds.

Without lists every row is one entry. With lists a row starts wherever the repetition level is the highest, and a chunk
may start within a row that began before it.
"""

from __future__ import annotations

import numpy as np

from lance_format.data_block import Bytes, Counts, ValueBlock
from lance_format.errors import CorruptFileError
from lance_format.structural.layers import LayerStack
from lance_format.structural.page import DecodedRows, RowSelection
from lance_format.structural.rep_def import LevelPair, visible


def parse_repetition_index(buffer: Bytes, depth: int, num_chunks: int, num_rows: int) -> tuple[Counts, Counts]:
    """Parse the repetition index of a mini-block page.

    It holds `depth + 1` words of 64 bits a chunk, of which the first counts the rows that end in the chunk and the last
    the levels after them, which begin a row that ends later.

    Returns
    -------
    first_rows : int64[num_chunks + 1]
        The first row that starts in each chunk or after it.
    ended_rows : int64[num_chunks]
        The rows that have ended with each chunk.

    Raises
    ------
    CorruptFileError
        If it is not that of a page with these numbers of chunks and rows.
    """
    stride = depth + 1
    if buffer.size != num_chunks * stride * 8:
        raise CorruptFileError(f"the repetition index has {buffer.size} bytes for {num_chunks} chunks of depth {depth}")
    words = buffer.view("<u8").reshape(num_chunks, stride)
    if words.size and int(words[:, 0].max()) > num_rows:
        raise CorruptFileError(f"the repetition index counts more rows than the page's {num_rows}")
    ended = np.cumsum(words[:, 0].astype(np.int64))
    if num_chunks and int(ended[-1]) != num_rows:
        raise CorruptFileError(f"the repetition index counts {ended[-1]} rows; the page has {num_rows}")
    first_rows = np.zeros(num_chunks + 1, np.int64)
    first_rows[1:] = ended + (words[:, -1] > 0)
    first_rows[-1:] = num_rows
    return first_rows, ended


def select_rows(
    values: ValueBlock | None,
    levels: LevelPair,
    stack: LayerStack,
    rows: RowSelection,
    first_rows: Counts,
    chunk_entries: Counts,
    chunks: Counts,
) -> DecodedRows:
    """Pick whole rows from the entries of some chunks of a page with lists.

    Parameters
    ----------
    values : ValueBlock or None
        The values of the visible entries.
    levels : LevelPair
        The entries of the chunks, one chunk after the other.
    stack : LayerStack
    rows : RowSelection
        The chunks hold all of them whole.
    first_rows : int64[num_chunks_of_page + 1]
        The first row that starts in each chunk of the page or after it.
    chunk_entries : int64[num_chunks]
        The entries of each chunk.
    chunks : int64[num_chunks]
        Which chunks of the page they are, ascending.
    """
    if levels.repetition is None:
        raise CorruptFileError("a page of lists has no repetition levels")
    starts = np.flatnonzero(levels.repetition == stack.max_repetition)
    chunk_starts = np.cumsum(chunk_entries) - chunk_entries
    owner = np.searchsorted(chunk_starts, starts, side="right") - 1
    # rows are numbered within their chunk by how many row starts the chunk has before them
    before = np.searchsorted(starts, chunk_starts)
    numbers = first_rows[chunks[owner]] + np.arange(len(starts)) - before[owner]
    run_starts = chunk_starts[np.flatnonzero(np.diff(chunks) != 1) + 1]
    bounds = np.union1d(np.append(starts, run_starts), [levels.num_levels])
    wanted = np.arange(rows.start, rows.stop) if isinstance(rows, range) else rows
    found = np.searchsorted(numbers, wanted)
    if (np.diff(numbers) <= 0).any() or (found >= len(numbers)).any() or (numbers[found] != wanted).any():
        raise CorruptFileError("the repetition levels do not have the rows that the repetition index promises")
    begins = starts[found]
    ends = bounds[np.searchsorted(bounds, begins, side="right")]
    seen = visible(levels.definition, stack)
    ordinals = None if seen is None else np.concatenate([[0], np.cumsum(seen)])
    if isinstance(rows, range):
        first, last = int(begins[0]), int(ends[-1])
        value_range = (first, last) if ordinals is None else (int(ordinals[first]), int(ordinals[last]))
        picked = None if values is None else values.slice(*value_range)
        return DecodedRows(picked, levels.select(first, last), stack)
    entries = expand_ranges(begins, ends)
    if values is not None:
        wanted_values = entries if ordinals is None or seen is None else ordinals[entries[seen[entries]]]
        values = values.take(wanted_values)
    return DecodedRows(values, levels.take(entries), stack)


def expand_ranges(begins: Counts, ends: Counts) -> Counts:
    """Return all numbers of several half-open ranges, one range after the other."""
    sizes = ends - begins
    firsts = np.cumsum(sizes) - sizes
    return np.repeat(begins - firsts, sizes) + np.arange(int(sizes.sum()))
