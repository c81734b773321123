"""Words of 8 bytes at any byte of an array, and the little-endian views that need no copy.

The compiler does not merge byte accesses to arrays that may overlap; these are single machine instructions. Nothing is
checked: the caller ensures that `position + 8` is within the array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import instructions

U8 = npt.NDArray[np.uint8]


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, position: Any) -> Any:
    from llvmlite import ir

    view = context.make_array(array_type)(context, builder, array)
    address = builder.gep(view.data, [position])
    return builder.bitcast(address, ir.IntType(64).as_pointer())


def _load(typing_context: Any, array: Any, position: Any) -> Any:  # noqa: ARG001
    """Type and compile `load_word`."""
    from numba import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = builder.load(_pointer(context, builder, signature.args[0], *arguments))
        word.align = 1
        return word

    return types.uint64(array, types.intp), generate


def _store(typing_context: Any, array: Any, position: Any, word: Any) -> Any:  # noqa: ARG001
    """Type and compile `store_word`."""
    from numba import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, position, word = arguments
        pointer = _pointer(context, builder, signature.args[0], array, position)
        builder.store(word, pointer, align=1)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.uint64), generate


load_word: Callable[[U8, int], np.uint64] = instructions(_load)
"""Return the 8 bytes from `position` on as a little-endian word."""

store_word: Callable[[U8, int, np.uint64], None] = instructions(_store)
"""Write a little-endian word to the 8 bytes from `position` on."""
