"""Finding a field of a schema by its dotted path; backticks enclose names with dots."""

from __future__ import annotations

from lance_format.datatypes import Field, Schema
from lance_format.errors import InvalidInputError
from lance_format.file.columns.field_paths import field_path


def find_field(schema: Schema, path: str) -> tuple[Field, ...]:
    """Return the fields on the way to one, the top-level field first.

    Raises
    ------
    InvalidInputError
        If there is none.
    """
    if path in schema.names:
        return (schema.field(path),)
    found: list[Field] = []
    siblings = schema.fields
    for name in field_path(path):
        match = next((field for field in siblings if field.name == name), None)
        if match is None:
            known = ", ".join(field.name for field in siblings)
            raise InvalidInputError(f"there is no column {path!r}: no field {name!r} among {known or '(none)'}")
        found.append(match)
        siblings = match.children
    return tuple(found)
