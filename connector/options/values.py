"""Values of options: text, choices, counts and flags."""

from __future__ import annotations

import re
from collections.abc import Callable

from lance_format import InvalidInputError

MAX_INT64 = 2**63 - 1
DIGITS = re.compile(r"[0-9]{1,19}")


def parse_text(name: str, value: str) -> str:
    """Return text without surrounding spaces.

    Raises
    ------
    InvalidInputError
        If nothing is left.
    """
    text = value.strip()
    if not text:
        raise InvalidInputError(f"option {name!r} is empty")
    return text


def parse_choice(choices: tuple[str, ...]) -> Callable[[str, str], str]:
    """Return a parser of one of some words, in any case."""

    def parse(name: str, value: str) -> str:
        text = value.strip().lower()
        if text not in choices:
            raise InvalidInputError(f"option {name!r} must be one of {', '.join(choices)}, not {value!r}")
        return text

    return parse


def parse_count(largest: int) -> Callable[[str, str], int]:
    """Return a parser of whole numbers from 1 to `largest`."""

    def parse(name: str, value: str) -> int:
        text = value.strip()
        count = int(text) if DIGITS.fullmatch(text) else 0
        if not 1 <= count <= largest:
            raise InvalidInputError(f"option {name!r} must be a whole number from 1 to {largest}, not {value!r}")
        return count

    return parse


def parse_flag(name: str, value: str) -> bool:
    """Parse `true` or `false`."""
    return parse_choice(("true", "false"))(name, value) == "true"
