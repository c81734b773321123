"""Saying step by step what to scan; see `LanceDataset.scanner`, which takes the same as arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from lance_format.arguments import checked_methods
from lance_format.errors import InvalidInputError
from lance_format.table.dataset.fragment import LanceFragment
from lance_format.table.scan.choose import open_scanner
from lance_format.table.scan.metrics import MetricsCallback
from lance_format.table.scan.options import OrderBy, ScanOptions
from lance_format.table.scan.projection import Columns, Filter
from lance_format.table.scan.scanner import LanceScanner

if TYPE_CHECKING:
    from lance_format.table.dataset.dataset import LanceDataset


@checked_methods
class ScannerBuilder:
    """A scan in the making. Every method sets what the argument of `LanceDataset.scanner` of its name does.

    Parameters
    ----------
    ds : LanceDataset
        Whose `default_scan_options` do not count; see `apply_defaults`.
    """

    def __init__(self, ds: LanceDataset) -> None:
        self._dataset = ds
        self._options: dict[str, Any] = {}

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
        """Set how many rows to read at most."""
        return self._set(limit=n)

    def offset(self, n: int | None = None) -> Self:
        """Set how many rows to skip."""
        return self._set(offset=n)

    def batch_size(self, batch_size: int) -> Self:
        """Set the most rows that a batch has."""
        return self._set(batch_size=batch_size)

    def strict_batch_size(self, strict_batch_size: bool = False) -> Self:
        """Set whether all batches but the last have so many."""
        return self._set(strict_batch_size=strict_batch_size)

    def with_fragments(self, fragments: Iterable[LanceFragment] | None) -> Self:
        """Set the fragments to read; all by default."""
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
        """Set whether to return deleted rows among the others."""
        return self._set(include_deleted_rows=flag)

    def blob_handling(self, blob_handling: str | None) -> Self:
        """Set what columns of blobs are read as."""
        return self._set(blob_handling=blob_handling)

    def order_by(self, orderings: OrderBy | None) -> Self:
        """Set the columns that rows are sorted by."""
        return self._set(order_by=orderings)

    def use_scalar_index(self, use_scalar_index: bool = True) -> Self:
        """Set whether to leave out what indices say cannot match."""
        return self._set(use_scalar_index=use_scalar_index)

    def scan_stats_callback(self, callback: MetricsCallback) -> Self:
        """Set what is told of every scan when it ends."""
        return self._set(scan_stats_callback=callback)

    def batch_size_bytes(self, batch_size_bytes: int) -> Self:
        """Accept how large batches should be, in bytes; of no effect, like all that follow."""
        return self._set(batch_size_bytes=batch_size_bytes)

    def batch_readahead(self, nbatches: int | None = None) -> Self:
        """Accept how many batches to read ahead."""
        return self._set(batch_readahead=nbatches)

    def fragment_readahead(self, nfragments: int | None = None) -> Self:
        """Accept how many fragments to read ahead."""
        return self._set(fragment_readahead=nfragments)

    def io_buffer_size(self, io_buffer_size: int) -> Self:
        """Accept how much to hold that was read."""
        return self._set(io_buffer_size=io_buffer_size)

    def late_materialization(self, late_materialization: bool | list[str]) -> Self:
        """Accept which columns to read for the rows alone that pass a filter."""
        return self._set(late_materialization=late_materialization)

    def scan_in_order(self, scan_in_order: bool = True) -> Self:
        """Accept whether rows have to come in their order, as they do."""
        return self._set(scan_in_order=scan_in_order)

    def use_stats(self, use_stats: bool = True) -> Self:
        """Accept whether to use statistics."""
        return self._set(use_stats=use_stats)

    def to_scanner(self) -> LanceScanner:
        """Return the scanner.

        Raises
        ------
        InvalidInputError
            If what was set makes no sense.
        """
        return open_scanner(self._dataset._table, ScanOptions.of(self._options))

    def _set(self, **option: Any) -> Self:
        self._options |= option
        return self
