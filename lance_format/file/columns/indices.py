"""Columns of a file by the fields of its schema."""

from __future__ import annotations

from lance_format.blob_fields import is_description
from lance_format.datatypes import Field, Schema
from lance_format.errors import InvalidInputError
from lance_format.packing import asks_to_pack
from lance_format.version import FileVersion


def is_packed(field: Field) -> bool:
    """Return whether a struct is one column, with its fields side by side, as descriptions of blobs are."""
    return is_description(field) or (field.logical_type == "struct" and asks_to_pack(field.metadata))


def check_packing(field: Field) -> None:
    """Refuse fields that ask to be packed without being structs: pylance gives their leaves one column, not several.

    Raises
    ------
    InvalidInputError
    """
    for node in field.walk():
        if node.children and node.logical_type != "struct" and asks_to_pack(node.metadata):
            raise InvalidInputError(
                f"field {node.name!r} of column {field.name!r} is a {node.logical_type} whose metadata asks to pack it,"
                " and pylance could not read it back; structs alone are packed: remove the metadata, or give it to the"
                " struct inside"
            )


def column_indices(schema: Schema, version: FileVersion) -> dict[int, int]:
    """Return the column of a file that holds each field.

    In file format 2.0 every field has a column, followed by those of its children. From 2.1 on only leaves have one, in
    the order of the schema. A packed struct is one column in either, and so is a struct without fields.
    """
    indices: dict[int, int] = {}

    def assign(field: Field) -> None:
        is_leaf = not field.children or is_packed(field)
        if is_leaf or version.has_array_encodings:
            indices[field.id] = len(indices)
        if not is_leaf:
            for child in field.children:
                assign(child)

    for field in schema.fields:
        assign(field)
    return indices


def stored_fields(schema: Schema, version: FileVersion) -> dict[int, tuple[Field, ...]]:
    """Return the field of each column of a file, with the fields above it, in the order of the schema."""
    columns = column_indices(schema, version)
    found: dict[int, tuple[Field, ...]] = {}

    def visit(path: tuple[Field, ...]) -> None:
        column = columns.get(path[-1].id)
        if column is not None:
            found[column] = path
        for child in path[-1].children:
            visit((*path, child))

    for field in schema.fields:
        visit((field,))
    return found
