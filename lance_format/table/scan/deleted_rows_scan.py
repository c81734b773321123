"""Scans that also return the deleted rows that files still hold, with null ids and addresses."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.arguments import checked_methods
from lance_format.errors import InvalidInputError
from lance_format.table.fragments.row_columns import ROW_ADDRESS, ROW_ID, ROW_OFFSET
from lance_format.table.scan.joined_rows import JoinedRows, by_fragment
from lance_format.table.scan.metrics import ScanMeter
from lance_format.table.scan.options import ScanOptions
from lance_format.table.scan.scanned_fragment import Window
from lance_format.table.scan.scanner import LanceScanner
from lance_format.table.scan.tasks import FragmentRanges
from lance_format.table.versions.table_version import TableVersion


@checked_methods
class DeletedRowsScanner(LanceScanner):
    """A scanner that also returns deleted rows; see `LanceDataset.scanner`.

    Fragments without live rows no longer exist, so their rows are not returned.

    Parameters
    ----------
    table : TableVersion
    options : ScanOptions

    Raises
    ------
    InvalidInputError
        If the scan lacks the row id, which marks deleted rows; if it has the row offset, which deleted rows lack; or if
        its filter uses one of these, or the row address.
    """

    def __init__(self, table: TableVersion, options: ScanOptions) -> None:
        found = table.manifest.fragments if options.fragments is None else options.fragments
        self._stored = {fragment.id: fragment for fragment in found}
        whole = [dataclasses.replace(fragment, deletion_file=None) for fragment in found]
        # Indices may have forgotten deleted rows.
        super().__init__(table, dataclasses.replace(options, fragments=whole, use_scalar_index=False))
        self._named = [name for name in (ROW_ID, ROW_ADDRESS) if name in self._projection.row_columns]
        if ROW_ID not in self._named:
            raise InvalidInputError(
                "include_deleted_rows is set, but not with_row_id: the row id distinguishes deleted rows"
            )
        if lacked := sorted({ROW_ID, ROW_ADDRESS, ROW_OFFSET}.intersection(self._projection.filter_row_columns)):
            raise InvalidInputError(f"include_deleted_rows is set, and deleted rows have no {lacked[0]} to filter by")
        if ROW_OFFSET in self._projection.row_columns:
            raise InvalidInputError(f"include_deleted_rows is set, and deleted rows have no {ROW_OFFSET}")

    def _read_fragments(
        self, fragments: Iterable[FragmentRanges], window: Window, meter: ScanMeter
    ) -> Iterator[JoinedRows]:
        for batch, rows in by_fragment(super()._read_fragments(fragments, window, meter)):
            scan = dataclasses.replace(rows.scan, fragment=self._stored[rows.scan.fragment.id])
            gone = np.isin(rows.offsets, scan.deleted_rows())
            missing = pa.scalar(None, pa.uint64())
            for name in self._named:
                position = batch.schema.get_field_index(name)
                batch = batch.set_column(position, name, pc.if_else(pa.array(gone), missing, batch.column(position)))
            yield JoinedRows(batch, (rows,))
