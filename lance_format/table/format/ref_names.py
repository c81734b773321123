"""Names of tags and branches, and the rules that they follow."""

from __future__ import annotations

import re
from typing import Any

from lance_format.errors import InvalidInputError

MAIN = "main"
"""Name of the main branch."""


_SEGMENT = re.compile(r"[A-Za-z0-9._-]{1,200}")


_OF_TABLES = frozenset({"data", "tree", "_deletions", "_indices", "_refs", "_transactions", "_versions"})


def check_tag_name(name: str) -> str:
    """Return the name of a tag, once it is shown to be one.

    Raises
    ------
    InvalidInputError
        If it has other characters than letters, digits and `. _ -`, or could be taken for a path.
    """
    _check_segment(name, "tag", name)
    if name.startswith(".") or name.endswith("."):
        raise InvalidInputError(f"the tag name {name!r} begins or ends with a dot; choose another")
    return name


def check_branch_name(name: str) -> str:
    """Return the name of a branch other than the main one, once it is shown to be one: segments between slashes.

    Raises
    ------
    InvalidInputError
        If a segment has other characters than letters, digits and `. _ -`, or could be taken for another path.
    """
    if isinstance(name, str) and name == MAIN:
        raise InvalidInputError(f"{MAIN!r} is the name of the main branch; choose another")
    for segment in name.split("/") if isinstance(name, str) else [name]:
        _check_segment(segment, "branch", name)
        if segment == ".":
            raise InvalidInputError(f"the branch name {name!r} has a segment that is only a dot; choose another")
    return name


def check_new_branch_name(name: str) -> str:
    """Check the name of a new branch, which must not look like a directory of a table either.

    Raises
    ------
    InvalidInputError
        If the name is not allowed.
    """
    check_branch_name(name)
    clash = _OF_TABLES.intersection(name.split("/"))
    if clash or name.startswith(".") or "/." in name:
        raise InvalidInputError(
            f"the branch name {name!r} has a segment that begins with a dot or names a directory of tables; choose"
            " another"
        )
    return name


def _check_segment(segment: Any, kind: str, name: Any) -> None:
    if not isinstance(segment, str) or not _SEGMENT.fullmatch(segment):
        raise InvalidInputError(f"the {kind} name {name!r} has other characters than ASCII letters, digits and . _ -")
    if ".." in segment or segment.endswith(".lock"):
        raise InvalidInputError(f"the {kind} name {name!r} has two dots in a row, or ends with .lock; choose another")
