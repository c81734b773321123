"""How often each value occurs: the state from which percentiles follow.

A state is a map of values and their numbers, in the bytes in which Spark exchanges it (its class
`TypedAggregateWithHashMapAsBuffer`). For each value

| bytes | |
|---|---|
| 4 | 24, the size of what follows, of big endian |
| 8 | zeros: neither the value nor its number is null |
| 8 | the value, of little endian: an integer, that of an unscaled decimal, or the bits of a floating-point number |
| 8 | how often it occurs, of little endian |

and -1 in 4 bytes at the end. Nulls are not counted. All NaN are one value. -0.0 is another value than 0.0, unless a
group has both: then they are counted as 0.0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.aggregation.state import State
from lance_format.aggregation.word_table import WordTable
from lance_format.aggregation.words import I32, I64, float_bits, frozen, to_words, validity
from lance_format.kernels.aggregation.value_counts import ENTRY_BYTES, SIZE_BYTES, write_counts
from lance_format.memory import fixed_width

_END = -1
_BYTES_PER_ENTRY = 40  # of the table: key, number, two slots or more


class ValueCounts(State):
    """A hash table of the pairs of groups and values; its array has an item per pair.

    Parameters
    ----------
    arrow_type : pa.DataType
        Integers, floating-point numbers, or decimals of up to 18 digits.
    """

    _dtypes = ("i8",)
    type = pa.binary()

    def __init__(self, arrow_type: pa.DataType) -> None:
        self._is_float = pa.types.is_floating(arrow_type)
        self._width = arrow_type.bit_width // 8
        self._negative_zero = -(1 << (8 * self._width - 1))
        self._table = WordTable(2)
        super().__init__()

    def clear(self) -> None:
        """See `Accumulator`."""
        super().clear()
        self._table.clear()

    @property
    def size_bytes(self) -> int:  # type: ignore[override]
        """See `Accumulator`."""
        return _BYTES_PER_ENTRY * self._table.count

    def add(self, values: pa.Array, groups: I32, num_groups: int) -> None:  # noqa: ARG002
        """See `Accumulator`."""
        numbers = self._table.number(self._pairs(values, groups))
        (counts,) = self._reserve(self._table.count)
        np.add.at(counts, numbers, 1)

    def results(self, num_groups: int) -> pa.Array:
        """See `Accumulator`."""
        keys, (counts,) = self._table.keys, self._used(self._table.count)
        if self._is_float:
            keys, counts = self._without_zeros(keys, counts, num_groups)
        return _states(keys, counts, num_groups)

    def of_rows(self, values: pa.Array, num_rows: int) -> pa.Array:
        """See `Accumulator`."""
        keys = self._pairs(values, np.arange(num_rows, dtype=np.int32))
        return _states(keys, np.ones(len(keys), np.int64), num_rows)

    def neutral(self, num_rows: int) -> pa.Array:
        """See `Accumulator`."""
        return _states(np.empty((0, 2), np.int64), np.empty(0, np.int64), num_rows)

    def _pairs(self, values: pa.Array, groups: I32) -> I64:
        words = float_bits(fixed_width(values, f"f{self._width}")) if self._is_float else to_words(values)
        valid = validity(values)
        if valid.size:
            words, groups = words[valid], groups[valid]
        return np.stack([groups.astype(np.int64), words], axis=1)

    def _without_zeros(self, keys: I64, counts: I64, num_groups: int) -> tuple[I64, I64]:
        """Count -0.0 as 0.0 where a group has both."""
        negative = np.flatnonzero(keys[:, 1] == self._negative_zero)
        positive = np.flatnonzero(keys[:, 1] == 0)
        if not negative.size or not positive.size:
            return keys, counts
        zeros = np.full(num_groups, -1)
        zeros[keys[positive, 0]] = positive
        partners = zeros[keys[negative, 0]]
        negative, partners = negative[partners >= 0], partners[partners >= 0]
        counts = counts.copy()
        counts[partners] += counts[negative]
        return np.delete(keys, negative, axis=0), np.delete(counts, negative)


def _states(keys: I64, counts: I64, num_groups: int) -> pa.Array:
    """Return the states of groups.

    Parameters
    ----------
    keys : int64[num_entries, 2]
        The group and the value of each entry.
    counts : int64[num_entries]
    num_groups : int
    """
    sizes = np.bincount(keys[:, 0], minlength=num_groups) * ENTRY_BYTES + SIZE_BYTES
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    out: npt.NDArray[np.uint8] = np.empty(int(offsets[-1]), np.uint8)
    ends = offsets[:-1].copy()
    write_counts(frozen(keys), frozen(counts), ends, out)
    out.view(np.int32)[ends // SIZE_BYTES] = _END
    return pa.Array.from_buffers(
        pa.binary(), num_groups, [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(out)]
    )
