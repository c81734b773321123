"""Trigrams of texts, whole and malformed."""

import numpy as np
import pytest

from lance_format.kernels.texts.trigrams import NUM_TOKENS, OTHER, ZERO, gather_trigrams

SYMBOLS = np.full(300, OTHER, np.uint64)
SYMBOLS[[ord(letter) for letter in "abc"]] = [11, 12, 13]
SYMBOLS[ord("V")] = ZERO
SYMBOLS[0xE9] = 15
SYMBOLS[0xDF] = 29 | 29 << 8
SYMBOLS[0x100] = 11 | OTHER << 8


def tokens(texts: list[bytes], low: int = 0, high: int = NUM_TOKENS) -> dict[tuple[int, ...], list[int]]:
    """Return the rows of each trigram, counted and then gathered."""
    data, offsets = np.frombuffer(b"#" + b"".join(texts), np.uint8), np.cumsum([1, *map(len, texts)])
    counts = np.zeros(NUM_TOKENS, np.int64)
    none = np.zeros(0, np.uint32)
    total = gather_trigrams(data, offsets, SYMBOLS, low, high, np.full(NUM_TOKENS, -1), counts, none, False)
    assert total == counts.sum()
    out, ends = np.zeros(total, np.uint32), np.cumsum(counts) - counts
    gather_trigrams(data, offsets, SYMBOLS, low, high, np.full(NUM_TOKENS, -1), ends, out, True)
    found = np.flatnonzero(counts).tolist()
    return {
        (token // 1369, token // 37 % 37, token % 37): out[ends[token] - counts[token] : ends[token]].tolist()
        for token in found
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("ab", []),
        ("abc", [(11, 12, 13)]),
        ("ab-abca", [(11, 12, 13), (12, 13, 11)]),
        ("aßb", [(11, 29, 29), (29, 29, 12)]),
        ("éab", [(15, 11, 12)]),
        ("ab\u0100bc", [(11, 12, 11)]),
        ("aVb", [(11, 0, 12)]),
        ("ab日c", []),
        ("ab\U0001f600abc", [(11, 12, 13)]),
    ],
)
def test_trigrams(text: str, expected: list[tuple[int, ...]]) -> None:
    assert tokens([text.encode()]) == {trigram: [0] for trigram in expected}


def test_rows_are_gathered_once_and_in_order() -> None:
    texts = [b"abcabc", b"", b"cab", b"abc"]
    assert tokens(texts) == {(11, 12, 13): [0, 3], (12, 13, 11): [0], (13, 11, 12): [0, 2]}
    border = 12 * 1369
    assert tokens(texts, high=border) | tokens(texts, low=border) == tokens(texts)
    assert (12, 13, 11) not in tokens(texts, high=border)


def test_malformed_texts_end_with_their_row() -> None:
    assert tokens([b"abc\xf0", b"bca", b"\x80\xffabc\xe6\x97"]) == {(11, 12, 13): [0], (12, 13, 11): [1]}
