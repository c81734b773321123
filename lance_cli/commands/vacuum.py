"""`pyspark-lance vacuum`: old versions and their files, removed."""

from __future__ import annotations

import dataclasses
import datetime
import re
from typing import Annotated, Any

import typer

from lance_cli.options import Json, Limit, StorageOptions, TablePath, open_table
from lance_cli.output import Answer, Grid, bytes_text, count_text, headings, show, wants_bar

_OlderThan = Annotated[
    str | None,
    typer.Option(
        "--older-than", metavar="AGE", help="Minimum age of the versions, such as 7d or 12h.", show_default="14d"
    ),
]
_Retain = Annotated[
    int | None,
    typer.Option("--retain-versions", min=1, help="Number of latest versions to keep.", show_default=False),
]
_Unverified = Annotated[
    bool,
    typer.Option("--delete-unverified", help="Delete files that no version names at any age. No write may run."),
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="List the files, and remove nothing.")]
_AGE = re.compile(r"(\d{1,9})\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def run(
    path: TablePath,
    storage_option: StorageOptions = None,
    older_than: _OlderThan = None,
    retain_versions: _Retain = None,
    delete_unverified: _Unverified = False,
    dry_run: _DryRun = False,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """Remove old versions, and the files that only they need. Tagged versions and those of branches stay."""
    dataset = open_table(path, storage_option)
    conditions: Any = {
        "older_than": None if older_than is None else _parse_age(older_than),
        "retain_versions": retain_versions,
        "delete_unverified": delete_unverified,
        "error_if_tagged_old_versions": False,
    }
    facts: dict[str, Any] = {"uri": dataset.uri, "dry_run": dry_run}
    if dry_run:
        found = dataset.explain_cleanup_old_versions(**conditions, include_files=True, max_files=max(limit, 1))
        facts |= dataclasses.asdict(found.stats)
        facts["files"] = [dataclasses.asdict(file) for file in found.candidate_files[:limit]]
        facts["more"] = found.candidate_files_truncated
        rows = [(file.kind, file.path, bytes_text(file.size_bytes), file.unverified) for file in found.candidate_files]
        note = "there are more files: --limit shows them" if found.candidate_files_truncated else ""
        grids = [
            Grid((), _lines(facts)),
            Grid(headings("kind", "path", "#bytes", "unverified"), rows[:limit], note=note),
        ]
    else:
        facts |= dataclasses.asdict(dataset.cleanup_old_versions(progress=wants_bar(), **conditions))
        grids = [Grid((), _lines(facts))]
    title = "To remove" if dry_run else "Removed"
    show(Answer(facts, grids, text=title), as_json=as_json)


def _lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("versions", count_text(facts["old_versions"])),
        ("bytes", bytes_text(facts["bytes_removed"])),
        *(
            (f"{kind} files", count_text(facts[f"{kind}_files_removed"]))
            for kind in ("data", "deletion", "index", "transaction")
        ),
        *([("failed deletes", count_text(facts["failed_deletes"]))] if facts["failed_deletes"] else []),
    ]


def _parse_age(text: str) -> datetime.timedelta:
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(f"{text!r} is no age; a number and s, m, h, d or w are needed, such as 7d")
    try:
        return datetime.timedelta(seconds=int(found[1]) * _SECONDS[found[2]])
    except OverflowError:
        raise typer.BadParameter(f"the age {text!r} is too large") from None
