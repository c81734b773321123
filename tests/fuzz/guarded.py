"""Kernels run by the interpreter, on arrays that refuse every index outside of them.

Compiled code does not check indices, negative ones included, and NumPy silently truncates slices. Here each of these is
an error, which reveals accesses that a damaged file causes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from lance_format.kernels import jit, prefetch, words
from lance_format.kernels.compression import bitpacking
from lance_format.kernels.files import file_reads, xxh3

_WORD = 2**64 - 1


class OutOfBoundsError(Exception):
    """A kernel went beyond an array."""


class Guarded:
    """The part of NumPy's arrays that kernels use."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.size = array.size
        self.shape = array.shape
        self.itemsize = array.itemsize

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Any:
        return iter(self.array)

    def view(self, dtype: Any) -> Guarded:
        return Guarded(self.array.view(dtype))

    def __getitem__(self, key: Any) -> Any:
        found = self.array[self._checked(key)]
        return Guarded(found) if isinstance(found, np.ndarray) else found

    def __setitem__(self, key: Any, value: Any) -> None:
        key = self._checked(key)
        value = value.array if isinstance(value, Guarded) else value
        if isinstance(key, slice):
            if isinstance(value, np.ndarray) and value.shape != self.array[key].shape:
                raise OutOfBoundsError(f"{value.shape} is assigned to {self.array[key].shape}")
            self.array[key] = value
        elif self.array.dtype.kind in "iu":
            bits = self.array.itemsize * 8
            wrapped = int(value) & ((1 << bits) - 1)
            signed = self.array.dtype.kind == "i" and wrapped >> (bits - 1)
            self.array[key] = wrapped - (1 << bits) if signed else wrapped
        else:
            self.array[key] = value

    def _checked(self, key: Any) -> Any:
        if isinstance(key, tuple):
            return tuple(self._index(part, size) for part, size in zip(key, self.shape, strict=True))
        if isinstance(key, slice):
            start = 0 if key.start is None else int(key.start)
            stop = len(self) if key.stop is None else int(key.stop)
            if not 0 <= start <= len(self) or not 0 <= stop <= len(self) or start > stop:
                raise OutOfBoundsError(f"slice {start}:{stop} of {len(self)}")
            return slice(start, stop)
        return self._index(key, self.shape[0])

    @staticmethod
    def _index(index: Any, size: int) -> int:
        if not 0 <= int(index) < size:
            raise OutOfBoundsError(f"index {index} of {size}")
        return int(index)


def _load_word(array: Guarded, position: int) -> np.uint64:
    piece = array[int(position) : int(position) + 8]
    return np.uint64(int.from_bytes(piece.array.tobytes(), "little"))


def _store_word(array: Guarded, position: int, word: Any) -> None:
    array[int(position) : int(position) + 8] = np.frombuffer(int(word).to_bytes(8, "little"), np.uint8)


def _copy(source: Guarded, start: int, size: int, out: Guarded, position: int) -> None:
    out[int(position) : int(position) + int(size)] = source[int(start) : int(start) + int(size)]


def _are_equal(one: Guarded, start: int, other: Guarded, position: int, size: int) -> bool:
    left = one[int(start) : int(start) + int(size)].array
    return left.tobytes() == other[int(position) : int(position) + int(size)].array.tobytes()


def _add_stripes(accumulators: Guarded, data: Guarded, position: int, keys: Guarded, num_stripes: int) -> None:
    for stripe in range(int(num_stripes)):
        for lane in range(8):
            value = int(_load_word(data, int(position) + 64 * stripe + 8 * lane))
            mixed = value ^ int(keys[stripe + lane])
            product = (mixed & 0xFFFFFFFF) * (mixed >> 32)
            accumulators[lane ^ 1] = np.uint64((int(accumulators[lane ^ 1]) + value) & _WORD)
            accumulators[lane] = np.uint64((int(accumulators[lane]) + product) & _WORD)


def _shifted_row(source: Guarded, start: int, left: Any, right: Any, mask: Any) -> np.ndarray:
    """Return 16 words, shifted and masked."""
    row = source[int(start) : int(start) + 16].array
    return (row << np.uint64(left)) >> np.uint64(right) & np.uint64(mask)


def _set_row(source: Guarded, start: int, left: Any, right: Any, mask: Any, out: Guarded, position: int) -> None:
    out[int(position) : int(position) + 16] = _shifted_row(source, start, left, right, mask)


def _add_row(source: Guarded, start: int, left: Any, right: Any, mask: Any, out: Guarded, position: int) -> None:
    there = out[int(position) : int(position) + 16].array
    out[int(position) : int(position) + 16] = there | _shifted_row(source, start, left, right, mask)


def _read(descriptor: int, out: Guarded, position: int, size: int, offset: int) -> int:
    try:
        return os.preadv(int(descriptor), [out[int(position) : int(position) + int(size)].array], int(offset))
    except OSError:
        return -1


def _fetch_nothing(array: Guarded, index: int) -> None:
    """Any index will do: nothing is read."""


_INSTRUCTIONS: dict[Any, Callable[..., Any]] = {
    words._load: _load_word,
    words._store: _store_word,
    words._copy: _copy,
    words._compare: _are_equal,
    xxh3._add: _add_stripes,
    bitpacking._set: _set_row,
    bitpacking._add: _add_row,
    file_reads._pread: _read,
    prefetch._prefetch: _fetch_nothing,
}


def _guarded(argument: Any) -> Any:
    """Return an argument of a kernel with its arrays guarded, also those of a named tuple."""
    if isinstance(argument, tuple):
        return type(argument)(*map(_guarded, argument))
    return Guarded(argument) if isinstance(argument, np.ndarray) else argument


def install() -> None:
    """Run all kernels so from now on, in this process."""

    def interpret(kernel: Any) -> Callable[..., Any]:
        function = kernel._function
        if isinstance(kernel, jit._Intrinsic):
            return _INSTRUCTIONS[function]
        scope = function.__globals__
        for name in function.__code__.co_names:
            if isinstance(scope.get(name), jit._Kernel):
                scope[name] = interpret(scope[name])

        def run(*arguments: Any) -> Any:
            with np.errstate(over="ignore"):
                return function(*map(_guarded, arguments))

        return run

    jit._Kernel.compiled = property(interpret)  # type: ignore[assignment,method-assign]
