"""Scans that return rows in the order of a search, with what it computes of them."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.blob_fields import BlobHandling, read_schema
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.masks import is_true
from lance_format.table.batches.streams import of_equal_size
from lance_format.table.fragments.row_columns import ROW_ADDRESS, ROW_ID, ROW_OFFSET, addresses_of
from lance_format.table.row_ids.index import split_addresses
from lance_format.table.scan.joined_rows import ScannedRows
from lance_format.table.scan.options import ScanOptions
from lance_format.table.scan.ordered.sort_order import as_ordering, sorted_indices
from lance_format.table.scan.planned_reads import PlannedReads
from lance_format.table.scan.projection import Columns, Projection, plan_projection
from lance_format.table.scan.scanner import LanceScanner
from lance_format.table.scan.take import take_found
from lance_format.table.scan.tasks import DEFAULT_SPLIT_SIZE_BYTES, ScanTask
from lance_format.table.versions.table_version import TableVersion

Addresses = npt.NDArray[np.uint64]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class RankedRows:
    """Rows in the order of a search.

    Parameters
    ----------
    addresses : uint64[num_rows]
    computed : mapping of str to pa.Array
        What the search has computed of them.
    """

    addresses: Addresses
    computed: Mapping[str, pa.Array]

    def __len__(self) -> int:
        return self.addresses.size

    def chosen(self, rows: npt.NDArray[np.int64]) -> RankedRows:
        """Return some of the rows."""
        taken = pa.array(rows)
        return RankedRows(self.addresses[rows], {name: values.take(taken) for name, values in self.computed.items()})

    def read(self, table: TableVersion, projection: Projection) -> pa.Table:
        """Read columns of the rows."""
        return take_found(table, projection, *split_addresses(self.addresses), self.computed)


class RankedScanner(LanceScanner):
    """A scanner of the rows that a search finds. A base of those of vectors and of texts.

    `order_by`, `offset` and `limit` apply to the rows that pass the filter, unless it is applied before the search.

    Parameters
    ----------
    table : TableVersion
    options : ScanOptions
    computed : sequence of pa.Field
        The columns that the search adds, the one that ranks the rows first. Others precede all columns of the result.

    Raises
    ------
    InvalidInputError
        If an option is invalid, or the table has a column of such a name.
    NotSupportedError
        If fragments share an id, or deleted rows are asked for.
    """

    def __init__(self, table: TableVersion, options: ScanOptions, computed: Sequence[pa.Field]) -> None:
        if options.include_deleted_rows:
            raise NotSupportedError("include_deleted_rows is set, and deleted rows are not searched")
        if table.manifest.fragments.repeated_ids:
            raise NotSupportedError(
                f"fragments of {table.uri} share an id, as in tables of early releases, so that it cannot be searched;"
                " write it as a new table"
            )
        taken = [field.name for field in computed if field.name in table.manifest.schema.names]
        if taken:
            raise InvalidInputError(f"the table has a column {taken[0]!r}, which a search adds; rename the column")
        self._given = options
        self._computed = computed
        self._orderings = [as_ordering(ordering) for ordering in options.order_by]
        planned = options
        if options.prefilter:
            tested = ScanOptions(columns=[], filter=options.filter)
            tested.project(table.manifest.schema)  # Raises the errors of the filter here.
            planned = dataclasses.replace(options, filter=None)
        super().__init__(table, planned, _plan(table, planned, computed))

    @abstractmethod
    def _search(self) -> RankedRows:
        """Find the rows, of which the filter may drop some, in their order."""

    def find(self) -> Addresses:
        """Return the addresses of the rows that the search finds, in its order, before any other filter."""
        return self._search().addresses

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows in the order of the search, as a stream."""
        found = self._read_ranked(self._windowed(self._filtered(self._search())))
        yield from of_equal_size(found, self._batch_size) if self._options.strict_batch_size else found

    def count_rows(self) -> int:
        """Count the rows of the result."""
        return len(self._windowed(self._filtered(self._search())))

    def matching(self) -> Iterator[ScannedRows]:
        """Refuse to return rows in the order of the table.

        Raises
        ------
        NotSupportedError
            Always.
        """
        raise NotSupportedError("the rows of a search have no order in the table; read them by to_batches")

    def read_rows(self, fragment_id: int, offsets: npt.NDArray[np.int64] | None = None) -> Iterator[pa.RecordBatch]:
        """Refuse to read rows of one fragment, as `matching`."""
        del fragment_id, offsets
        yield from (batch for batch, _ in self.matching())

    def _filtered(self, found: RankedRows) -> RankedRows:
        """Drop the rows that do not pass the filter."""
        condition = self._projection.filter
        if condition is None or not len(found):
            return found
        stored = self._table.manifest.schema
        tested = plan_projection(stored, {"passes": condition.expression}, computed=self._computed)
        passes = is_true(found.read(self._table, tested).column(0))
        return found.chosen(np.flatnonzero(passes.to_numpy()))

    def _windowed(self, found: RankedRows) -> RankedRows:
        """Sort the rows, and apply offset and limit."""
        order = np.arange(len(found))
        if self._orderings and len(found):
            names = list(dict.fromkeys(ordering.column_name for ordering in self._orderings))
            keys = plan_projection(self._table.manifest.schema, names, computed=self._computed)
            values = found.read(self._table, keys)
            if ROW_OFFSET not in names:
                values = values.append_column(ROW_OFFSET, pa.array(order))
            order = sorted_indices(values, self._orderings)
        limit = len(found) if self._options.limit is None else self._options.limit
        return found.chosen(order[self._options.offset : self._options.offset + limit])

    def _read_ranked(self, found: RankedRows) -> Iterator[pa.RecordBatch]:
        """Read the outputs of rows, in their order."""
        for start in range(0, len(found), self._batch_size):
            part = found.chosen(np.arange(start, min(start + self._batch_size, len(found))))
            rows = part.read(self._table, self._projection)
            yield from (rows.combine_chunks() if rows.num_columns else rows).to_batches()


