"""Numbers of keys of few possible values: a table that is indexed by the key itself instead of a hash of it.

A key is a code: a number in a mixed radix, which has a digit per column. Digit 0 is null.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import kernel

Bool = npt.NDArray[np.bool_]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


@kernel
def append_digits(words: I64, valid: Bool, base: int, span: int, codes: I32) -> int:
    """Append a digit to the code of each row.

    Parameters
    ----------
    words : int64[num_rows], read-only
    valid : bool[num_rows], read-only
        Empty if there is no null.
    base : int
        The word with digit 1.
    span : int
        The number of digits of words.
    codes : int32[num_rows]
        Updated.

    Returns
    -------
    int
        The number of rows with other words, whose codes are of no use.
    """
    all_valid = valid.size == 0
    num_others = 0
    for row in range(words.size):
        digit = np.uint64(words[row]) - np.uint64(base)
        if not (all_valid or valid[row]):
            codes[row] *= np.int32(span + 1)
        elif digit < np.uint64(span):
            codes[row] = codes[row] * np.int32(span + 1) + np.int32(digit) + np.int32(1)
        else:
            num_others += 1
    return num_others


@kernel
def look_up_codes(codes: I32, numbers: I32, out: I32) -> int:
    """Look up codes.

    Parameters
    ----------
    codes : int32[num_rows]
    numbers : int32[num_codes]
        The number of the key with each code, -1 if it is unknown.
    out : int32[num_rows]
        Set to the numbers.

    Returns
    -------
    int
        The number of rows with unknown codes.
    """
    num_unknown = 0
    for row in range(codes.size):
        number = numbers[codes[row]]
        out[row] = number
        num_unknown += number < 0
    return num_unknown
