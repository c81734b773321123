"""`pyspark-lance files`: the data files and deletion files of a version."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lance_cli.options import Json, Limit, StorageOptions, TablePath, Version, open_table
from lance_cli.output import Answer, Grid, bytes_text, count_text, headings, show

if TYPE_CHECKING:
    from lance_format import LanceDataset, LanceField

_MAX_WIDTH = 120
"""Paths are printed in full, for other commands."""


def run(
    path: TablePath,
    storage_option: StorageOptions = None,
    version: Version = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List the data files and deletion files of a table, fragment by fragment."""
    dataset = open_table(path, storage_option, version)
    total = sum(1 for _ in list_files(dataset))
    found = list(itertools.islice(list_files(dataset), limit))
    names = headings("#fragment", "content", "path", "#rows", "#deleted", "#bytes", "format", "columns")
    rows = [
        (
            each["fragment_id"],
            each["content"],
            each["path"],
            count_text(each["rows"]),
            count_text(each["deleted_rows"]),
            bytes_text(each["size_bytes"]),
            each["format_version"],
            each["columns"] or (),
        )
        for each in found
    ]
    more = total - len(found)
    note = f"{more:,} more files are not shown: --limit {total} shows them" if more else ""
    show(
        Answer(
            {"uri": dataset.uri, "files": found, "more": more}, [Grid(names, rows, note=note)], max_width=_MAX_WIDTH
        ),
        as_json=as_json,
    )


def list_files(dataset: LanceDataset) -> Iterator[dict[str, Any]]:
    """Yield the description of each file."""
    names = dict(_paths(dataset.lance_schema.fields()))
    for fragment in dataset.get_fragments():
        counts = {"rows": fragment.physical_rows, "deleted_rows": fragment.num_deletions}
        for file in fragment.metadata.files:
            yield {
                "fragment_id": fragment.fragment_id,
                "content": "data",
                "path": f"data/{file.path}",
                **counts,
                "size_bytes": file.file_size_bytes or None,
                "format_version": f"{file.file_major_version}.{file.file_minor_version}",
                "columns": [names[number] for number in file.fields if number in names],
            }
        deletion = fragment.deletion_file()
        if deletion is not None:
            nothing = {"size_bytes": None, "format_version": None, "columns": None}
            found = {"fragment_id": fragment.fragment_id, "content": "deletion", "path": deletion}
            yield {**found, **counts, **nothing}


def _paths(fields: list[LanceField], above: str = "") -> Iterator[tuple[int, str]]:
    for field in fields:
        yield field.id(), f"{above}{field.name()}"
        yield from _paths(field.children(), f"{above}{field.name()}.")
