"""The rules by which a text index makes tokens of texts, as its files state them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from lance_format.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_format.kernels.texts.posting_lists import BLOCK_ROWS
from lance_format.lazy_dataclasses import dataclass
from lance_format.texts.stop_words import KNOWN, stop_words_of

SPLITTERS = ("simple", "whitespace", "raw", "ngram")
LANGUAGES = (
    "Arabic", "Danish", "Dutch", "English", "Finnish", "French", "German", "Greek", "Hungarian", "Italian",
    "Norwegian", "Portuguese", "Romanian", "Russian", "Spanish", "Swedish", "Tamil", "Turkish",
)  # fmt: skip
_ONLY: dict[str, tuple[Any, ...]] = {
    "lance_tokenizer": (None, "text"),
    "split_identifiers": (False,),
    "split_on_numerics": (False,),
    "preserve_original": (False,),
    "index_operators": (False,),
    "block_size": (BLOCK_ROWS,),
    "json_tokenizer_mode": (None,),
    "disable_cross_array_unnest": (False,),
    "max_sub_docs_per_row": (None,),
    "max_sub_docs_per_row_exceed_action": (None, "fail"),
    "document_granularity": ("row",),
}
"""Values of further rules that change nothing."""
_OF_BUILDING = ("skip_merge",)
"""Options that earlier releases of pylance keep beside the rules, and that only say how the index was made."""
_ONLY_TYPES = (str, int, type(None))

_SWITCHES = ("with_position", "lower_case", "stem", "remove_stop_words", "ascii_folding", "prefix_only")
_NEEDED = {
    "max_token_length": "a whole number of bytes, or None is needed",
    "min_ngram_length": "a number of characters from 1 to max_ngram_length is needed",
    "max_ngram_length": "a number of characters from 1 on is needed",
    "base_tokenizer": f"one of {', '.join(SPLITTERS)} is needed",
    "language": f"one of {', '.join(LANGUAGES)} is needed",
    "custom_stop_words": "a list of words is needed",
}
_NEEDED_SWITCH = "True or False is needed"
_STORED_FIRST = {"lance_tokenizer": "text"}
_STORED_LAST = {
    "block_size": BLOCK_ROWS,
    "split_identifiers": False,
    "split_on_numerics": False,
    "preserve_original": False,
    "index_operators": False,
}


@dataclass(frozen=True, slots=True)
class TokenRules:
    """Rules that make tokens of texts.

    Parameters
    ----------
    base_tokenizer : {"simple", "whitespace", "raw", "ngram"}
        How a text is split: into runs of letters and digits, at white space, not at all, or into all sequences of some
        characters.
    language : str
        Of stems and of stop words.
    with_position : bool
        Whether the index stores the positions of tokens.
    max_token_length : int, optional
        Tokens of as many bytes and more are dropped.
    lower_case, stem, remove_stop_words, ascii_folding : bool
    custom_stop_words : frozenset of str, optional
        Instead of those of the language.
    min_ngram_length, max_ngram_length : int
        Numbers of characters.
    prefix_only : bool
        Whether only sequences at the beginning of a text are tokens.
    """

    base_tokenizer: str = "simple"
    language: str = "English"
    with_position: bool = False
    max_token_length: int | None = 40
    lower_case: bool = True
    stem: bool = True
    remove_stop_words: bool = True
    ascii_folding: bool = True
    custom_stop_words: frozenset[str] | None = None
    min_ngram_length: int = 3
    max_ngram_length: int = 3
    prefix_only: bool = False

    @classmethod
    def parse(cls, text: bytes, path: str) -> TokenRules:
        """Return the rules that a file of an index states.

        Parameters
        ----------
        text : bytes
            JSON.
        path : str
            The file, for errors.

        Raises
        ------
        CorruptFileError
            If it is malformed.
        NotSupportedError
            If texts cannot be split by these rules here.
        """
        try:
            given = json.loads(text)
        except ValueError as error:
            raise CorruptFileError(f"malformed rules of tokens: {error}", path=path) from error
        if not isinstance(given, dict):
            raise CorruptFileError(f"malformed rules of tokens: {given!r}", path=path)
        for name, value in given.items():
            if name in _ONLY and value not in _ONLY[name]:
                raise NotSupportedError(f"text indices with {name} {value!r} are not supported")
            if name not in _ONLY and name not in cls.__slots__ and name not in _OF_BUILDING:
                raise NotSupportedError(f"text indices with {name} are not supported")
        known = {name: value for name, value in given.items() if name in cls.__slots__}
        words = known.get("custom_stop_words")
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            known["custom_stop_words"] = frozenset(words)
        rules = cls(**known)
        if rules._problem() is not None:
            raise CorruptFileError(f"malformed rules of tokens: {given!r}", path=path)
        rules._check_known()
        return rules

    @classmethod
    def asked(cls, parameters: Mapping[str, Any]) -> TokenRules:
        """Return the rules that a user asks for.

        Parameters
        ----------
        parameters : mapping of str to object
            By name, others have their defaults: those of pylance, which does not stem `ngram` tokens.

        Raises
        ------
        InvalidInputError
            If one is unknown, or its value is not possible.
        NotSupportedError
            If texts cannot be split by these rules here.
        """
        given = {name: value for name, value in parameters.items() if value is not None or name == "max_token_length"}
        for name, value in parameters.items():
            if name not in cls.__slots__ and name not in _ONLY:
                raise InvalidInputError(
                    f"parameter {name!r} of INVERTED indices is unknown; there are {', '.join(cls.__slots__)}"
                )
            if name in _ONLY and not (isinstance(value, _ONLY_TYPES) and value in _ONLY[name]):
                raise NotSupportedError(f"INVERTED indices with {name} {value!r} are not supported")
        known: dict[str, Any] = {"custom_stop_words": None}
        if isinstance(splitter := given.get("base_tokenizer"), str) and splitter == "ngram":
            known |= {"stem": False, "remove_stop_words": False}
        known |= {name: value for name, value in given.items() if name in cls.__slots__}
        words = known["custom_stop_words"]
        if isinstance(words, list | tuple) and all(isinstance(word, str) for word in words):
            known["custom_stop_words"] = frozenset(words)
        if isinstance(language := known.get("language"), str):
            known["language"] = language.capitalize()
        rules = cls(**known)
        problem = rules._problem() or ("language" if rules.language not in LANGUAGES else None)
        if problem is not None:
            raise InvalidInputError(f"{problem} is {getattr(rules, problem)!r}; {_NEEDED.get(problem, _NEEDED_SWITCH)}")
        rules._check_known()
        return rules

    def serialize(self) -> str:
        """Return the rules as a file of an index states them: JSON."""
        stored = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        words = self.custom_stop_words
        stored["custom_stop_words"] = None if words is None else sorted(words)
        return json.dumps(_STORED_FIRST | stored | _STORED_LAST, ensure_ascii=False)

    @property
    def stop_words(self) -> frozenset[str]:
        """The words that are dropped."""
        if not self.remove_stop_words:
            return frozenset()
        return stop_words_of(self.language) if self.custom_stop_words is None else self.custom_stop_words

    def _problem(self) -> str | None:
        """Return the name of a rule whose value is not possible; None if all are."""
        names = [name for name in _SWITCHES if not isinstance(getattr(self, name), bool)]
        numbers = [
            "min_ngram_length",
            "max_ngram_length",
            *([] if self.max_token_length is None else ["max_token_length"]),
        ]
        names += [name for name in numbers if not _is_size(getattr(self, name))]
        names += [name for name in ("base_tokenizer", "language") if not isinstance(getattr(self, name), str)]
        words = self.custom_stop_words
        if words is not None and not (isinstance(words, frozenset) and all(isinstance(word, str) for word in words)):
            names.append("custom_stop_words")
        if not names and self.max_ngram_length < 1:
            names.append("max_ngram_length")
        if not names and not 1 <= self.min_ngram_length <= self.max_ngram_length:
            names.append("min_ngram_length")
        return names[0] if names else None

    def _check_known(self) -> None:
        if self.base_tokenizer not in SPLITTERS:
            raise NotSupportedError(
                f"the tokenizer {self.base_tokenizer!r} is not supported; {', '.join(SPLITTERS)} are"
            )
        if self.stem and self.language not in LANGUAGES:
            raise NotSupportedError(f"stems of {self.language} are not supported; those of {', '.join(LANGUAGES)} are")
        if self.remove_stop_words and self.custom_stop_words is None and self.language not in KNOWN:
            raise NotSupportedError(
                f"the stop words of {self.language} are not known here; those of {', '.join(KNOWN)} are"
            )


def _is_size(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**32


PLAIN = TokenRules(max_token_length=None, lower_case=False, stem=False, remove_stop_words=False, ascii_folding=False)
"""Rules for columns without an index."""
