"""`pyspark-lance pages`: how the writer stored the columns of one file."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lance_cli.options import Json, Limit, StorageOptions, parse_storage_options
from lance_cli.output import Answer, Grid, bytes_text, count_text, headings, show

if TYPE_CHECKING:
    from lance_format.file import PageDescription

_File = Annotated[str, typer.Argument(metavar="FILE", help="Path or URI of a data file, as `files` lists them.")]
_Column = Annotated[
    list[str] | None,
    typer.Option("--column", "-c", help="Column, or dotted path of a field; may be repeated.", show_default=False),
]
_Ratio = Annotated[bool, typer.Option(help="Read the values, to compare the size of pages with that of plain values.")]


def run(
    file: _File,
    column: _Column = None,
    storage_option: StorageOptions = None,
    ratio: _Ratio = True,
    limit: Limit = 200,
    as_json: Json = False,
) -> None:
    """Show the pages of a data file: layout, compression, size, and size of the plain values."""
    import lance_format.file  # imports pyarrow, which help does not need

    reader = lance_format.file.LanceFileReader(file, parse_storage_options(storage_option))
    try:
        pages = reader.describe_pages(column, read_values=ratio)
        metadata = reader.metadata()
    finally:
        reader.close()
    names = headings(
        "column",
        "#page",
        "#rows",
        "#bytes",
        "#plain",
        "#ratio",
        "layout",
        "compression",
        "#zones",
    )
    rows = [
        (
            page.column,
            page.number,
            count_text(page.num_rows),
            bytes_text(page.size_bytes),
            bytes_text(page.plain_bytes),
            "-" if page.ratio is None else f"{page.ratio:.1f}",
            page.layout,
            page.compression,
            page.num_zones,
        )
        for page in pages[:limit]
    ]
    more = max(len(pages) - limit, 0)
    facts = {
        "file": file,
        "format_version": f"{metadata.major_version}.{metadata.minor_version}",
        "rows": metadata.num_rows,
        "data_bytes": metadata.num_data_bytes,
        "column_metadata_bytes": metadata.num_column_metadata_bytes,
        "global_buffer_bytes": metadata.num_global_buffer_bytes,
        "pages": [_facts(page) for page in pages[:limit]],
        "more": more,
    }
    note = f"{more:,} more pages are not shown: --limit {len(pages)} shows them" if more else ""
    title = f"{count_text(metadata.num_rows)} rows, format {facts['format_version']}"
    show(Answer(facts, [Grid(names, rows, note=note)], text=title), as_json=as_json)


def _facts(page: PageDescription) -> dict[str, Any]:
    return {**dataclasses.asdict(page), "ratio": page.ratio}
