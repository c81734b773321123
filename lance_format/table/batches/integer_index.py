"""The distinct values of a column of integers, in a hash table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.kernels.columns.integer_hashes import find_numbers, number_distinct
from lance_format.kernels.jit import read_only
from lance_format.lazy_dataclasses import dataclass

Int64Array = npt.NDArray[np.int64]

_ABSENT = -1
_INTEGERS: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
    pa.types.is_duration,
)


@dataclass(frozen=True, slots=True, eq=False)
class IntegerIndex:
    """The distinct values of a column. Made by `of` and `of_numbers`.

    Parameters
    ----------
    values : int64[num_values]
        Those that are not null, as 64 bits. They are numbered from 0.
    has_null : bool
        Whether null is one of them, which comes last then.
    shift : int
        64 minus the binary logarithm of the number of slots.
    slot_values : int64[num_slots]
    slot_numbers : int32[num_slots]
        -1 where a slot is free; at least half of them are.
    """

    values: Int64Array
    has_null: bool
    shift: int
    slot_values: Int64Array
    slot_numbers: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return self.values.size + self.has_null

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out the slots, which are made again."""
        return IntegerIndex.of_numbers, (self.values, self.has_null)

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> IntegerIndex:
        """Number the values of a column of an integral type; see `is_integral`."""
        return cls.of_numbers(_words(column.drop_null()), column.null_count > 0)

    @classmethod
    def of_numbers(cls, numbers: Int64Array, has_null: bool = False) -> IntegerIndex:
        """Number values that are given as an array; fewer than 2**30."""
        num_bits = max(int(numbers.size).bit_length() + 1, 1)
        slot_values = np.empty(1 << num_bits, np.int64)
        slot_numbers = np.full(1 << num_bits, _ABSENT, np.int32)
        distinct = np.empty(numbers.size, np.int64)
        count = number_distinct(read_only(numbers), 64 - num_bits, slot_values, slot_numbers, distinct)
        return cls(distinct[:count], has_null, 64 - num_bits, slot_values, slot_numbers)

    def find(self, column: pa.ChunkedArray) -> Int64Array:
        """Return the numbers of the values of other rows; -1 for other values."""
        numbers = self.find_numbers(_words(column))
        if column.null_count:
            numbers[column.is_null().to_numpy()] = self.values.size if self.has_null else _ABSENT
        return numbers

    def find_numbers(self, numbers: Int64Array) -> Int64Array:
        """Return the numbers of values that are given as an array; -1 for other values."""
        found = np.empty(numbers.size, np.int64)
        find_numbers(read_only(numbers), self.shift, self.slot_values, self.slot_numbers, found)
        return found


def is_integral(arrow_type: pa.DataType) -> bool:
    """Return whether values of a type are integers of 64 bits or fewer."""
    return any(is_one(arrow_type) for is_one in _INTEGERS)


def _words(column: pa.ChunkedArray) -> Int64Array:
    """Return values as 64 bits; those of nulls are any."""
    unsigned = pa.types.is_unsigned_integer(column.type)
    dtype = np.dtype(f"{'u' if unsigned else 'i'}{column.type.bit_width // 8}")
    parts = [_buffer(chunk, dtype) for chunk in column.chunks]
    values = parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype), *parts])
    return values.view(np.int64) if dtype.itemsize == 8 else values.astype(np.int64)


def _buffer(chunk: pa.Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    data = chunk.buffers()[1]
    if data is None or not len(chunk):
        return np.empty(0, dtype)
    return np.frombuffer(data, dtype, len(chunk), chunk.offset * dtype.itemsize)
