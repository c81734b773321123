"""Dictionaries of tokens: bytes that pylance has written, and damaged ones."""

from __future__ import annotations

import base64
import contextlib
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format import CorruptFileError
from lance_format.table.text_search.dictionary import TokenDictionary

TOKENS = ["brown", "dog", "emu", "emus", "fox", "owl", "x1", "über"]
_BYTES = base64.b64decode(
    "AwAAAAAAAAAAAAAAAAAAAAAQi8zExwAQl8QAAQBzEUHT0AAQqsQAEI/MABCVABCHwtq8wAYHBQQCAQABCAsPExsfw3hvZmVkYhEH"
    "CAAAAAAAAABKAAAAAAAAAAnOEkk="
)


def test_tokens_are_found() -> None:
    dictionary = TokenDictionary(_BYTES, "x")
    assert list(dictionary.similar("", 99, "")) == TOKENS
    assert sorted(dictionary.find(token) or 0 for token in TOKENS) == list(range(len(TOKENS)))
    for token in ("", "o", "ow", "owls", "zebra", "üb"):
        assert dictionary.find(token) is None


def test_similar_tokens_are_found() -> None:
    dictionary = TokenDictionary(_BYTES, "x")
    assert list(dictionary.similar("emu", 1, "")) == ["emu", "emus"]
    assert list(dictionary.similar("uber", 1, "")) == ["über"]
    assert list(dictionary.similar("uber", 1, "u")) == []
    assert list(dictionary.similar("dot", 2, "")) == ["dog", "fox"]


def _list(data: bytes) -> list[str]:
    return list(TokenDictionary(data, "x").similar("", 99, ""))


@given(st.integers(0, len(_BYTES) - 1), st.integers(0, 255))
def test_damage_ends_in_an_error_or_in_other_tokens(at: int, value: int) -> None:
    data = bytearray(_BYTES)
    data[at] = value
    with contextlib.suppress(CorruptFileError):
        dictionary = TokenDictionary(bytes(data), "x")
        list(islice(dictionary.similar("", 9, ""), 1000))
        dictionary.find("owl")
        list(dictionary.similar("owl", 1, ""))


@pytest.mark.parametrize("size", range(0, len(_BYTES), 7))
def test_truncation_is_an_error(size: int) -> None:
    with pytest.raises(CorruptFileError, match="x: malformed dictionary of tokens"):
        _list(_BYTES[:size])
