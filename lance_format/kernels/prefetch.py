"""Memory that is fetched before it is read, so that a loop over random places does not wait for each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.kernels.jit import instructions

LINE_BYTES = 64
"""Memory that is fetched at once."""

AHEAD = 16
"""Rows from where memory is fetched to where it is read: as many as arrive together."""


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:  # noqa: ARG001
    """Type and compile `prefetch`."""
    from llvmlite import ir
    from numba import types

    number, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
    to_read, keep_close, data = number(0), number(3), number(1)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index = arguments
        view = context.make_array(signature.args[0])(context, builder, array)
        address = builder.bitcast(builder.gep(view.data, [index]), pointer)
        shape = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        instruction = builder.module.declare_intrinsic("llvm.prefetch", [pointer], shape)
        builder.call(instruction, [address, to_read, keep_close, data])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


prefetch: Callable[[npt.NDArray[Any], int | np.int64], None] = instructions(_prefetch)
"""Begin to load the item of a contiguous array that has an index, counted over all dimensions; any index will do."""
