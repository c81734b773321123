"""Values of options: text, choices, counts and flags."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

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


def parse_whole(name: str, value: str) -> int:
    """Parse a whole number.

    Raises
    ------
    InvalidInputError
        If it is none from 0 to 2**63 - 1.
    """
    text = value.strip()
    number = int(text) if DIGITS.fullmatch(text) else -1
    if not 0 <= number <= MAX_INT64:
        raise InvalidInputError(f"option {name!r} must be a whole number from 0 to {MAX_INT64}, not {value!r}")
    return number


def parse_names(name: str, value: str) -> tuple[str, ...]:
    """Parse names of columns: separated by commas, or a JSON list.

    Raises
    ------
    InvalidInputError
        If there is none, or one twice.
    """
    is_list = value.lstrip().startswith("[")
    names = _parse_json(name, value) if is_list else [part.strip() for part in value.split(",")]
    if not all(names) or not names:
        raise InvalidInputError(f"option {name!r} must name columns, separated by commas, not {value!r}")
    repeated = sorted({column for column in names if names.count(column) > 1})
    if repeated:
        raise InvalidInputError(f"option {name!r} names {', '.join(map(repr, repeated))} more than once")
    return tuple(names)


def _parse_json(name: str, value: str) -> list[str]:
    expected = f"option {name!r} starts like a JSON list and must be one, of strings, not {value!r}"
    try:
        names = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(expected) from error
    if not isinstance(names, list) or not all(isinstance(column, str) for column in names):
        raise InvalidInputError(expected)
    return names


def take_given(parsed: MutableMapping[str, Any], attributes: Mapping[str, str]) -> dict[str, Any]:
    """Remove some options from others, and return those that are given by the names of attributes.

    Parameters
    ----------
    parsed : mutable mapping of str to object
        Parsed options, by their names.
    attributes : mapping of str to str
        The attribute of each option to take.
    """
    return {attribute: parsed.pop(name) for name, attribute in attributes.items() if name in parsed}
