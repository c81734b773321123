"""Which columns of a file hold which fields of its schema."""

from __future__ import annotations

from lance_format.blob_fields import is_description
from lance_format.datatypes import Field, Schema


def is_packed(field: Field) -> bool:
    """Return whether a struct is one column, with its fields side by side, as descriptions of blobs are."""
    if is_description(field):
        return True
    asked = field.metadata.get(b"lance-encoding:packed", field.metadata.get(b"packed", b""))
    return field.logical_type == "struct" and asked.lower() == b"true"


def column_indices(schema: Schema) -> dict[int, int]:
    """Return which column of a file of format 2.1 or later holds each field.

    Only leaves have columns, in the order of the schema. Of a packed struct and of a struct without fields it is the
    struct itself.
    """
    indices: dict[int, int] = {}

    def assign(field: Field) -> None:
        if field.children and not is_packed(field):
            for child in field.children:
                assign(child)
        else:
            indices[field.id] = len(indices)

    for field in schema.fields:
        assign(field)
    return indices
