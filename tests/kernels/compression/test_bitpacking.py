"""The packing kernels against a plain reading of the FastLanes order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.kernels.compression import bitpacking as kernels

_ORDER = [0, 4, 2, 6, 1, 5, 3, 7]


def reference_pack(values: npt.NDArray[np.uint64], bits: int, width: int) -> bytes:
    """Pack one block bit by bit, as the paper defines it."""
    lanes = 1024 // bits
    words = [[0] * lanes for _ in range(width)]
    for row in range(bits):
        for lane in range(lanes):
            value = int(values[_ORDER[row // 8] * 16 + row % 8 * 128 + lane])
            for bit in range(width):
                position = row * width + bit
                words[position // bits][lane] |= (value >> bit & 1) << (position % bits)
    return np.array(words, f"<u{bits // 8}").tobytes()


def _random_values(bits: int, width: int, count: int, seed: int) -> npt.NDArray[np.uint64]:
    words = np.random.default_rng(seed).integers(0, 2**64, count, np.uint64, endpoint=False)
    return words >> np.uint64(64 - width) if width else np.zeros(count, np.uint64)


def _bytes(values: npt.NDArray[np.uint64], bits: int) -> npt.NDArray[np.uint8]:
    return values.astype(f"<u{bits // 8}").view(np.uint8)


def _out(count: int, bits: int) -> npt.NDArray[np.uint8]:
    return np.empty(((count + 1024) * bits // 8 + 7) // 8 * 8, np.uint8)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_every_width_is_the_order_of_the_paper(bits: int) -> None:
    for width in range(bits + 1):
        values = _random_values(bits, width, 1024, width)
        packed = np.empty(bits // 8 + width * 128, np.uint8)
        written = kernels.pack_inline(_bytes(values, bits), np.array([width]), bits, packed)
        assert written == packed.size
        assert packed[0] == width
        assert packed[bits // 8 :].tobytes() == reference_pack(values, bits, width)


@given(
    bits=st.sampled_from([8, 16, 32, 64]),
    counts=st.lists(st.sampled_from([1, 2, 4, 8, 16, 64, 512, 1024]), min_size=1, max_size=6),
    last=st.integers(1, 1024),
    seed=st.integers(0, 2**32),
)
def test_inline_chunks_of_any_counts(bits: int, counts: list[int], last: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_values = np.array([*counts, last], np.int64)
    pieces, expected = [], []
    for count in num_values:
        width = int(rng.integers(0, bits + 1))
        values = _random_values(bits, width, int(count), seed)
        chunk = np.empty(bits // 8 + width * 128, np.uint8)
        kernels.pack_inline(_bytes(values, bits), np.array([width]), bits, chunk)
        pieces.append(chunk)
        expected.append(values)
    sizes = np.array([piece.size for piece in pieces], np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    out = _out(int(num_values.sum()), bits)
    total = kernels.unpack_inline(np.concatenate(pieces), starts, sizes, num_values, bits, out)
    assert total == num_values.sum()
    np.testing.assert_array_equal(out[: total * bits // 8], _bytes(np.concatenate(expected), bits))


@given(
    bits=st.sampled_from([8, 16, 32, 64]),
    counts=st.lists(st.integers(1, 5000), min_size=1, max_size=4),
    data=st.data(),
    seed=st.integers(0, 2**32),
)
def test_blocks_with_tails(bits: int, counts: list[int], data: st.DataObject, seed: int) -> None:
    width = data.draw(st.integers(1, bits))
    num_values = np.array(counts, np.int64)
    values = _random_values(bits, width, int(num_values.sum()), seed)
    packed = np.empty(values.size * bits // 8 + len(counts) * 128 * width, np.uint8)
    sizes = np.empty(len(counts), np.int64)
    written = kernels.pack_blocks(_bytes(values, bits), num_values, bits, width, packed, sizes)
    assert written == sizes.sum()
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    out = _out(values.size, bits)
    assert kernels.unpack_blocks(packed, starts, sizes, num_values, bits, width, out) == values.size
    np.testing.assert_array_equal(out[: values.size * bits // 8], _bytes(values, bits))


def test_lying_chunks_are_named() -> None:
    packed = np.zeros(4 + 128, np.uint8)
    packed[0] = 1
    zero, one = np.zeros(1, np.int64), np.ones(1, np.int64)
    out = _out(1024, 32)
    size = np.array([packed.size])
    assert kernels.unpack_inline(packed, zero, size, one, 32, out) == 1
    assert kernels.unpack_inline(packed, zero, size - 1, one, 32, out) == -1
    packed[0] = 33
    assert kernels.unpack_inline(packed, zero, size, one, 32, out) == -1
    packed[1] = 1
    assert kernels.unpack_inline(packed, zero, size, one, 32, out) == -1
    assert kernels.unpack_blocks(packed, zero, size, np.array([2048]), 32, 1, out) == -1


def test_words_are_measured() -> None:
    values = np.zeros(2500, np.uint32)
    values[1024:1031] = 5
    values[2499] = 2**31
    out = np.empty(3, np.int64)
    assert kernels.measure_words(values, out) == 4
    assert out.tolist() == [0, 3, 32]
    for words, runs in (([1], 1), ([1, 1], 1), ([1, 2, 1], 3)):
        assert kernels.measure_words(np.array(words, np.uint16), np.empty(1, np.int64)) == runs
