"""Bloom filters: hashes as others compute them, and no value that is in a filter is missed."""

import numpy as np
import pytest

from lance_format.kernels.columns.bloom_filter import find_hashes, hash_values, insert_hashes


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Call me Ishmael. Some years ago--never mind how long precisely-", 0x02A2E85470D6FD96),
    ],
)
def test_hashes(value: bytes, expected: int) -> None:
    source = np.frombuffer(b"##" + value + b"##", np.uint8)
    out = np.zeros(2, np.uint64)
    assert hash_values(source, np.array([2, 2 + len(value), 4 + len(value)], np.int64), out) == 2
    assert int(out[0]) == expected


def test_values_set_a_bit_in_each_word_of_a_block() -> None:
    hashes = np.random.default_rng(0).integers(0, 2**64, 1000, np.uint64)
    words = np.zeros(8 * 64, np.uint32)
    assert insert_hashes(hashes, words) == 1000
    before = words.copy()
    insert_hashes(hashes[::-1].copy(), words)
    assert (words == before).all()
    one = np.zeros_like(words)
    insert_hashes(hashes[:1], one)
    assert [int(word).bit_count() for word in one if word] == [1] * 8
    assert np.flatnonzero(one)[0] % 8 == 0
    assert (one & before == one).all()


def test_filters_claim_their_values() -> None:
    rng = np.random.default_rng(0)
    hashes = rng.integers(0, 2**64, 300, np.uint64)
    words, starts = np.zeros(8 * (1 + 64 + 3), np.uint32), np.array([0, 8, 8 * 65, 8 * 68])
    for number, part in enumerate(np.split(hashes, [5, 295])):
        insert_hashes(part, words[starts[number] : starts[number + 1]])
    claims = np.zeros(3, np.bool_)
    for number, part in enumerate(np.split(hashes, [5, 295])):
        for value in part:
            assert find_hashes(np.array([value]), words, starts, claims) == 3
            assert claims[number]
    others = rng.integers(0, 2**64, 2000, np.uint64)
    found = np.zeros(3, np.int64)
    for value in others:
        find_hashes(np.array([value]), words, starts, claims)
        found += claims
    assert (found < 100).all()
    find_hashes(others[:0], words, starts, claims)
    assert not claims.any()
    find_hashes(hashes, words, starts, claims)
    assert claims.all()
