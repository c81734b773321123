"""Words of 8 bytes at any byte of an array, and bytes that are copied.

The compiler does not merge byte accesses to arrays that may overlap; words are single machine instructions, and copies
and comparisons are those of the C library. Nothing is checked of words and of what is compared: the caller ensures that
these bytes are within the array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import instructions, kernel

U8 = npt.NDArray[np.uint8]

PRIME = np.uint64(0x9E3779B97F4A7C15)
"""A factor that mixes the bits of a word."""

_HALF = np.uint64(32)


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


def _copy(typing_context: Any, source: Any, start: Any, size: Any, out: Any, position: Any) -> Any:  # noqa: ARG001
    """Type and compile `_copy_unchecked`."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, start, size, out, position = arguments
        begin = _pointer(context, builder, signature.args[0], source, start)
        target = _pointer(context, builder, signature.args[3], out, position)
        bytes_type = ir.IntType(8).as_pointer()
        begin, target = builder.bitcast(begin, bytes_type), builder.bitcast(target, bytes_type)
        copy: Any = cgutils.raw_memcpy
        copy(builder, target, begin, size, 1)
        return context.get_dummy_value()

    return types.void(source, types.intp, types.intp, out, types.intp), generate


def _compare(typing_context: Any, one: Any, start: Any, other: Any, position: Any, size: Any) -> Any:  # noqa: ARG001
    """Type and compile `are_equal`."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one, start, other, position, size = arguments
        bytes_type = ir.IntType(8).as_pointer()
        left = builder.bitcast(_pointer(context, builder, signature.args[0], one, start), bytes_type)
        right = builder.bitcast(_pointer(context, builder, signature.args[2], other, position), bytes_type)
        function = ir.FunctionType(ir.IntType(32), [bytes_type, bytes_type, size.type])
        insert: Any = cgutils.get_or_insert_function
        order = builder.call(insert(builder.module, function, "memcmp"), [left, right, size])
        return builder.icmp_signed("==", order, ir.Constant(order.type, 0))

    return types.boolean(one, types.intp, other, types.intp, types.intp), generate


load_word: Callable[[U8, int], np.uint64] = instructions(_load)
"""Return the 8 bytes from `position` on as a little-endian word."""

store_word: Callable[[U8, int, np.uint64], None] = instructions(_store)
"""Write a little-endian word to the 8 bytes from `position` on."""


are_equal: Callable[[U8, int, U8, int, int], bool] = instructions(_compare)
"""Return whether `size` bytes of an array from a position on are those of another array: `(one, start, other, …)`."""

_copy_unchecked: Callable[[U8, int, int, U8, int], None] = instructions(_copy)
"""Copy bytes between arrays that do not overlap."""


@kernel
def copy_bytes(source: U8, start: int, size: int, out: U8, position: int) -> None:
    """Copy bytes from one array to another.

    Parameters
    ----------
    source : uint8[…]
    start, size : int
        The range of its bytes.
    out : uint8[…]
        Set from `position` on.
    position : int

    Raises
    ------
    ValueError
        If they do not lie within the arrays.
    """
    if size < 0 or start < 0 or position < 0 or start + size > source.size or position + size > out.size:
        raise ValueError("bytes to copy do not lie within their arrays")
    _copy_unchecked(source, start, size, out, position)


@kernel
def run_end(words: npt.NDArray[Any], start: np.uint64, limit: np.uint64) -> np.uint64:
    """Return the index after a run of equal words.

    Eight words are compared at once if the last of them is equal, which it seldom is after a short run.

    Parameters
    ----------
    words : integer[…]
    start : uint64
        Index of the first word of the run.
    limit : uint64
        Index that the run does not exceed, greater than `start`.
    """
    word = words[start]
    end = start + np.uint64(1)
    while end + np.uint64(8) <= limit and words[end + np.uint64(7)] == word:
        difference = word ^ word
        for index in range(np.uint64(8)):
            difference |= words[end + index] ^ word
        if difference != 0:
            break
        end += np.uint64(8)
    while end < limit and words[end] == word:
        end += np.uint64(1)
    return end


@kernel
def mix(word: np.uint64) -> np.uint64:
    """Return a hash of a word."""
    mixed = word * PRIME
    return (mixed ^ (mixed >> _HALF)) * PRIME
