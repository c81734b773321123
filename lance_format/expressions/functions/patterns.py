"""Matching of texts with literals and `%`: `LIKE` and `contains`.

Arrow matches regular expressions, beginnings and ends of texts, and few rows; see `kernels/columns/substring.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.errors import InvalidInputError
from lance_format.kernels.columns.substring import match_literals

_LEAST_ROWS = 4096
"""Arrow matches fewer rows sooner than a kernel is called."""
_SAMPLED_BYTES = 4096
_WILDCARDS = {"_": ".", "%": ".*"}
"""Characters that stand for others, as regular expressions."""


_UNICODE_CLASSES = {
    "d": r"\p{Nd}",
    "D": r"\P{Nd}",
    "s": r"\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}",
    "S": r"\x{0}-\x{8}\x{e}-\x{1f}!-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}"
    r"\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff}",
    "w": r"\pL\pM\p{Nd}\p{Nl}\p{Pc}\x{200c}\x{200d}\x{24b6}-\x{24e9}"
    r"\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189}",
}
"""What digits, spaces and the characters of words are to the reference; to Arrow they are those of ASCII."""
_CLASS_TOKENS = re.compile(r"\\.|\[:\^?[a-z]+:\]|\[\^?\]?|\]", re.DOTALL)
"""What is escaped, classes with names, and where brackets open and close."""


def like(values: Any, pattern: str, ignore_case: bool) -> Any:
    r"""Return whether texts match a pattern of `LIKE`, where `\` makes the next character literal.

    Arrow's own function takes escaped characters at the ends of some patterns for two characters.

    Parameters
    ----------
    values : pa.Array or pa.Scalar
    pattern : str
    ignore_case : bool
    """
    literals = None if ignore_case else _literals(pattern)
    match literals:
        case [prefix, ""]:
            return pc.starts_with(values, prefix)
        case ["", suffix]:
            return pc.ends_with(values, suffix)
        case ["", middle, ""]:
            return contains(values, middle)
        case [_, _, *_] if _is_fit(values):
            return _matches(values, literals)
    return pc.match_substring_regex(values, _regex(pattern), ignore_case=ignore_case)


def contains(values: Any, pattern: str) -> Any:
    """Return whether texts contain another.

    Parameters
    ----------
    values : pa.Array or pa.Scalar
    pattern : str
    """
    return _matches(values, ["", pattern, ""]) if pattern and _is_fit(values) else pc.match_substring(values, pattern)


def literal_texts(pattern: str) -> list[str]:
    """Return the texts between the wildcards of a pattern of `LIKE`; what matches it has them all."""
    parts = [""]
    for character, is_literal in _characters(pattern):
        if is_literal:
            parts[-1] += character
        else:
            parts.append("")
    return [part for part in parts if part]


def _literals(pattern: str) -> list[str] | None:
    """Return the texts around `%`, without empty ones in between; None if there is no `%`, or a character may vary."""
    parts = [""]
    for character, is_literal in _characters(pattern):
        if is_literal:
            parts[-1] += character
        elif character == "%":
            parts.append("")
        else:
            return None
    return None if len(parts) == 1 else [parts[0], *filter(None, parts[1:-1]), parts[-1]]


def _regex(pattern: str) -> str:
    parts = (re.escape(text) if is_literal else _WILDCARDS[text] for text, is_literal in _characters(pattern))
    return f"^(?s:{''.join(parts)})$"


def _characters(pattern: str) -> Iterator[tuple[str, bool]]:
    """Yield the characters of a pattern, and whether each stands for itself. A backslash at the end does."""
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            yield next(characters, character), True
        else:
            yield character, character not in _WILDCARDS


def _is_fit(values: Any) -> bool:
    return (
        isinstance(values, pa.Array) and len(values) >= _LEAST_ROWS and values.type in (pa.string(), pa.large_string())
    )


def _matches(values: pa.Array, literals: list[str]) -> pa.BooleanArray:
    parts = [literal.encode() for literal in literals]
    _, offset_bytes, value_bytes = values.buffers()
    width = np.int32 if values.type == pa.string() else np.int64
    offsets = np.frombuffer(offset_bytes, width, len(values) + 1, values.offset * np.dtype(width).itemsize)
    data = np.frombuffer(value_bytes or b"", np.uint8)
    data.flags.writeable = offsets.flags.writeable = False  # The kernel is compiled once per width.
    found = np.zeros(len(values), np.bool_)
    borders = np.cumsum([0, *(len(part) for part in parts)])
    anchor = _rarest(parts, data[offsets[0] : offsets[0] + _SAMPLED_BYTES])
    match_literals(data, offsets, np.frombuffer(b"".join(parts), np.uint8), borders, *anchor, found)
    return pa.array(found, mask=values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None)


def _rarest(parts: list[bytes], sample: Any) -> tuple[int, int, int]:
    """Return the index of a literal, and the offsets of two of its bytes, that are rare in a sample."""
    counts = np.bincount(sample, minlength=256) + 1
    candidates = []
    for index, part in enumerate(parts):
        if part:
            one, *others = np.argsort(counts[list(part)], kind="stable")[:2].tolist()
            other = others[0] if others else one
            count = counts[part[other]] if others else counts.sum()
            candidates.append((int(counts[part[one]] * count), index, one, other))
    return min(candidates)[1:]


def with_unicode_classes(pattern: str) -> str:
    r"""Return a regular expression whose `\d`, `\s`, `\w`, and their opposites, are those of Unicode.

    Raises
    ------
    InvalidInputError
        If brackets have a `\W`, which Arrow cannot express.
    """
    within = False

    def replace(match: re.Match[str]) -> str:
        nonlocal within
        token = match[0]
        if not token.startswith("\\"):
            within = token != "]" and (within or not token.startswith("[:"))
            return token
        if token == r"\W":
            if within:
                raise InvalidInputError(rf"\W is not supported within brackets, as in the pattern {pattern!r}")
            return f"[^{_UNICODE_CLASSES['w']}]"
        characters = _UNICODE_CLASSES.get(token[1], token)
        return characters if within or characters == token else f"[{characters}]"

    return _CLASS_TOKENS.sub(replace, pattern)
