"""`pyspark-lance optimize`: fewer and sorted fragments, and indices that cover them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import typer

import lance_format
from lance_cli.options import Json, StorageOptions, TablePath, open_table, split_names
from lance_cli.output import Answer, Grid, count_text, show, wants_bar

if TYPE_CHECKING:
    from lance_format import LanceDataset

_TargetRows = Annotated[
    int | None, typer.Option("--target-rows", min=1, help="Combine fragments with fewer rows.", show_default="1048576")
]
_Threshold = Annotated[
    float | None,
    typer.Option(
        "--deleted", min=0.0, max=1.0, help="Rewrite fragments with this share of deleted rows.", show_default="0.1"
    ),
]
_OrderBy = Annotated[
    str | None,
    typer.Option(
        "--order-by",
        metavar="A,B",
        help="Sort all rows by these columns instead, in memory. Spark sorts tables that do not fit.",
        show_default=False,
    ),
]
_Indices = Annotated[bool, typer.Option(help="Let indices cover the new fragments.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count the fragments to rewrite.")]


def run(
    path: TablePath,
    storage_option: StorageOptions = None,
    target_rows: _TargetRows = None,
    deleted: _Threshold = None,
    order_by: _OrderBy = None,
    indices: _Indices = True,
    dry_run: _DryRun = False,
    as_json: Json = False,
) -> None:
    """Combine small fragments, remove deleted rows from the files, or sort the rows. Old versions stay readable."""
    dataset = open_table(path, storage_option)
    read_version = dataset.version
    options = {"target_rows_per_fragment": target_rows, "materialize_deletions_threshold": deleted}
    given: Any = {name: value for name, value in options.items() if value is not None}
    names = split_names(order_by)
    facts: dict[str, Any] = {"uri": dataset.uri, "read_version": read_version, "dry_run": dry_run}
    if dry_run:
        facts["fragments_to_rewrite"] = _count(dataset, given, is_sorted=names is not None)
        text = f"{count_text(facts['fragments_to_rewrite'])} of {len(dataset.get_fragments()):,} fragments to rewrite"
        show(Answer(facts, text=text), as_json=as_json)
        return
    metrics = (
        dataset.optimize.compact_files(progress=wants_bar(), **given)
        if names is None
        else dataset.optimize.sort_rows(names, progress=wants_bar())
    )
    if indices and dataset.has_index:
        dataset.optimize.optimize_indices(progress=wants_bar())
    facts |= {**dataclasses.asdict(metrics), "version": dataset.version}
    rows = [(name.replace("_", " "), value) for name, value in facts.items() if name not in ("uri", "dry_run")]
    show(Answer(facts, [Grid((), rows)]), as_json=as_json)


def _count(dataset: LanceDataset, options: dict[str, Any], *, is_sorted: bool) -> int:
    if is_sorted:
        return len(dataset.get_fragments())
    return sum(len(task.fragments) for task in lance_format.Compaction.plan(dataset, options).tasks)
