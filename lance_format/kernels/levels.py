"""Single passes over repetition and definition levels; `structural/layers.py` says what they mean.

Where all levels are 0 an array of no levels stands for them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

U16 = npt.NDArray[np.uint16]
I64 = npt.NDArray[np.int64]


@kernel
def count_visible(definition: U16, max_visible: int, num_levels: I64, out: I64) -> int:
    """Set `out` to the visible entries of each chunk; returns the number of entries."""
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

    `first_rows` has the first row that starts in each chunk, and `begins_run` whether the chunk before it in the page
    is missing. `wanted` ascends strictly. Sets `entries` and `values`, both `(2, rows)`, to where the entries and the
    visible entries of each row begin and end, and returns how many rows were found.
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

    Sets `found` to its entry, and to how many visible entries come before it from `first` on. Returns how many rows
    start up to it, which is not more than `skipped` if there is no such row.
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
    """Reduce entries to those that start a list of the innermost list layer that is left.

    Sets `offsets` to how many entries of level `base` or below come before each of them, and in all; and their levels
    in the next layer outwards, unless the array for these is empty. All have room for one entry more than there are
    lists, because every entry is written to where the next list would be: lists start at random, and a branch would be
    mispredicted. Returns the number of lists.
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
    """Copy the levels up to `highest` to `out`, which has room for one more; returns their number."""
    kept = np.uint64(0)
    for entry in range(np.uint64(definition.size)):
        out[kept] = definition[entry]
        kept += np.uint64(definition[entry] <= highest)
    return np.int64(kept)


@kernel
def select_offsets(offsets: I64, definition: U16, highest: int, out: I64) -> int:
    """Copy the offsets of entries whose level is at most `highest`, and the last one; returns the number of entries."""
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
    """Repeat each entry `counts` times; all but the first get the repetition level `continued`.

    Returns the number of entries written.
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
