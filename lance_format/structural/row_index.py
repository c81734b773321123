"""Which rows a range of levels holds.

Without lists every row is one entry. With lists a row starts wherever the repetition level is the highest, and a chunk
may start within a row that began before it.
"""

from __future__ import annotations

import numpy as np

from lance_format.data_block import Bytes, Counts, ValueBlock
from lance_format.errors import CorruptFileError
from lance_format.kernels import levels as kernels
from lance_format.structural.layers import LayerStack
from lance_format.structural.page import DecodedRows, RowSelection
from lance_format.structural.rep_def import LevelPair

_NO_LEVELS = np.empty(0, np.uint16)


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
    is_range = isinstance(rows, range)
    bounds = np.array([rows.start, rows.stop - 1], np.int64) if isinstance(rows, range) else rows
    wanted, places = np.unique(bounds, return_inverse=True)
    entries, ordinals = np.empty((2, wanted.size), np.int64), np.empty((2, wanted.size), np.int64)
    found = kernels.locate_rows(
        levels.repetition,
        stack.max_repetition,
        _NO_LEVELS if levels.definition is None else levels.definition,
        stack.max_visible,
        chunk_entries,
        first_rows[chunks],
        np.diff(chunks, prepend=-1) != 1,
        wanted,
        entries,
        ordinals,
    )
    if found != wanted.size:
        raise CorruptFileError("the repetition levels do not have the rows that the repetition index promises")
    if is_range:
        first, last = int(entries[0, 0]), int(entries[1, -1])
        picked = None if values is None else values.slice(int(ordinals[0, 0]), int(ordinals[1, -1]))
        return DecodedRows(picked, levels.select(first, last), stack)
    if values is not None:
        values = values.take(expand_ranges(ordinals[0, places], ordinals[1, places]))
    return DecodedRows(values, levels.take(expand_ranges(entries[0, places], entries[1, places])), stack)


def expand_ranges(begins: Counts, ends: Counts) -> Counts:
    """Return all numbers of several half-open ranges, one range after the other."""
    sizes = ends - begins
    firsts = np.cumsum(sizes) - sizes
    return np.repeat(begins - firsts, sizes) + np.arange(int(sizes.sum()))
