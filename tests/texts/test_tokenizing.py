"""Splitting of texts into tokens."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format import CorruptFileError, NotSupportedError
from lance_format.texts.token_rules import PLAIN, TokenRules
from lance_format.texts.tokenizing import Tokenizer, joined_texts


def tokens_of(texts: list[str | None], **rules: Any) -> list[list[tuple[str, int]]]:
    tokens = Tokenizer(dataclasses.replace(PLAIN, **rules)).split(pa.array(texts, pa.string()))
    found: list[list[tuple[str, int]]] = [[] for _ in texts]
    for text, code, position in zip(tokens.texts, tokens.codes, tokens.positions, strict=True):
        word = tokens.words[code]
        if word is not None:
            found[text].append((word, int(position)))
    return found


def test_words_are_runs_of_letters_and_digits() -> None:
    assert tokens_of(["an owl, x_1!", None, "", "ÜBER den-Straßen"]) == [
        [("an", 0), ("owl", 1), ("x", 2), ("1", 3)],
        [],
        [],
        [("ÜBER", 0), ("den", 1), ("Straßen", 2)],
    ]


def test_dropped_words_count_as_positions() -> None:
    assert tokens_of(["an owl at night"], remove_stop_words=True) == [[("owl", 1), ("night", 3)]]
    assert tokens_of(["ab abcd a"], max_token_length=3) == [[("ab", 0), ("a", 2)]]


def test_characters_are_converted_one_by_one() -> None:
    assert tokens_of(["\u03a3\u03a3 İ ÀÉ"], lower_case=True, ascii_folding=True) == [
        [("\u03c3\u03c3", 0), ("i\u0307", 1), ("ae", 2)]
    ]


def test_words_are_split_at_white_space_of_ascii() -> None:
    assert tokens_of([" a,b\tc\u00a0d\v "], base_tokenizer="whitespace") == [[("a,b", 0), ("c\u00a0d\v", 1)]]


@given(st.lists(st.text(max_size=9), max_size=5), st.integers(1, 4), st.integers(0, 3), st.booleans())
def test_sequences_of_characters(texts: list[str], shortest: int, more: int, prefix_only: bool) -> None:
    longest = shortest + more
    found = tokens_of(
        list(texts), base_tokenizer="ngram", min_ngram_length=shortest, max_ngram_length=longest,
        prefix_only=prefix_only,
    )  # fmt: skip
    for text, tokens in zip(texts, found, strict=True):
        starts = range(min(len(text), 1)) if prefix_only else range(len(text))
        expected = [
            text[start : start + size]
            for start in starts
            for size in range(shortest, longest + 1)
            if start + size <= len(text)
        ]
        assert [token for token, _ in tokens] == expected


@given(st.lists(st.text(max_size=30), max_size=9))
def test_words_do_not_depend_on_their_neighbours(texts: list[str]) -> None:
    assert tokens_of(list(texts)) == [tokens_of([text])[0] for text in texts]


def test_lists_are_joined() -> None:
    lists = pa.array([["an owl", None, "emu"], None, [], [""]], pa.list_(pa.string()))
    assert joined_texts(lists).to_pylist() == ["an owl emu", "", "", ""]
    hidden = pa.ListArray.from_arrays([0, 1, 3, 5], ["a", "b", "c", "d", None], mask=pa.array([False, True, False]))
    assert joined_texts(hidden).to_pylist() == ["a", "", "d"]
    assert joined_texts(hidden.slice(1)).to_pylist() == ["", "d"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"", CorruptFileError),
        (b"[]", CorruptFileError),
        (b'{"stem": 5}', CorruptFileError),
        (b'{"min_ngram_length": 3, "max_ngram_length": 2}', CorruptFileError),
        (b'{"base_tokenizer": "jieba/default"}', NotSupportedError),
        (b'{"lance_tokenizer": "json"}', NotSupportedError),
        (b'{"language": "Klingon"}', NotSupportedError),
        (b'{"novel": true}', NotSupportedError),
    ],
)
def test_unknown_and_malformed_rules_are_refused(text: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        TokenRules.parse(text, "x")


@pytest.mark.parametrize("data", [b"\xff", b"owl\xe4", b"\xf8\x88\x80\x80\x80", b"\xed\xa0\x80"])
def test_texts_that_are_not_utf_8_are_refused(data: bytes) -> None:
    texts = pa.array([data]).view(pa.string())
    with pytest.raises(CorruptFileError, match="not UTF-8"):
        Tokenizer(PLAIN).split(texts)
