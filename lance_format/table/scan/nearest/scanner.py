"""Scans of the rows whose vectors are nearest to others."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.arguments import checked_methods
from lance_format.blob_fields import BlobHandling, read_schema
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.table.fragments.row_columns import ROW_ADDRESS, ROW_ID, ROW_OFFSET
from lance_format.table.row_ids.index import split_addresses
from lance_format.table.scan.nearest.best import Addresses, Hits
from lance_format.table.scan.nearest.exact import VectorScanner
from lance_format.table.scan.nearest.indexed import IndexSearch
from lance_format.table.scan.nearest.query import DISTANCE, QUERY_INDEX, Nearest, column_of
from lance_format.table.scan.options import ScanOptions
from lance_format.table.scan.ordered.sort_order import as_ordering, sorted_indices
from lance_format.table.scan.planned_reads import PlannedReads
from lance_format.table.scan.projection import Columns, Projection, plan_projection
from lance_format.table.scan.scanned_fragment import ScannedRows
from lance_format.table.scan.scanner import LanceScanner
from lance_format.table.scan.take import take_found
from lance_format.table.scan.tasks import DEFAULT_SPLIT_SIZE_BYTES, ScanTask
from lance_format.table.versions.table_version import TableVersion


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Rows in the order of the result.

    Parameters
    ----------
    addresses : uint64[num_rows]
    computed : dict of str to pa.Array
        Their distances, and the numbers of the queries.
    """

    addresses: Addresses
    computed: dict[str, pa.Array]

    @classmethod
    def of(cls, hits: Sequence[Hits], *, is_batch: bool) -> _Found:
        """Return the rows of all searches, one search after the other."""
        computed = {DISTANCE: pa.array(np.concatenate([found.distances for found in hits]))}
        if is_batch:
            numbers = np.repeat(np.arange(len(hits), dtype=np.int32), [len(found) for found in hits])
            computed[QUERY_INDEX] = pa.array(numbers)
        return cls(np.concatenate([found.addresses for found in hits]), computed)

    def chosen(self, rows: npt.NDArray[np.int64]) -> _Found:
        """Return some of the rows."""
        taken = pa.array(rows)
        return _Found(self.addresses[rows], {name: values.take(taken) for name, values in self.computed.items()})

    def read(self, table: TableVersion, projection: Projection) -> pa.Table:
        """Read columns of the rows."""
        return take_found(table, projection, *split_addresses(self.addresses), self.computed)


