"""Integer constants as a set, made once for all batches in which values are looked up."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.kernels.columns.integer_hashes import find_hashed, mark_hashes, number_distinct
from lance_format.kernels.compression.bits import find_bits
from lance_format.kernels.jit import read_only
from lance_format.memory import fixed_width
from lance_format.row_numbers import distinct

_MAX_BITS = 1 << 25
_BITS_PER_CONSTANT = 256
"""A set of bits takes up to 32 bytes per constant, as a hash table does, and 4 MiB in all."""
_FILTER_BITS_PER_CONSTANT = 32

_SIGNED = (
    pa.types.is_int8,
    pa.types.is_int16,
    pa.types.is_int32,
    pa.types.is_int64,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
    pa.types.is_duration,
)
_Integers = npt.NDArray[np.int64]
_Set = TypeVar("_Set")


class IntegerSet:
    """Integers, dates or times as integers.

    Parameters
    ----------
    constants : pa.Array
        Without nulls.
    """

    def __init__(self, constants: pa.Array) -> None:
        self._numbers = numbers = distinct(_integers(constants).astype(np.int64))
        self._least = int(numbers[0])
        span = int(numbers[-1]) - self._least + 1
        self._bits: npt.NDArray[np.uint8] | None = None
        if span <= min(_MAX_BITS, max(numbers.size * _BITS_PER_CONSTANT, 1 << 16)):
            flags = np.zeros(span, np.bool_)
            flags[numbers - self._least] = True
            self._bits = np.packbits(flags, bitorder="little")
            return
        num_bits = int(numbers.size).bit_length() + 1
        self._shift = 64 - num_bits
        self._slots = np.empty(1 << num_bits, np.int64), np.full(1 << num_bits, -1, np.int32)
        number_distinct(read_only(numbers), self._shift, *self._slots, np.empty(numbers.size, np.int64))
        self._filter_shift, self._filter = empty_filter(numbers.size)
        mark_hashes(read_only(numbers), self._filter_shift, self._filter)

    @staticmethod
    def of(constants: pa.Array) -> IntegerSet | None:
        """Return the set of some constants; None if there is none, some are null, or they are no integers."""
        if not len(constants) or constants.null_count or not _is_signed(constants.type):
            return None
        return made_once(IntegerSet, constants)

    def contains(self, values: pa.Array) -> pa.BooleanArray:
        """Return which values of the type of the constants are among them; null is not."""
        integers = _integers(values)
        if integers.dtype.itemsize < 4:
            integers = integers.astype(np.int64)
        packed = np.empty((integers.size + 7) // 8, np.uint8)
        if self._bits is None:
            find_hashed(read_only(integers), self._shift, *self._slots, self._filter_shift, self._filter, packed)
        else:
            find_bits(read_only(integers), self._least, self._bits, packed)
        among = pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(packed)])
        return pc.and_(among, values.is_valid()) if values.null_count else among

    def among(self, lower: pa.Array, upper: pa.Array) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return between which bounds there are constants, and between which there may be other values.

        Parameters
        ----------
        lower, upper : pa.Array
            Of the type of the constants; null where there is no bound.
        """
        ends = np.iinfo(np.int64)
        least, greatest = (
            np.where(bound.is_valid().to_numpy(zero_copy_only=False), _integers(bound).astype(np.int64), end)
            for bound, end in ((lower, ends.min), (upper, ends.max))
        )
        first = np.minimum(np.searchsorted(self._numbers, least), self._numbers.size - 1)
        found = (self._numbers[first] >= least) & (self._numbers[first] <= greatest)
        return found, ~found | (least != greatest)


def empty_filter(num_values: int) -> tuple[int, npt.NDArray[np.uint8]]:
    """Return an empty filter of hashes, and 64 minus the binary logarithm of the number of its bits.

    `kernels/columns/integer_hashes.py` says what it is.
    """
    num_bits = min(max((num_values * _FILTER_BITS_PER_CONSTANT).bit_length(), 10), _MAX_BITS.bit_length() - 1)
    return 64 - num_bits, np.zeros(1 << (num_bits - 3), np.uint8)


class _Identity:
    """An array as a key: equal to itself only."""

    def __init__(self, array: pa.Array) -> None:
        self.array = array

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.array is other.array

    def __hash__(self) -> int:
        return id(self.array)


@functools.lru_cache(maxsize=16)
def _made(make: Callable[[pa.Array], _Set], constants: _Identity) -> _Set:
    return make(constants.array)


def made_once(make: Callable[[pa.Array], _Set], constants: pa.Array) -> _Set:
    """Return the set of some constants, the same as before if they are the same object."""
    return cast("_Set", _made(make, _Identity(constants)))


def _is_signed(arrow_type: pa.DataType) -> bool:
    return any(is_one(arrow_type) for is_one in _SIGNED)


def _integers(array: pa.Array) -> npt.NDArray[Any]:
    """Return values as integers of their size, without a copy; those of nulls are any."""
    return fixed_width(array, f"i{array.type.bit_width // 8}")
