"""Scans that return the rows that match a text query, the best ones first."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.arguments import checked_methods
from lance_format.blob_fields import BlobHandling, read_schema
from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.masks import filter_values
from lance_format.table.batches.streams import of_equal_size
from lance_format.table.fragments.row_columns import ROW_ADDRESS, ROW_ID, ROW_OFFSET, LiveRows
from lance_format.table.row_ids.index import row_addresses, split_addresses
from lance_format.table.scan.options import ScanOptions
from lance_format.table.scan.planned_reads import PlannedReads
from lance_format.table.scan.projection import Projection, plan_projection
from lance_format.table.scan.scanned_fragment import ScannedRows, Window
from lance_format.table.scan.scanner import LanceScanner
from lance_format.table.scan.tasks import DEFAULT_SPLIT_SIZE_BYTES, ScanTask
from lance_format.table.text_search.hits import Hits
from lance_format.table.text_search.search import SearchScope, TextSearch, as_query
from lance_format.table.versions.table_version import TableVersion

SCORE = "_score"
_SCORE_FIELD = Schema.from_arrow(pa.schema([pa.field(SCORE, pa.float32())])).fields[0]


@checked_methods
class TextScanner(LanceScanner):
    """A scanner of the rows that match a text query, by descending `_score`; see `LanceDataset.scanner`.

    Rows of equal scores are in the order of the table. Addresses and scores of all matches are held in memory.

    Parameters
    ----------
    table : TableVersion
    options : ScanOptions
        A filter is applied before the search if `prefilter` is set, else to its first `limit` rows.

    Raises
    ------
    InvalidInputError
        If an option does not fit the table, or deleted rows are asked for.
    NotSupportedError
        If the rows are to be sorted, or some fragments are to be read.
    """

    def __init__(self, table: TableVersion, options: ScanOptions) -> None:
        if options.include_deleted_rows:
            raise InvalidInputError("include_deleted_rows is set, and a text query cannot find deleted rows")
        for name, value in (("order_by", options.order_by), ("fragments", options.fragments)):
            if value:
                raise NotSupportedError(f"{name} is not supported with full_text_query")
        super().__init__(table, dataclasses.replace(options, columns=[], filter=None))
        self._query = as_query(table, options.full_text_query)
        self._options = options
        self._prefilter = LanceScanner(table, _prefilter(options)) if options.prefilter and options.filter else None
        self._projection = _plan(table, options)

    def explain_plan(self, verbose: bool = False) -> str:
        """Describe the search as text for people.

        Parameters
        ----------
        verbose : bool
            Whether to add the types of the columns.
        """
        lines = [f"text search: {self._query!r}"]
        for when, scanner in (("before", self._prefilter), ("after", self)):
            if scanner is not None and scanner.filter_text:
                lines.append(f"filter {when} the search: {scanner.filter_text}")
        fields = self.projected_schema
        lines.append(f"columns: {', '.join(f'{x.name}: {x.type}' if verbose else x.name for x in fields)}")
        title = f"TextScan: {self._table.uri}, version {self._table.manifest.version}"
        return "\n".join([title, *(f"  {line}" for line in lines)])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows by descending score, as a stream."""
        found = (self._projection.apply(batch) for batch in self._matching_batches())
        yield from of_equal_size(found, self._batch_size) if self._options.strict_batch_size else found

    def count_rows(self) -> int:
        """Count the rows."""
        return sum(batch.num_rows for batch in self._matching_batches())

    def matching(self) -> Iterator[ScannedRows]:
        """Refuse to read rows with their places.

        Raises
        ------
        NotSupportedError
            Always.
        """
        raise NotSupportedError("the rows of a text query are read by to_batches")

    def plan_reads(self) -> PlannedReads:
        """Refuse to find the pages that would be read.

        Raises
        ------
        NotSupportedError
            Always.
        """
        raise NotSupportedError("the reads of a text query cannot be planned")

    def plan_tasks(self, split_size_bytes: int = DEFAULT_SPLIT_SIZE_BYTES, *, min_tasks: int = 1) -> list[ScanTask]:
        """Refuse to divide the search.

        Raises
        ------
        NotSupportedError
            Always.
        """
        del split_size_bytes, min_tasks
        raise NotSupportedError("a text query cannot be divided into tasks: scores depend on all rows")

    def read_task(self, task: ScanTask) -> Iterator[pa.RecordBatch]:
        """Refuse to read a part of the rows.

        Raises
        ------
        NotSupportedError
            Always.
        """
        del task
        raise NotSupportedError("a text query cannot be divided into tasks: scores depend on all rows")

    def read_rows(self, fragment_id: int, offsets: npt.NDArray[np.int64] | None = None) -> Iterator[pa.RecordBatch]:
        """Refuse to read rows of one fragment.

        Raises
        ------
        NotSupportedError
            Always.
        """
        del fragment_id, offsets
        raise NotSupportedError("a text query cannot be divided into fragments: scores depend on all rows")

    def _matching_batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows that pass the filter and the window, with all columns that outputs need."""
        window = Window(self._options.offset, self._options.limit)
        meter = self._meter(window)
        with self._reporting(meter):
            hits = self._best()
            for start in range(0, hits.scores.size, self._batch_size):
                chosen = slice(start, start + self._batch_size)
                batch = self._rows(hits.addresses[chosen], hits.scores[chosen])
                meter.rows_scanned += batch.num_rows
                if self._projection.filter is not None:
                    mask = self._projection.mask(batch)
                    batch = pa.RecordBatch.from_arrays(
                        [filter_values(column, mask) for column in batch.columns], names=batch.schema.names
                    )
                skipped, kept = window.pass_rows(batch.num_rows)
                if kept:
                    yield batch.slice(skipped, kept)
                if window.is_over:
                    return

    def _best(self) -> Hits:
        """Return the rows to read, which a filter may still drop, by descending score."""
        options = self._options
        allowed = None
        if self._prefilter is not None:
            parts = [
                row_addresses(np.full(rows.offsets.size, rows.scan.fragment.id, np.int64), rows.offsets)
                for rows in self._prefilter.matching_rows()
            ]
            allowed = np.sort(np.concatenate([np.zeros(0, np.uint64), *parts]))
        search = TextSearch(SearchScope(self._table, allowed, options.fast_search))
        return search.find(self._query).best(None if options.limit is None else options.offset + options.limit)

    def _rows(self, addresses: npt.NDArray[np.uint64], scores: npt.NDArray[np.float32]) -> pa.RecordBatch:
        """Read the columns of rows, in their order."""
        fragment_ids, offsets = split_addresses(addresses)
        order = np.argsort(addresses)
        batches = []
        for group in np.split(order, np.flatnonzero(np.diff(fragment_ids[order])) + 1):
            number = int(fragment_ids[group[0]])
            fragment = self._table.manifest.fragment(number)
            assert fragment is not None
            scan = self._table.scan(fragment, self._stored)
            rows = LiveRows(scan, offsets[group], self._before.get(number, 0))
            batch = self._projection.complete(scan.take_physical(offsets[group]), rows)
            columns = [*batch.columns, pa.array(scores[group])]
            batches.append(pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names, SCORE]))
        inverse = np.empty_like(order)
        inverse[order] = np.arange(order.size)
        (batch,) = pa.Table.from_batches(batches).take(pa.array(inverse)).combine_chunks().to_batches()
        return batch

    @cached_property
    def _stored(self) -> Schema:
        """The stored columns that outputs and filter need."""
        source = self._projection.source
        return dataclasses.replace(source, fields=tuple(field for field in source.fields if field.name != SCORE))

    @cached_property
    def _before(self) -> dict[int, int]:
        """Number of rows before each fragment; empty if no output needs it."""
        return self._table.rows_before() if ROW_OFFSET in self._projection.row_columns else {}


def _prefilter(options: ScanOptions) -> ScanOptions:
    return ScanOptions(columns=[], filter=options.filter, use_scalar_index=options.use_scalar_index)


def _plan(table: TableVersion, options: ScanOptions) -> Projection:
    """Plan the columns of the result, where `_score` counts as stored."""
    stored = read_schema(table.manifest.schema, BlobHandling.parse(options.blob_handling))
    if SCORE in stored.names:
        raise InvalidInputError(f"the table has a column {SCORE!r}, which text queries return; rename it")
    scored = dataclasses.replace(stored, fields=(*stored.fields, _SCORE_FIELD))
    wanted = {SCORE: options.with_scores, ROW_ID: options.with_row_id, ROW_ADDRESS: options.with_row_address}
    projection = plan_projection(
        scored,
        list(stored.names) if options.columns is None else options.columns,
        None if options.prefilter else options.filter,
        extra=[name for name in wanted if wanted[name]],
    )
    needed = dict.fromkeys((*projection.row_columns, *projection.filter_row_columns))
    return dataclasses.replace(projection, row_columns=tuple(needed))
