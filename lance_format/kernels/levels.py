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
def collapse_lists(
    repetition: U16, definition: U16, base: int, offsets: I64, outer_repetition: U16, outer_definition: U16
) -> int:
    """Reduce entries to those that start a list of the innermost list layer that is left.

    Sets the levels of these entries in the next layer outwards, and `offsets` to how many entries of level `base` or
    below come before each, and in all. Returns their number.
    """
    lists = 0
    items = 0
    for entry in range(repetition.size):
        level = repetition[entry]
        if level > 0:
            offsets[lists] = items
            outer_repetition[lists] = level - 1
            if definition.size > 0:
                outer_definition[lists] = definition[entry]
            lists += 1
        items += definition.size == 0 or definition[entry] <= base
    offsets[lists] = items
    return lists


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
