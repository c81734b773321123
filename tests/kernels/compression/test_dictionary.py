"""Numbering distinct values, against a dict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.kernels.compression import dictionary as kernels


def _number(values: list[object]) -> tuple[list[int], list[int]]:
    numbers: dict[object, int] = {}
    indices = [numbers.setdefault(value, len(numbers)) for value in values]
    return [values.index(value) for value in numbers], indices


def _slots(most: int) -> np.ndarray:
    return np.full(1 << (2 * most + 1).bit_length(), -1, np.int32)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
@given(runs=st.lists(st.tuples(st.integers(0, 255), st.integers(1, 30)), min_size=1, max_size=40))
def test_words(dtype: type[np.unsignedinteger], runs: list[tuple[int, int]]) -> None:
    values = [value for value, length in runs for _ in range(length)]
    firsts, indices = _number(list(values))
    for most in (len(firsts), len(firsts) + 5, len(firsts) - 1):
        items, found = np.empty(max(most, 1), dtype), np.empty(len(values), np.uint32)
        count = kernels.index_words(np.array(values, dtype), most, _slots(max(most, 1)), items, found)
        if most < len(firsts):
            assert count == kernels.TOO_MANY
            continue
        assert (items[:count].tolist(), found.tolist()) == ([values[first] for first in firsts], indices)


@given(pairs=st.lists(st.tuples(*[st.sampled_from([0, 1, 2**63, 2**64 - 1])] * 2), min_size=1, max_size=60))
def test_pairs(pairs: list[tuple[int, int]]) -> None:
    firsts, indices = _number(list(pairs))
    words, most = np.array(pairs, np.uint64).ravel(), len(firsts)
    items, found = np.empty(2 * most, np.uint64), np.empty(len(pairs), np.uint16)
    assert kernels.index_pairs(words, most, _slots(most), items, found) == most
    assert found.tolist() == indices
    assert list(map(tuple, items.reshape(-1, 2).tolist())) == [pairs[first] for first in firsts]
    assert kernels.index_pairs(words, most - 1, _slots(most), items, found) == kernels.TOO_MANY


@given(values=st.lists(st.binary(max_size=40) | st.sampled_from([b"", b"\0", b"\0\0"]), min_size=1, max_size=200))
def test_byte_strings(values: list[bytes]) -> None:
    firsts, indices = _number(list(values))
    data = np.frombuffer(b"".join(values), np.uint8)
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int32)
    most = len(firsts)
    found_firsts, found = np.empty(most, np.int64), np.empty(len(values), np.uint32)
    keys = np.empty(most * int(kernels.KEY_WORDS), np.uint64)
    for ends in (True, False):
        count = kernels.index_bytes(data, offsets, most, ends, _slots(most), keys, found_firsts, found)
        assert (found_firsts[:count].tolist(), found.tolist()) == (firsts, indices)
    fewer = kernels.index_bytes(data, offsets, most - 1, True, _slots(most), keys, found_firsts, found)
    assert fewer == kernels.TOO_MANY
    picks = np.array(indices + indices[::-1], np.int64)
    expected = b"".join(values[pick] for pick in picks)
    out = np.empty(len(expected) + kernels.SLACK, np.uint8)
    assert kernels.gather_bytes(data, offsets, picks, out) == len(expected)
    assert out[: len(expected)].tobytes() == expected


@pytest.mark.parametrize("size", [1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 64, 65, 160, 300])
def test_byte_strings_that_differ_in_one_byte(size: int) -> None:
    text = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    values = np.repeat(text[np.newaxis], size + 1, axis=0)
    values[np.arange(size), np.arange(size)] ^= 1
    # The last ones end where the array does, and are read otherwise.
    for order in (np.arange(size + 1), np.arange(size, -1, -1)):
        data = np.concatenate([values[order], values[order]]).ravel()
        offsets = np.arange(0, data.size + 1, size)
        firsts, found = np.empty(size + 1, np.int64), np.empty(2 * size + 2, np.uint32)
        keys = np.empty((size + 1, int(kernels.KEY_WORDS)), np.uint64)
        kept = (keys.ravel(), firsts, found)
        assert kernels.index_bytes(data, offsets, size + 1, False, _slots(size + 1), *kept) == size + 1
        assert found.tolist() == [*range(size + 1)] * 2
        assert np.unique(keys[:, -1]).size == size + 1
        alike = kernels.index_bytes(data, offsets, size + 1, True, _slots(size + 1), *kept)
        assert alike == (size + 1 if size <= 65 else kernels.ALIKE)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
@given(pages=st.lists(st.tuples(st.integers(0, 200), st.lists(st.integers(0, 199), max_size=20)), max_size=10))
def test_numbers_of_several_pages(dtype: type[np.unsignedinteger], pages: list[tuple[int, list[int]]]) -> None:
    words = np.array([number for _, page in pages for number in page], dtype)
    num_values = np.array([len(page) for _, page in pages], np.int64)
    num_items = np.array([items for items, _ in pages], np.int64)
    out = np.empty(words.size, np.uint32)
    wrong = [place for place, (items, page) in enumerate(pages) if max(page, default=-1) >= items]
    found = kernels.number_together(words, num_values, num_items, out)
    assert found == (wrong[0] if wrong else -1)
    if not wrong:
        items = [(place, number) for place, (count, _) in enumerate(pages) for number in range(count)]
        expected = [(place, number) for place, (_, page) in enumerate(pages) for number in page]
        assert [items[number] for number in out.tolist()] == expected
