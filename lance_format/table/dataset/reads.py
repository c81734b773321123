"""The methods of `LanceDataset` that read a table."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lance_format.arguments import checked_methods
from lance_format.errors import InvalidInputError
from lance_format.file import BlobFile
from lance_format.table.dataset.delta import DatasetDelta, choose_versions
from lance_format.table.dataset.fragment import LanceFragment
from lance_format.table.dataset.scan_methods import ScanMethods
from lance_format.table.scan.choose import open_scanner
from lance_format.table.scan.column_bounds import ColumnBounds, column_bounds
from lance_format.table.scan.metrics import MetricsCallback
from lance_format.table.scan.options import OrderBy, ScanOptions
from lance_format.table.scan.projection import Columns, Filter
from lance_format.table.scan.scanner import LanceScanner, plan_output
from lance_format.table.scan.take import Indices, take_places, take_row_ids
from lance_format.table.scan.take_blobs import read_blob_ranges, read_blobs, take_blobs
from lance_format.table.versions.checkout import check_out
from lance_format.table.versions.open_table import OpenTable


@checked_methods
class DatasetReads(OpenTable, ScanMethods):
    """Methods that read a version of a table. Part of `LanceDataset`."""

    _default_scan_options: Mapping[str, Any]

    def scanner(
        self,
        columns: Columns | None = None,
        filter: Filter | None = None,
        limit: int | None = None,
        offset: int | None = None,
        batch_size: int | None = None,
        fragments: Iterable[LanceFragment] | None = None,
        *,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        blob_handling: str | None = None,
        order_by: OrderBy | None = None,
        scan_stats_callback: MetricsCallback | None = None,
        use_scalar_index: bool | None = None,
        strict_batch_size: bool | None = None,
        include_deleted_rows: bool | None = None,
        **tuning: Any,
    ) -> LanceScanner:
        """Say which rows and columns to read.

        Parameters
        ----------
        columns : sequence of str, mapping of str to str, or pa.Schema, optional
            Names of columns, of fields below structs (`a.b`), and of row columns (`_rowid`, `_rowaddr`, `_rowoffset`,
            `_fragid`, `_row_created_at_version`, `_row_last_updated_at_version`), in the order wanted; or SQL
            expressions by the names of their results; or a schema that has these columns, and of structs only these
            fields, whatever types it gives their values. All columns of the table if not given.
        filter : str or pyarrow.compute.Expression, optional
            Which rows: SQL, or an expression of pyarrow.
        limit : int, optional
            How many rows at most.
        offset : int, optional
            How many rows to skip.
        batch_size : int, optional
            The most rows that a batch has; if not given, what the environment variable `LANCE_DEFAULT_BATCH_SIZE`
            says, or 8192.
        fragments : iterable of LanceFragment, optional
            All if not given.
        with_row_id, with_row_address : bool, optional
            Whether to add the columns `_rowid` and `_rowaddr`.
        blob_handling : {"blobs_descriptions", "all_descriptions", "all_binary"}, optional
            What columns of blobs are read as: structs that say where each blob is, which is the default and what the
            first two say, or their bytes. These make batches smaller where they are large.
        order_by : sequence of ColumnOrdering or str, optional
            The columns that rows are sorted by, the first one before the others; by their names ascending, with nulls
            last. NaN exceeds all other numbers. The window is one of the sorted rows.
        scan_stats_callback : callable, optional
            Called with the `ScanMetrics` of every scan when it ends: requests and bytes of data files, fragments and
            rows looked at and skipped. What it raises is logged.
        use_scalar_index : bool, optional
            Whether to leave out the rows that ZONEMAP indices say cannot match the filter, as is done if not given.
        strict_batch_size : bool, optional
            Whether all batches but the last have `batch_size` rows, also where fragments end.
        include_deleted_rows : bool, optional
            Whether to return deleted rows among the others, so far as they are still in the files. Their `_rowid`,
            which has to be asked for, and `_rowaddr` are null. For scans without `filter` and `order_by`.
        **tuning
            Arguments by which pylance is told how to read, not what (`batch_readahead`, `scan_in_order`, …): accepted,
            and of no effect.

        Raises
        ------
        InvalidInputError
            If an argument makes no sense.
        NotSupportedError
            If vectors or full text are to be searched.
        """
        given = {
            "columns": columns,
            "filter": filter,
            "limit": limit,
            "offset": offset,
            "batch_size": batch_size,
            "fragments": None if fragments is None else [fragment.metadata for fragment in fragments],
            "with_row_id": with_row_id,
            "with_row_address": with_row_address,
            "blob_handling": blob_handling,
            "order_by": order_by,
            "scan_stats_callback": scan_stats_callback,
            "strict_batch_size": strict_batch_size,
            "use_scalar_index": use_scalar_index,
            "include_deleted_rows": include_deleted_rows,
            **tuning,
        }
        chosen = {name: value for name, value in given.items() if value is not None}
        return open_scanner(self._table, ScanOptions.of({**self._default_scan_options, **chosen}))

    def read_schema(self, blob_handling: str | None = None) -> pa.Schema:
        """Return the columns of a scan of all columns, and their types.

        Parameters
        ----------
        blob_handling : str, optional
            See `scanner`.
        """
        return plan_output(self._table, ScanOptions(blob_handling=blob_handling)).schema

    def count_rows(self, filter: Filter | None = None) -> int:
        """Count the rows, deleted ones not included, that a filter lets pass."""
        return LanceScanner(self._table, ScanOptions(columns=[], filter=filter)).count_rows()

    def __len__(self) -> int:
        """Count the rows, deleted ones not included."""
        return self.count_rows()

    def __bool__(self) -> bool:
        """Return True: a table without rows is a table."""
        return True

    def column_bounds(self, columns: Sequence[str]) -> dict[str, ColumnBounds]:
        """Return minimum, maximum and number of nulls of columns, as far as they are known without reading any.

        See `lance_format.table.scan.column_bounds`: what is not exact, or is of a table with deleted rows, is left out.
        """
        return column_bounds(self._table, columns)

    def delta(
        self,
        compared_against: int | None = None,
        *,
        begin_version: int | None = None,
        end_version: int | None = None,
    ) -> DatasetDelta:
        """Tell what has changed after one version, up to and with another, of this branch.

        Parameters
        ----------
        compared_against : int, optional
            The earlier version, where the later one is the version that this object shows.
        begin_version, end_version : int, optional
            Both, without `compared_against`.

        Raises
        ------
        InvalidInputError
            If the arguments make no sense.
        VersionNotFoundError
            If the later version is gone.
        """
        begin, end = choose_versions(self._table.manifest.version, compared_against, begin_version, end_version)
        is_this = end == self._table.manifest.version
        return DatasetDelta(begin, self._table if is_this else check_out(self._table, end))

    def slice(self, start: int, end: int, columns: Columns | None = None) -> pa.Table:
        """Read the rows from place `start` up to, but not with, place `end`, as far as there are."""
        if end < start:
            raise InvalidInputError(f"a slice from row {start} to {end} ends before it begins")
        return self.to_table(columns, offset=start, limit=end - start)

    def sample(
        self, num_rows: int, columns: Columns | None = None, randomize_order: bool = True, **options: Any
    ) -> pa.Table:
        """Read some rows chosen at random, each at most once; in the order of the table unless `randomize_order`."""
        total = self.count_rows()
        if isinstance(num_rows, bool) or not isinstance(num_rows, int) or not 0 <= num_rows <= total:
            raise InvalidInputError(f"num_rows is {num_rows!r}; there are {total} rows to choose from")
        places = random.sample(range(total), num_rows)
        return self.take(places if randomize_order else sorted(places), columns, **options)

    def take(self, indices: Indices, columns: Columns | None = None, *, blob_handling: str | None = None) -> pa.Table:
        """Read rows by their place.

        Parameters
        ----------
        indices : sequence of int, or integer array of numpy or Arrow
            Places among the rows that are not deleted, from 0; in any order, repeated at will.
        columns : sequence of str, or mapping of str to str, optional
            See `scanner`.
        blob_handling : str, optional
            See `scanner`.

        Returns
        -------
        pa.Table
            The rows in the order of `indices`.

        Raises
        ------
        InvalidInputError
            If there is no such row or column.
        """
        return take_places(self._table, indices, columns, blob_handling=blob_handling)

    def take_rows(
        self, row_ids: Indices, columns: Columns | None = None, *, blob_handling: str | None = None
    ) -> pa.Table:
        """Read rows by their ids, as the column `_rowid` has them; those of rows that are not there are left out."""
        return take_row_ids(self._table, row_ids, columns, blob_handling=blob_handling)

    def take_blobs(
        self,
        blob_column: str,
        ids: Indices | None = None,
        addresses: Indices | None = None,
        indices: Indices | None = None,
    ) -> list[BlobFile | None]:
        """Open single blobs as files, of which only what is read is fetched.

        Parameters
        ----------
        blob_column : str
        ids, addresses, indices : sequence of int, or integer array of numpy or Arrow, optional
            Exactly one of them: row ids, row addresses, or places as `take` has them. In any order, repeated at will.

        Returns
        -------
        list of BlobFile or None
            In the order asked for; None for what is null.

        Raises
        ------
        InvalidInputError
            If the column has no blobs, there is no such row, or not exactly one kind of them is given.
        CorruptFileError
            If a blob is said to be where its file has no such bytes.
        """
        return take_blobs(self._table, blob_column, ids=ids, addresses=addresses, indices=indices)

    def read_blobs(
        self,
        blob_column: str,
        ids: Indices | None = None,
        addresses: Indices | None = None,
        indices: Indices | None = None,
        *,
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, bytes | None]]:
        """Read whole blobs.

        Parameters
        ----------
        blob_column, ids, addresses, indices
            See `take_blobs`.
        io_buffer_size, preserve_order
            Of no effect: the order is always that asked for.

        Returns
        -------
        list of tuple of int and (bytes or None)
            The address of each row, and its blob; None for what is null.

        Raises
        ------
        InvalidInputError, CorruptFileError
            See `take_blobs`.
        """
        del io_buffer_size, preserve_order
        return read_blobs(self._table, blob_column, ids=ids, addresses=addresses, indices=indices)

    def read_blob_ranges(
        self,
        blob_column: str,
        requests: Sequence[tuple[int, int, int]],
        *,
        selector: str,
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, int, bytes | None]]:
        """Read parts of blobs, those of one blob with as few requests as possible.

        Parameters
        ----------
        blob_column : str
        requests : sequence of tuple of int, int and int
            A row, which may be repeated, the first byte of its blob that is wanted, and how many bytes.
        selector : {"ids", "addresses", "indices"}
            What rows are given by; see `take_blobs`.
        io_buffer_size, preserve_order
            Of no effect: the order is always that of the requests.

        Returns
        -------
        list of tuple of int, int and (bytes or None)
            The number of each request, the address of its row, and the bytes; None if the blob is null.

        Raises
        ------
        InvalidInputError
            As from `take_blobs`; or if a blob has not so many bytes.
        """
        del io_buffer_size, preserve_order
        return read_blob_ranges(self._table, blob_column, requests, selector)
