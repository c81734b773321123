"""Run-length encoding, both forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.compression import bitpacking, flat, registry, rle
from lance_format.compression.codec import Context
from lance_format.data_block import BufferSlices, FixedWidthBlock
from lance_format.errors import CorruptFileError
from lance_format.proto import encodings_pb2
from tests.compression import blocks
from tests.compression.chunks import decompress, decompress_some, slices_of


@given(bits=st.sampled_from(rle.WORD_BITS), count=blocks.counts, character=blocks.characters, seed=blocks.seeds)
def test_round_trip(bits: int, count: int, character: str, seed: int) -> None:
    block = blocks.fixed_block(bits, count, character, seed)
    chunks = rle.compress(block, bitpacking.measure(block)[1])
    assert chunks.sizes[0].max() + chunks.sizes[1].max() <= 4096
    blocks.assert_same(decompress(chunks), block)
    last = len(chunks.num_values) - 1
    tail = block.slice(count - int(chunks.num_values[last]), count)
    blocks.assert_same(decompress_some(chunks, [last]), tail)


def test_golden_bytes() -> None:
    values = np.array([7] * 300 + [-1, 5, 5], "<i4")
    block = FixedWidthBlock(values.view(np.uint8), 32, values.size)
    chunks = rle.compress(block, bitpacking.measure(block)[1])
    assert chunks.buffers[0].tobytes().hex() == "0700000007000000ffffffff05000000"
    assert chunks.buffers[1].tolist() == [255, 45, 1, 2]
    assert chunks.num_values.tolist() == [303]


def _block_form(values: list[int], lengths: list[int], bits: int) -> bytes:
    words = np.array(values, f"<u{bits // 8}").tobytes()
    return len(words).to_bytes(8, "little") + words + bytes(lengths)


@pytest.mark.parametrize("bits", rle.WORD_BITS)
def test_block_form(bits: int) -> None:
    data = np.frombuffer(_block_form([3, 9, 0], [2, 0, 255], bits), np.uint8)
    decompressor = registry.parse_decompressor(rle.describe(bits), Context.BLOCK)
    found = decompressor.decompress([BufferSlices.whole(data)], np.array([200]))
    assert found.data.view(f"<u{bits // 8}").tolist() == [3, 3] + [0] * 198
    for count in (258, 10**15):
        with pytest.raises(CorruptFileError):
            decompressor.decompress([BufferSlices.whole(data)], np.array([count]))


@given(position=st.integers(0, 18), value=st.integers(0, 255))
def test_block_form_with_a_wrong_byte(position: int, value: int) -> None:
    data = np.frombuffer(_block_form([3, 9], [2, 4], 32), np.uint8).copy()
    data[min(position, data.size - 1)] = value
    decompressor = rle.parse_block(rle.describe(32))
    try:
        found = decompressor.decompress([BufferSlices.whole(data)], np.array([6]))
    except CorruptFileError:
        return
    assert found.num_values == 6


def test_lies_are_corrupt() -> None:
    block = blocks.fixed_block(32, 1000, "runs", 0)
    chunks = rle.compress(block, bitpacking.measure(block)[1])
    decompressor = rle.parse(chunks.encoding)
    values, lengths = slices_of(chunks)
    with pytest.raises(CorruptFileError, match="another number"):
        decompressor.decompress(
            [BufferSlices(values.data, values.starts, values.sizes - 4), lengths], chunks.num_values
        )
    with pytest.raises(CorruptFileError, match="contradicts"):
        decompressor.decompress([values, lengths], chunks.num_values + 1)
    with pytest.raises(CorruptFileError, match="shorter"):
        decompressor.decompress([values, lengths], np.array([2**40]))
    shifted = BufferSlices(values.data, values.starts + 2, values.sizes)
    with pytest.raises(CorruptFileError, match="between two words"):
        decompressor.decompress([shifted, lengths], chunks.num_values)


@pytest.mark.parametrize(("value_bits", "length_bits"), [(12, 8), (128, 8), (32, 16), (32, 1)])
def test_widths_are_checked(value_bits: int, length_bits: int) -> None:
    inner = encodings_pb2.Rle(values=flat.describe(value_bits), run_lengths=flat.describe(length_bits))
    with pytest.raises(CorruptFileError, match="bits"):
        rle.parse(encodings_pb2.CompressiveEncoding(rle=inner))
