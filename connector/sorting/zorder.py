"""Z-order: one number per row; rows that are close in several columns have close numbers.

Each value becomes the number of a bucket. Buckets have about the same number of rows, according to a sample. The
z-value interleaves the bits of the bucket numbers, most significant first (Morton, 1966):

    buckets of a      a2 a1 a0
    buckets of b      b2 b1 b0
    z-value           a2 b2 a1 b1 a0 b0

Null has an own bucket, before all values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format import LanceDataset, NotSupportedError, ScanTask
from lance_format.lazy_dataclasses import dataclass

_KEY_BITS = 63
"""Bits of a bigint without its sign."""
_MAX_BITS = 12
_TEXT_BYTES = 16
"""Number of first bytes by which strings are compared."""
_SAMPLE_ROWS = 65_536
_SLICE_ROWS = 64
_Sortable: TypeAlias = npt.NDArray[Any]
_AS_FLOAT = (pa.types.is_floating, pa.types.is_decimal)
_AS_INTEGER = (
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_time,
    pa.types.is_duration,
)
_AS_BYTES = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)


@dataclass(frozen=True, slots=True)
class ZOrder:
    """Buckets of the values of some columns.

    Parameters
    ----------
    columns : tuple of str
    bounds : tuple of array
        The first values of all buckets of a column except the first.
    bits : int
        Number of bits of a bucket number.
    """

    columns: tuple[str, ...]
    bounds: tuple[_Sortable, ...]
    bits: int

    @classmethod
    def sampled(cls, dataset: LanceDataset, columns: Sequence[str], fragment_ids: Sequence[int]) -> ZOrder:
        """Choose buckets by a sample of rows.

        Parameters
        ----------
        dataset : LanceDataset
        columns : sequence of str
        fragment_ids : sequence of int
            The fragments to sample.
        """
        bits = min(_MAX_BITS, _KEY_BITS // len(columns))
        chosen = [dataset.schema.field(name) for name in columns]
        task = ScanTask(tuple(_slices(dataset, fragment_ids)))
        batches = list(dataset.scanner(pa.schema(chosen)).read_task(task))
        sample = pa.Table.from_batches(batches, schema=None) if batches else pa.schema(chosen).empty_table()
        bounds = tuple(_bounds(sample.column(name).combine_chunks(), 2**bits - 2) for name in columns)
        return cls(tuple(columns), bounds, bits)

    def keys(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Return the z-value of each row of a batch."""
        buckets = [
            self._buckets(batch.column(name), bounds) for name, bounds in zip(self.columns, self.bounds, strict=True)
        ]
        keys = np.zeros(batch.num_rows, np.int64)
        for bit in reversed(range(self.bits)):
            for numbers in buckets:
                keys = (keys << 1) | ((numbers >> bit) & 1)
        return keys

    def _buckets(self, column: pa.Array, bounds: _Sortable) -> npt.NDArray[np.int64]:
        numbers = np.zeros(len(column), np.int64)
        is_valid = pc.is_valid(column).to_numpy(zero_copy_only=False)
        numbers[is_valid] = np.searchsorted(bounds, _sortable(column.drop_null()), side="right") + 1
        return numbers


def check_orderable(column_type: pa.DataType, name: str) -> None:
    """Refuse a column whose values have no bucket.

    Raises
    ------
    NotSupportedError
    """
    if not any(is_kind(column_type) for is_kind in (*_AS_FLOAT, *_AS_INTEGER, *_AS_BYTES)):
        raise NotSupportedError(f"rows cannot be z-ordered by column {name!r}, which is of the type {column_type}")


def _slices(dataset: LanceDataset, fragment_ids: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield ranges of rows that are spread evenly over fragments."""
    wanted = set(fragment_ids)
    sizes = {
        fragment.fragment_id: fragment.physical_rows
        for fragment in dataset.get_fragments()
        if fragment.fragment_id in wanted
    }
    step = max(sum(sizes.values()) // (_SAMPLE_ROWS // _SLICE_ROWS), _SLICE_ROWS)
    for fragment_id, num_rows in sizes.items():
        for start in range(0, num_rows, step):
            yield fragment_id, start, min(start + _SLICE_ROWS, num_rows)


def _bounds(sample: pa.Array, num_bounds: int) -> _Sortable:
    values = np.sort(_sortable(sample.drop_null()))
    if not values.size:
        return values
    places = np.linspace(0, values.size, num_bounds + 2).astype(np.int64)[1:-1]
    return np.unique(values[places[places < values.size]])


def _sortable(values: pa.Array) -> _Sortable:
    """Return values without nulls as numbers or bytes in the same order."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if any(is_kind(values.type) for is_kind in _AS_BYTES):
        return np.array([value.as_buffer().to_pybytes()[:_TEXT_BYTES] for value in values], f"S{_TEXT_BYTES}")
    if any(is_kind(values.type) for is_kind in _AS_FLOAT):
        floats: _Sortable = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return floats
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if pa.types.is_temporal(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    numbers: _Sortable = values.to_numpy(zero_copy_only=False)
    return numbers
