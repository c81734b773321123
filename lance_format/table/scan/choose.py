"""The scanner that fits the options of a scan."""

from __future__ import annotations

from lance_format.table.scan.deleted_rows_scan import DeletedRowsScanner
from lance_format.table.scan.options import ScanOptions
from lance_format.table.scan.ordered.ordered_scan import OrderedScanner
from lance_format.table.scan.scanner import LanceScanner
from lance_format.table.scan.searches.hybrid_scan import HybridScanner
from lance_format.table.scan.searches.nearest.scanner import NearestScanner
from lance_format.table.scan.searches.text_scan import TextScanner
from lance_format.table.versions.table_version import TableVersion


def open_scanner(table: TableVersion, options: ScanOptions) -> LanceScanner:
    """Return a scanner of a table.

    Raises
    ------
    InvalidInputError
        If an option does not fit the table.
    """
    if options.nearest is not None and options.full_text_query is not None:
        return HybridScanner(table, options)
    if options.nearest is not None:
        return NearestScanner(table, options)
    if options.full_text_query is not None:
        return TextScanner(table, options)
    if options.include_deleted_rows:
        return DeletedRowsScanner(table, options)
    return OrderedScanner(table, options) if options.order_by else LanceScanner(table, options)
