"""The ways to read that a whole table and a fragment of it have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Unpack

import pyarrow as pa

from lance_format.arguments import checked_methods
from lance_format.table.scan.options import ScanKeywords
from lance_format.table.scan.projection import Columns, Filter
from lance_format.table.scan.scanner import LanceScanner


@checked_methods
class ScanMethods:
    """Methods that read through a scanner. A base of `LanceDataset` and `LanceFragment`, which define the scanner."""

    def scanner(
        self, columns: Columns | None = None, filter: Filter | None = None, **options: Unpack[ScanKeywords]
    ) -> LanceScanner:
        """Return a scanner of some rows and columns; see `LanceDataset.scanner`."""
        raise NotImplementedError

    def to_batches(
        self,
        columns: Columns | None = None,
        filter: Filter | None = None,
        **options: Unpack[ScanKeywords],
    ) -> Iterator[pa.RecordBatch]:
        """Read rows in order, as a stream; see `LanceDataset.scanner` for the arguments."""
        return self.scanner(columns, filter, **options).to_batches()

    def to_table(
        self,
        columns: Columns | None = None,
        filter: Filter | None = None,
        **options: Unpack[ScanKeywords],
    ) -> pa.Table:
        """Read rows into memory; see `LanceDataset.scanner` for the arguments."""
        return self.scanner(columns, filter, **options).to_table()

    def to_pandas(
        self,
        columns: Columns | None = None,
        filter: Filter | None = None,
        **options: Unpack[ScanKeywords],
    ) -> Any:
        """Read rows into a DataFrame of pandas, which must be installed; see `to_table`."""
        return self.to_table(columns, filter, **options).to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the rows as a stream of Arrow, for consumers such as DuckDB and polars."""
        return self.scanner().__arrow_c_stream__(requested_schema)

    def head(self, num_rows: int, columns: Columns | None = None, **options: Unpack[ScanKeywords]) -> pa.Table:
        """Read the first rows; see `LanceDataset.scanner` for the arguments."""
        options["limit"] = num_rows
        return self.to_table(columns, **options)

    def count_rows(self, filter: Filter | None = None) -> int:
        """Count the live rows that pass a filter."""
        return self.scanner(columns=[], filter=filter).count_rows()
