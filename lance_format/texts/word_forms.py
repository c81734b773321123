"""The token that a word becomes: shortened to its stem, in lower case, without accents, or dropped.

The order is that of pylance: too long words are dropped, then follow lower case, stems, stop words and accents.
Characters are treated one by one, by the tables of `characters.json`, which do not depend on the release of Python.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_format.texts.token_rules import TokenRules

_CODE_POINTS = 0x110000
_CHANGING_WITHIN = ("Dutch", "German")
"""Languages whose stems differ from their words not only by what these end with."""


class WordForms:
    """Tokens of words, by the rules of an index. Those of recent words are remembered.

    Parameters
    ----------
    rules : TokenRules

    Raises
    ------
    NotSupportedError
        If stems are needed, and the package that makes them is not installed.
    """

    def __init__(self, rules: TokenRules) -> None:
        self._rules = rules
        self._stop_words = rules.stop_words
        self._stem = _stemmer(rules.language) if rules.stem else None
        self._keeps_numbers = rules.language not in _CHANGING_WITHIN
        self.of = functools.lru_cache(maxsize=1 << 17)(self._form)

    def _form(self, word: str) -> str | None:
        """Return the token of a word; None if it is dropped."""
        rules = self._rules
        if rules.max_token_length is not None and len(word.encode()) >= rules.max_token_length:
            return None
        if rules.lower_case:
            word = word.lower() if word.isascii() else word.translate(_table("lower"))
        if self._stem is not None and not (self._keeps_numbers and _is_number(word)):
            word = self._stem(word)
        if word in self._stop_words:
            return None
        if rules.ascii_folding and not word.isascii():
            word = word.translate(_table("fold"))
        return word


def _is_number(word: str) -> bool:
    """Return whether a word ends with a digit, as `row17`: no ending of a language does. Finding stems takes long."""
    return word[-1:].isdigit() and word.isascii() and word.isalnum()


@functools.cache
def word_characters() -> npt.NDArray[np.bool_]:
    """Return for each code point whether it is a letter or a digit, `bool[0x110000]`."""
    found = np.zeros(_CODE_POINTS, np.bool_)
    bounds = _tables()["in_word"]
    for start, stop in zip(bounds[::2], bounds[1::2], strict=True):
        found[start:stop] = True
    return found


@functools.cache
def visible_characters() -> npt.NDArray[np.bool_]:
    """Return for each code point whether it is no white space of ASCII, `bool[0x110000]`."""
    found = np.ones(_CODE_POINTS, np.bool_)
    found[[0x09, 0x0A, 0x0C, 0x0D, 0x20]] = False
    return found


@functools.cache
def _tables() -> dict[str, Any]:
    from importlib.resources import files  # Planners, which do not need it, import it in 4 ms.

    text = files(__package__).joinpath("characters.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@functools.cache
def _table(name: str) -> Mapping[int, str]:
    return str.maketrans(_tables()[name])


def _stemmer(language: str) -> Callable[[str], str]:
    import snowballstemmer  # Few processes search texts.

    found: Callable[[str], str] = snowballstemmer.stemmer(language.lower()).stemWord
    return found