@checked_methods
class NearestScanner(LanceScanner):
    """A scanner of the rows whose vectors are nearest to others, nearest first; see `LanceDataset.scanner`.

    Parameters
    ----------
    table : TableVersion
    options : ScanOptions
        The filter applies to the rows that were found, or with `prefilter` to those that are searched. `order_by`,
        `limit` and `offset` apply to what is left.

    Raises
    ------
    InvalidInputError
        If an option is invalid.
    NotSupportedError
        If fragments share an id.
    """

    def __init__(self, table: TableVersion, options: ScanOptions) -> None:
        assert options.nearest is not None
        if table.manifest.fragments.repeated_ids:
            raise NotSupportedError(
                f"fragments of {table.uri} share an id, as in tables of early releases, so that vectors cannot be"
                " searched; rewrite it by migrate_manifest or as a new table"
            )
        column = column_of(options.nearest)
        is_pre = options.prefilter or options.filter is None
        self._vectors = VectorScanner(table, options if is_pre else dataclasses.replace(options, filter=None), column)
        self._nearest = Nearest.of(_with_count(options), self._vectors.projected_schema.field(0).type)
        self._orderings = [as_ordering(ordering) for ordering in options.order_by]
        self._given = options
        planned = dataclasses.replace(options, filter=None if is_pre else options.filter)
        self._computed = _computed_columns(table, is_batch=self._nearest.is_batch)
        super().__init__(table, planned, _plan(table, planned, self._computed))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows, nearest first, as a stream."""
        yield from self._read_found(self._window(self._filtered(self._search())))

    def count_rows(self) -> int:
        """Count the rows of the result."""
        return self._window(self._filtered(self._search())).addresses.size

    def plan_tasks(self, split_size_bytes: int = DEFAULT_SPLIT_SIZE_BYTES, *, min_tasks: int = 1) -> list[ScanTask]:
        """Divide the rows into parts that are searched separately; see `LanceScanner.plan_tasks`.

        A search by an index is one task, without ranges of rows.

        Raises
        ------
        InvalidInputError
            If an argument is invalid; or if the scan sorts, skips or filters the rows that are found, which concerns
            those of all tasks.
        """
        if self._options.offset or self._orderings or self._projection.filter is not None:
            raise InvalidInputError("tasks cannot sort, skip or filter the nearest rows of all; use prefilter, or none")
        if self._index is not None:
            return [ScanTask(())]
        return self._vectors.plan_tasks(split_size_bytes, min_tasks=min_tasks)

    def read_task(self, task: ScanTask) -> Iterator[pa.RecordBatch]:
        """Read the nearest rows of a task, nearest first. The caller merges those of all tasks."""
        if self._index is not None and not task.ranges:
            yield from self._read_found(self._search())
            return
        hits = self._vectors.search(self._nearest, self._nearest.exact_metric, task)
        self._metrics = self._vectors.metrics
        yield from self._read_found(_Found.of(hits, is_batch=self._nearest.is_batch))

    def matching(self) -> Iterator[ScannedRows]:
        """Refuse to return rows in the order of the table.

        Raises
        ------
        NotSupportedError
            Always.
        """
        raise NotSupportedError("nearest rows have no order in the table; read them by to_batches")

    def plan_reads(self) -> PlannedReads:
        """Find what an exact search would read of the vectors; see `LanceScanner.plan_reads`."""
        return self._vectors.plan_reads()

    def explain_plan(self, verbose: bool = False) -> str:
        """Describe the search, and the reads of an exact one; see `LanceScanner.explain_plan`."""
        nearest, index = self._nearest, self._index
        way = "without an index" if index is None else index.describe()
        title = f"LanceNearest: {nearest.k} rows by {nearest.column}, {self._metric}, {way}"
        filter_text = f"\n  filter the rows found: {self.filter_text}" if self.filter_text else ""
        scan = self._vectors.explain_plan(verbose)
        return f"{title}{filter_text}\n" + "\n".join(f"  {line}" for line in scan.splitlines())

    @cached_property
    def _index(self) -> IndexSearch | None:
        return IndexSearch.choose(self._table, self._nearest) if self._nearest.use_index else None

    @property
    def _metric(self) -> str:
        return self._nearest.exact_metric if self._index is None else self._index.metric

    def _search(self) -> _Found:
        """Find the nearest rows of each query."""
        if self._index is None:
            hits = self._vectors.search(self._nearest, self._metric)
            self._metrics = self._vectors.metrics
        else:
            hits = self._index.search(self._given)
        return _Found.of(hits, is_batch=self._nearest.is_batch)

    def _filtered(self, found: _Found) -> _Found:
        """Drop the rows that do not pass the filter."""
        condition = self._projection.filter
        if condition is None or not found.addresses.size:
            return found
        stored = self._table.manifest.schema
        tested = plan_projection(stored, {"passes": condition.expression}, computed=self._computed)
        passes = pc.fill_null(found.read(self._table, tested).column(0), False)
        return found.chosen(np.flatnonzero(passes.to_numpy()))

    def _window(self, found: _Found) -> _Found:
        """Sort the rows, and apply limit and offset."""
        size = found.addresses.size
        order = np.arange(size)
        if self._orderings and size:
            names = list(dict.fromkeys(ordering.column_name for ordering in self._orderings))
            keys = plan_projection(self._table.manifest.schema, names, computed=self._computed)
            values = found.read(self._table, keys)
            ordered = values.append_column(ROW_OFFSET, pa.array(order)) if ROW_OFFSET not in names else values
            order = sorted_indices(ordered, self._orderings)
        limit = size if self._options.limit is None else self._options.limit
        return found.chosen(order[self._options.offset : self._options.offset + limit])

    def _read_found(self, found: _Found) -> Iterator[pa.RecordBatch]:
        for start in range(0, found.addresses.size, self._batch_size):
            part = found.chosen(np.arange(start, min(start + self._batch_size, found.addresses.size)))
            rows = part.read(self._table, self._projection)
            yield from (rows.combine_chunks() if rows.num_columns else rows).to_batches()


def _with_count(options: ScanOptions) -> Mapping[str, Any]:
    """Return a search for as many rows as the limit and the offset need, if it does not say how many."""
    given = options.nearest or {}
    if given.get("k") is not None or not options.limit:
        return given
    return {**given, "k": options.offset + options.limit}


def _computed_columns(table: TableVersion, *, is_batch: bool) -> list[pa.Field]:
    """Return the columns that a search adds.

    Raises
    ------
    InvalidInputError
        If the table has a column of such a name.
    """
    found = [pa.field(DISTANCE, pa.float32())]
    if is_batch:
        found.append(pa.field(QUERY_INDEX, pa.int32(), nullable=False))
    taken = [field.name for field in found if field.name in table.manifest.schema.names]
    if taken:
        raise InvalidInputError(f"the table has a column {taken[0]!r}, which a search adds; rename the column")
    return found


def _plan(table: TableVersion, options: ScanOptions, computed: Sequence[pa.Field]) -> Projection:
    """Return the projection of a search: the number of the query first, and distances after the columns."""
    stored = read_schema(table.manifest.schema, BlobHandling.parse(options.blob_handling))
    columns = options.columns
    if len(computed) > 1:
        columns = _with_query(stored.names if columns is None else columns)
    wanted = {
        DISTANCE: not options.disable_scoring_autoprojection,
        ROW_ID: options.with_row_id,
        ROW_ADDRESS: options.with_row_address,
    }
    extra = [name for name in wanted if wanted[name]]
    return plan_projection(stored, columns, options.filter, extra=extra, computed=computed)


def _with_query(columns: Columns) -> Columns:
    """Return columns with the number of the query before them, unless they have it."""
    if isinstance(columns, pa.Schema):
        return pa.schema([pa.field(QUERY_INDEX, pa.int32()), *(x for x in columns if x.name != QUERY_INDEX)])
    if isinstance(columns, str) or QUERY_INDEX in columns:
        return columns
    if isinstance(columns, Sequence):
        return [QUERY_INDEX, *columns]
    return {QUERY_INDEX: QUERY_INDEX, **columns}
