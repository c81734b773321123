"""`pyspark-lance query`: the rows that a filter selects."""

from __future__ import annotations

from typing import Annotated

import typer

from lance_cli.options import Columns, Json, Limit, StorageOptions, TablePath, Version, Wide, open_table, split_names
from lance_cli.output import Answer, bytes_text, count_text, show
from lance_cli.rows import answer_rows

Filter = Annotated[str, typer.Argument(metavar="FILTER", help="Condition in SQL.", show_default=False)]
_OrderBy = Annotated[
    str | None, typer.Option("--order-by", metavar="A,B", help="Columns to sort by.", show_default=False)
]
_Count = Annotated[bool, typer.Option("--count", help="Print only the number of rows.")]


def run(
    path: TablePath,
    filter: Filter,
    storage_option: StorageOptions = None,
    version: Version = None,
    columns: Columns = None,
    order_by: _OrderBy = None,
    limit: Limit = 20,
    count: _Count = False,
    wide: Wide = False,
    as_json: Json = False,
) -> None:
    """Print the rows of a table for which a condition is true."""
    dataset = open_table(path, storage_option, version)
    facts = {"uri": dataset.uri, "version": dataset.version}
    if count:
        found = dataset.count_rows(filter)
        show(Answer({**facts, "count": found}, text=count_text(found)), as_json=as_json)
        return
    scanner = dataset.scanner(columns=split_names(columns), filter=filter, order_by=split_names(order_by), limit=limit)
    rows = scanner.to_table()
    note = ""
    if scanner.metrics is not None:
        cost = scanner.metrics
        facts["cost"] = {
            "fragments": cost.fragments,
            "fragments_read": cost.fragments_scanned,
            "rows_read": cost.rows_scanned,
            "requests": cost.requests,
            "bytes_read": cost.bytes_read,
        }
        note = (
            f"{rows.num_rows} rows; read {count_text(cost.rows_scanned)} rows of {cost.fragments_scanned} of"
            f" {cost.fragments} fragments, {bytes_text(cost.bytes_read)} in {cost.requests} requests"
        )
    show(answer_rows(rows, facts, wide=wide, note=note), as_json=as_json)
