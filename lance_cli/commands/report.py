"""`pyspark-lance report`: a page of pictures of a table."""

from __future__ import annotations

from typing import Annotated

import typer

from lance_cli.options import Columns, Json, StorageOptions, TablePath, Version, open_table, split_names
from lance_cli.output import Answer, show

_Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The HTML file to write.")]
_Filter = Annotated[
    str | None, typer.Option("--filter", "-f", help="Show what a query with this condition reads.", show_default=False)
]


def run(
    path: TablePath,
    output: _Output = "report.html",
    filter: _Filter = None,
    storage_option: StorageOptions = None,
    version: Version = None,
    columns: Columns = None,
    as_json: Json = False,
) -> None:
    """Write a page with pictures of a table: bytes, fragments, versions, zones, and the reads of a query.

    The page is one file that loads nothing.
    """
    dataset = open_table(path, storage_option, version)
    report = dataset.report(filter, columns=split_names(columns))
    try:
        report.save(output)
    except OSError as error:
        raise typer.BadParameter(str(error)) from error
    facts = {"uri": dataset.uri, "version": dataset.version, "output": output, "facts": report.facts}
    show(Answer(facts, text=f"wrote {output}"), as_json=as_json)
