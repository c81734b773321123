"""Single values are those of their decompressed chunks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.compression import bitpacking, flat, fsst, general, registry, rle, variable
from lance_format.compression.codec import CompressedChunks, Context, Decompressor, pick
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


def _check(decompressor: Decompressor, chunks: CompressedChunks, seed: int) -> None:
    rows, firsts = _rows(chunks, seed), np.cumsum(chunks.num_values) - chunks.num_values
    chosen = np.searchsorted(firsts, rows, "right") - 1
    slices = slices_of(chunks)
    found = pick(decompressor, slices, chunks.num_values, chosen, rows - firsts[chosen])
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


@given(
    bits=st.sampled_from(bitpacking.WORD_BITS),
    count=st.integers(1, 9000),
    character=st.sampled_from(blocks.CHARACTERS),
    seed=st.integers(0, 2**32),
)
def test_bit_packed_values(bits: int, count: int, character: str, seed: int) -> None:
    block = blocks.fixed_block(bits, count, character, seed)
    chunks = bitpacking.compress_inline(block, bitpacking.block_widths(block))
    _check(bitpacking.InlineBitpackingDecompressor(bits), chunks, seed)


@given(
    bits=st.sampled_from([32, 64]), count=st.integers(1, 3000), character=blocks.characters, seed=st.integers(0, 2**32)
)
def test_byte_strings(bits: int, count: int, character: str, seed: int) -> None:
    block = blocks.byte_strings(count, character, seed, bits)
    _check(variable.VariableDecompressor(bits), variable.compress(block), seed)
    compressed = fsst.compress(block)
    if compressed is not None:
        values, table = compressed
        decompressor = fsst.FsstDecompressor(table, variable.VariableDecompressor(bits))
        _check(decompressor, variable.compress(values), seed)


def test_values_that_are_not_found_without_their_chunk() -> None:
    chunks = general.compress(variable.compress(blocks.byte_strings(3000, "few", 0)), general.LZ4, None)
    _check(registry.parse_decompressor(chunks.encoding, Context.MINI_BLOCK), chunks, 3)


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


def test_lies_about_bit_packed_values_are_corrupt() -> None:
    one, zero = np.ones(1, np.int64), np.zeros(1, np.int64)
    packed = bitpacking.InlineBitpackingDecompressor(16)
    for data, count, message in (
        ([1, 0, *[255] * 128], 1025, "at most 1024 fit"),
        ([1, 1, *[255] * 128], 1024, "contradicts its size"),
        ([2, 0, *[255] * 128], 1024, "contradicts its size"),
        ([17, 0, *[255] * 17 * 128], 1024, "contradicts its size"),
        ([1], 1, "contradicts its size"),
    ):
        slices = [BufferSlices.whole(np.array(data, np.uint8))]
        with pytest.raises(CorruptFileError, match=message):
            packed.pick(slices, one * count, zero, zero)


def test_lies_about_byte_strings_are_corrupt() -> None:
    one, zero = np.ones(1, np.int64), np.zeros(1, np.int64)
    strings = variable.VariableDecompressor(32)
    for offsets in ([8, 13], [3, 9], [9, 8], [2**31, 2**31 + 1], [0, 12]):
        slices = [BufferSlices.whole(np.array([*offsets, 0], np.uint32).view(np.uint8))]
        with pytest.raises(CorruptFileError, match="the offsets of byte string chunk 0 decrease or lie outside of it"):
            strings.pick(slices, one, zero, zero)
    slices = [BufferSlices.whole(np.array([16, 16, 16], np.uint32).view(np.uint8))]
    with pytest.raises(CorruptFileError, match="shorter than its offsets"):
        strings.pick(slices, one * 3, zero, zero)
