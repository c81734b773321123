"""Kernels of FSST against a plain reading of the paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.kernels.compression import fsst, fsst_training
from tests.compression import blocks

_ALPHABET = [b"a", b"b", b"ab", b"abc", b"cab", b"abcabcab", b"\0", b"\0\0", b"\xff\xff\xff"]


def _tables(symbols: list[bytes]) -> tuple[np.ndarray, ...]:
    words = np.zeros(256, np.uint64)
    lengths = np.zeros(256, np.uint8)
    for code, symbol in enumerate(symbols):
        words[code] = int.from_bytes(symbol, "little")
        lengths[code] = len(symbol)
    lookups = (
        np.empty(256, np.uint16),
        np.empty(65536, np.uint16),
        np.zeros(fsst.HASH_SLOTS, np.uint16),
        np.empty(fsst.HASH_SLOTS, np.uint8),
    )
    fsst.index_symbols(words, lengths, len(symbols), *lookups)
    return words, lengths, *lookups


def _decode(codes: bytes, symbols: list[bytes]) -> bytes:
    out = b""
    position = 0
    while position < len(codes):
        if codes[position] == fsst.ESCAPE:
            out += codes[position + 1 : position + 2]
            position += 2
        else:
            out += symbols[codes[position]]
            position += 1
    return out


@given(
    values=st.lists(st.lists(st.sampled_from([*_ALPHABET, b"x", b"c"])).map(b"".join), min_size=1, max_size=20),
    symbols=st.lists(st.sampled_from(_ALPHABET), unique=True),
)
def test_any_symbols_encode_any_values(values: list[bytes], symbols: list[bytes]) -> None:
    words, lengths, *lookups = _tables(symbols)
    data = np.frombuffer(b"".join(values) + bytes(fsst.SLACK), np.uint8)
    offsets = np.cumsum([0, *map(len, values)])
    out = np.empty(2 * data.size, np.uint8)
    ends = np.empty_like(offsets)
    size = fsst.encode(data, offsets, words, *lookups, out, ends)
    assert size == ends[-1]
    for index, value in enumerate(values):
        assert _decode(out[ends[index] : ends[index + 1]].tobytes(), symbols) == value
    back = np.empty(size * 8 + fsst.SLACK, np.uint8)
    back_ends = np.empty_like(offsets)
    assert fsst.decode(out[:size], ends, words, lengths, 8, back, back_ends) == offsets[-1]
    np.testing.assert_array_equal(back_ends, offsets)
    assert back[: offsets[-1]].tobytes() == b"".join(values)


@given(
    sizes=st.lists(st.integers(0, 12) | st.integers(60, 2000), min_size=1, max_size=300),
    escapes=st.sampled_from([0.0, 0.001, 0.3]),
    room=st.floats(0, 1.2),
    seed=blocks.seeds,
)
def test_decoding_fills_its_room_or_says_that_it_is_too_small(
    sizes: list[int], escapes: float, room: float, seed: int
) -> None:
    symbols = [b"a", b"bc", b"def", b"ghijklmn"]
    words, lengths, *_ = _tables(symbols)
    rng = np.random.default_rng(seed)
    values = [_codes(rng, size, escapes) for size in sizes]
    expected = [_decode(value, symbols) for value in values]
    codes = np.frombuffer(b"".join(values), np.uint8)
    offsets = np.cumsum([0, *map(len, values)])
    size = sum(map(len, expected))
    out = np.empty(int(room * size) + fsst.SLACK, np.uint8)
    guard = np.full(64, 7, np.uint8)
    whole = np.concatenate([out, guard])
    ends = np.empty_like(offsets)
    found = fsst.decode(codes, offsets, words, lengths, 8, whole[: out.size], ends)
    assert (whole[out.size :] == 7).all()
    if found == fsst.NO_ROOM:
        assert size > out.size - fsst.SLACK - 8 * max(map(len, values))
        return
    assert found == size
    assert whole[:size].tobytes() == b"".join(expected)
    np.testing.assert_array_equal(ends, np.cumsum([0, *map(len, expected)]))


def _codes(rng: np.random.Generator, size: int, escapes: float) -> bytes:
    """Return codes of four symbols, some of them escapes before any byte."""
    codes = rng.integers(0, 4, size).astype(np.uint8)
    escaped = np.flatnonzero(rng.random(size) < escapes)[::2]
    escaped = escaped[escaped + 1 < size]
    codes[escaped], codes[escaped + 1] = fsst.ESCAPE, rng.integers(0, 255, escaped.size)
    return codes.tobytes()


@pytest.mark.slow
@given(values=st.lists(st.binary(max_size=20), min_size=1, max_size=100), seed=blocks.seeds)
def test_trained_symbols_are_distinct_and_found(values: list[bytes], seed: int) -> None:
    picks = np.random.default_rng(seed).integers(0, len(values), 300)
    sample = [values[pick] for pick in picks]
    offsets = np.cumsum([0, *map(len, sample)])
    words = np.zeros(fsst_training.MAX_SYMBOLS, np.uint64)
    lengths = np.zeros(fsst_training.MAX_SYMBOLS, np.uint8)
    data = np.frombuffer(b"".join(sample) + bytes(8), np.uint8)
    size = fsst_training.train(data, offsets, words, lengths)
    count = int(np.count_nonzero(lengths))
    assert size <= 2 * data.size
    assert not lengths[count:].any()
    symbols = [int(word).to_bytes(8, "little")[:length] for word, length in zip(words, lengths, strict=True)][:count]
    assert len(set(symbols)) == count
    assert all(int(word) < 1 << 8 * int(length) for word, length in zip(words[:count], lengths[:count], strict=True))
    _, _, *lookups = _tables(symbols)
    kept = fsst.index_symbols(np.append(words, np.uint64(0)), np.append(lengths, np.uint8(0)), count, *lookups)
    assert kept == count
