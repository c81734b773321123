"""The methods of `LanceDataset` that read a table."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
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
from lance_format.table.scan.options import OrderBy, ScanOptions, ScanTuning
from lance_format.table.scan.projection import Columns, Filter
from lance_format.table.scan.scanner import LanceScanner
from lance_format.table.scan.take import RowSelection, take_addresses, take_row_ids, take_row_numbers
from lance_format.table.scan.take_blobs import payload_sizes, read_blob_ranges, read_blobs, take_blobs
from lance_format.table.text_search.search import TextRequest
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
        batch_size_bytes: int | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        blob_handling: str | None = None,
        order_by: OrderBy | None = None,
        scan_stats_callback: MetricsCallback | None = None,
        use_scalar_index: bool | None = None,
        strict_batch_size: bool | None = None,
        include_deleted_rows: bool | None = None,
        nearest: Mapping[str, Any] | None = None,
        full_text_query: TextRequest | None = None,
        prefilter: bool | None = None,
        fast_search: bool | None = None,
        disable_scoring_autoprojection: bool | None = None,
        rrf_k: int | None = None,
        **tuning: Unpack[ScanTuning],
    ) -> LanceScanner:
        """Return a scanner of some rows and columns.

        Parameters
        ----------
        columns : sequence of str, mapping of str to str, or pa.Schema, optional
            Names of columns, of fields below structs (`a.b`), and of row columns (`_rowid`, `_rowaddr`, `_rowoffset`,
            `_fragid`, `_row_created_at_version`, `_row_last_updated_at_version`), in output order; or SQL expressions
            by output name; or a schema of the columns and struct fields to read, whose types are ignored. By default
            all columns of the table.
        filter : str or pyarrow.compute.Expression, optional
            Condition on the rows to read.
        limit, offset : int, optional
            Maximum number of rows, and number of rows to skip before.
        batch_size : int, optional
            Maximum number of rows per batch. By default the environment variable `LANCE_DEFAULT_BATCH_SIZE`, or 8192.
        batch_size_bytes : int, optional
            Approximate maximum size of a batch in memory. By default 64 MiB, or any if `batch_size` is given.
        fragments : iterable of LanceFragment, optional
            The fragments to read, by default all.
        with_row_id, with_row_address : bool, optional
            Whether the last columns are `_rowid` and `_rowaddr`.
        blob_handling : {"blobs_descriptions", "all_descriptions", "all_binary"}, optional
            The form of blob columns: structs that locate each blob (the first two, and the default), or the bytes.
            Large bytes make batches smaller.
        order_by : sequence of ColumnOrdering or str, optional
            The sort columns, most significant first. A name alone sorts ascending with nulls last. NaN exceeds all
            other numbers. `limit` and `offset` apply to the sorted rows.
        scan_stats_callback : callable, optional
            Called with the `ScanMetrics` of every scan when it ends: requests and bytes of data files, fragments and
            rows read and skipped. Its exceptions are logged.
        use_scalar_index : bool, optional
            Whether to skip the rows that cannot match the filter according to indices. True by default.
        strict_batch_size : bool, optional
            Whether all batches except the last have `batch_size` rows, even across fragments.
        include_deleted_rows : bool, optional
            Whether to return deleted rows too, unless they are no longer in the files. Their `_rowid`, which the scan
            must include, and `_rowaddr` are null; a filter cannot use these. Not allowed with `order_by`.
        nearest : mapping of str to object, optional
            A search for the rows whose vectors are nearest to `q`: only these are returned, nearest first, with the
            column `_distance`. `column` and `q` are needed. `q` is a vector, or several for as many searches, whose
            rows the column `query_index` tells apart; of a column of lists of vectors, several are one search. Others
            are `k` (by default what `limit` and `offset` need, or 10), `metric` (`"l2"`, `"cosine"`, `"dot"`,
            `"hamming"`), `distance_range` (a half-open range of distances), and about vector indices `use_index`
            (True), `nprobes`, `minimum_nprobes` (20), `maximum_nprobes`, and `refine_factor`: compute the exact
            distances of as many times `k` rows.
        full_text_query : str, mapping of str to object, or lance_format.query.FullTextQuery, optional
            The text to search for: a text, `{"query": …, "columns": […]}`, or a query. A text is searched for in all
            columns with INVERTED indices, or in `columns`; one in double quotes is a phrase. The rows are returned by
            descending `_score`. With `nearest`, rows that one of both searches finds are returned by descending
            `_relevance_score`, in which the best of both are first; each search finds `k` rows.
        prefilter : bool, optional
            Whether a search only considers rows that pass `filter`. By default the filter applies to the rows found, of
            a text query to the first `limit` rows. Other scans ignore it.
        fast_search : bool, optional
            Whether a search leaves out rows that no index covers. By default it reads them.
        disable_scoring_autoprojection : bool, optional
            Whether `_distance`, `_score` and `_relevance_score` are returned only if `columns` has them.
        rrf_k : int, optional
            What is added to the ranks of both searches, 60 by default. The higher it is, the more do rows that both
            find precede those that one has found first. A row's score is the sum of the reciprocals.
        **tuning
            Tuning arguments of pylance (`batch_readahead`, `scan_in_order`, …): accepted and ignored.

        Raises
        ------
        InvalidInputError
            If an argument is invalid.
        NotSupportedError
            If the index of a text query is of an unknown form.
        """
        given = {
            "columns": columns,
            "filter": filter,
            "limit": limit,
            "offset": offset,
            "batch_size": batch_size,
            "batch_size_bytes": batch_size_bytes,
            "fragments": None if fragments is None else [fragment.metadata for fragment in fragments],
            "with_row_id": with_row_id,
            "with_row_address": with_row_address,
            "blob_handling": blob_handling,
            "order_by": order_by,
            "scan_stats_callback": scan_stats_callback,
            "strict_batch_size": strict_batch_size,
            "use_scalar_index": use_scalar_index,
            "include_deleted_rows": include_deleted_rows,
            "nearest": nearest,
            "full_text_query": full_text_query,
            "prefilter": prefilter,
            "fast_search": fast_search,
            "disable_scoring_autoprojection": disable_scoring_autoprojection,
            "rrf_k": rrf_k,
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
        return ScanOptions(blob_handling=blob_handling).project(self._table.manifest.schema).schema

    def count_rows(self, filter: Filter | None = None) -> int:
        """Count the live rows that pass a filter."""
        return LanceScanner(self._table, ScanOptions(columns=[], filter=filter)).count_rows()

    def __len__(self) -> int:
        """Count the live rows."""
        return self.count_rows()

    def __bool__(self) -> bool:
        """Return True: a table without rows is a table."""
        return True

    def column_bounds(
        self, columns: Sequence[str], fragment_ids: Sequence[int] | None = None
    ) -> dict[str, ColumnBounds]:
        """Return minimum, maximum and number of nulls of columns, if they are known without reading values.

        Inexact bounds, and those of fragments with deleted rows, are omitted; see
        `lance_format.table.scan.column_bounds`.

        Parameters
        ----------
        columns : sequence of str
            Names of top-level columns.
        fragment_ids : sequence of int, optional
            The fragments; by default all.
        """
        return column_bounds(self._table, columns, fragment_ids)

    def delta(
        self,
        compared_against: int | None = None,
        *,
        begin_version: int | None = None,
        end_version: int | None = None,
    ) -> DatasetDelta:
        """Return the changes after one version of this branch, up to and including another.

        Parameters
        ----------
        compared_against : int, optional
            The earlier version. The later one is the version that this object shows.
        begin_version, end_version : int, optional
            The earlier and the later version, instead of `compared_against`.

        Raises
        ------
        InvalidInputError
            If the arguments are invalid.
        VersionNotFoundError
            If the later version no longer exists.
        """
        begin, end = choose_versions(self._table.manifest.version, compared_against, begin_version, end_version)
        is_this = end == self._table.manifest.version
        return DatasetDelta(begin, self._table if is_this else check_out(self._table, end))

    def slice(self, start: int, end: int, columns: Columns | None = None) -> pa.Table:
        """Read the rows at offsets `start <= offset < end`; fewer if the table ends before.

        Parameters
        ----------
        start, end : int
            Offsets among the live rows.
        columns : sequence of str, or mapping of str to str, optional
            See `scanner`.

        Raises
        ------
        InvalidInputError
            If `end` is less than `start`.
        """
        if end < start:
            raise InvalidInputError(f"a slice from row {start} to {end} ends before it begins")
        return self.to_table(columns, offset=start, limit=end - start)

    def sample(
        self,
        num_rows: int,
        columns: Columns | None = None,
        randomize_order: bool = True,
        *,
        blob_handling: str | None = None,
    ) -> pa.Table:
        """Read random rows, each at most once.

        Parameters
        ----------
        num_rows : int
            Number of rows.
        columns : sequence of str, or mapping of str to str, optional
            See `scanner`.
        randomize_order : bool
            Whether to return the rows in random order, not in that of the table.
        blob_handling : str, optional
            See `scanner`.

        Raises
        ------
        InvalidInputError
            If the table has fewer rows.
        """
        total = self.count_rows()
        if isinstance(num_rows, bool) or not isinstance(num_rows, int) or not 0 <= num_rows <= total:
            raise InvalidInputError(f"num_rows is {num_rows!r}; there are {total} rows to choose from")
        positions = random.sample(range(total), num_rows)
        return self.take(positions if randomize_order else sorted(positions), columns, blob_handling=blob_handling)

    def take(
        self, indices: RowSelection, columns: Columns | None = None, *, blob_handling: str | None = None
    ) -> pa.Table:
        """Read rows by their offset.

        Parameters
        ----------
        indices : sequence of int, or integer array of numpy or Arrow
            Offsets among the live rows, from 0, in any order. They may repeat.
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
        return take_row_numbers(self._table, indices, columns, blob_handling=blob_handling)

    def take_rows(
        self, row_ids: RowSelection, columns: Columns | None = None, *, blob_handling: str | None = None
    ) -> pa.Table:
        """Read rows by their ids. Ids of rows that do not exist are ignored.

        Parameters
        ----------
        row_ids : sequence of int, or integer array of numpy or Arrow
            Row ids, as in the column `_rowid`.
        columns : sequence of str, or mapping of str to str, optional
            See `scanner`.
        blob_handling : str, optional
            See `scanner`.

        Returns
        -------
        pa.Table
            The rows in the order of `row_ids`.
        """
        return take_row_ids(self._table, row_ids, columns, blob_handling=blob_handling)

    def take_addresses(
        self, addresses: RowSelection, columns: Columns | None = None, *, blob_handling: str | None = None
    ) -> pa.Table:
        """Read rows by their addresses in this version, as in the column `_rowaddr`.

        Addresses of rows that do not exist are ignored. See `take_rows` for the rest.
        """
        return take_addresses(self._table, addresses, columns, blob_handling=blob_handling)

    def payload_sizes(self, addresses: RowSelection, columns: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return how many bytes the blobs of rows have, without reading them.

        Parameters
        ----------
        addresses : sequence of int, or integer array of numpy or Arrow
            Row addresses, in any order.
        columns : sequence of str
            Columns of any type; those without blobs count as nothing.

        Returns
        -------
        int64[num_rows]
            Of all columns together. A blob counts at most 2^40 bytes.

        Raises
        ------
        InvalidInputError
            If a column or a row does not exist.
        """
        return payload_sizes(self._table, addresses, columns)

    def take_blobs(
        self,
        blob_column: str,
        ids: RowSelection | None = None,
        addresses: RowSelection | None = None,
        indices: RowSelection | None = None,
    ) -> list[BlobFile | None]:
        """Open single blobs as files, which fetch only the bytes that are read.

        Parameters
        ----------
        blob_column : str
        ids, addresses, indices : sequence of int, or integer array of numpy or Arrow, optional
            Exactly one of them: row ids, row addresses, or offsets as in `take`, in any order. They may repeat.

        Returns
        -------
        list of BlobFile or None
            The files in the order of the given rows; None for null blobs.

        Raises
        ------
        InvalidInputError
            If the column has no blobs, a row does not exist, or not exactly one of the three is given.
        CorruptFileError
            If a blob's description points outside its file.
        """
        return take_blobs(self._table, blob_column, ids=ids, addresses=addresses, indices=indices)

    def read_blobs(
        self,
        blob_column: str,
        ids: RowSelection | None = None,
        addresses: RowSelection | None = None,
        indices: RowSelection | None = None,
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
            Ignored. The order is always that of the given rows.

        Returns
        -------
        list of tuple of int and (bytes or None)
            The address of each row, and its blob; None for a null blob.

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
        """Read parts of blobs, with as few requests per blob as possible.

        Parameters
        ----------
        blob_column : str
        requests : sequence of tuple of int, int and int
            A row, the first byte of its blob to read, and the number of bytes. Rows may repeat.
        selector : {"ids", "addresses", "indices"}
            Meaning of the rows of `requests`; see `take_blobs`.
        io_buffer_size, preserve_order
            Ignored. The order is always that of `requests`.

        Returns
        -------
        list of tuple of int, int and (bytes or None)
            The index of each request, the address of its row, and the bytes; None if the blob is null.

        Raises
        ------
        InvalidInputError
            See `take_blobs`; or if a blob has fewer bytes.
        """
        del io_buffer_size, preserve_order
        return read_blob_ranges(self._table, blob_column, requests, selector)
