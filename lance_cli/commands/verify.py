"""`pyspark-lance verify`: every byte of a version of a table, compared with its checksums."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from lance_cli.options import Json, StorageOptions, TablePath, Version, open_table
from lance_cli.output import Answer, Grid, bytes_text, headings, show, wants_bar
from lance_format import LostRows

_Repair = Annotated[
    bool,
    typer.Option("--repair", help="Rewrite fragments that can be read, rebuild indices; touch nothing that is lost."),
]
_All = Annotated[bool, typer.Option("--all", help="List all files, not only those with problems.")]


def run(
    path: TablePath,
    storage_option: StorageOptions = None,
    version: Version = None,
    repair: _Repair = False,
    all_files: _All = False,
    as_json: Json = False,
) -> None:
    """Read every byte of a table, compare it with its checksums, and check that its files agree.

    The exit code is 1 if anything is damaged, missing or inconsistent that was not repaired.
    """
    dataset = open_table(path, storage_option, version)
    verified = dataset.version
    report = dataset.verify(repair=repair, progress=wants_bar())
    listed = report.findings if all_files else report.problems
    facts: dict[str, Any] = {
        "uri": dataset.uri,
        "version": verified,
        "valid": not report.problems,
        "size_bytes": report.size_bytes,
        "verified_bytes": report.verified_bytes,
        "files_by_status": dict(sorted(Counter(finding.status for finding in report.findings).items())),
        "findings": [dataclasses.asdict(finding) for finding in listed],
        "lost": [dataclasses.asdict(rows) for rows in report.lost],
        "rewritten_fragments": report.rewritten_fragments,
        "rebuilt_indices": report.rebuilt_indices,
        "dropped_indices": report.dropped_indices,
        "restored_files": report.restored_files,
    }
    text = (
        f"version {verified} of {dataset.uri} is {'damaged' if report.problems else 'valid'};"
        f" {bytes_text(report.verified_bytes)} of {bytes_text(report.size_bytes)} have checksums; {report.summary}"
    )
    rows = [[found.status, found.type, found.path, found.offset, found.repair, found.detail] for found in listed]
    grids = [Grid(headings("status", "type", "path", "#offset", "repair", "detail"), rows)] if rows else []
    if report.lost:
        grids.append(_lost_grid(report.lost))
    show(Answer(facts, grids, text=text, max_width=None), as_json=as_json)
    if report.irreparable if repair else report.problems:
        raise typer.Exit(1)


def _lost_grid(lost: Sequence[LostRows]) -> Grid:
    rows = [
        [each.type, each.fragment_id, ", ".join(each.columns), each.start, each.stop, each.num_rows, each.version]
        for each in lost
    ]
    names = headings("lost", "#fragment", "columns", "#start", "#stop", "#rows", "#also in version")
    return Grid(names, rows, "lost rows")
