"""`pyspark-lance history`: the versions of a table and what made them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from lance_cli.options import Json, Limit, StorageOptions, TablePath, Version, open_table
from lance_cli.output import Answer, Grid, bytes_text, count_text, headings, show

if TYPE_CHECKING:
    from lance_format import LanceDataset

_MESSAGE = "__lance_commit_message"


def run(
    path: TablePath,
    storage_option: StorageOptions = None,
    version: Version = None,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """List the versions of a table, latest first, with the operations that made them."""
    dataset = open_table(path, storage_option, version)
    found = list_versions(dataset, limit)
    more = len([each for each in dataset.version_refs() if each["version"] <= dataset.version]) - len(found)
    names = headings(
        "#version",
        "committed",
        "operation",
        "#rows",
        "#change",
        "#fragments",
        "#data",
        "message",
    )
    rows = [
        (
            each["version"],
            each["timestamp"],
            each["operation"],
            count_text(each["rows"]),
            "" if each["rows_added"] is None else f"{each['rows_added']:+,}",
            count_text(each["fragments"]),
            bytes_text(each["size_bytes"]),
            each["message"] or "",
        )
        for each in found
    ]
    note = f"{more} earlier versions are not shown: --limit {len(found) + more} shows them" if more > 0 else ""
    show(
        Answer({"uri": dataset.uri, "versions": found, "more": max(more, 0)}, [Grid(names, rows, note=note)]),
        as_json=as_json,
    )


def list_versions(dataset: LanceDataset, limit: int) -> list[dict[str, Any]]:
    """Return the description of the latest versions, latest first."""
    found: list[dict[str, Any]] = []
    for version, transaction in itertools.islice(dataset.version_log(limit + 1), limit + 1):
        counts = {key: int(value) for key, value in version["metadata"].items()}
        if found:
            found[-1]["rows_added"] = found[-1]["rows"] - counts["total_rows"]
        properties = {} if transaction is None else dict(transaction.transaction_properties)
        message = properties.pop(_MESSAGE, None)
        found.append(
            {
                "version": version["version"],
                "timestamp": version["timestamp"].astimezone(),
                "operation": None if transaction is None else transaction.operation.name,
                "read_version": None if transaction is None else transaction.read_version,
                "rows": counts["total_rows"],
                "rows_added": counts["total_rows"] if version["version"] == 1 else None,
                "fragments": counts["total_fragments"],
                "data_files": counts["total_data_files"],
                "size_bytes": counts["total_files_size"],
                "message": message,
                "properties": properties,
            }
        )
    return found[:limit]
