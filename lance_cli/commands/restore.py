"""`pyspark-lance restore`: an earlier version as the latest one."""

from __future__ import annotations

from typing import Annotated

import typer

from lance_cli.options import Json, StorageOptions, TablePath, open_table
from lance_cli.output import Answer, show

_Version = Annotated[str, typer.Argument(metavar="VERSION", help="The number of a version, or a tag.")]


def run(path: TablePath, version: _Version, storage_option: StorageOptions = None, as_json: Json = False) -> None:
    """Make an earlier version the latest one again, as a new version. Nothing is deleted."""
    dataset = open_table(path, storage_option, version)
    restored = dataset.version
    dataset.restore()
    facts = {"uri": dataset.uri, "restored_version": restored, "version": dataset.version}
    show(Answer(facts, text=f"version {dataset.version} has the rows of version {restored}"), as_json=as_json)
