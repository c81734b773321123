"""`pyspark-lance tags`: names of versions."""

from __future__ import annotations

import datetime
from typing import Annotated, Any

import typer

from lance_cli.options import Json, StorageOptions, TablePath, Version, open_table
from lance_cli.output import Answer, Grid, headings, show

_Create = Annotated[str | None, typer.Option("--create", metavar="NAME", help="Name --version, by default the latest.")]
_Delete = Annotated[str | None, typer.Option("--delete", metavar="NAME", help="Delete a tag.")]


def run(
    path: TablePath,
    storage_option: StorageOptions = None,
    version: Version = None,
    create: _Create = None,
    delete: _Delete = None,
    as_json: Json = False,
) -> None:
    """List the tags of a table, after creating or deleting one. Vacuum keeps tagged versions."""
    dataset = open_table(path, storage_option, version)
    if create is not None:
        dataset.tags.create(create)
    if delete is not None:
        dataset.tags.delete(delete)
    found: list[dict[str, Any]] = [
        {"name": name, **{key: tag[key] for key in ("branch", "version", "created_at", "updated_at", "metadata")}}
        for name, tag in sorted(dataset.tags.list().items())
    ]
    rows = [(each["name"], each["branch"] or "main", each["version"], _local(each["created_at"])) for each in found]
    grid = Grid(headings("tag", "branch", "#version", "created"), rows)
    show(Answer({"uri": dataset.uri, "tags": found}, [grid]), as_json=as_json)


def _local(time: datetime.datetime | None) -> datetime.datetime | None:
    return None if time is None else time.astimezone()
