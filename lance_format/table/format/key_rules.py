"""Keys that a table promises: merges match rows by the primary key, and the reference has rules for both kinds."""

from __future__ import annotations

from collections.abc import Iterable

from lance_format.datatypes import Field, Schema
from lance_format.errors import InvalidInputError, SchemaMismatchError


def check_keys_stay(before: Iterable[Field], after: Iterable[Field]) -> None:
    """Raise `InvalidInputError` if an existing primary or clustering key changes; adding one is allowed."""
    for name, old, new in zip(("primary", "clustering"), _keys(before), _keys(after), strict=True):
        if old and old != new:
            raise InvalidInputError(
                f"the table has a {name} key, which cannot be changed; keep its entries in the metadata of fields"
            )


def _keys(fields: Iterable[Field]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the ids of the fields of the primary and of the clustering key, with their positions."""
    nodes = [node for top in fields for node in top.walk()]
    return (
        [(node.id, node.primary_key_position) for node in nodes if node.unenforced_primary_key],
        [(node.id, node.clustering_key_position) for node in nodes if node.clustering_key_position],
    )


def check_primary_key(schema: Schema) -> None:
    """Raise `SchemaMismatchError` if a field of the primary key, or one that it is below, may be null, or has children.

    The reference does not open such a table.
    """
    for top in schema.fields:
        _check_key(top, top.name, nullable=False)


def _check_key(field: Field, path: str, *, nullable: bool) -> None:
    nullable |= field.nullable
    if field.unenforced_primary_key and (nullable or field.children):
        problem = "has fields below it"
        if nullable:
            problem = (
                "may be null, or is below what may be; columns become NOT NULL when a table is created or replaced"
            )
        raise SchemaMismatchError(f"column {path!r} cannot be part of the primary key: it {problem}")
    for child in field.children:
        _check_key(child, f"{path}.{child.name}", nullable=nullable)
