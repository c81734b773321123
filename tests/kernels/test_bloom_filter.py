"""Bloom filters: hashes as others compute them, and no value that is in a filter is missed."""

import numpy as np
import pytest

from lance_format.kernels.bloom_filter import hash_values, insert_hashes


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