class SingleTaskScanner(RankedScanner):
    """A scanner whose search is one task, since scores depend on all rows; see `RankedScanner` for the parameters."""

    def plan_reads(self) -> PlannedReads:
        """Refuse to find the pages that would be read.

        Raises
        ------
        NotSupportedError
            Always.
        """
        raise NotSupportedError("the reads of a text query cannot be planned")

    def plan_tasks(self, split_size_bytes: int = DEFAULT_SPLIT_SIZE_BYTES, *, min_tasks: int = 1) -> list[ScanTask]:
        """Return one task, which is the whole search."""
        del split_size_bytes, min_tasks
        return [ScanTask(())]

    def read_task(self, task: ScanTask) -> Iterator[pa.RecordBatch]:
        """Read the rows by descending score."""
        del task
        return self.to_batches()


def filtered_addresses(table: TableVersion, options: ScanOptions) -> Addresses | None:
    """Return the addresses of the rows that a search may find, ascending; None if the filter is not applied before it.

    Parameters
    ----------
    table : TableVersion
    options : ScanOptions
        Of the search. Its filter, fragments and use of indices count.
    """
    if not options.prefilter or options.filter is None:
        return None
    scan = ScanOptions(
        columns=[], filter=options.filter, fragments=options.fragments, use_scalar_index=options.use_scalar_index
    )
    found = [addresses_of(rows) for rows in LanceScanner(table, scan).matching_rows()]
    addresses = np.concatenate([np.zeros(0, np.uint64), *found])
    if (addresses[1:] < addresses[:-1]).any():  # As where fragments are not in the order of their ids.
        addresses.sort()
    return addresses


def _plan(table: TableVersion, options: ScanOptions, computed: Sequence[pa.Field]) -> Projection:
    """Return the projection of a search: its further columns first, and what ranks the rows after the columns."""
    stored = read_schema(table.manifest.schema, BlobHandling.parse(options.blob_handling))
    columns = options.columns
    rank, *others = computed
    if others:
        columns = _preceded(stored.names if columns is None else columns, others)
    wanted = {
        rank.name: not options.disable_scoring_autoprojection,
        ROW_ID: options.with_row_id,
        ROW_ADDRESS: options.with_row_address,
    }
    extra = [name for name in wanted if wanted[name]]
    return plan_projection(stored, columns, options.filter, extra=extra, computed=computed)


def _preceded(columns: Columns, fields: Sequence[pa.Field]) -> Columns:
    """Return columns with others before them, unless they have these."""
    names = [field.name for field in fields]
    if isinstance(columns, pa.Schema):
        return pa.schema([*fields, *(field for field in columns if field.name not in names)])
    if isinstance(columns, str) or any(name in columns for name in names):
        return columns
    if isinstance(columns, Sequence):
        return [*names, *columns]
    return {**{name: name for name in names}, **columns}
