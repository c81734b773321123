"""Dictionaries of tokens: bytes that pylance has written, and damaged ones."""

from __future__ import annotations

import base64
import contextlib
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format import CorruptFileError
from lance_format.texts.dictionary import TokenDictionary, serialize_dictionary

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


def test_all_damage_is_found_by_the_checksum() -> None:
    TokenDictionary(_BYTES, "x").check()
    TokenDictionary(serialize_dictionary([b"emu", b"owl"]), "x").check()
    for at in range(len(_BYTES)):
        data = bytearray(_BYTES)
        data[at] ^= 1 << at % 8
        with pytest.raises(CorruptFileError, match="x: malformed dictionary of tokens"):
            TokenDictionary(bytes(data), "x").check()


@pytest.mark.parametrize("size", range(0, len(_BYTES), 7))
def test_truncation_is_an_error(size: int) -> None:
    with pytest.raises(CorruptFileError, match="x: malformed dictionary of tokens"):
        _list(_BYTES[:size])


@given(st.sets(st.text(min_size=0, max_size=9), max_size=60))
def test_written_dictionaries_are_read(words: set[str]) -> None:
    tokens = sorted(words)
    dictionary = TokenDictionary(serialize_dictionary([token.encode() for token in tokens]), "x")
    assert dictionary.num_tokens == len(tokens)
    assert [dictionary.find(token) for token in tokens] == list(range(len(tokens)))
    assert list(dictionary.similar("", 99, "")) == tokens


def test_nodes_of_many_transitions_are_written() -> None:
    """All 256 bytes but those that are not in UTF-8, at several depths, and tokens of many bytes."""
    characters = [chr(code) for code in range(1, 3000)]
    tokens = sorted({*characters, *(2 * one for one in characters), "x" * 70_000, "x" * 70_000 + "y", ""})
    dictionary = TokenDictionary(serialize_dictionary([token.encode() for token in tokens]), "x")
    assert [dictionary.find(token) for token in tokens] == list(range(len(tokens)))


def test_ends_of_tokens_are_shared() -> None:
    stems = [f"stem{number:03}" for number in range(1000)]
    tokens = sorted(stem + end for stem in stems for end in ("", "er", "ers", "ing"))
    assert len(serialize_dictionary([token.encode() for token in tokens])) < 8_000
