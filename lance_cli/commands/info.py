"""`pyspark-lance info`: what a version of a table has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lance_cli.options import Json, StorageOptions, TablePath, Version, open_table
from lance_cli.output import Answer, Grid, bytes_text, count_text, headings, masked, show

if TYPE_CHECKING:
    import pyarrow as pa

    from lance_format import LanceDataset

_MAX_COLUMNS = 200


def run(path: TablePath, storage_option: StorageOptions = None, version: Version = None, as_json: Json = False) -> None:
    """Show the schema, the size, the versions, the indices and the properties of a table."""
    dataset = open_table(path, storage_option, version)
    facts = describe(dataset)
    show(Answer(facts, _grids(facts)), as_json=as_json)


def describe(dataset: LanceDataset) -> dict[str, Any]:
    """Return what `info` shows."""
    summary = dataset.get_version()
    counts = {key: int(value) for key, value in summary["metadata"].items()}
    files = [file for fragment in dataset.get_fragments() for file in fragment.metadata.files]
    versions = Counter(f"{file.file_major_version}.{file.file_minor_version}" for file in files)
    ids = {fragment.fragment_id for fragment in dataset.get_fragments()}
    return {
        "uri": dataset.uri,
        "version": dataset.version,
        "latest_version": dataset.latest_version,
        "num_versions": len(dataset.version_refs()),
        "timestamp": summary["timestamp"].astimezone(),
        "rows": counts["total_rows"],
        "deleted_rows": counts["total_deletion_file_rows"],
        "size_bytes": sum(file.file_size_bytes or 0 for file in files),
        "files_of_unknown_size": sum(not file.file_size_bytes for file in files),
        "fragments": counts["total_fragments"],
        "data_files": counts["total_data_files"],
        "deletion_files": counts["total_deletion_files"],
        "data_storage_version": dataset.data_storage_version,
        "files_by_format_version": dict(sorted(versions.items())),
        "stable_row_ids": dataset.has_stable_row_ids,
        "primary_key": [field.name() for field in dataset.lance_schema.unenforced_primary_key()],
        "columns": list(_fields(dataset.schema)),
        "indices": [_describe_index(index, ids) for index in dataset.list_indices()],
        "tags": {name: tag["version"] for name, tag in sorted(dataset.tags.list().items())},
        "branches": sorted(dataset.branches.list()),
        "config": masked(dataset.config()),
        "metadata": masked(dataset.metadata),
    }


def _fields(fields: Sequence[pa.Field], above: str = "") -> Iterator[dict[str, Any]]:
    for field in fields:
        yield {"name": f"{above}{field.name}", "type": str(field.type), "nullable": field.nullable}


def _describe_index(index: dict[str, Any], ids: set[int]) -> dict[str, Any]:
    covered = index["fragment_ids"]
    return {
        "name": index["name"],
        "type": index["type"],
        "columns": index["fields"],
        "version": index["version"],
        "fragments": None if covered is None else len(ids & covered),
        "fragments_missing": None if covered is None else len(ids - covered),
    }


def _grids(facts: dict[str, Any]) -> list[Grid]:
    latest = facts["latest_version"]
    unknown = facts["files_of_unknown_size"]
    general = [
        ("table", facts["uri"]),
        ("version", f"{facts['version']}{'' if facts['version'] == latest else f' (latest: {latest})'}"),
        ("committed", facts["timestamp"]),
        ("versions", f"{facts['num_versions']} kept"),
        (
            "rows",
            f"{count_text(facts['rows'])}, and {count_text(facts['deleted_rows'])} deleted ones in the files",
        ),
        ("data", bytes_text(facts["size_bytes"]) + (f", and {unknown} files of unknown size" if unknown else "")),
        ("fragments", f"{count_text(facts['fragments'])} with {count_text(facts['data_files'])} data files"),
        ("deletion files", count_text(facts["deletion_files"])),
        ("format of new files", facts["data_storage_version"]),
        ("formats of files", [f"{name}: {count}" for name, count in facts["files_by_format_version"].items()]),
        ("stable row ids", facts["stable_row_ids"]),
        ("primary key", facts["primary_key"]),
        ("tags", [f"{name} = {version}" for name, version in facts["tags"].items()]),
        ("branches", facts["branches"]),
    ]
    columns = [(each["name"], each["type"], "" if each["nullable"] else "not null") for each in facts["columns"]]
    more = len(columns) - _MAX_COLUMNS
    grids = [Grid((), general)]
    note = f"… and {more} more columns; --json has all" if more > 0 else ""
    grids.append(Grid(("name", "type", ""), columns[:_MAX_COLUMNS], "Columns", note))
    if facts["indices"]:
        names = headings("name", "type", "columns", "#fragments", "#missing")
        rows = [(x["name"], x["type"], x["columns"], x["fragments"], x["fragments_missing"]) for x in facts["indices"]]
        grids.append(Grid(names, rows, "Indices"))
    properties = [(name, value) for part in ("config", "metadata") for name, value in facts[part].items()]
    if properties:
        grids.append(Grid(("name", "value"), properties, "Properties"))
    return grids
