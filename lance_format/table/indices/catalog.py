"""What indices are about, and dropping them."""

from __future__ import annotations

import pyarrow as pa

from lance_format.datatypes import Field
from lance_format.errors import IndexNotFoundError
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.row_finder import UnusableError
from lance_format.table.transaction.operations import CreateIndex
from lance_format.table.versions.table_version import TableVersion

_SUFFIX = "IndexDetails"


def kind_of(index: IndexMetadata) -> str:
    """Return the kind of an index in pylance's spelling, "Vector" for all of vectors."""
    return index.type_url.rpartition(".")[2].rpartition("/")[2].removesuffix(_SUFFIX) or "Unknown"


def drop_index(table: TableVersion, name: str) -> TableVersion:
    """Drop an index with all its parts, and commit the change; its files stay until a cleanup.

    Raises
    ------
    IndexNotFoundError
        If there is none of that name.
    """
    dropped = tuple(index for index in table.manifest.indices if index.name == name)
    if not dropped:
        names = sorted({index.name for index in table.manifest.indices if not index.is_system})
        raise IndexNotFoundError(f"there is no index {name!r}; the indices are {', '.join(names) or '(none)'}")
    return table.commit(CreateIndex((), dropped))


def value_type_of(table: TableVersion, index: IndexMetadata) -> pa.DataType:
    """Return the type of the column of an index.

    Raises
    ------
    UnusableError
        If it is of several columns, or of one that is gone.
    """
    path = path_of(table.manifest.schema.fields, index.fields[0]) if len(index.fields) == 1 else ()
    if not path:
        raise UnusableError(f"it is about the fields {index.fields}")
    return path[-1].to_arrow_type()


def path_of(siblings: tuple[Field, ...], field_id: int) -> tuple[Field, ...]:
    """Return the path of fields to the field of an id; empty if there is no such field."""
    for field in siblings:
        below = () if field.id == field_id else path_of(field.children, field_id)
        if below or field.id == field_id:
            return (field, *below)
    return ()
