"""Texts match patterns as Arrow and Python match them, however they are stored."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_format.errors import InvalidInputError
from lance_format.expressions.functions import patterns
from lance_format.expressions.functions.patterns import contains, like, with_unicode_classes

_LETTERS = "abé%\\_\n"
_TEXTS = st.one_of(
    st.none(),
    st.text(_LETTERS, max_size=12),
    st.builds(lambda parts: "x" * 70 + "".join(parts), st.lists(st.sampled_from(["ab", "a", "bé", "y" * 30]))),
)


@pytest.fixture(autouse=True)
def _few_rows() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patterns, "_LEAST_ROWS", 0)
        yield


def _regex(pattern: str) -> re.Pattern[str]:
    parts = []
    characters = iter(pattern)
    for character in characters:
        match character:
            case "%":
                parts.append(".*")
            case "_":
                parts.append(".")
            case "\\":
                parts.append(re.escape(next(characters, "\\")))
            case _:
                parts.append(re.escape(character))
    return re.compile("".join(parts), re.DOTALL)


def _stored(texts: list[str | None], arrow_type: pa.DataType, hidden: bool, start: int) -> pa.Array:
    """Return an array that begins within its buffers, and may have bytes where it is null."""
    array = pa.array(["before"] * start + [text or "abé" for text in texts] + ["behind"], arrow_type)
    if hidden:
        valid = pa.array([True] * start + [text is not None for text in texts] + [True]).buffers()[1]
        array = pa.Array.from_buffers(arrow_type, len(array), [valid, *array.buffers()[1:]])
    else:
        array = pa.array(["before"] * start + texts + ["behind"], arrow_type)
    return array.slice(start, len(texts))


@settings(max_examples=400, deadline=None)
@given(
    texts=st.lists(_TEXTS, min_size=1, max_size=40),
    pattern=st.one_of(st.text(_LETTERS, max_size=8), st.text("ab%", max_size=8)),
    arrow_type=st.sampled_from([pa.string(), pa.large_string()]),
    hidden=st.booleans(),
    start=st.integers(0, 9),
    least_rows=st.sampled_from([0, 4096]),
)
def test_patterns(
    texts: list[str | None], pattern: str, arrow_type: pa.DataType, hidden: bool, start: int, least_rows: int
) -> None:
    if hidden:
        texts = [text or None for text in texts]
    array = _stored(texts, arrow_type, hidden, start)
    assert array.to_pylist() == texts
    regex = _regex(pattern)
    expected = [None if text is None else regex.fullmatch(text) is not None for text in texts]
    patterns._LEAST_ROWS = least_rows  # The fixture restores it.
    assert like(array, pattern, ignore_case=False).to_pylist() == expected
    assert [like(text, pattern, ignore_case=False).as_py() for text in array[:3]] == expected[:3]
    assert contains(array, pattern).to_pylist() == [None if text is None else pattern in text for text in texts]


@settings(max_examples=100, deadline=None)
@given(
    words=st.lists(st.sampled_from(["ab", "b", "aab", "/shop/", "/", "zq", "", "é", "è"]), min_size=1, max_size=9),
    literals=st.lists(st.sampled_from(["ab", "b", "aab", "/shop/", "q", "", "é", "bb"]), min_size=2, max_size=5),
    seed=st.integers(0, 1000),
)
def test_many_rows_of_few_words(words: list[str], literals: list[str], seed: int) -> None:
    """Literals that begin in one row and end in the next are in neither."""
    rng = np.random.default_rng(seed)
    array = pa.array(["".join(rng.choice(words, size)) for size in rng.integers(0, 9, 600)])
    pattern = "%".join(literals)
    assert like(array, pattern, ignore_case=False) == pc.match_like(array, pattern)
    assert like(array, pattern, ignore_case=True) == pc.match_like(array, pattern, ignore_case=True)
    assert contains(array, literals[0]) == pc.match_substring(array, literals[0])


def test_literals_of_a_pattern() -> None:
    assert patterns._literals(r"a\%b%%c\_%\\\d") == ["a%b", "c_", "\\d"]
    assert patterns._literals("ab") is None
    assert patterns._literals("%a_%") is None
    assert patterns._literals("%\\") == ["", "\\"]


@pytest.mark.parametrize("pattern", ["%a%", "%a%b%", "a%b"])
def test_what_has_no_bytes(pattern: str) -> None:
    for array in (pa.array(["", "", None]), pa.array([], pa.string()), pa.nulls(3, pa.string())):
        assert like(array, pattern, ignore_case=False) == pc.match_like(array, pattern)


_UNICODE_TEXTS = ["äb", "a1", "\u0661", "_", "é e", "a\u00a0b", "\u200d", "ⓐ", "x y", "", "a-b", "€", "\n", "\x85", "]"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"^\w+$", ["äb", "a1", "\u0661", "_", "\u200d", "ⓐ"]),
        (r"^\W+$", ["€", "\n", "\x85", "]"]),
        (r"\d", ["a1", "\u0661"]),
        (r"^[^\D]$", ["\u0661"]),
        (r"\s", ["é e", "a\u00a0b", "x y", "\n", "\x85"]),
        (r"^[\S]$", ["\u0661", "_", "\u200d", "ⓐ", "€", "]"]),
        (r"[]\d]", ["a1", "\u0661", "]"]),
        (r"[[:digit:]\s]", ["a1", "é e", "a\u00a0b", "x y", "\n", "\x85"]),
        (r"\\w", []),
    ],
)
def test_classes_of_characters_are_those_of_unicode(pattern: str, expected: list[str]) -> None:
    texts = pa.array(_UNICODE_TEXTS)
    found = texts.filter(pc.match_substring_regex(texts, with_unicode_classes(pattern)))
    assert found.to_pylist() == expected


def test_the_opposite_of_words_in_brackets_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"within brackets, as in the pattern '\[\^"):
        with_unicode_classes(r"[^\W_]")
