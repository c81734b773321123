"""Description of a directory without a table, for the error message."""

from __future__ import annotations

import contextlib
import itertools

from lance_format.errors import StorageError
from lance_format.table.format.table_directory import TableDirectory

_MAX_FILES = 200
"""Maximum number of listed files; the error is not worth a longer listing."""
_BY_PART = {"/_delta_log/": "a Delta table", ".metadata.json": "an Iceberg table", "/.hoodie/": "a Hudi table"}
_BY_ENDING = {
    ".parquet": "Parquet files",
    ".orc": "ORC files",
    ".avro": "Avro files",
    ".csv": "CSV files",
    ".json": "JSON files",
    ".lance": "Lance files that no version names",
}


def describe_absence(directory: TableDirectory) -> str:
    """Describe the content of a directory without a table, and a remedy.

    Parameters
    ----------
    directory : TableDirectory
        A directory without a version of a table, or one that does not exist.

    Returns
    -------
    str
        A sentence of the form `there is no Lance table at …; …`.
    """
    root, paths = directory.root, list[str]()
    with contextlib.suppress(StorageError):  # The message is clear without the listing.
        listed = directory.store.list_tree(root)
        paths.extend(f"/{info.path.removeprefix(root)}" for info in itertools.islice(listed, _MAX_FILES))
    missing = f"there is no Lance table at {root}"
    for path in paths:
        nested, found, _ = path.partition(f"/{directory.relative(directory.versions)}/")
        if not found or not path.endswith(".manifest"):
            continue
        if not nested.strip("/"):
            return f"there was no Lance table at {root} when its versions were listed, but there is one now; try again"
        return f"{missing}, but there is one at {root}/{nested.strip('/')}; give the path of a table"
    for mark, kind in _BY_PART.items():
        if any(mark in path for path in paths):
            return f"{missing}, which holds {kind}; read it with the format that it has, or give another path"
    for ending, kind in _BY_ENDING.items():
        if any(path.endswith(ending) for path in paths):
            return f"{missing}, which holds {kind}; read them with the format that they have, or give another path"
    return f"{missing}; check the path, or write one first"
