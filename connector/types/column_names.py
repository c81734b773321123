"""Names of columns: quoted for Spark, parsed into parts, and found among the columns of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lance_format import InvalidInputError

_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`.\s][^`.]*?))\s*(\.|$)")
_WORD = re.compile(r"`((?:[^`]|``)+)`|\w+")


def quoted(*parts: str) -> str:
    """Quote the parts of a name, so that Spark parses it into them."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)


def parse_name(text: str) -> tuple[str, ...]:
    """Return the parts of a name, as `a`, `a.b` or `` `a.b`.c ``.

    Raises
    ------
    InvalidInputError
        If it is not a name.
    """
    parts: list[str] = []
    start, has_next = 0, True
    while has_next:
        match = _PART.match(text, start)
        if match is None:
            raise InvalidInputError(
                f"{text!r} is not the name of a column; put a name with special characters between backticks: `a.b`"
            )
        parts.append(match[1].replace("``", "`") if match[1] is not None else match[2])
        start, has_next = match.end(), match[3] == "."
    return tuple(parts)


def mentioned_names(sql: str, names: Sequence[str]) -> list[str]:
    """Return the names that an expression may refer to: those that occur in it as words, in any case.

    Parameters
    ----------
    sql : str
    names : sequence of str

    Returns
    -------
    list of str
        All names if the expression has an asterisk.
    """
    if "*" in sql:
        return list(names)
    words = {(match[1].replace("``", "`") if match[1] else match[0]).lower() for match in _WORD.finditer(sql)}
    return [name for name in names if name.lower() in words]


def find_name(name: str, names: Sequence[str], *, case_sensitive: bool) -> str | None:
    """Return the candidate that a name refers to, or None.

    Parameters
    ----------
    name : str
    names : sequence of str
    case_sensitive : bool
        Whether names that differ in case only are different.

    Raises
    ------
    InvalidInputError
        If it means several.
    """
    if name in names:
        return name
    matches = [] if case_sensitive else [other for other in names if other.lower() == name.lower()]
    if len(matches) > 1:
        raise InvalidInputError(f"{name!r} may mean {' or '.join(map(repr, matches))}: write it as the table does")
    return matches[0] if matches else None
