"""Names of columns: quoted for Spark, parsed into parts, found among the columns of a table or in expressions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lance_format import InvalidInputError

_PART = re.compile(r"(?:\s*`((?:[^`]|``)+)`\s*|([^`.]+))(\.|\Z)")
_PLAIN = re.compile(r"[^`.\s]|[^`.\s][^`.]*[^`.\s]")
_WORD = re.compile(r"\w+")
_REFERENCE = re.compile(r"(?:`(?:[^`]|``)+`|\w+)(?:[ \t]*\.[ \t]*(?:`(?:[^`]|``)+`|\w+))*")
_NAME = re.compile(r"`((?:[^`]|``)+)`|\w+")
_PRODUCT = re.compile(r"\*(?=\s*\()|(?<=[\w)\]`'\"])\s*\*(?=\s*[\w(`'\"+-])")
_OPEN = re.compile(r"\*|--|\bidentifier\b|\b(?:select|distinct|all)\s*$", re.IGNORECASE)


def quoted(*parts: str) -> str:
    """Quote the parts of a name, so that Spark parses it into them."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)


def spelled(name: str) -> str:
    """Return a name as `parse_name` takes it: quoted if it would otherwise be another one, or none."""
    return name if _PLAIN.fullmatch(name) else quoted(name)


def parse_name(text: str, *, keeps_spaces: bool = False) -> tuple[str, ...]:
    """Return the parts of a name, as `a`, `a.b` or `` `a.b`.c ``.

    Parameters
    ----------
    text : str
    keeps_spaces : bool
        Whether outer spaces of parts without backticks belong to them.

    Raises
    ------
    InvalidInputError
        If it is not a name.
    """
    parts: list[str] = []
    start, has_next = 0, True
    while has_next:
        match = _PART.match(text, start)
        if match is None or (match[1] is None and not keeps_spaces and not match[2].strip()):
            raise InvalidInputError(
                f"{text!r} is not the name of a column; put a name with special characters between backticks: `a.b`"
            )
        part = match[2] if match[1] is None else match[1].replace("``", "`")
        parts.append(part.strip() if match[1] is None and not keeps_spaces else part)
        start, has_next = match.end(), match[3] == "."
    return tuple(parts)


def mentioned_names(sql: str, names: Sequence[str], qualifier: str | None = None) -> list[str]:
    """Return the columns of a table that an expression may refer to: those whose names occur in it, in any case.

    More names than those are returned rather than fewer: text of literals and comments counts too.

    Parameters
    ----------
    sql : str
    names : sequence of str
        The columns of the table.
    qualifier : str, optional
        The only one that the columns have. The last parts of `other.name` are not counted.

    Returns
    -------
    list of str
        All names if the expression has an asterisk that is no multiplication, a line comment, or a computed name.
    """
    if any(_OPEN.search(part) for part in _PRODUCT.split(sql)):
        return list(names)
    folded, owner = sql.lower(), None if qualifier is None else qualifier.lower()
    known = {name.lower() for name in names}
    words = set()
    for reference in _REFERENCE.finditer(folded):
        parts = [match[1].replace("``", "`") if match[1] else match[0] for match in _NAME.finditer(reference[0])]
        is_other = owner is not None and _WORD.fullmatch(owner) and owner not in parts and parts[0] not in known
        words.update(parts[:1] if is_other else parts)
        words.update(word for part in parts if not _WORD.fullmatch(part) for word in _WORD.findall(part))
    return [name for name in names if name.lower() in words or _is_special_in(name.lower(), folded)]


def _is_special_in(name: str, text: str) -> bool:
    """Return whether a name that is no word occurs in a text, in which it need not be quoted."""
    return not _WORD.fullmatch(name) and (name in text or name.replace("`", "``") in text)


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
