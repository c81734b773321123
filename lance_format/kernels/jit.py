"""Compilation of kernels.

A kernel is a function over NumPy arrays and numbers: `(source, …, out) -> count`. The caller allocates the output and
checks bounds and sizes first, or the kernel reports a malformed input by a negative count. `disk_cache.py` says where
compiled code comes from.

The first call of a kernel imports the compiler. Importing it costs 0.2 s, which metadata-only processes avoid: Spark's
planner starts one per query. What numba needs to compile costs 0.4 s more, which processes avoid whose kernels are
compiled. So kernels use loops instead of functions such as `array.max()` and `np.flatnonzero`, for whose module numba
imports SciPy.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Set
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

from lance_format.lazy_properties import cached_property

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Numbers = TypeVar("Numbers", bound="npt.NDArray[np.generic]")
P = ParamSpec("P")
R = TypeVar("R")

_SUMMING = frozenset({"reassoc", "contract"})


class _Kernel(Generic[P, R]):
    """A function that is compiled on its first call.

    Parameters
    ----------
    function : callable
    flags : set of str
        Freedoms of the compiler with floating-point numbers, as LLVM names them.
    allocates : bool
        Whether the function may allocate arrays; numba counts references to arrays then.
    """

    def __init__(self, function: Callable[P, R], flags: Set[str] = frozenset(), *, allocates: bool = False) -> None:
        self._function = function
        self._flags = flags
        self._allocates = allocates
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.compiled(*args, **kwargs)

    @cached_property
    def compiled(self) -> Callable[P, R]:
        """The compiled function; its callees replace their wrappers, which numba does not know."""
        from numba.core.compiler_lock import global_compiler_lock

        with global_compiler_lock:  # It replaces names in modules; two threads must not do so concurrently.
            return self.__dict__.get("compiled") or self.__dict__.setdefault("compiled", self._compile())

    def _compile(self) -> Callable[P, R]:
        import numba

        from lance_format.kernels.disk_cache import KernelCache

        scope: dict[str, Any] = self._function.__globals__
        for name in self._function.__code__.co_names:
            if isinstance(scope.get(name), _Kernel):
                scope[name] = scope[name].compiled
        options: dict[str, Any] = {"nogil": True, "fastmath": set(self._flags), "_nrt": self._allocates}
        compiled: Any = numba.njit(**options)(self._function)
        compiled._cache = KernelCache(self._function)
        compiled.compile = _compiled_by_one_process(compiled)
        return cast("Callable[P, R]", compiled)


def _compiled_by_one_process(dispatcher: Any) -> Callable[[Any], Any]:
    """Return the function that compiles a dispatcher's kernel for a signature, unless another process does so."""
    from numba.core.compiler_lock import global_compiler_lock

    compile_kernel, cache = dispatcher.compile, dispatcher._cache

    def compile_once(sig: Any) -> Any:
        # Threads that compile wait for the compiler's lock first, lest they wait for each other.
        with global_compiler_lock, cache.lock(sig, dispatcher.targetctx):
            return compile_kernel(sig)

    return compile_once


class _Intrinsic(_Kernel[P, R]):
    """A function that only kernels can call, given by its typing function."""

    @cached_property
    def compiled(self) -> Callable[P, R]:
        """The function that numba compiled."""
        from numba.extending import intrinsic

        return cast("Callable[P, R]", intrinsic(self._function))


def is_compiler_imported() -> bool:
    """Return whether a kernel can be called without importing the compiler first."""
    return "numba" in sys.modules


def prepare_compiler() -> None:
    """Import what loads compiled kernels, so that processes forked from this one need not.

    Otherwise the first page that a process decodes or encodes waits some 0.3 s for it. A process that compiles a kernel
    imports further modules of the compiler.
    """
    from numba.core.registry import cpu_target
    from numba.np import arrayobj  # noqa: F401  # Compiled kernels refer to it.

    from lance_format.kernels.disk_cache import prepare_runtime

    prepare_runtime(cpu_target.target_context)


def read_only(numbers: Numbers) -> Numbers:
    """Return a view that cannot be written, as those of buffers are, so that one form of a kernel is compiled."""
    view = numbers.view()
    view.flags.writeable = False
    return view


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function on its first call, to run without the interpreter lock. It cannot allocate arrays."""
    return _Kernel(function)


def allocating_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function like `kernel` that allocates arrays, or calls one that returns arrays.

    It counts references to arrays, in loops as well: a call that is given an array may take longer than what it does
    for a value. Leave such loops to kernels that allocate nothing.
    """
    return _Kernel(function, allocates=True)


def summing_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function like `kernel`, with sums of floating-point numbers in any order.

    The processor then adds several numbers at once. Results differ in the last digits. NaN and infinity are kept.
    """
    return _Kernel(function, _SUMMING)


def instructions(typing: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function that gives numba types and instructions, as `numba.extending.intrinsic` does."""
    return _Intrinsic(typing)
