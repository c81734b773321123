"""Names that columns cannot have, and names that pylance cannot read, which tables are given only on request.

pylance aborts on a table with a column that is named like a metadata column, such as `_rowid`. It refuses to write a
top-level column with a dot, and cannot scan a table that has one, or one with a backtick or without a name. A NUL
character in any name ends its process. Below structs dots and backticks are names like others.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from lance_format.datatypes import TOP_LEVEL_PARENT, Field
from lance_format.errors import InvalidInputError

_PARTS = {".": "a dot", "`": "a backtick"}
_NUL = "\0"
RESERVED_COLUMNS = ("_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version")
"""Names of metadata columns that no column of a table can have."""


def check_new_names(
    fields: Iterable[Field], known: Container[str] = (), *, allow_unportable: bool = False, remedy: str = ""
) -> None:
    """Check that a table can have new fields by their names, and that pylance can read them.

    Parameters
    ----------
    fields : iterable of Field
        Columns, or fields below others.
    known : container of str
        Names of columns that the table has already, which pylance need not be able to read.
    allow_unportable : bool
        Whether pylance need not be able to read any of them.
    remedy : str
        Remedy that the error names besides another name, if pylance cannot read one.

    Raises
    ------
    InvalidInputError
        If a table cannot have a field, or pylance cannot read it.
    """
    for field in fields:
        is_column = field.parent_id == TOP_LEVEL_PARENT
        if is_column and field.name in RESERVED_COLUMNS:
            raise InvalidInputError(
                f"a table cannot have a column {field.name!r}: the name is reserved for a metadata column; rename the"
                " column, or leave it out"
            )
        if allow_unportable:
            continue
        if is_column and field.name in known:
            continue
        if is_column and not field.name:
            raise InvalidInputError(f"a column has no name, and pylance cannot read such a table; name it{remedy}")
        for part, what in _PARTS.items():
            if is_column and part in field.name:
                raise InvalidInputError(_message(field.name, what, part, remedy))
        for node in field.walk():
            if _NUL in node.name:
                raise InvalidInputError(_message(node.name, "a NUL character", _NUL, remedy))


def _message(name: str, what: str, part: str, remedy: str) -> str:
    other = name.replace(part, "_")
    return (
        f"column name {name!r} has {what}, and pylance cannot read a table with such a name; choose another one, such"
        f" as {other!r}{remedy}"
    )
