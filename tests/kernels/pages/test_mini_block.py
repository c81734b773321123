"""Kernels that find chunks and their bytes, against plain readings of what they do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.kernels.pages import mini_block as kernels

_GAP = 10


def _merge(begins: list[int], ends: list[int]) -> tuple[list[list[int]], list[int]]:
    out, positions = np.full((2, len(begins)), -1), np.full(len(begins), -1)
    count = kernels.merge_extents(np.array(begins), np.array(ends), _GAP, out[0], out[1], positions)
    assert (out[:, count:] == -1).all()
    return out[:, :count].T.tolist(), positions.tolist()


def test_ranges_are_merged_over_gaps() -> None:
    assert _merge([5, 20, 31, 60], [10, 21, 40, 61]) == ([[5, 35], [60, 1]], [0, 15, 26, 35])


@given(ranges=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 20)), min_size=1, max_size=20))
def test_merged_ranges_hold_all_ranges_in_any_order(ranges: list[tuple[int, int]]) -> None:
    begins, ends = [begin for begin, _ in ranges], [begin + size for begin, size in ranges]
    merged, positions = _merge(begins, ends)
    held = [byte for begin, size in merged for byte in range(begin, begin + size)]
    for (begin, size), position in zip(ranges, positions, strict=True):
        assert held[position : position + size] == list(range(begin, begin + size))


@given(
    counts=st.lists(st.integers(1, 20), min_size=1, max_size=40),
    share=st.floats(0.01, 1),
    seed=st.integers(0, 2**32),
)
def test_chunks_of_rows(counts: list[int], share: float, seed: int) -> None:
    first_rows = np.cumsum([0, *counts])
    chance = np.random.default_rng(seed)
    rows = np.sort(chance.integers(0, first_rows[-1], max(1, int(first_rows[-1] * share))))
    chunks, numbers, within = np.empty((3, rows.size), np.int64)
    found = chunks[: kernels.find_rows(rows, first_rows, chunks, numbers, within)]
    expected = np.searchsorted(first_rows, rows, side="right") - 1
    assert found.tolist() == sorted(set(expected.tolist()))
    assert found[numbers].tolist() == expected.tolist()
    assert (first_rows[expected] + within).tolist() == rows.tolist()


def _measure(
    tables: list[list[tuple[int, int]]], chunk_bytes: list[int], num_items: list[int], fill: int = 0
) -> list[list[int]] | int:
    words = np.array([(size // 8 - 1) << 4 | log for table in tables for size, log in table], np.int64)
    sizes, counts = np.empty((2, words.size), np.int64)
    table_bytes = np.array([len(table) * 2 + fill for table in tables])
    found = kernels.measure_chunks(words, 2, table_bytes, np.array(chunk_bytes), np.array(num_items), sizes, counts)
    return found if found < 0 else [sizes.tolist(), counts.tolist()]


def test_chunk_tables_of_two_pages() -> None:
    assert _measure([[(8, 3), (24, 0)], [(16, 2)]], [32, 100], [11, 4]) == [[8, 24, 16], [8, 3, 4]]
    assert _measure([[(8, 3)]], [8], [8], fill=1) == -1
    assert _measure([[]], [8], [0]) == -1


@pytest.mark.parametrize(
    ("chunk", "num_bytes", "num_items"),
    [((24, 0), 31, 11), ((24, 0), 32, 8), ((24, 0), 32, 7), ((24, 2), 32, 11), ((24, 0), 32, 9 + 2**31)],
)
def test_chunks_that_are_not_those_of_their_page(chunk: tuple[int, int], num_bytes: int, num_items: int) -> None:
    assert _measure([[(8, 3)], [(8, 3), chunk]], [8, num_bytes], [8, num_items]) == -2
