"""`pyspark-lance head`: the first rows."""

from __future__ import annotations

from lance_cli.options import Columns, Json, Limit, StorageOptions, TablePath, Version, Wide, open_table, split_names
from lance_cli.output import show
from lance_cli.rows import answer_rows


def run(
    path: TablePath,
    storage_option: StorageOptions = None,
    version: Version = None,
    columns: Columns = None,
    limit: Limit = 10,
    wide: Wide = False,
    as_json: Json = False,
) -> None:
    """Print the first rows of a table."""
    dataset = open_table(path, storage_option, version)
    found = dataset.to_table(columns=split_names(columns), limit=limit)
    show(answer_rows(found, {"uri": dataset.uri, "version": dataset.version}, wide=wide), as_json=as_json)
