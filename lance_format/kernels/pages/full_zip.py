"""Taking full-zip entries apart and putting them together; `structural/full_zip.py` has the byte diagram."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel
from lance_format.kernels.pages.mini_block import read_integer
from lance_format.kernels.words import copy_bytes

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
I64 = npt.NDArray[np.int64]


@kernel
def unzip(
    data: U8,
    control_bytes: int,
    definition_bits: int,
    max_visible: int,
    value_bytes: int,
    length_bytes: int,
    repetition: U16,
    definition: U16,
    starts: I64,
    sizes: I64,
) -> tuple[int, int]:
    """Find the levels and the values of entries that follow each other and fill `data`.

    Parameters
    ----------
    data : uint8[…]
        The entries.
    control_bytes : int
        Bytes of a control word, at most 4.
    definition_bits : int
        Low bits of a control word that are the definition level.
    max_visible : int
        Highest definition level of an entry with a value.
    value_bytes : int
        Bytes of a value of fixed width.
    length_bytes : int
        Bytes of the length before each value that is not null; 0 for values of fixed width.
    repetition, definition : uint16[max_entries]
        Set to the levels of the entries.
    starts, sizes : int64[max_values]
        Set to the byte ranges of the values within `data`.

    Returns
    -------
    tuple[int, int]
        The number of entries and of visible ones. The first is -1 if the last entry is cut off or the outputs are too
        small.
    """
    position = 0
    entries = 0
    values = 0
    mask = (1 << definition_bits) - 1
    while position < data.size:
        if entries == repetition.size or position + control_bytes > data.size:
            return -1, 0
        word = read_integer(data, position, control_bytes)
        level = word & mask
        definition[entries] = level
        repetition[entries] = word >> definition_bits
        position += control_bytes
        entries += 1
        if level > max_visible:
            continue
        size = value_bytes
        if length_bytes > 0:
            size = 0
            if level == 0:
                if position + length_bytes > data.size:
                    return -1, 0
                size = read_integer(data, position, length_bytes)
                position += length_bytes
        if size < 0 or values == starts.size or size > data.size - position:
            return -1, 0
        starts[values] = position
        sizes[values] = size
        position += size
        values += 1
    return entries, values


@kernel
def zip_entries(
    words: I64,
    visible: npt.NDArray[np.bool_],
    valid: npt.NDArray[np.bool_],
    control_bytes: int,
    values: U8,
    offsets: I64,
    length_bytes: int,
    out: U8,
    positions: I64,
) -> int:
    """Write entries: control words, and the values of the visible ones.

    Parameters
    ----------
    words : int64[num_entries]
        The control words.
    visible : bool[num_entries]
        Whether an entry has a value.
    valid : bool[num_entries]
        Whether the value is not null. Null values are omitted if `length_bytes` is not 0.
    control_bytes : int
        Bytes of a control word.
    values : uint8[…]
        The values of the visible entries.
    offsets : int64[num_visible + 1]
        Byte offsets of the values within `values`.
    length_bytes : int
        Bytes of the length written before each value, 0 for none.
    out : uint8[…]
        Set to the entries. It has room for all of them.
    positions : int64[num_entries]
        Set to the byte offset of each entry within `out`.

    Returns
    -------
    int
        The number of bytes written.
    """
    position = 0
    value = 0
    for entry in range(words.size):
        positions[entry] = position
        for byte in range(control_bytes):
            out[position + byte] = np.uint8((words[entry] >> (8 * byte)) & 0xFF)
        position += control_bytes
        if not visible[entry]:
            continue
        begin = offsets[value]
        size = offsets[value + 1] - begin
        value += 1
        if length_bytes > 0:
            if not valid[entry]:
                continue
            for byte in range(length_bytes):
                out[position + byte] = np.uint8((size >> (8 * byte)) & 0xFF)
            position += length_bytes
        copy_bytes(values, begin, size, out, position)
        position += size
    return position
