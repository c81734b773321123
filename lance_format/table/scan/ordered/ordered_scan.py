"""Sorted scans: the sort columns are read first, then the rows in their order."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from lance_format.arguments import checked_methods
from lance_format.arrow_rows import take_rows
from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError
from lance_format.expressions import Expression, as_expression, conjunction, conjuncts
from lance_format.table.fragments.row_columns import ROW_OFFSET
from lance_format.table.scan.metrics import ScanMeter
from lance_format.table.scan.options import ColumnOrdering, ScanOptions
from lance_format.table.scan.ordered.sort_order import (
    as_ordering,
    first_indices,
    is_comparable,
    not_after,
    sorted_indices,
)
from lance_format.table.scan.ordered.zone_order import Zones
from lance_format.table.scan.scanned_fragment import Window
from lance_format.table.scan.scanner import LanceScanner
from lance_format.table.scan.take import locate_row_numbers, take_found
from lance_format.table.scan.tasks import DEFAULT_SPLIT_SIZE_BYTES, FragmentRanges, ScanTask
from lance_format.table.versions.table_version import TableVersion

_PENDING_ROWS = 32 * 1024
"""Minimum number of rows that are sorted at once."""
_GROWTH = 4
_EXPANSION = 16
"""How much larger than in their files the first rows may be."""
_SAMPLED_FRAGMENTS = 64


@checked_methods
class OrderedScanner(LanceScanner):
    """A scanner that returns sorted rows; see `LanceDataset.scanner`.

    Without a limit, the sort columns of all passing rows are held in memory, and 16 bytes more per row. With one, the
    best rows so far are, and rows that the first sort column puts after all of them are skipped: whole zones by their
    statistics, other rows before their other columns are read.

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
        self._orderings = [as_ordering(ordering) for ordering in options.order_by]
        self._num_needed = None if options.limit is None else options.offset + options.limit
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
        self._keys = KeyScanner(table, keys)
        self._rows = dataclasses.replace(options, filter=None).project(table.manifest.schema)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read the sorted rows as a stream."""
        yield from self._sorted(self._keys.read_keys(self._orderings, self._num_needed), self._options.offset)

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
        yield from self._sorted(self._keys.read_keys(self._orderings, self._num_needed, task), 0)

    def _sorted(self, keys: pa.Table, offset: int) -> Iterator[pa.RecordBatch]:
        self._metrics = self._keys.metrics
        order = sorted_indices(keys, self._orderings)
        positions = keys[ROW_OFFSET].to_numpy()[order[offset : self._num_needed]]
        found = locate_row_numbers(self._table, positions)
        start, count = 0, self._first_rows()
        while start < positions.size:
            fragment_ids, offsets = (numbers[start : start + count] for numbers in found)
            rows = take_found(self._table, self._rows, fragment_ids, offsets)
            start += count
            if self._batch_bytes is not None:
                fitting = self._batch_bytes * rows.num_rows // max(rows.nbytes, 1)
                count = max(min(fitting, count * _GROWTH, self._batch_size), 1)
            yield from (rows.combine_chunks() if rows.num_columns else rows).to_batches()

    def _first_rows(self) -> int:
        """Return how many rows to read first: so few that they tell the size of others, judged by that in files."""
        if self._batch_bytes is None:
            return self._batch_size
        sample = self._table.manifest.fragments[:_SAMPLED_FRAGMENTS]
        stored, num_rows = sum(part.known_bytes for part in sample), sum(part.physical_rows for part in sample)
        return max(min(self._batch_bytes * num_rows // max(_EXPANSION * stored, 1), self._batch_size), 1)


class KeyScanner(LanceScanner):
    """A scanner of sort columns and `_rowoffset`."""

    def read_keys(self, orderings: list[ColumnOrdering], count: int | None, task: ScanTask | None = None) -> pa.Table:
        """Read the keys of all rows, or some among which those of the first rows are.

        Parameters
        ----------
        orderings : list of ColumnOrdering
        count : int, optional
            Number of first rows; by default all.
        task : ScanTask, optional
            The rows to choose from; by default all.
        """
        meter = self._meter(Window(), task)
        found = self._whole() if task is None else self._ranges_of(task)
        with self._reporting(meter):
            column = self._comparable(orderings[0])
            if count is None or column is None:
                return pa.Table.from_batches(self._read_step(found, meter), self.projected_schema)
            fragments = [part for part in found if len(part[1])]
            if not fragments or not count:
                return self.projected_schema.empty_table()
            return self._first_keys(Zones.of(fragments, column, orderings[0]), orderings, count, meter)

    def _first_keys(self, zones: Zones, orderings: list[ColumnOrdering], count: int, meter: ScanMeter) -> pa.Table:
        """Read zones, in steps that grow, without rows that the first sort column puts after enough known ones."""
        best, scanner = self.projected_schema.empty_table(), self
        comparable = list(itertools.takewhile(self._comparable, orderings))
        num_rows = pending_rows = max(_PENDING_ROWS, 4 * count)
        while len(zones):
            part, zones = zones.cut(num_rows)
            num_rows *= _GROWTH
            pending, size = [best], best.num_rows
            for batch in scanner._read_step(part, meter):
                pending.append(pa.Table.from_batches([batch]))
                size += batch.num_rows
                if size >= pending_rows:
                    pending = [_first(pending, orderings, count)]
                    size = pending[0].num_rows
            best = _first(pending, orderings, count)
            if best.num_rows == count:
                worst = [best[ordering.column_name][-1] for ordering in comparable]
                # Rows that the first column excludes need no other column.
                terms = [not_after(worst[:number], comparable[:number]) for number in sorted({1, len(worst)})]
                scanner = self._narrowed(terms)
                zones = zones.within(as_expression(terms[0], self.projected_schema))
        return best

    def _read_step(self, fragments: Iterable[FragmentRanges], meter: ScanMeter) -> Iterator[pa.RecordBatch]:
        """Read keys without reporting the scan."""
        meter.begin(self._pace(Window()))
        yield from self._applied(self._read_fragments(fragments, Window(), meter))

    def _narrowed(self, terms: Sequence[Expression]) -> KeyScanner:
        """Return the scanner of those rows for which further terms hold."""
        predicate = self._projection.filter
        given = () if predicate is None else conjuncts(predicate.expression)
        return KeyScanner(self._table, dataclasses.replace(self._options, filter=conjunction((*terms, *given))))

    def _comparable(self, ordering: ColumnOrdering) -> Schema | None:
        """Return the stored column of an ordering; None if filters cannot compare its values as they are sorted."""
        fields = [field for field in self._projection.output_source.fields if field.name == ordering.column_name]
        column = dataclasses.replace(self._projection.output_source, fields=tuple(fields))
        visible = self.projected_schema.field(ordering.column_name).type
        return column if is_comparable(visible) and column.to_storage().types == [visible] else None


def _first(parts: list[pa.Table], orderings: list[ColumnOrdering], count: int) -> pa.Table:
    rows = pa.concat_tables(parts)
    return take_rows(rows, pa.array(first_indices(rows, orderings, count)))
