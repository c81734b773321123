"""Parts of a schema by field path: `a`, `a.b`, `` a.`b.c` ``.

Selecting a field below another excludes its siblings, whose columns are not read. Names with dots, and empty ones, are
enclosed in backticks, and a backtick in such a name is doubled. The item of a list has the name in the schema, mostly
`item`. Maps and packed structs are always read completely.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

from lance_format.datatypes import Field, Schema
from lance_format.errors import InvalidInputError
from lance_format.expressions import FieldPath
from lance_format.file.columns.indices import is_packed

_SEGMENT = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")
_PLAIN = re.compile(r"[^.`]+")
_MAX_LISTED = 20


def project(schema: Schema, names: Iterable[str]) -> Schema:
    """Return the schema of some fields, in the order of their first mention.

    Parameters
    ----------
    schema : Schema
    names : iterable of str
        Paths; the name of a top-level field is taken literally.

    Raises
    ------
    InvalidInputError
        If a path is malformed, or there is no such field.
    """
    asked = list(names)
    if isinstance(names, str) or not all(isinstance(name, str) for name in asked):
        raise InvalidInputError(f"columns is {names!r}; a list of column names is needed")
    return Schema(_prune(schema.fields, [_find(schema, name) for name in asked]), schema.metadata)


def prune(schema: Schema, paths: Iterable[FieldPath]) -> Schema:
    """Return a schema with only the fields at some paths, and above and below them, in its own order."""
    wanted = frozenset(paths)
    return Schema(_prune(schema.fields, [path for path in _walk(schema.fields) if path in wanted]), schema.metadata)


def _walk(fields: Sequence[Field], above: FieldPath = ()) -> Iterator[FieldPath]:
    for field in fields:
        yield (*above, field.name)
        yield from _walk(field.children, (*above, field.name))


def _prune(fields: Sequence[Field], paths: Sequence[FieldPath]) -> tuple[Field, ...]:
    below: dict[str, list[FieldPath]] = {}
    for path in paths:
        below.setdefault(path[0], []).append(path[1:])
    by_name = {field.name: field for field in fields}
    return tuple(_prune_field(by_name[name], rest) for name, rest in below.items())


def _prune_field(field: Field, paths: Sequence[FieldPath]) -> Field:
    if field.logical_type == "map" or is_packed(field):
        return field
    # The whole field adds the fields that were not named before.
    named = [path for rest in paths for path in ([rest] if rest else [(child.name,) for child in field.children])]
    return dataclasses.replace(field, children=_prune(field.children, named)) if named else field


def _find(schema: Schema, name: str) -> FieldPath:
    if any(field.name == name for field in schema.fields):
        return (name,)
    path = field_path(name)
    fields: Sequence[Field] = schema.fields
    for part in path:
        found = next((field for field in fields if field.name == part), None)
        if found is None:
            raise InvalidInputError(f"there is no column {name!r}; {_hint(schema, name)}")
        fields = found.children
    return path


def field_path(name: str) -> FieldPath:
    """Split a path into names.

    Raises
    ------
    InvalidInputError
        If it has empty names without backticks, or backticks that do not enclose one.
    """
    parts: list[str] = []
    position = 0
    while (match := _SEGMENT.match(name, position)) is not None:
        parts.append(match[2] if match[1] is None else match[1].replace("``", "`"))
        position = match.end()
        if position == len(name):
            return tuple(parts)
        if name[position] != ".":
            break
        position += 1
    raise InvalidInputError(
        f"{name!r} is no path to a column: names are separated by dots, and enclosed by backticks if they have dots"
    )


def _hint(schema: Schema, name: str) -> str:
    known = [quoted_path(path) for path in _walk(schema.fields)]
    near = difflib.get_close_matches(name, known, n=3) + [path for path in known if path.replace("`", "") == name]
    if near:
        return f"did you mean {' or '.join(repr(path) for path in dict.fromkeys(near))}?"
    listed = ", ".join(schema.names[:_MAX_LISTED]) or "(none)"
    return f"the columns are {listed}{' and others' if len(schema.names) > _MAX_LISTED else ''}"


def quoted_path(names: Iterable[str]) -> str:
    """Return the path of which `field_path` makes names."""
    return ".".join(name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`" for name in names)
