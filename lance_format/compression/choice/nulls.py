"""Values of nulls, which are arbitrary: those before them, so that they add no runs, bits or items."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.compression import bitpacking
from lance_format.data_block import FixedWidthBlock
from lance_format.kernels.compression import nulls as kernels
from lance_format.memory import empty


def fill_nulls(block: FixedWidthBlock, definition: npt.NDArray[np.uint16]) -> FixedWidthBlock:
    """Replace nulls by the preceding value, those at the beginning by the first, if values are packed or have runs.

    Parameters
    ----------
    block : FixedWidthBlock
    definition : uint16[num_values]
        0 for valid values, of which there is one.
    """
    if block.bits_per_value not in bitpacking.WORD_BITS:
        return block
    first = int((definition == 0).argmax())
    values = block.words
    out = empty(values.size, values.dtype)
    kernels.fill_forward(values, definition, first, out)
    return FixedWidthBlock(out.view(np.uint8), block.bits_per_value, block.num_values)


def spread_out(valid: FixedWidthBlock, definition: npt.NDArray[np.uint16]) -> FixedWidthBlock:
    """Return the values of all slots, given those that are not null; see `fill_nulls`.

    Parameters
    ----------
    valid : FixedWidthBlock
        Unsigned words, one for each 0 in `definition`.
    definition : uint16[num_values]
    """
    out = empty(definition.size, valid.words.dtype)
    kernels.spread_forward(valid.words, definition, out)
    return FixedWidthBlock(out.view(np.uint8), valid.bits_per_value, out.size)
