"""`pyspark-lance explain`: what a query would read, and why."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from lance_cli.commands.query import Filter
from lance_cli.options import Columns, Json, Limit, StorageOptions, TablePath, Version, open_table, split_names
from lance_cli.output import Answer, Grid, bytes_text, count_text, headings, show

if TYPE_CHECKING:
    from lance_format import PlannedReads

_COUNTS = ("rows", "rows_read", "zones", "zones_read", "pages", "pages_read", "size_bytes", "bytes_read")


def run(
    path: TablePath,
    filter: Filter,
    storage_option: StorageOptions = None,
    version: Version = None,
    columns: Columns = None,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """Show which fragments, zones and pages a query would read, and why, without reading them."""
    dataset = open_table(path, storage_option, version)
    scanner = dataset.scanner(columns=split_names(columns), filter=filter)
    reads = scanner.plan_reads()
    facts: dict[str, Any] = {
        "uri": dataset.uri,
        "version": dataset.version,
        "filter": scanner.filter_text,
        **summarize(reads),
        "fragments": [dataclasses.asdict(fragment) for fragment in reads.fragments],
    }
    read = [fragment for fragment in reads.fragments if not fragment.skipped_by]
    names = headings(
        "#fragment",
        "#rows",
        "#rows read",
        "#zones",
        "#zones read",
        "#pages",
        "#pages read",
        "#bytes read",
    )
    rows = [
        (
            each.fragment_id,
            count_text(each.rows),
            count_text(each.rows_read),
            each.zones,
            each.zones_read,
            each.pages,
            each.pages_read,
            bytes_text(each.bytes_read),
        )
        for each in read[:limit]
    ]
    more = len(read) - len(rows)
    note = f"{more:,} more fragments are read" if more else ""
    show(
        Answer(facts, [Grid((), _lines(facts), note=facts["advice"]), Grid(names, rows, "Fragments to read", note)]),
        as_json=as_json,
    )


def summarize(reads: PlannedReads) -> dict[str, Any]:
    """Return the totals of a scan's reads, and advice."""
    totals = {name: reads.total(name) for name in (*_COUNTS, "filter_bytes_read")}
    return {
        "num_fragments": len(reads.fragments),
        "fragments_read": reads.fragments_read,
        **totals,
        "filter_columns": list(reads.filter_columns),
        "columns_without_statistics": list(reads.columns_without_statistics),
        "advice": advise(reads),
    }


def advise(reads: PlannedReads) -> str:
    """Return the reason why a query reads what it reads, and what would help."""
    names = ", ".join(reads.filter_columns)
    if reads.columns_without_statistics:
        lacking = ", ".join(reads.columns_without_statistics)
        return (
            f"Some files have no statistics of {lacking}, so that all of their rows are read. Indices of kind ZONEMAP"
            " have them, and so do files that are rewritten here."
        )
    zones, zones_read = reads.total("zones"), reads.total("zones_read")
    if not reads.fragments_read:
        return "No row can match: nothing but statistics is read."
    if zones_read < zones / 2 or 2 * reads.fragments_read < len(reads.fragments):
        return "Statistics exclude most of the table."
    read = [fragment for fragment in reads.fragments if not fragment.skipped_by]
    untold = sum(fragment.rows_read for fragment in read if fragment.zones is None)
    if len(read) > 1 and 2 * untold > reads.total("rows_read"):
        return (
            "Most rows are in fragments so small that no statistics are read of them. Combining fragments would help:"
            " pyspark-lance optimize PATH"
        )
    if zones_read <= 1:
        return "The table is so small that there is nothing to skip."
    return (
        f"Most zones have values of {names} that the filter accepts, because the values lie scattered over the table."
        f" Sorted rows would help: pyspark-lance optimize PATH --order-by {reads.filter_columns[0] if names else '…'}"
    )


def _lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    def part(read: str, whole: str) -> str:
        share = f" ({facts[read] / facts[whole]:.0%})" if facts[whole] else ""
        return f"{count_text(facts[read])} of {count_text(facts[whole])}{share}"

    return [
        ("filter", facts["filter"] or "(none)"),
        ("fragments", part("fragments_read", "num_fragments")),
        ("rows", part("rows_read", "rows")),
        ("zones", part("zones_read", "zones")),
        ("pages", part("pages_read", "pages") + " in the opened files"),
        (
            "bytes",
            f"at most {bytes_text(facts['bytes_read'])} (filter: {bytes_text(facts['filter_bytes_read'])})",
        ),
    ]
