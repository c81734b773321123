"""Byte strings as one block, the form of dictionary items, and as full-zip values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.compression import registry, variable
from lance_format.compression.codec import Context
from lance_format.data_block import BufferSlices, Bytes, DataBlock
from lance_format.errors import CorruptFileError
from tests.compression import blocks


def _read(data: Bytes, count: int, bits: int) -> DataBlock:
    decompressor = registry.parse_decompressor(variable.describe(bits), Context.BLOCK)
    return decompressor.decompress([BufferSlices.whole(data)], np.array([count]))


@given(count=st.integers(1, 500), bits=st.sampled_from([32, 64]), character=blocks.characters, seed=blocks.seeds)
def test_round_trip(count: int, bits: int, character: str, seed: int) -> None:
    block = blocks.byte_strings(count, character, seed, bits)
    blocks.assert_same(_read(variable.compress_block(block), count, bits), block)


def test_golden_bytes() -> None:
    block = blocks.block_of([b"ab", b"", b"c"])
    expected = "20000000" + "18000000" + "00000000" + "02000000" + "02000000" + "03000000" + "616263"
    assert variable.compress_block(block).tobytes().hex() == expected


@given(position=st.integers(0, 26), value=st.integers(0, 255), length=st.integers(0, 27))
def test_damage(position: int, value: int, length: int) -> None:
    data = variable.compress_block(blocks.block_of([b"ab", b"", b"c"])).copy()
    data[position] = value
    try:
        found = _read(data[:length], 3, 32)
    except CorruptFileError:
        return
    assert sum(map(len, blocks.values_of(found))) <= 3


@pytest.mark.parametrize("count", [0, 2, 4, 2**40])
def test_another_count_is_corrupt(count: int) -> None:
    with pytest.raises(CorruptFileError):
        _read(variable.compress_block(blocks.block_of([b"ab", b"", b"c"])), count, 32)


def test_full_zip_values_pass_through() -> None:
    strings, numbers = blocks.block_of([b"a"]), blocks.fixed_block(32, 3, "small", 0)
    plain = registry.parse_per_value_decompressor(variable.describe(32))
    assert plain.decompress_values(strings) is strings
    with pytest.raises(CorruptFileError):
        plain.decompress_values(numbers)
    fixed = registry.parse_per_value_decompressor(registry.flat.describe(32))
    assert fixed.decompress_values(numbers) is numbers
    for wrong in (strings, blocks.fixed_block(64, 3, "small", 0)):
        with pytest.raises(CorruptFileError):
            fixed.decompress_values(wrong)
