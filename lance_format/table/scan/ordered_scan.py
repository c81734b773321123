"""Sorted scans: the sort columns are read first, then the rows in their order."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.arguments import checked_methods
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.table.fragments.row_columns import ROW_OFFSET
from lance_format.table.scan.options import ColumnOrdering, ScanOptions
from lance_format.table.scan.scanner import LanceScanner, plan_output
from lance_format.table.scan.take import locate_row_numbers, take_found
from lance_format.table.scan.tasks import DEFAULT_SPLIT_SIZE_BYTES, ScanTask
from lance_format.table.versions.table_version import TableVersion


@checked_methods
class OrderedScanner(LanceScanner):
    """A scanner that returns sorted rows; see `LanceDataset.scanner`.

    The sort columns of all passing rows are held in memory, and 16 bytes more per row.

    Parameters
    ----------
    table : TableVersion
    options : ScanOptions
        The first ordering is the most significant. Equal rows keep their order. `limit` and `offset` apply to the
        sorted rows.

    Raises
    ------
    InvalidInputError
        If an ordering is invalid.
    """

    def __init__(self, table: TableVersion, options: ScanOptions) -> None:
        super().__init__(table, options)
        self._orderings = [_as_ordering(ordering) for ordering in options.order_by]
        names = list(dict.fromkeys(ordering.column_name for ordering in self._orderings))
        keys = dataclasses.replace(
            options,
            columns=[*(name for name in names if name != ROW_OFFSET), ROW_OFFSET],
            limit=None,
            offset=0,
            with_row_id=False,
            with_row_address=False,
            blob_handling=None,
            order_by=(),
        )
        self._keys = LanceScanner(table, keys)
        self._rows = plan_output(table, dataclasses.replace(options, filter=None))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read the sorted rows as a stream."""
        yield from self._sorted(self._keys.to_table(), self._options.offset)

    def plan_tasks(self, split_size_bytes: int = DEFAULT_SPLIT_SIZE_BYTES, *, min_tasks: int = 1) -> list[ScanTask]:
        """Divide the scan into parts that are sorted separately; see `LanceScanner.plan_tasks`.

        Raises
        ------
        InvalidInputError
            If an argument is invalid, or there is an offset: a task cannot know which rows the others skip.
        """
        if self._options.offset:
            raise InvalidInputError("sorted rows cannot be skipped by tasks; leave the offset out")
        return self._keys.plan_tasks(split_size_bytes, min_tasks=min_tasks)

    def read_task(self, task: ScanTask) -> Iterator[pa.RecordBatch]:
        """Read the first `limit` rows of a task in order. The caller merges the sorted tasks."""
        batches = self._keys.read_task(task)
        yield from self._sorted(pa.Table.from_batches(batches, self._keys.projected_schema), 0)

    def _sorted(self, keys: pa.Table, offset: int) -> Iterator[pa.RecordBatch]:
        self._metrics = self._keys.metrics
        order = np.lexsort([_ranks(keys[ordering.column_name], ordering) for ordering in reversed(self._orderings)])
        stop = None if self._options.limit is None else offset + self._options.limit
        positions = keys[ROW_OFFSET].to_numpy()[order[offset:stop]]
        found = locate_row_numbers(self._table, positions)
        for start in range(0, positions.size, self._batch_size):
            batch = (numbers[start : start + self._batch_size] for numbers in found)
            rows = take_found(self._table, self._rows, *batch)
            yield from (rows.combine_chunks() if rows.num_columns else rows).to_batches()


def _as_ordering(ordering: Any) -> ColumnOrdering:
    if isinstance(ordering, str):
        return ColumnOrdering(ordering)
    if not hasattr(ordering, "column_name"):  # That of pylance is accepted too.
        raise InvalidInputError(f"order_by has {ordering!r}; names of columns or ColumnOrdering are needed")
    return ColumnOrdering(ordering.column_name, bool(ordering.ascending), bool(ordering.nulls_first))


def _ranks(column: pa.ChunkedArray, ordering: ColumnOrdering) -> npt.NDArray[np.int64]:
    """Return numbers that order like the values. NaN exceeds all other numbers."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    ranks: npt.NDArray[np.int64]
    try:
        ranks = pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise NotSupportedError(
            f"rows cannot be sorted by column {ordering.column_name!r} of type {column.type}"
        ) from error
    if not ordering.ascending:
        ranks = -ranks
    ranks[column.is_null().to_numpy()] = -len(ranks) - 1 if ordering.nulls_first else len(ranks) + 1
    return ranks
