"""Saying step by step what to scan; see `LanceDataset.scanner`, which takes the same as arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack

from lance_format.arguments import checked_methods
from lance_format.errors import InvalidInputError
from lance_format.query import FullTextQuery
from lance_format.table.dataset.fragment import LanceFragment
from lance_format.table.scan.choose import open_scanner
from lance_format.table.scan.metrics import MetricsCallback
from lance_format.table.scan.options import OrderBy, ScanArguments, ScanOptions
from lance_format.table.scan.projection import Columns, Filter
from lance_format.table.scan.scanner import LanceScanner

if TYPE_CHECKING:
    from lance_format.table.dataset.dataset import LanceDataset


@checked_methods
class ScannerBuilder:
    """Builder of a scan. Every method sets the argument of `LanceDataset.scanner` of its name.

    Parameters
    ----------
    ds : LanceDataset
        The table to scan. Its `default_scan_options` are ignored; see `apply_defaults`.
    """

    def __init__(self, ds: LanceDataset) -> None:
        self._dataset = ds
        self._options: ScanArguments = {}

    def apply_defaults(self, default_opts: Mapping[str, Any]) -> Self:
        """Call the methods of these names.

        Raises
        ------
        InvalidInputError
            If there is none of a name.
        """
        for name, value in default_opts.items():
            setter = getattr(self, name, None)
            if setter is None or name.startswith(("_", "apply_", "to_")):
                raise InvalidInputError(f"a scan has no option {name!r}")
            setter(value)
        return self

    def columns(self, cols: Columns | None = None) -> Self:
        """Set the columns to read; all by default."""
        return self._set(columns=cols)

    def filter(self, filter: Filter | None) -> Self:
        """Set which rows to read."""
        return self._set(filter=filter)

    def limit(self, n: int | None = None) -> Self:
        """Set the maximum number of rows."""
        return self._set(limit=n)

    def offset(self, n: int | None = None) -> Self:
        """Set the number of rows to skip."""
        return self._set(offset=n)

    def batch_size(self, batch_size: int) -> Self:
        """Set the maximum number of rows per batch."""
        return self._set(batch_size=batch_size)

    def batch_size_bytes(self, batch_size_bytes: int) -> Self:
        """Set the approximate maximum size of a batch in memory."""
        return self._set(batch_size_bytes=batch_size_bytes)

    def strict_batch_size(self, strict_batch_size: bool = False) -> Self:
        """Set whether all batches except the last have `batch_size` rows."""
        return self._set(strict_batch_size=strict_batch_size)

    def with_fragments(self, fragments: Iterable[LanceFragment] | None) -> Self:
        """Set the fragments to read; all by default.

        Raises
        ------
        InvalidInputError
            If one of them is not a `LanceFragment`.
        """
        if fragments is None:
            return self._set(fragments=None)
        found = list(fragments)
        if not all(isinstance(fragment, LanceFragment) for fragment in found):
            raise InvalidInputError(f"fragments has {found!r}; LanceFragment are needed")
        return self._set(fragments=[fragment.metadata for fragment in found])

    def with_row_id(self, with_row_id: bool = True) -> Self:
        """Set whether to add the column `_rowid`."""
        return self._set(with_row_id=with_row_id)

    def with_row_address(self, with_row_address: bool = True) -> Self:
        """Set whether to add the column `_rowaddr`."""
        return self._set(with_row_address=with_row_address)

    def include_deleted_rows(self, flag: bool) -> Self:
        """Set whether to return deleted rows too."""
        return self._set(include_deleted_rows=flag)

    def blob_handling(self, blob_handling: str | None) -> Self:
        """Set the form of blob columns."""
        return self._set(blob_handling=blob_handling)

    def order_by(self, orderings: OrderBy | None) -> Self:
        """Set the sort columns."""
        return self._set(order_by=orderings)

    def use_scalar_index(self, use_scalar_index: bool = True) -> Self:
        """Set whether to skip rows that cannot match according to indices."""
        return self._set(use_scalar_index=use_scalar_index)

    def scan_stats_callback(self, callback: MetricsCallback) -> Self:
        """Set the function to call with the metrics of every scan when it ends."""
        return self._set(scan_stats_callback=callback)

    def full_text_search(self, query: str | FullTextQuery, columns: Sequence[str] | None = None) -> Self:
        """Set the text to search for.

        Parameters
        ----------
        query : str or FullTextQuery
        columns : sequence of str, optional
            The columns to search for a text; by default all that have an INVERTED index.
        """
        return self._set(full_text_query={"query": query, "columns": None if columns is None else list(columns)})

    def nearest(
        self,
        column: str,
        q: Any,
        k: int | None = None,
        metric: str | None = None,
        nprobes: int | None = None,
        minimum_nprobes: int | None = None,
        maximum_nprobes: int | None = None,
        refine_factor: int | None = None,
        use_index: bool = True,
        ef: int | None = None,
        query_parallelism: int | None = None,
        approx_mode: str = "normal",
        distance_range: tuple[float | None, float | None] | None = None,
        search_effort: float | None = None,
    ) -> Self:
        """Set the vectors to search for; see `nearest` of `LanceDataset.scanner`.

        Parameters
        ----------
        column, q, k, metric, nprobes, minimum_nprobes, maximum_nprobes, refine_factor, use_index, distance_range
            See `LanceDataset.scanner`.
        ef, query_parallelism, approx_mode, search_effort
            Ignored.
        """
        del ef, query_parallelism, approx_mode, search_effort
        given = {
            "column": column,
            "q": q,
            "k": k,
            "metric": metric,
            "nprobes": nprobes,
            "minimum_nprobes": minimum_nprobes,
            "maximum_nprobes": maximum_nprobes,
            "refine_factor": refine_factor,
            "use_index": use_index,
            "distance_range": distance_range,
        }
        return self._set(nearest=given)

    def prefilter(self, prefilter: bool) -> Self:
        """Set whether a search only considers rows that pass the filter."""
        return self._set(prefilter=prefilter)

    def fast_search(self, flag: bool) -> Self:
        """Set whether a search leaves out fragments that no index covers."""
        return self._set(fast_search=flag)

    def disable_scoring_autoprojection(self, disable: bool = True) -> Self:
        """Set whether `_distance` and `_score` are returned only if the columns have them."""
        return self._set(disable_scoring_autoprojection=disable)

    def batch_readahead(self, nbatches: int | None = None) -> Self:
        """Accept a number of batches to read ahead. Ignored, like all options below."""
        return self._set(batch_readahead=nbatches)

    def fragment_readahead(self, nfragments: int | None = None) -> Self:
        """Accept a number of fragments to read ahead."""
        return self._set(fragment_readahead=nfragments)

    def io_buffer_size(self, io_buffer_size: int) -> Self:
        """Accept a size of the read buffer, in bytes."""
        return self._set(io_buffer_size=io_buffer_size)

    def late_materialization(self, late_materialization: bool | list[str]) -> Self:
        """Accept the columns to read after filtering."""
        return self._set(late_materialization=late_materialization)

    def scan_in_order(self, scan_in_order: bool = True) -> Self:
        """Accept whether to keep the order of rows; it is always kept."""
        return self._set(scan_in_order=scan_in_order)

    def use_stats(self, use_stats: bool = True) -> Self:
        """Accept whether to use statistics."""
        return self._set(use_stats=use_stats)

    def to_scanner(self) -> LanceScanner:
        """Return the scanner.

        Raises
        ------
        InvalidInputError
            If an option is invalid.
        """
        return open_scanner(self._dataset._table, ScanOptions.of(self._options))

    def _set(self, **option: Unpack[ScanArguments]) -> Self:
        self._options |= option
        return self
