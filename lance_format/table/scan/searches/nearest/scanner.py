"""Scans of the rows whose vectors are nearest to others."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lance_format.arguments import checked_methods
from lance_format.errors import InvalidInputError
from lance_format.lazy_properties import cached_property
from lance_format.table.scan.options import ScanOptions
from lance_format.table.scan.planned_reads import PlannedReads
from lance_format.table.scan.searches.nearest.best import Hits
from lance_format.table.scan.searches.nearest.exact import VectorScanner
from lance_format.table.scan.searches.nearest.indexed import IndexSearch
from lance_format.table.scan.searches.nearest.query import DISTANCE, QUERY_INDEX, Nearest, column_of
from lance_format.table.scan.searches.ranked import RankedRows, RankedScanner
from lance_format.table.scan.tasks import DEFAULT_SPLIT_SIZE_BYTES, ScanTask
from lance_format.table.versions.table_version import TableVersion

_DISTANCE = pa.field(DISTANCE, pa.float32())
_QUERY_INDEX = pa.field(QUERY_INDEX, pa.int32(), nullable=False)


@checked_methods
class NearestScanner(RankedScanner):
    """A scanner of the rows whose vectors are nearest to others, nearest first; see `LanceDataset.scanner`.

    Parameters
    ----------
    table : TableVersion
    options : ScanOptions
        See `RankedScanner`.

    Raises
    ------
    InvalidInputError, NotSupportedError
        See `RankedScanner`.
    """

    def __init__(self, table: TableVersion, options: ScanOptions) -> None:
        assert options.nearest is not None
        column = column_of(options.nearest)
        searched = options if options.prefilter else dataclasses.replace(options, filter=None)
        self._vectors = VectorScanner(table, searched, column)
        self._nearest = Nearest.of(_with_count(options), self._vectors.projected_schema.field(0).type)
        super().__init__(table, options, [_DISTANCE, *([_QUERY_INDEX] if self._nearest.is_batch else [])])

    @property
    def num_results(self) -> int:
        """Maximum number of rows that a search finds."""
        return self._nearest.k

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
            yield from self._read_ranked(self._search())
            return
        hits = self._vectors.search(self._nearest, self._nearest.exact_metric, task)
        self._metrics = self._vectors.metrics
        yield from self._read_ranked(self._ranked(hits))

    def plan_reads(self) -> PlannedReads:
        """Find what an exact search would read of the vectors; see `LanceScanner.plan_reads`."""
        return self._vectors.plan_reads()

    def explain_plan(self, verbose: bool = False) -> str:
        """Describe the search, and the reads of an exact one; see `LanceScanner.explain_plan`."""
        nearest, index = self._nearest, self._index
        metric, way = (nearest.exact_metric, "without an index") if index is None else (index.metric, index.describe())
        lines = [f"LanceNearest: {nearest.k} rows by {nearest.column}, {metric}, {way}"]
        if self.filter_text:
            lines.append(f"  filter the rows found: {self.filter_text}")
        lines += [f"  {line}" for line in self._vectors.explain_plan(verbose).splitlines()]
        return "\n".join(lines)

    @cached_property
    def _index(self) -> IndexSearch | None:
        return IndexSearch.choose(self._table, self._nearest) if self._nearest.use_index else None

    def _search(self) -> RankedRows:
        if self._index is not None:
            return self._ranked(self._index.search(self._given))
        hits = self._vectors.search(self._nearest, self._nearest.exact_metric)
        self._metrics = self._vectors.metrics
        return self._ranked(hits)

    def _ranked(self, hits: Sequence[Hits]) -> RankedRows:
        """Return the rows of all searches, one search after the other."""
        computed = {DISTANCE: pa.array(np.concatenate([found.distances for found in hits]))}
        if self._nearest.is_batch:
            numbers = np.repeat(np.arange(len(hits), dtype=np.int32), [len(found) for found in hits])
            computed[QUERY_INDEX] = pa.array(numbers)
        return RankedRows(np.concatenate([found.addresses for found in hits]), computed)


def _with_count(options: ScanOptions) -> Mapping[str, Any]:
    """Return a search for as many rows as the limit and the offset need, if it does not say how many."""
    given = options.nearest or {}
    if given.get("k") is not None or not options.limit:
        return given
    return {**given, "k": options.offset + options.limit}
