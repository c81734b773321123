"""Byte planes under LZ4."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.compression import planes
from lance_format.data_block import FixedWidthBlock
from lance_format.errors import CorruptFileError
from tests.compression import blocks
from tests.compression.chunks import decompress, decompress_some


@given(bits=st.sampled_from(planes.WORD_BITS), count=blocks.counts, character=blocks.characters, seed=blocks.seeds)
def test_round_trip(bits: int, count: int, character: str, seed: int) -> None:
    block = blocks.fixed_block(bits, count, character, seed)
    chunks = planes.compress(block)
    blocks.assert_same(decompress(chunks), block)
    last = len(chunks.num_values) - 1
    blocks.assert_same(decompress_some(chunks, [last]), block.slice(count - int(chunks.num_values[last]), count))


@pytest.mark.parametrize(
    ("numbers", "share"),
    [
        (np.random.default_rng(0).integers(-(10**6), 10**6, 100_000), 0.51),
        (np.random.default_rng(0).integers(-100, 100, 100_000), 0.27),
        (10**15 + np.arange(100_000), 0.15),
        (np.random.default_rng(0).integers(0, 10**4, 100_000).astype(np.float64), 0.41),
    ],
    ids=["both signs", "small of both signs", "sequence", "whole floats"],
)
def test_what_repeats_takes_no_room(numbers: np.ndarray, share: float) -> None:
    block = FixedWidthBlock(numbers.view(np.uint8), 64, numbers.size)
    size = planes.compress(block).buffers[0].size
    assert size < share * block.size_bytes
    assert planes.estimate_size(block) == pytest.approx(size, rel=0.05)


def test_noise_hardly_grows() -> None:
    block = blocks.fixed_block(64, 100_000, "random", 0)
    assert planes.compress(block).buffers[0].size < block.size_bytes * 1.01


@given(position=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_a_wrong_byte_is_told_or_changes_values_only(position: int, byte: int) -> None:
    block = blocks.fixed_block(64, 3000, "signed", 0)
    chunks = planes.compress(block)
    data = chunks.buffers[0].copy()
    data[position % data.size] = byte
    try:
        found = decompress(replace(chunks, buffers=(data,)))
    except CorruptFileError:
        return
    assert found.num_values == block.num_values


def test_numbers_of_values_are_checked() -> None:
    chunks = planes.compress(blocks.fixed_block(32, 3000, "signed", 0))
    with pytest.raises(CorruptFileError, match="byte-split chunk 2 has 3808 bytes for 951 values of 32 bits"):
        decompress(replace(chunks, num_values=chunks.num_values - [0, 0, 1]))
