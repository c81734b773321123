"""Scans: reading some rows and columns of a table, in order, as a stream."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import itertools
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Unpack

import pyarrow as pa

from lance_format.arguments import checked_methods
from lance_format.errors import InvalidInputError
from lance_format.expressions import to_sql
from lance_format.file.columns.json_columns import with_text
from lance_format.lazy_properties import cached_property
from lance_format.table.batches.streams import first_rows, of_equal_size, within_bytes
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.fragments.batch_rows import BATCH_ROWS, rows_at_once
from lance_format.table.fragments.deletion_file import RowOffsets
from lance_format.table.fragments.reader import FragmentReader
from lance_format.table.fragments.row_columns import ROW_OFFSET, LiveRows
from lance_format.table.scan.fragment_reads import FragmentReads
from lance_format.table.scan.joined_rows import JoinedRows, ScannedRows, by_fragment
from lance_format.table.scan.metrics import ScanMeter, ScanMetrics, describe_plan, report
from lance_format.table.scan.options import PandasKeywords, ScanOptions
from lance_format.table.scan.pace import Pace
from lance_format.table.scan.planned_reads import PlannedReads, plan_reads
from lance_format.table.scan.projection import Projection
from lance_format.table.scan.pruning.index_pruning import PrunedFragments, prune_fragments, usable_indices
from lance_format.table.scan.pruning.row_lookup import RowLookup
from lance_format.table.scan.pruning.statistics_pruning import is_pruned_ahead, prune_ahead
from lance_format.table.scan.row_ranges import RowRanges
from lance_format.table.scan.scanned_fragment import Window, within
from lance_format.table.scan.stages import Stages
from lance_format.table.scan.tasks import DEFAULT_SPLIT_SIZE_BYTES, Candidates, FragmentRanges, ScanTask, plan_tasks
from lance_format.table.versions.belonging import check_belongs
from lance_format.table.versions.table_version import TableVersion


@checked_methods
class LanceScanner:
    """Scanner of some rows and columns of a table; see `LanceDataset.scanner`.

    Parameters
    ----------
    table : TableVersion
    options : ScanOptions
    projection : Projection, optional
        The columns and the filter; by default those of the options.
    """

    def __init__(self, table: TableVersion, options: ScanOptions, projection: Projection | None = None) -> None:
        self._table = table
        self._options = options
        self._batch_size, self._batch_bytes = options.batch_rows, options.batch_bytes
        self._metrics: ScanMetrics | None = None
        self._fragments = table.manifest.fragments if options.fragments is None else FragmentList.of(options.fragments)
        self._projection = options.project(table.manifest.schema) if projection is None else projection
        self._stages = Stages.of(self._projection)

    @property
    def projected_schema(self) -> pa.Schema:
        """The columns of the result."""
        return self._projection.schema

    @property
    def dataset_schema(self) -> pa.Schema:
        """The columns of the table."""
        return with_text(self._table.manifest.schema).to_arrow()

    @property
    def filter_text(self) -> str:
        """The filter as SQL; empty if there is none."""
        predicate = self._projection.filter
        return "" if predicate is None else to_sql(predicate.expression)

    @property
    def metrics(self) -> ScanMetrics | None:
        """Counts of the last scan that ended or was abandoned."""
        return self._metrics

    def explain_plan(self, verbose: bool = False) -> str:
        """Describe the reads of the scan, in their order, as text for people.

        Parameters
        ----------
        verbose : bool
            Whether to add the types of the columns, and the fragments and rows that the filter selects.
        """
        lines = describe_plan(
            self._stages, self.filter_text, self._options.limit, self._options.offset, verbose=verbose
        )
        indices = usable_indices(self._table, self._projection.filter) if self._options.use_scalar_index else []
        if indices:
            lines.append(f"indices: {', '.join(indices)}")
        if verbose:
            ranges = [found for _, found in self._whole() if len(found)]
            lines.append(f"fragments: {len(ranges)} of {len(self._fragments)}")
            lines.append(f"rows: {sum(found.num_rows for found in ranges)}")
        title = f"LanceScan: {self._table.uri}, version {self._table.manifest.version}"
        return "\n".join([title, *(f"  {line}" for line in lines)])

    def analyze_plan(self) -> str:
        """Read and drop the rows, and return `explain_plan` with the metrics."""
        for _ in self.to_batches():
            pass
        return f"{self.explain_plan(verbose=True)}\n  {self._metrics}"

    def plan_reads(self) -> PlannedReads:
        """Find the fragments, zones and pages that the scan would read, without reading a page.

        A limit and an offset are ignored. The files of all fragments are opened that indices do not exclude.
        """
        return plan_reads(self._projection, self._whole(), self._fragments, self._pruned)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows in order, as a stream."""
        found = self._applied(self._matching())
        yield from of_equal_size(found, self._batch_size) if self._options.strict_batch_size else found

    def to_reader(self) -> pa.RecordBatchReader:
        """Read the rows in order, as a stream with a schema."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_table(self) -> pa.Table:
        """Read the rows into memory."""
        given = self._batch_size
        if self._options.batch_size is None and given == BATCH_ROWS and not self._options.strict_batch_size:
            self._batch_size = rows_at_once(self._projection.source)  # Nobody sees the batches.
        try:
            return self._projection.to_table(self.to_batches())
        finally:
            self._batch_size = given

    def to_pandas(self, **options: Unpack[PandasKeywords]) -> Any:
        """Read the rows into a DataFrame of pandas, which must be installed.

        Parameters
        ----------
        **options
            See `pyarrow.Table.to_pandas`.

        Raises
        ------
        InvalidInputError
            If an option is invalid, or does not fit the columns.
        """
        table = self.to_table()
        try:
            return table.to_pandas(**options)
        except ValueError as error:
            raise InvalidInputError(f"these rows cannot become a DataFrame: {error}") from error

    def head(self, num_rows: int) -> pa.Table:
        """Read only the first rows.

        Raises
        ------
        InvalidInputError
            If `num_rows` is not a whole number from 0 on.
        """
        if isinstance(num_rows, bool) or not isinstance(num_rows, int) or num_rows < 0:
            raise InvalidInputError(f"num_rows is {num_rows!r}; a whole number from 0 on is needed")
        return self._projection.to_table(first_rows(self.to_batches(), min(num_rows, sys.maxsize)))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the rows as a stream of Arrow, for consumers such as DuckDB and polars."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def count_rows(self) -> int:
        """Count the rows.

        Raises
        ------
        CorruptFileError
            If files are damaged, or the manifest is that of another table.
        DatasetNotFoundError
            If a cleanup has removed files of the version.
        """
        if self._projection.filter is not None:
            return sum(joined.batch.num_rows for joined in self._matching())
        check_belongs(self._table.directory, self._table.manifest)
        total = max(int(self._table.num_rows(self._fragments).sum()) - self._options.offset, 0)
        return total if self._options.limit is None else min(total, self._options.limit)

    def matching_rows(self) -> Iterator[LiveRows]:
        """Find the rows, without their values, fragment by fragment and in order."""
        for _, rows in self.matching():
            yield rows

    def matching(self) -> Iterator[ScannedRows]:
        """Read the rows that pass the filter and the window, with all columns that outputs need."""
        yield from by_fragment(self._matching())

    def _matching(self) -> Iterator[JoinedRows]:
        window = Window(self._options.offset, self._options.limit)
        yield from self._read(self._whole(), window, self._meter(window))

    def _pace(self, window: Window) -> Pace:
        is_remote = self._table.directory.store.is_remote
        return Pace.start(self._batch_size, window, self._projection.filter, is_remote=is_remote)

    def _meter(self, window: Window, task: ScanTask | None = None) -> ScanMeter:
        """Return the meter of a scan of one task, by default of all fragments."""
        pace = self._pace(window)
        if task is not None:
            return ScanMeter(pace, len(task.fragment_ids), task.num_rows)
        num_rows = int(self._fragments.columns.physical_rows.sum())
        return ScanMeter(pace, len(self._fragments), num_rows, self._pruned)

    def plan_tasks(self, split_size_bytes: int = DEFAULT_SPLIT_SIZE_BYTES, *, min_tasks: int = 1) -> list[ScanTask]:
        """Divide the scan into parts that can be read anywhere, in any order; see `read_task`.

        Data files are opened only for fragments that are divided, for one fragment per kind of partly read files, and,
        with a filter, for the zone statistics of a few dozen fragments.

        Parameters
        ----------
        split_size_bytes : int
            Approximate number of bytes that a task reads.
        min_tasks : int
            Minimum number of tasks, as long as each reads 1 MiB.

        Returns
        -------
        list of ScanTask
            In the order of the table.

        Raises
        ------
        InvalidInputError
            If an argument is invalid, or the scan has a filter and an offset: a task cannot know how many rows the
            others skip.
        """
        for name, value in (("split_size_bytes", split_size_bytes), ("min_tasks", min_tasks)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidInputError(f"{name} is {value!r}; a whole number from 1 on is needed")
        if self._projection.filter is not None and self._options.offset:
            raise InvalidInputError("rows that pass a filter cannot be skipped by tasks; leave the offset out")
        if not self._projection.source.fields:  # No task opens a file.
            check_belongs(self._table.directory, self._table.manifest)
        return plan_tasks(self._candidates(), self._projection.source, split_size_bytes, min_tasks)

    def _candidates(self) -> Candidates:
        """Return the rows that tasks need to read."""
        projection, pruned = self._projection, self._pruned
        window = Window(self._options.offset, self._options.limit if projection.filter is None else None)
        fragments = self._fragments.changed(removed=pruned.excluded) if pruned.excluded else self._fragments
        chosen = self._lookup.is_selective or bool(pruned.ranges) or not window.is_open
        if not chosen and not is_pruned_ahead(projection, fragments.columns.physical_rows):
            return Candidates.whole(self._table, fragments, projection.source).not_empty()
        ranges = list(within(self._whole(), window))
        return Candidates.of(fragments, prune_ahead(projection, ranges)).not_empty()

    def read_task(self, task: ScanTask) -> Iterator[pa.RecordBatch]:
        """Read the rows of a task, planned by a scanner with the same arguments over the same version of the table.

        Without a filter, the tasks together return the rows of `to_batches`. With one, each task stops after `limit`
        rows, and the caller applies the limit to all of them.

        Raises
        ------
        InvalidInputError
            If the table has no such rows.
        """
        yield from self._applied(self._matching_in(task))

    def read_task_as_stored(self, task: ScanTask) -> Iterator[pa.RecordBatch]:
        """Read as `read_task` does, but with dictionaries of strings in those batches whose pages have them."""
        scanner = copy.copy(self)
        scanner._stages = dataclasses.replace(self._stages, keeps_dictionaries=True)
        yield from scanner.read_task(task)

    def read_rows(self, fragment_id: int, offsets: RowOffsets | None = None) -> Iterator[pa.RecordBatch]:
        """Read live rows of one fragment that pass the filter.

        Parameters
        ----------
        fragment_id : int
        offsets : int64[num_rows], optional
            Offsets of the rows in the fragment, ascending, deleted rows counted; by default all.

        Raises
        ------
        InvalidInputError
            If the version has no such fragment or row.
        """
        fragment = self._fragments.find(fragment_id)
        scan = None if fragment is None else self._scan(fragment)
        if scan is None or (offsets is not None and offsets.size and offsets[-1] >= scan.physical_rows()):
            raise InvalidInputError(
                f"version {self._table.manifest.version} of {self._table.uri} lacks rows of fragment {fragment_id}"
            )
        ranges = RowRanges.whole(scan.physical_rows()) if offsets is None else RowRanges.of_rows(offsets)
        meter = ScanMeter(self._pace(Window()), 1, ranges.num_rows)
        yield from self._applied(self._read([(scan, ranges.intersect(self._selected(scan)))], Window(), meter))

    def matching_in(self, task: ScanTask) -> Iterator[ScannedRows]:
        """Read the matching rows of a task; see `matching`."""
        yield from by_fragment(self._matching_in(task))

    def _matching_in(self, task: ScanTask) -> Iterator[JoinedRows]:
        window = Window(0, None if self._projection.filter is None else self._options.limit)
        yield from self._read(self._ranges_of(task), window, self._meter(window, task))

    def _whole(self) -> Iterator[FragmentRanges]:
        """Return the rows of all fragments that may be needed."""
        pruned = self._pruned
        fragments = self._fragments.changed(removed=pruned.excluded)
        for scan in map(self._scan, self._lookup.fragments(fragments)):
            wanted, known = self._selected(scan), pruned.ranges.get(scan.fragment.id)
            yield scan, wanted if known is None else wanted.intersect(known)

    def _ranges_of(self, task: ScanTask) -> Iterator[FragmentRanges]:
        """Return the rows of a task that may be needed."""
        for fragment_id, pairs in task.by_fragment():
            bounds = list(itertools.chain.from_iterable(pairs))
            fragment = self._fragments.find(fragment_id)
            scan = None if fragment is None else self._scan(fragment)
            if scan is None or bounds != sorted(bounds) or not 0 <= bounds[0] <= bounds[-1] <= scan.physical_rows():
                raise InvalidInputError(
                    f"version {self._table.manifest.version} of {self._table.uri} has no rows {bounds[0]} to"
                    f" {bounds[-1]} of fragment {fragment_id}: the task is one of another scan"
                )
            yield scan, RowRanges.of(pairs).intersect(self._selected(scan))

    def _selected(self, scan: FragmentReader) -> RowRanges:
        return self._lookup.rows(scan, self._position(scan))

    @cached_property
    def _pruned(self) -> PrunedFragments:
        """Look up the filter in the indices."""
        if not self._options.use_scalar_index or self._projection.filter is None:
            return PrunedFragments()
        return prune_fragments(self._table, self._projection.filter, self._fragments)

    @cached_property
    def _lookup(self) -> RowLookup:
        return RowLookup.of(self._projection.filter, self._projection.filter_row_columns, self._table)

    def _read(self, fragments: Iterable[FragmentRanges], window: Window, meter: ScanMeter) -> Iterator[JoinedRows]:
        """Read ranges of physical rows, and report the metrics at the end."""
        with self._reporting(meter):
            yield from self._read_fragments(fragments, window, meter)

    @contextlib.contextmanager
    def _reporting(self, meter: ScanMeter) -> Iterator[None]:
        try:
            yield
        finally:
            self._metrics = meter.metrics()
            report(self._table.uri, self._table.manifest.version, self._metrics, self._options.scan_stats_callback)

    def _read_fragments(
        self, fragments: Iterable[FragmentRanges], window: Window, meter: ScanMeter
    ) -> Iterator[JoinedRows]:
        reads = FragmentReads(self._stages, self._batch_size, self._batch_bytes, self._position)
        yield from reads.read(fragments, window, meter)

    def _applied(self, found: Iterable[JoinedRows]) -> Iterator[pa.RecordBatch]:
        """Compute the outputs."""
        applied = (self._projection.apply(joined.batch, *joined.parts) for joined in found)
        yield from applied if self._batch_bytes is None else within_bytes(applied, self._batch_bytes)

    def _position(self, scan: FragmentReader) -> int:
        return self._positions.get(scan.fragment.id, 0)

    @cached_property
    def _positions(self) -> dict[int, int]:
        """Return the number of rows before each fragment; empty if no output needs it."""
        if ROW_OFFSET not in (*self._projection.row_columns, *self._projection.filter_row_columns):
            return {}
        return self._table.rows_before()

    def _scan(self, fragment: FragmentMetadata) -> FragmentReader:
        return self._table.scan(fragment, self._projection.source)
