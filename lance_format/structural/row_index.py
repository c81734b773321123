"""Rows in a range of levels.

Without lists every row is one entry. With lists a row starts at each highest repetition level, and a chunk may start
within a row of the preceding chunk.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.data_block import Bytes, Counts, ValueBlock
from lance_format.errors import CorruptFileError
from lance_format.kernels.pages import levels as kernels
from lance_format.structural.layers import LayerStack, Levels
from lance_format.structural.page import DecodedRows, RowSelection
from lance_format.structural.rep_def import LevelPair

_NO_LEVELS = np.empty(0, np.uint16)
_MISSING_ROWS = "the repetition levels do not have the rows that the repetition index promises"


def parse_repetition_index(buffer: Bytes, depth: int, num_chunks: int, num_rows: int) -> tuple[Counts, Counts]:
    """Parse the repetition index of a mini-block page.

    It holds `depth + 1` words of 64 bits per chunk. The first counts the rows that end in the chunk. The last counts
    the levels after them, which begin a row that ends later.

    Parameters
    ----------
    buffer : uint8[num_chunks * (depth + 1) * 8]
        Little-endian words.
    depth : int
        At least 1.
    num_chunks, num_rows : int
        Numbers of chunks and rows of the page.

    Returns
    -------
    first_rows : int64[num_chunks + 1]
        The first row that starts in each chunk or after it.
    ended_rows : int64[num_chunks]
        The number of rows that have ended with each chunk.

    Raises
    ------
    CorruptFileError
        If it does not fit the numbers of chunks and rows.
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
        Numbers of the chunks in the page, ascending.

    Raises
    ------
    CorruptFileError
        If the page has no repetition levels, or lacks rows.
    """
    if isinstance(rows, range):
        return _select_range(values, levels, _repetition_of(levels), stack, rows, first_rows, chunk_entries, chunks)
    begins_run = np.diff(chunks, prepend=-1) != 1
    return select_single_rows(values, levels, stack, rows, first_rows[chunks], chunk_entries, begins_run)


def select_single_rows(
    values: ValueBlock | None,
    levels: LevelPair,
    stack: LayerStack,
    rows: Counts,
    first_rows: Counts,
    chunk_entries: Counts,
    begins_run: npt.NDArray[np.bool_],
) -> DecodedRows:
    """Pick single rows from the entries of some chunks, of one page or of several.

    Parameters
    ----------
    values, levels, stack, chunk_entries
        See `select_rows`.
    rows : int64[…]
        The chunks hold all of them whole.
    first_rows : int64[num_chunks]
        The first row that starts in each chunk or after it.
    begins_run : bool[num_chunks]
        Whether the chunk before is missing, or of another page.

    Raises
    ------
    CorruptFileError
        If there are no repetition levels, or rows are missing.
    """
    wanted, positions = np.unique(rows, return_inverse=True)
    entries, ordinals = np.empty((2, wanted.size), np.int64), np.empty((2, wanted.size), np.int64)
    found = kernels.locate_rows(
        _repetition_of(levels),
        stack.max_repetition,
        _NO_LEVELS if levels.definition is None else levels.definition,
        stack.max_visible,
        chunk_entries,
        first_rows,
        begins_run,
        wanted,
        entries,
        ordinals,
    )
    if found != wanted.size:
        raise CorruptFileError(_MISSING_ROWS)
    if values is not None:
        values = values.take(expand_ranges(ordinals[0, positions], ordinals[1, positions]))
    return DecodedRows(values, levels.take(expand_ranges(entries[0, positions], entries[1, positions])), stack)


def _repetition_of(levels: LevelPair) -> Levels:
    if levels.repetition is None:
        raise CorruptFileError("a page of lists has no repetition levels")
    return levels.repetition


def _select_range(
    values: ValueBlock | None,
    levels: LevelPair,
    repetition: Levels,
    stack: LayerStack,
    rows: range,
    first_rows: Counts,
    chunk_entries: Counts,
    chunks: Counts,
) -> DecodedRows:
    """Pick consecutive rows from consecutive chunks; only the first and the last chunk are searched."""
    definition = _NO_LEVELS if levels.definition is None else levels.definition
    found = np.zeros(2, np.int64)

    def find(row: int, chunk: int, first: int, last: int) -> tuple[int, int]:
        skipped = row - int(first_rows[chunk])
        starts = kernels.find_row(
            repetition, stack.max_repetition, definition, stack.max_visible, first, last, skipped, found
        )
        if starts <= skipped:
            raise CorruptFileError(_MISSING_ROWS)
        return int(found[0]), int(found[1])

    begin, values_before = find(rows.start, int(chunks[0]), 0, int(chunk_entries[0]))
    end, values_after = levels.num_levels, 0
    if rows.stop < int(first_rows[chunks[-1] + 1]):
        end, _ = find(rows.stop, int(chunks[-1]), end - int(chunk_entries[-1]), end)
        values_after = levels.num_levels - end
        if levels.definition is not None:
            values_after = int(np.count_nonzero(definition[end:] <= stack.max_visible))
    picked = None if values is None else values.slice(values_before, values.num_values - values_after)
    return DecodedRows(picked, levels.select(begin, end), stack)


def expand_ranges(begins: Counts, ends: Counts) -> Counts:
    """Return all numbers of several half-open ranges, one range after the other."""
    sizes = ends - begins
    firsts = np.cumsum(sizes) - sizes
    return np.repeat(begins - firsts, sizes) + np.arange(int(sizes.sum()))
