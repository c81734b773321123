"""Partial aggregation of a stream of batches, which never holds more than some bytes of groups.

The table of groups is returned and emptied when it is full. Rows whose keys are nearly all different gain nothing from
grouping: they are returned as groups of one row each for a while, before grouping is tried again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lance_format.aggregation.functions import make_accumulator
from lance_format.aggregation.keys import make_key_table
from lance_format.aggregation.trials import Trials, are_futile
from lance_format.expressions import looked_up
from lance_format.lazy_dataclasses import dataclass
from lance_format.masks import is_text

DEFAULT_MAX_BYTES = 128 << 20
_SLICE_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate function of a column.

    Parameters
    ----------
    name : str
        The name of the resulting column.
    function : str
        A key of `lance_format.aggregation.functions.FUNCTIONS`.
    type : pa.DataType, optional
        The type of the argument; None if the function has none.
    """

    name: str
    function: str
    type: pa.DataType | None


class PartialAggregation:
    """Aggregation of batches into partial rows: the key columns, then one column per aggregate.

    Parameters
    ----------
    keys : pa.Schema
        The columns of the keys. Without any, all rows are one group, and there is one row even if no row was added.
    aggregates : sequence of Aggregate
    max_bytes : int
        Approximate size of the groups at which they are returned.

    Raises
    ------
    NotSupportedError
        If a function does not take values of the given type.
    """

    def __init__(self, keys: pa.Schema, aggregates: Sequence[Aggregate], *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._keys = make_key_table(keys.types)
        self._accumulators = [make_accumulator(aggregate.function, aggregate.type) for aggregate in aggregates]
        results = [
            pa.field(aggregate.name, accumulator.type)
            for aggregate, accumulator in zip(aggregates, self._accumulators, strict=True)
        ]
        self.schema = pa.schema([*(field.with_nullable(True) for field in keys), *results])
        self._is_grouped = len(keys) > 0
        self._max_bytes = max_bytes
        self._rows = 0
        self._trials = Trials()

    def add(
        self, keys: Sequence[pa.Array], values: Sequence[pa.Array | None], num_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Add rows; yield partial rows if groups are full, or not worth having.

        Parameters
        ----------
        keys : sequence of pa.Array
            The columns of the keys, or dictionaries of such values.
        values : sequence of pa.Array or None
            The argument of each aggregate, or a dictionary of such values.
        num_rows : int
        """
        keys = [array if _are_numbered(array) else looked_up(array) for array in keys]
        values = [None if array is None else looked_up(array) for array in values]
        for start in range(0, num_rows, _SLICE_ROWS):
            count = min(_SLICE_ROWS, num_rows - start)
            key_parts = [array.slice(start, count) for array in keys]
            parts = [None if array is None else array.slice(start, count) for array in values]
            if self._trials.passes(count):
                yield self._one_by_one(key_parts, parts, count)
                continue
            groups = self._keys.number(key_parts, count)
            for accumulator, part in zip(self._accumulators, parts, strict=True):
                accumulator.add(part, groups, self._keys.count)
            self._rows += count
            if are_futile(self._rows, self._keys.count):
                yield from self._flush()
                self._trials.pause()
            elif self._size_bytes() > self._max_bytes:
                yield from self._flush()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the partial rows of all groups that were not returned yet."""
        if not self._is_grouped:
            self._keys.number([], 0)
        if self._keys.count:
            yield from self._flush()

    def _size_bytes(self) -> int:
        per_group = sum(accumulator.group_bytes for accumulator in self._accumulators)
        return (
            self._keys.size_bytes
            + self._keys.count * per_group
            + sum(accumulator.size_bytes for accumulator in self._accumulators)
        )

    def _one_by_one(self, keys: Sequence[pa.Array], values: Sequence[pa.Array | None], num_rows: int) -> pa.RecordBatch:
        results = [
            accumulator.of_rows(array, num_rows) for accumulator, array in zip(self._accumulators, values, strict=True)
        ]
        return pa.RecordBatch.from_arrays([*map(looked_up, keys), *results], schema=self.schema)

    def _flush(self) -> Iterator[pa.RecordBatch]:
        count = self._keys.count
        keys = self._keys.keys()
        results = [accumulator.results(count) for accumulator in self._accumulators]
        yield self._batch([*keys, *results], count)
        for index, accumulator in enumerate(self._accumulators):
            for groups, values in accumulator.surplus(count):
                columns = [other.neutral(len(values)) for other in self._accumulators]
                columns[index] = values
                taken = [array.take(pa.array(groups)) for array in keys]
                yield self._batch([*taken, *columns], len(values))
        self._keys.clear()
        for accumulator in self._accumulators:
            accumulator.clear()
        self._rows = 0

    def _batch(self, arrays: list[pa.Array], num_rows: int) -> pa.RecordBatch:
        if arrays:
            return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), num_rows, [None]))


def _are_numbered(keys: pa.Array) -> bool:
    """Return whether keys are a dictionary that tables of keys number by its items."""
    return isinstance(keys, pa.DictionaryArray) and is_text(keys.dictionary.type) and not keys.dictionary.null_count
