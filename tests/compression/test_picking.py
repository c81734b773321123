"""Single values are those of their decompressed chunks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.compression import bitpacking, flat, rle
from lance_format.compression.codec import CompressedChunks, PickingDecompressor
from lance_format.data_block import BufferSlices, Counts, FixedWidthBlock
from lance_format.errors import CorruptFileError
from tests.compression import blocks
from tests.compression.chunks import slices_of


def _rows(chunks: CompressedChunks, seed: int) -> Counts:
    """Return rows, some of them twice, with the first and the last; half the time they ascend."""
    count = int(chunks.num_values.sum())
    some = np.random.default_rng(seed).integers(0, count, 1 + seed % 40)
    rows = np.concatenate([[0, count - 1], some, some])
    return np.sort(rows) if seed % 2 else rows


def _check(decompressor: PickingDecompressor, chunks: CompressedChunks, seed: int) -> None:
    rows, firsts = _rows(chunks, seed), np.cumsum(chunks.num_values) - chunks.num_values
    chosen = np.searchsorted(firsts, rows, "right") - 1
    slices = slices_of(chunks)
    found = decompressor.pick(slices, chunks.num_values, chosen, rows - firsts[chosen])
    expected = decompressor.decompress(slices, chunks.num_values)
    blocks.assert_same(found, expected.take(rows))


@given(
    bits=st.sampled_from([1, 8, 16, 24, 32, 64, 96, 128, 256]),
    count=st.integers(1, 9000),
    seed=st.integers(0, 2**32),
)
def test_flat_values(bits: int, count: int, seed: int) -> None:
    data = np.random.default_rng(seed).integers(0, 256, (count * bits + 7) // 8, np.uint8)
    _check(flat.FlatDecompressor(bits), flat.compress(FixedWidthBlock(data, bits, count)), seed)


@given(
    bits=st.sampled_from(rle.WORD_BITS),
    count=st.integers(1, 9000),
    character=st.sampled_from(blocks.CHARACTERS),
    seed=st.integers(0, 2**32),
)
def test_runs(bits: int, count: int, character: str, seed: int) -> None:
    block = blocks.fixed_block(bits, count, character, seed)
    _check(rle.RleDecompressor(bits), rle.compress(block, bitpacking.measure(block)[1]), seed)


def test_lies_are_corrupt() -> None:
    one, zero = np.ones(1, np.int64), np.zeros(1, np.int64)
    data = np.array([3, 0, 9, 0, 2, 4], np.uint8)
    values, lengths = BufferSlices(data, zero, one * 4), BufferSlices(data, one * 4, one * 2)
    runs = rle.RleDecompressor(16)
    assert runs.pick([values, lengths], one * 6, zero, one * 5).data.tolist() == [9, 0]
    with pytest.raises(CorruptFileError, match="contradicts"):
        runs.pick([values, lengths], one * 7, zero, one * 6)
    with pytest.raises(CorruptFileError, match="another number"):
        runs.pick([lengths, lengths], one * 6, zero, one)
    for bits, count in ((1, 49), (16, 4), (128, 1)):
        with pytest.raises(CorruptFileError, match=f"chunk 0 has 6 bytes for {count} values"):
            flat.FlatDecompressor(bits).pick([BufferSlices.whole(data)], one * count, zero, zero)
