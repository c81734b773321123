"""`pyspark-lance stats`: sizes and bounds of columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lance_cli.options import Json, StorageOptions, TablePath, Version, open_table
from lance_cli.output import Answer, Grid, bytes_text, count_text, headings, show, shown_value

if TYPE_CHECKING:
    from lance_format import LanceDataset, LanceField


def run(path: TablePath, storage_option: StorageOptions = None, version: Version = None, as_json: Json = False) -> None:
    """Show the bytes of each column, and the bounds that statistics know. No values are read."""
    dataset = open_table(path, storage_option, version)
    facts = describe(dataset)
    total = facts["size_bytes"]
    rows = [
        (
            each["column"],
            bytes_text(each["size_bytes"]),
            f"{each['size_bytes'] / total:.1%}" if total else "-",
            each["bytes_per_row"],
            count_text(each["num_nulls"]),
            "-" if each["num_nulls"] is None else shown_value(each["minimum"]),
            "-" if each["num_nulls"] is None else shown_value(each["maximum"]),
        )
        for each in facts["columns"]
    ]
    names = headings("column", "#bytes", "#share", "#bytes/row", "#nulls", "minimum", "maximum")
    text = (
        f"{count_text(facts['rows'])} rows in {count_text(facts['fragments'])} fragments,"
        f" {count_text(facts['deleted_rows'])} deleted ones;"
        f" {count_text(facts['small_fragments'])} fragments have fewer than 1,024 rows"
    )
    show(Answer(facts, [Grid(names, rows)], text=text), as_json=as_json)


def describe(dataset: LanceDataset) -> dict[str, Any]:
    """Return what `stats` shows."""
    counts = dataset.stats.dataset_stats()
    sizes = {field.id: field.bytes_on_disk for field in dataset.stats.data_stats().fields}
    rows = dataset.count_rows()
    bounds = dataset.column_bounds(dataset.schema.names)
    columns = []
    for top in dataset.lance_schema.fields():
        for path, field in _walk(top, top.name()):
            known = bounds.get(top.name()) if path == top.name() else None
            columns.append(
                {
                    "column": path,
                    "size_bytes": sizes[field.id()],
                    "bytes_per_row": round(sizes[field.id()] / rows, 2) if rows else None,
                    "num_nulls": None if known is None else known.num_nulls,
                    "minimum": None if known is None or known.minimum is None else known.minimum.as_py(),
                    "maximum": None if known is None or known.maximum is None else known.maximum.as_py(),
                }
            )
    return {
        "uri": dataset.uri,
        "version": dataset.version,
        "rows": rows,
        "deleted_rows": counts["num_deleted_rows"],
        "fragments": counts["num_fragments"],
        "small_fragments": counts["num_small_files"],
        "size_bytes": sum(sizes.values()),
        "columns": columns,
    }


def _walk(field: LanceField, path: str) -> Iterator[tuple[str, LanceField]]:
    yield path, field
    for child in field.children():
        yield from _walk(child, f"{path}.{child.name()}")
