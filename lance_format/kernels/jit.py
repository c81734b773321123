"""How kernels are compiled.

A kernel is a function over NumPy arrays and numbers: `(source, …, out) -> count`. The caller allocates the output and
checks bounds and sizes first, or the kernel reports what it found wrong through its count. Compiled code is cached
beside the module, in the user's cache directory, or, where neither can be written, not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function on its first call, without the interpreter lock."""
    try:
        compiled: Callable[P, R] = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # numba found no directory to keep its cache in
        compiled = numba.njit(nogil=True)(function)
    return compiled
