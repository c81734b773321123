"""Reports of tables: numbers of a version, and pictures of them on one page."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lance_format.arguments import checked_methods
from lance_format.errors import NotSupportedError, local_file_errors
from lance_format.lazy_dataclasses import dataclass
from lance_format.pictures.drawing import bytes_text
from lance_format.pictures.fragments import SKIPPED_COLOURS, draw_fragments, draw_marked_fragments
from lance_format.pictures.page import Section, new_section, to_html, to_page
from lance_format.pictures.timeline import Commit, draw_timeline
from lance_format.pictures.treemap import Part, draw_treemap
from lance_format.pictures.zones import draw_zones
from lance_format.table.dataset.reports.report_facts import (
    ReadableDataset,
    collect_fragments,
    collect_reads,
    collect_storage,
    collect_versions,
    collect_zones,
    sampled_fragments,
)

_MAX_ROWS = 500


@checked_methods
@dataclass(frozen=True, slots=True)
class TableReport:
    """The numbers of a report, which `LanceDataset.report` collects, and its page.

    Parameters
    ----------
    facts : mapping
        JSON values, by section: `table`, `storage`, `fragments`, `versions`, `zones` and `reads`.
    """

    facts: Mapping[str, Any]

    def to_html(self) -> str:
        """Return one HTML page without scripts, which loads nothing.

        Raises
        ------
        NotSupportedError
            If the package `vl-convert-python` is missing.
        """
        section = new_section()
        _draw_all(section, self.facts)
        return to_page(section, f"Lance table {self.facts['table']['uri']}", self.facts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page into a local file.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        page = self.to_html()
        with local_file_errors("write", path):
            Path(path).write_text(page, encoding="utf-8")


def collect_report(dataset: ReadableDataset, filter: str | None, columns: Sequence[str] | None) -> TableReport:
    """Collect the numbers of a report; see `LanceDataset.report`."""
    table = dataset._table
    sampled = sampled_fragments(table)
    reads = None if filter is None else collect_reads(dataset, filter, columns)
    first = [] if reads is None else reads["filter_columns"]
    return TableReport(
        {
            "table": describe_table(dataset),
            "sampled_fragments": len(sampled),
            "storage": collect_storage(table, sampled),
            "fragments": collect_fragments(table),
            "versions": collect_versions(dataset),
            "zones": collect_zones(table, sampled, first),
            "reads": reads,
        }
    )


def describe_table(dataset: ReadableDataset) -> dict[str, Any]:
    """Return the totals of a version, from its manifest."""
    summary = dataset.get_version()
    counts = {name: int(value) for name, value in summary["metadata"].items()}
    return {
        "uri": dataset.uri,
        "version": dataset.version,
        "timestamp": summary["timestamp"].astimezone().isoformat(" ", "seconds"),
        "rows": counts["total_rows"],
        "deleted_rows": counts["total_deletion_file_rows"],
        "size_bytes": counts["total_files_size"],
        "fragments": counts["total_fragments"],
        "data_files": counts["total_data_files"],
        "columns": [[field.name, str(field.type)] for field in dataset.schema],
    }


def notebook_html(dataset: ReadableDataset) -> str:
    """Return a summary for notebooks: what the manifest has, without reading any file.

    Without the extra `report` there is no picture.
    """
    section = new_section()
    facts = describe_table(dataset)
    columns = dataset._table.manifest.fragments.columns
    _head(section, facts)
    section.table(("column", "type"), facts["columns"][:_MAX_ROWS], f"{len(facts['columns'])} columns")
    if columns.ids.size:
        deleted = columns.num_deleted_rows.clip(0).tolist()
        with contextlib.suppress(NotSupportedError):
            section.picture(draw_fragments(columns.ids.tolist(), columns.physical_rows.tolist(), deleted, None))
    return to_html(section)


def _draw_all(section: Section, facts: Mapping[str, Any]) -> None:
    _head(section, facts["table"])
    section.table(
        ("column", "type"), facts["table"]["columns"][:_MAX_ROWS], f"{len(facts['table']['columns'])} columns"
    )
    if facts["reads"] is not None:
        _draw_reads(section, facts["reads"])
    _draw_storage(section, facts)
    _draw_fragments(section, facts["fragments"])
    _draw_zones(section, facts)
    _draw_versions(section, facts["versions"])


def _head(section: Section, table: Mapping[str, Any]) -> None:
    section.heading(str(table["uri"]), level=1)
    section.facts(
        {
            "version": table["version"],
            "committed": table["timestamp"],
            "rows": f"{table['rows']:,}",
            "deleted rows in files": f"{table['deleted_rows']:,}",
            "data": bytes_text(table["size_bytes"]),
            "fragments": f"{table['fragments']:,}",
            "data files": f"{table['data_files']:,}",
        }
    )


def _draw_reads(section: Section, reads: Mapping[str, Any]) -> None:
    section.heading("What a query reads")
    section.text(f"Filter: {reads['filter']}")
    section.table(
        ("", "read", "of", "share"),
        [
            (name, read, whole, f"{read / whole:.1%}" if whole else "-")
            for name, read, whole in (
                ("fragments", reads["fragments_read"], reads["num_fragments"]),
                ("rows", reads.get("rows_read", 0), reads.get("rows", 0)),
                ("zones with statistics", reads.get("zones_read", 0), reads.get("zones", 0)),
                ("pages of opened files", reads.get("pages_read", 0), reads.get("pages", 0)),
                ("bytes of these pages, at most", reads.get("bytes_read", 0), reads.get("size_bytes", 0)),
            )
        ],
    )
    marks = [
        f"skipped by {'an index' if reason == 'index' else reason}" if reason else "read"
        for reason in reads["skipped_by"]
    ]
    section.picture(draw_marked_fragments(reads["ids"], marks, SKIPPED_COLOURS))
    if reads["columns_without_statistics"]:
        section.text(f"Some files have no statistics of {', '.join(reads['columns_without_statistics'])}.")


def _draw_storage(section: Section, facts: Mapping[str, Any]) -> None:
    section.heading("Bytes by column and encoding")
    number, total = facts["sampled_fragments"], facts["table"]["fragments"]
    section.text(
        f"Pages of {'all' if number == total else f'{number:,} of'} {total:,} fragments."
        " The area is the size, the colour the outermost compression."
    )
    storage = facts["storage"]
    parts = [
        Part(each["column"], f"{each['layout']}: {each['compression']}", _family(each), each["size_bytes"])
        for each in storage
    ]
    if parts:
        section.picture(draw_treemap(parts))
    rows = [(each["column"], each["layout"], each["compression"], each["size_bytes"]) for each in storage]
    section.table(("column", "layout", "compression", "bytes"), rows[:_MAX_ROWS], "As a table")


def _family(each: Mapping[str, Any]) -> str:
    if each["layout"] == "constant":
        return "constant"
    return str(each["compression"]).split(" > ")[0].split(" of ")[0]


def _draw_fragments(section: Section, fragments: Mapping[str, Any]) -> None:
    section.heading("Fragments")
    section.text("Rows per fragment in the order of the table, and the version that added each.")
    section.picture(
        draw_fragments(fragments["ids"], fragments["rows"], fragments["deleted_rows"], fragments["added_by"])
    )
    rows = list(
        zip(*(fragments[name] for name in ("ids", "rows", "deleted_rows", "size_bytes", "added_by")), strict=True)
    )
    names = ("fragment", "rows", "deleted rows", "bytes", "added by version")
    more = "" if len(rows) <= _MAX_ROWS else f" (the first {_MAX_ROWS})"
    section.table(names, rows[:_MAX_ROWS], f"As a table{more}")


def _draw_zones(section: Section, facts: Mapping[str, Any]) -> None:
    section.heading("How well zones separate values")
    section.text(
        "A bar is the range of values in some thousand rows, in the order of the table, drawn by their share of all"
        " values. A filter skips the bars that its values are not in: short bars at different heights are"
        " skipped, long ones never."
    )
    if not facts["zones"]:
        section.text("No column has statistics.")
    for each in facts["zones"]:
        share = each["zones_per_value"] / each["zones"]
        section.heading(each["column"], level=3)
        section.text(
            f"A value lies in {each['zones_per_value']:,.1f} of {each['zones']:,} zones on average: a filter for one"
            f" value reads about {share:.0%} of the rows."
        )
        label = f"Zones of {each['column']}"
        section.picture(draw_zones(each["lower"], each["upper"], each["lowest"], each["highest"], label))


def _draw_versions(section: Section, versions: Sequence[Mapping[str, Any]]) -> None:
    section.heading("Versions")
    section.text("Commits in their order, by operation, and the live rows after each. Times are local.")
    commits = [Commit(each["version"], each["timestamp"], each["operation"], each["rows"]) for each in versions]
    section.picture(draw_timeline(commits))
    rows = [(each["version"], each["timestamp"], each["operation"], each["rows"]) for each in reversed(versions)]
    section.table(("version", "committed", "operation", "rows"), rows, "As a table")
