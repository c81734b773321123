"""Sorting of the rows of a table within one process."""

from __future__ import annotations

from lance_format.errors import InvalidInputError
from lance_format.progress import Work, expect, is_reported
from lance_format.table.fragments.row_columns import ROW_ADDRESS
from lance_format.table.maintenance.compaction import CompactionMetrics
from lance_format.table.maintenance.row_rewrite import plan_row_rewrite
from lance_format.table.scan.choose import open_scanner
from lance_format.table.scan.options import OrderBy, ScanOptions
from lance_format.table.versions.open_table import OpenTable
from lance_format.table.versions.planned_change import bytes_of
from lance_format.table.versions.table_version import TableVersion


def sort_rows(table: TableVersion, order_by: OrderBy) -> tuple[TableVersion, CompactionMetrics]:
    """Rewrite all fragments with their rows sorted, and commit that; see `DatasetOptimizer.sort_rows`.

    Raises
    ------
    InvalidInputError
        If there is no column to sort by.
    """
    if not order_by:
        raise InvalidInputError("order_by names no column; a column to sort by is needed")
    scanner = open_scanner(table, ScanOptions(order_by=order_by, with_row_address=True, blob_handling="all_binary"))
    plan, opened = plan_row_rewrite(table), OpenTable(table.uri, table)
    if not plan.fragments:
        return table, CompactionMetrics()
    if is_reported(Work.WRITING):
        expect(Work.WRITING, int(table.num_rows().sum()), bytes_of(plan.fragments), bytes_follow_rows=True)
    with plan.open_writer(opened, 0) as writer:
        for batch in scanner.to_batches():
            writer.write(batch.column(ROW_ADDRESS).to_numpy(), batch.drop_columns([ROW_ADDRESS]))
        result = writer.finish()
    outcome = plan.commit(opened, [result])
    return opened._table, outcome
