"""Names that pylance cannot read, which tables are given only on request.

pylance refuses to write a top-level column with a dot, and cannot scan a table that has one, or one with a backtick or
without a name. A NUL character in any name ends its process. Below structs dots and backticks are names like others.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from lance_format.datatypes import TOP_LEVEL_PARENT, Field
from lance_format.errors import InvalidInputError

_PARTS = {".": "a dot", "`": "a backtick"}
_NUL = "\0"


def check_portable(fields: Iterable[Field], known: Container[str] = (), *, remedy: str = "") -> None:
    """Check that pylance can read fields by their names.

    Parameters
    ----------
    fields : iterable of Field
        Columns, or fields below others.
    known : container of str
        Names of columns that the table has already, which are not checked.
    remedy : str
        Remedy that the error names besides another name.

    Raises
    ------
    InvalidInputError
        If pylance cannot read a field.
    """
    for field in fields:
        is_column = field.parent_id == TOP_LEVEL_PARENT
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
