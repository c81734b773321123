"""The indices of a table: what there is, and dropping them."""

from __future__ import annotations

from typing import Any

from lance_format.datatypes import Field, Schema
from lance_format.errors import InvalidInputError
from lance_format.table.index_metadata import IndexMetadata
from lance_format.table.operations import CreateIndex
from lance_format.table.table_version import TableVersion

_SUFFIX = "IndexDetails"


def describe_index(index: IndexMetadata, schema: Schema) -> dict[str, Any]:
    """Return what `LanceDataset.list_indices` says about an index."""
    kind = index.type_url.rpartition(".")[2].rpartition("/")[2].removesuffix(_SUFFIX)
    return {
        "name": index.name,
        "type": kind or "Unknown",
        "uuid": index.uuid,
        "fields": [".".join(field.name for field in path) for x in index.fields if (path := path_of(schema.fields, x))],
        "version": index.dataset_version,
        "fragment_ids": None if index.fragment_ids is None else set(index.fragment_ids),
        "base_id": None,
    }


def drop_index(table: TableVersion, name: str) -> TableVersion:
    """Drop an index, with all its parts, and commit that; its files stay until a cleanup.

    Raises
    ------
    InvalidInputError
        If there is none of that name.
    """
    dropped = tuple(index for index in table.manifest.indices if index.name == name)
    if not dropped:
        names = sorted({index.name for index in table.manifest.indices if not index.is_system})
        raise InvalidInputError(f"there is no index {name!r}; the indices are {', '.join(names) or '(none)'}")
    return table.commit(CreateIndex((), dropped))


def path_of(siblings: tuple[Field, ...], field_id: int) -> tuple[Field, ...]:
    """Return the fields on the way to the one of an id, which comes last; none if there is no such field."""
    for field in siblings:
        below = () if field.id == field_id else path_of(field.children, field_id)
        if below or field.id == field_id:
            return (field, *below)
    return ()
