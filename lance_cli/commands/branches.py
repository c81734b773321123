"""`pyspark-lance branches`: tables that diverge from a version."""

from __future__ import annotations

import datetime

from lance_cli.options import Json, StorageOptions, TablePath, open_table
from lance_cli.output import Answer, Grid, headings, show


def run(path: TablePath, storage_option: StorageOptions = None, as_json: Json = False) -> None:
    """List the branches of a table. `--version BRANCH:` of other commands shows one."""
    dataset = open_table(path, storage_option)
    found = [
        {
            "name": name,
            "parent_branch": branch["parent_branch"],
            "parent_version": branch["parent_version"],
            "created_at": datetime.datetime.fromtimestamp(branch["create_at"], datetime.UTC),
            "metadata": branch["metadata"],
        }
        for name, branch in sorted(dataset.branches.list().items())
    ]
    rows = [
        (each["name"], each["parent_branch"] or "main", each["parent_version"], each["created_at"].astimezone())
        for each in found
    ]
    grid = Grid(headings("branch", "from branch", "#from version", "created"), rows)
    show(Answer({"uri": dataset.uri, "branches": found}, [grid]), as_json=as_json)
