"""The metadata tables: each is a row of `TABLES` and a function that yields its rows.

All describe the version that is read. `history` and `transactions` describe its predecessors too. `tags`, `branches`
and `refs` have no versions: they show the present.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from lance_format import LanceDataset
from lance_format.lazy_dataclasses import dataclass

Row = tuple[Any, ...]
_TEXT, _LONG, _INT, _TIME = StringType(), LongType(), IntegerType(), TimestampType()
_TEXTS, _TEXT_BY_TEXT = ArrayType(_TEXT), MapType(_TEXT, _TEXT)


@dataclass(frozen=True, slots=True)
class MetadataTable:
    """A metadata table.

    Parameters
    ----------
    rows : callable
        Yields the rows for a version of a table.
    schema : StructType
    has_versions : bool
        Whether another version has other rows.
    """

    rows: Callable[[LanceDataset], Iterator[Row]]
    schema: StructType
    has_versions: bool = True


def _columns(**types: DataType) -> StructType:
    return StructType([StructField(name, data_type) for name, data_type in types.items()])


def _history(dataset: LanceDataset) -> Iterator[Row]:
    for version, transaction in dataset.version_log():
        known = version["metadata"]
        counts = [int(known[name]) for name in ("total_rows", "total_fragments", "total_data_files")]
        made = (None, None) if transaction is None else (transaction.operation.name, transaction.read_version)
        yield (
            version["version"],
            version["timestamp"].astimezone(datetime.UTC),
            *made,
            *counts,
            int(known["total_files_size"]),
        )


def _transactions(dataset: LanceDataset) -> Iterator[Row]:
    for version, transaction in dataset.version_log():
        if transaction is None:
            continue
        operation: Any = transaction.operation
        yield (
            version["version"],
            transaction.uuid,
            transaction.read_version,
            operation.name,
            len(getattr(operation, "added_fragments", ())),
            len(getattr(operation, "changed_fragment_ids", ())),
            dict(transaction.transaction_properties),
        )


def _fragments(dataset: LanceDataset) -> Iterator[Row]:
    for fragment in dataset.get_fragments():
        found = fragment.metadata
        deletion = fragment.deletion_file()
        yield (
            found.id,
            fragment.count_rows(),
            fragment.physical_rows,
            fragment.num_deletions,
            len(found.files),
            sum(file.file_size_bytes for file in found.files)
            if all(file.file_size_bytes for file in found.files)
            else None,
            deletion,
        )


def _files(dataset: LanceDataset) -> Iterator[Row]:
    names = _field_paths(dataset)
    for fragment in dataset.get_fragments():
        for file in fragment.metadata.files:
            version = f"{file.file_major_version}.{file.file_minor_version}"
            columns = [names[field] for field in file.fields if field in names]
            yield fragment.fragment_id, "data", f"data/{file.path}", file.file_size_bytes or None, version, columns
        deletion = fragment.deletion_file()
        if deletion is not None:
            yield fragment.fragment_id, "deletion", deletion, None, None, None


def _field_paths(dataset: LanceDataset) -> dict[int, str]:
    """Return the dotted path of each field by its id."""
    found: dict[int, str] = {}
    pending = [(field, field.name()) for field in dataset.lance_schema.fields()]
    while pending:
        field, path = pending.pop()
        found[field.id()] = path
        pending += [(child, f"{path}.{child.name()}") for child in field.children()]
    return found


def _indices(dataset: LanceDataset) -> Iterator[Row]:
    ids = {fragment.fragment_id for fragment in dataset.get_fragments()}
    for index in dataset.list_indices():
        covered = index["fragment_ids"]
        numbers = (None, None) if covered is None else (len(ids & covered), len(ids - covered))
        yield index["name"], index["type"], index["uuid"], index["fields"], index["version"], *numbers


def _tags(dataset: LanceDataset) -> Iterator[Row]:
    for name, tag in sorted(dataset.tags.list().items()):
        yield name, tag["branch"], tag["version"], tag["created_at"], tag["updated_at"], tag["metadata"]


def _branches(dataset: LanceDataset) -> Iterator[Row]:
    for name, branch in sorted(dataset.branches.list().items()):
        created = datetime.datetime.fromtimestamp(branch["create_at"], datetime.UTC)
        yield name, branch["parent_branch"], branch["parent_version"], created, branch["metadata"]


def _refs(dataset: LanceDataset) -> Iterator[Row]:
    for name, branch in sorted(dataset.branches.list().items()):
        yield name, "branch", branch["parent_branch"], branch["parent_version"]
    for name, tag in sorted(dataset.tags.list().items()):
        yield name, "tag", tag["branch"], tag["version"]


TABLES: dict[str, MetadataTable] = {
    "history": MetadataTable(
        _history,
        _columns(
            version=_LONG,
            timestamp=_TIME,
            operation=_TEXT,
            read_version=_LONG,
            rows=_LONG,
            fragments=_LONG,
            data_files=_LONG,
            bytes=_LONG,
        ),
    ),
    "transactions": MetadataTable(
        _transactions,
        _columns(
            version=_LONG,
            uuid=_TEXT,
            read_version=_LONG,
            operation=_TEXT,
            fragments_added=_LONG,
            fragments_changed=_LONG,
            properties=_TEXT_BY_TEXT,
        ),
    ),
    "fragments": MetadataTable(
        _fragments,
        _columns(
            id=_LONG,
            rows=_LONG,
            physical_rows=_LONG,
            deleted_rows=_LONG,
            data_files=_INT,
            bytes=_LONG,
            deletion_file=_TEXT,
        ),
    ),
    "files": MetadataTable(
        _files,
        _columns(fragment_id=_LONG, content=_TEXT, path=_TEXT, bytes=_LONG, format_version=_TEXT, columns=_TEXTS),
    ),
    "indices": MetadataTable(
        _indices,
        _columns(
            name=_TEXT,
            type=_TEXT,
            uuid=_TEXT,
            columns=_TEXTS,
            version=_LONG,
            fragments=_LONG,
            fragments_missing=_LONG,
        ),
    ),
    "tags": MetadataTable(
        _tags,
        _columns(name=_TEXT, branch=_TEXT, version=_LONG, created_at=_TIME, updated_at=_TIME, metadata=_TEXT_BY_TEXT),
        has_versions=False,
    ),
    "branches": MetadataTable(
        _branches,
        _columns(name=_TEXT, parent_branch=_TEXT, parent_version=_LONG, created_at=_TIME, metadata=_TEXT_BY_TEXT),
        has_versions=False,
    ),
    "refs": MetadataTable(_refs, _columns(name=_TEXT, type=_TEXT, branch=_TEXT, version=_LONG), has_versions=False),
}
