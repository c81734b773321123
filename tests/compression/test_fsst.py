"""FSST: symbol tables, both contexts, damaged input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.compression import flat, fsst, registry, variable
from lance_format.compression.codec import CompressedChunks, Context
from lance_format.compression.fsst import SymbolTable
from lance_format.data_block import BufferSlices, VariableWidthBlock
from lance_format.errors import CorruptFileError
from lance_format.kernels.compression import fsst_training
from tests.compression import blocks
from tests.compression.chunks import decompress, decompress_some


def _table(symbols: list[bytes], is_used: bool = True) -> SymbolTable:
    words = np.zeros(256, np.uint64)
    lengths = np.zeros(256, np.uint8)
    for code, symbol in enumerate(symbols):
        words[code] = int.from_bytes(symbol, "little")
        lengths[code] = len(symbol)
    return SymbolTable(words, lengths, is_used)


def _compressed(values: list[bytes], offset_bits: int = 32) -> VariableWidthBlock:
    return blocks.block_of(values, offset_bits)


@given(
    count=st.integers(1, 3000),
    character=blocks.characters,
    bits=st.sampled_from([32, 64]),
    seed=blocks.seeds,
)
def test_round_trip(count: int, character: str, bits: int, seed: int) -> None:
    block = blocks.byte_strings(count, character, seed, bits)
    result = fsst.compress(block)
    if result is None:
        return
    values, table = result
    assert values.size_bytes + 2312 < block.size_bytes
    encoding = fsst.describe(variable.describe(bits), table)
    per_value = registry.parse_per_value_decompressor(encoding)
    back = per_value.decompress_values(values)
    blocks.assert_same(back, block)
    assert isinstance(back, VariableWidthBlock)
    assert back.bits_per_offset == bits
    chunks = variable.compress(values)
    chunks = CompressedChunks(chunks.buffers, chunks.sizes, chunks.num_values, fsst.describe(chunks.encoding, table))
    blocks.assert_same(decompress(chunks), block)
    last = len(chunks.num_values) - 1
    blocks.assert_same(decompress_some(chunks, [last]), block.slice(count - int(chunks.num_values[last]), count))


@given(values=st.lists(st.binary(max_size=30), min_size=1, max_size=50), seed=blocks.seeds)
def test_any_bytes_come_back(values: list[bytes], seed: int) -> None:
    picks = np.random.default_rng(seed).integers(0, len(values), 2000)
    many = [values[pick] for pick in picks]
    result = fsst.compress(blocks.block_of(many))
    if result is not None:
        assert blocks.values_of(result[1].decode(result[0])) == many


@pytest.mark.parametrize("character", ["few", "small"])
def test_text_shrinks_to_less_than_half(character: str) -> None:
    block = blocks.byte_strings(20_000, character, 0)
    result = fsst.compress(block)
    assert result is not None
    assert result[0].size_bytes < block.size_bytes * 0.5


def test_noise_is_left_alone() -> None:
    assert fsst.compress(blocks.byte_strings(20_000, "random", 0)) is None
    assert fsst.compress(blocks.block_of([b""] * 100)) is None


@pytest.mark.slow
def test_golden_bytes() -> None:
    table = _table([b"abc", b"d", b"12345678"])
    data = table.serialize()
    assert len(data) == 2312
    assert data[:8] == b"\x03\0\0\x01TSSF"
    assert data[8:32] == b"abc\0\0\0\0\0" + b"d\0\0\0\0\0\0\0" + b"12345678"
    assert data[32:35] == b"\x03\x01\x08"
    assert not any(data[35:])
    assert SymbolTable.parse(data).serialize() == data
    found = table.decode(_compressed([b"\0\1\2", b"", b"\xffz\0", b"\xff\xff"]))
    assert blocks.values_of(found) == [b"abcd12345678", b"", b"zabc", b"\xff"]


def test_values_that_a_sample_thinks_short_come_back() -> None:
    codes = np.zeros(100_000, np.uint8)
    codes[:: codes.size // 4096 + 1] = 1  # What is sampled.
    table = _table([b"longest!", b"s"])
    offsets = np.append(np.arange(0, codes.size, 1000), codes.size).astype(np.int32)
    found = table.decode(VariableWidthBlock(codes, offsets))
    expected = codes.tobytes().replace(b"\0", b"longest!").replace(b"\1", b"s")
    assert found.data.tobytes() == expected
    assert int(found.offsets[-1]) == len(expected)


def test_a_table_that_is_not_used_changes_nothing() -> None:
    block = blocks.byte_strings(10, "small", 0)
    assert _table([], is_used=False).decode(block) is block


@pytest.mark.parametrize("values", [[b"\1"], [b"a\xff"], [b"\0", b"\0\xff"], [b"\xfe"]])
def test_unknown_codes_and_cut_escapes_are_corrupt(values: list[bytes]) -> None:
    with pytest.raises(CorruptFileError, match=f"value {len(values) - 1} "):
        _table([b"abc"]).decode(_compressed([value.replace(b"a", b"\0") for value in values]))


@given(data=st.data())
def test_damaged_tables(data: st.DataObject) -> None:
    table = bytearray(_table([b"abc", b"de", b"f"]).serialize())
    for _ in range(3):
        table[data.draw(st.integers(0, 60))] = data.draw(st.integers(0, 255))
    try:
        found = SymbolTable.parse(bytes(table)).decode(_compressed([b"\0\1\2\0\1\2", b"\2\xffx"]))
    except CorruptFileError:
        return
    assert found.num_values == 2


@pytest.mark.parametrize(
    "table", [b"", b"\0" * 2312, _table([b"a"]).serialize()[:-1], _table([b"a"]).serialize() + b"\0"]
)
def test_tables_of_another_size_or_mark_are_corrupt(table: bytes) -> None:
    with pytest.raises(CorruptFileError, match="symbol table"):
        SymbolTable.parse(table)


def test_symbols_of_impossible_lengths_are_corrupt() -> None:
    for length in (0, 9):
        table = bytearray(_table([b"abc"]).serialize())
        table[16] = length
        with pytest.raises(CorruptFileError, match="length"):
            SymbolTable.parse(bytes(table))


def test_fsst_of_fixed_widths_is_corrupt() -> None:
    encoding = fsst.describe(flat.describe(32), _table([b"a"]))
    block = blocks.fixed_block(32, 4, "small", 0)
    with pytest.raises(CorruptFileError):
        registry.parse_per_value_decompressor(encoding).decompress_values(block)
    with pytest.raises(CorruptFileError):
        registry.parse_decompressor(encoding, Context.MINI_BLOCK).decompress(
            [BufferSlices.whole(block.data)], np.array([4])
        )


def test_samples_stay_small_if_only_long_values_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    long, sizes = np.random.default_rng(0).integers(97, 123, 512).astype(np.uint8).tobytes(), []
    train = fsst_training.train

    def measured(sample: np.ndarray, *rest: np.ndarray) -> int:
        sizes.append(sample.size)
        return train(sample, *rest)

    monkeypatch.setattr(fsst_training, "train", measured)
    values = [long if index % 64 == 0 else b"" for index in range(4095 * 64 + 1)]
    block = blocks.block_of(values)
    compressed = fsst.compress(block)
    assert sizes == [fsst_training.MAX_SAMPLE_BYTES + 8]
    assert compressed is not None
    codes, table = compressed
    blocks.assert_same(table.decode(codes), block)
