"""`pyspark-lance verify`: every byte of a version of a table, compared with its checksums."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Annotated, Any

import typer

from lance_cli.options import Json, StorageOptions, TablePath, Version, open_table
from lance_cli.output import Answer, Grid, bytes_text, headings, show, wants_bar

_All = Annotated[bool, typer.Option("--all", help="List all files, not only those with problems.")]


def run(
    path: TablePath,
    storage_option: StorageOptions = None,
    version: Version = None,
    all_files: _All = False,
    as_json: Json = False,
) -> None:
    """Read every byte of a table, compare it with its checksums, and check that its files agree.

    The exit code is 1 if anything is damaged, missing or inconsistent.
    """
    dataset = open_table(path, storage_option, version)
    report = dataset.verify(progress=wants_bar())
    listed = report.findings if all_files else report.problems
    facts: dict[str, Any] = {
        "uri": dataset.uri,
        "version": dataset.version,
        "valid": not report.problems,
        "size_bytes": report.size_bytes,
        "verified_bytes": report.verified_bytes,
        "files_by_status": dict(sorted(Counter(finding.status for finding in report.findings).items())),
        "findings": [dataclasses.asdict(finding) for finding in listed],
    }
    text = (
        f"version {dataset.version} of {dataset.uri} is {'damaged' if report.problems else 'valid'};"
        f" {bytes_text(report.verified_bytes)} of {bytes_text(report.size_bytes)} have checksums"
    )
    rows = [[found.status, found.type, found.path, found.offset, found.detail] for found in listed]
    grids = [Grid(headings("status", "type", "path", "#offset", "detail"), rows)] if rows else []
    show(Answer(facts, grids, text=text, max_width=None), as_json=as_json)
    if report.problems:
        raise typer.Exit(1)
