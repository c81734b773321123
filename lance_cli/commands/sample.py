"""`pyspark-lance sample`: random rows."""

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
    """Print random rows of a table, in the order of the table."""
    dataset = open_table(path, storage_option, version)
    num_rows = min(limit, dataset.count_rows())
    found = dataset.sample(num_rows, split_names(columns), randomize_order=False)
    show(answer_rows(found, {"uri": dataset.uri, "version": dataset.version}, wide=wide), as_json=as_json)
