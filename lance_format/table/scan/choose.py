"""Which scanner the arguments of a scan ask for."""

from __future__ import annotations

import inspect
from typing import Any

from lance_format.errors import NotSupportedError
from lance_format.table.scan.deleted_rows_scan import DeletedRowsScanner
from lance_format.table.scan.ordered_scan import OrderBy, OrderedScanner
from lance_format.table.scan.scanner import LanceScanner, check_tuning
from lance_format.table.versions.table_version import TableVersion

_ARGUMENTS = frozenset(inspect.signature(LanceScanner).parameters) - {"table"}


def open_scanner(
    table: TableVersion, *, order_by: OrderBy | None = None, include_deleted_rows: bool | None = None, **options: Any
) -> LanceScanner:
    """Return a scanner of a table.

    Parameters
    ----------
    table : TableVersion
    order_by : sequence of ColumnOrdering or str, optional
    include_deleted_rows : bool, optional
    **options
        The arguments of `LanceScanner`, and those of `LanceDataset.scanner` that have no effect.

    Raises
    ------
    InvalidInputError
        If an argument makes no sense.
    NotSupportedError
        If vectors or full text are to be searched, or deleted rows sorted.
    """
    check_tuning({name: value for name, value in options.items() if name not in _ARGUMENTS})
    chosen = {name: value for name, value in options.items() if name in _ARGUMENTS and value is not None}
    if include_deleted_rows:
        if order_by:
            raise NotSupportedError("include_deleted_rows is not supported with order_by: sort what is read")
        return DeletedRowsScanner(table, **chosen)
    return OrderedScanner(table, order_by, **chosen) if order_by else LanceScanner(table, **chosen)
