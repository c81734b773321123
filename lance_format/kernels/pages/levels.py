"""Single passes over repetition and definition levels; `structural/layers.py` explains them.

An empty array stands for levels that are all 0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

U16 = npt.NDArray[np.uint16]
I64 = npt.NDArray[np.int64]


@kernel
def renumber(levels: U16, numbers: U16) -> int:
    """Replace every level.

    Parameters
    ----------
    levels : uint16[num_levels]
        Set to the other numbers.
    numbers : uint16[…]
        The other number of each level.

    Returns
    -------
    int
        The number of levels.
    """
    for index in range(np.uint64(levels.size)):
        levels[index] = numbers[np.uint64(levels[index])]
    return levels.size


@kernel
def count_visible(definition: U16, max_visible: int, num_levels: I64, out: I64) -> int:
    """Count the visible entries of each chunk.

    Parameters
    ----------
    definition : uint16[num_levels.sum()]
        Definition levels of the entries.
    max_visible : int
        Highest definition level of a visible entry.
    num_levels : int64[num_chunks]
        Number of entries of each chunk.
    out : int64[num_chunks]
        Set to the number of visible entries of each chunk.

    Returns
    -------
    int
        The number of entries.
    """
    entry = np.uint64(0)
    for chunk in range(num_levels.size):
        count = 0
        for index in range(np.uint64(num_levels[chunk])):
            count += definition[entry + index] <= max_visible
        entry += np.uint64(num_levels[chunk])
        out[chunk] = count
    return np.int64(entry)


@kernel
def locate_rows(
    repetition: U16,
    row_start: int,
    definition: U16,
    max_visible: int,
    num_levels: I64,
    first_rows: I64,
    begins_run: npt.NDArray[np.bool_],
    wanted: I64,
    entries: I64,
    values: I64,
) -> int:
    """Find rows among the entries of some chunks of a page.

    Parameters
    ----------
    repetition : uint16[num_levels.sum()]
        Repetition levels of the entries.
    row_start : int
        Repetition level of an entry that starts a row.
    definition : uint16[num_levels.sum()] or uint16[0]
        Definition levels of the entries.
    max_visible : int
        Highest definition level of a visible entry.
    num_levels : int64[num_chunks]
        Number of entries of each chunk.
    first_rows : int64[num_chunks]
        The first row that starts in each chunk.
    begins_run : bool[num_chunks]
        Whether the preceding chunk of the page is missing.
    wanted : int64[num_rows]
        Rows, strictly ascending.
    entries, values : int64[2, num_rows]
        Set to the beginnings and ends of each row among the entries, and among the visible entries.

    Returns
    -------
    int
        The number of rows found.
    """
    found = 0
    is_open = False
    entry = 0
    value = 0
    for chunk in range(num_levels.size):
        if is_open and begins_run[chunk]:
            entries[1, found - 1] = entry
            values[1, found - 1] = value
            is_open = False
        row = first_rows[chunk]
        for _ in range(num_levels[chunk]):
            if repetition[entry] == row_start:
                if is_open:
                    entries[1, found - 1] = entry
                    values[1, found - 1] = value
                    is_open = False
                if found < wanted.size and wanted[found] == row:
                    entries[0, found] = entry
                    values[0, found] = value
                    found += 1
                    is_open = True
                row += 1
            if definition.size == 0 or definition[entry] <= max_visible:
                value += 1
            entry += 1
    if is_open:
        entries[1, found - 1] = entry
        values[1, found - 1] = value
    return found


@kernel
def find_row(
    repetition: U16, row_start: int, definition: U16, max_visible: int, first: int, last: int, skipped: int, found: I64
) -> int:
    """Find the row that starts after `skipped` others among the entries `first <= entry < last`.

    Parameters
    ----------
    repetition : uint16[num_entries]
        Repetition levels of the entries.
    row_start : int
        Repetition level of an entry that starts a row.
    definition : uint16[num_entries] or uint16[0]
        Definition levels of the entries.
    max_visible : int
        Highest definition level of a visible entry.
    first, last : int
        Range of entries to search.
    skipped : int
        Number of rows to skip.
    found : int64[2]
        Set to the row's entry, and to the number of visible entries from `first` up to it.

    Returns
    -------
    int
        The number of rows that start up to the row, or at most `skipped` if there is no such row.
    """
    starts = 0
    value = 0
    for entry in range(first, last):
        if repetition[entry] == row_start:
            starts += 1
            if starts > skipped:
                found[0] = entry
                found[1] = value
                return starts
        value += definition.size == 0 or definition[entry] <= max_visible
    return starts


@kernel
def collapse_lists(
    repetition: U16, definition: U16, base: int, offsets: I64, outer_repetition: U16, outer_definition: U16
) -> int:
    """Reduce entries to those that start a list of the innermost remaining list layer.

    Every entry is written to the position of the next list, and is overwritten unless it starts one: lists start at
    random
    positions, and a branch would be mispredicted.

    Parameters
    ----------
    repetition : uint16[num_entries]
        Repetition levels of the entries.
    definition : uint16[num_entries] or uint16[0]
        Definition levels of the entries.
    base : int
        Highest definition level of an entry that is an item.
    offsets : int64[num_lists + 1]
        Set to the number of items before each list, and to that of all items.
    outer_repetition, outer_definition : uint16[num_lists + 1] or uint16[0]
        Set to the levels of the lists in the next outer layer; left alone if empty.

    Returns
    -------
    int
        The number of lists.
    """
    lists = np.uint64(0)
    items = np.int64(0)
    for entry in range(np.uint64(repetition.size)):
        offsets[lists] = items
        if outer_repetition.size > 0:
            outer_repetition[lists] = repetition[entry] - np.uint16(1)
        if definition.size > 0:
            outer_definition[lists] = definition[entry]
            items += definition[entry] <= base
        else:
            items += 1
        lists += np.uint64(repetition[entry] > 0)
    offsets[lists] = items
    return np.int64(lists)


@kernel
def select_levels(definition: U16, highest: int, out: U16) -> int:
    """Copy the levels up to `highest`.

    Parameters
    ----------
    definition : uint16[num_entries]
        Definition levels of the entries.
    highest : int
        Highest level to copy.
    out : uint16[num_selected + 1]
        Set to the levels; the last entry is overwritten.

    Returns
    -------
    int
        The number of levels copied.
    """
    kept = np.uint64(0)
    for entry in range(np.uint64(definition.size)):
        out[kept] = definition[entry]
        kept += np.uint64(definition[entry] <= highest)
    return np.int64(kept)


@kernel
def select_offsets(offsets: I64, definition: U16, highest: int, out: I64) -> int:
    """Copy the offsets of entries whose level is at most `highest`, and the last offset.

    Parameters
    ----------
    offsets : int64[num_entries + 1]
        Offsets of the entries.
    definition : uint16[num_entries]
        Definition levels of the entries.
    highest : int
        Highest level to copy.
    out : int64[num_selected + 1]
        Set to the offsets.

    Returns
    -------
    int
        The number of entries selected.
    """
    kept = np.uint64(0)
    for entry in range(np.uint64(definition.size)):
        out[kept] = offsets[entry]
        kept += np.uint64(definition[entry] <= highest)
    out[kept] = offsets[definition.size]
    return np.int64(kept)


@kernel
def expand_entries(
    counts: I64,
    live: npt.NDArray[np.bool_],
    repetition: U16,
    codes: U16,
    continued: int,
    out_repetition: U16,
    out_codes: U16,
    out_live: npt.NDArray[np.bool_],
) -> int:
    """Repeat each entry a number of times.

    Parameters
    ----------
    counts : int64[num_entries]
        Number of repetitions of each entry.
    live : bool[num_entries]
        Whether an entry is live.
    repetition, codes : uint16[num_entries]
        Repetition levels and codes of the entries.
    continued : int
        Repetition level of all repetitions of an entry except the first.
    out_repetition, out_codes : uint16[counts.sum()]
        Set to the repetition levels and codes.
    out_live : bool[counts.sum()]
        Set.

    Returns
    -------
    int
        The number of entries written.
    """
    position = np.uint64(0)
    for entry in range(counts.size):
        level, code, is_live = repetition[entry], codes[entry], live[entry]
        for _ in range(counts[entry]):
            out_repetition[position] = level
            out_codes[position] = code
            out_live[position] = is_live
            level = np.uint16(continued)
            position += np.uint64(1)
    return np.int64(position)
