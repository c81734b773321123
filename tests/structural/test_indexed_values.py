"""Indices of several pages into the dictionary of each, and indices that are stored as runs."""

from __future__ import annotations

from pathlib import Path

import lance.file
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.compression import bitpacking, rle
from lance_format.data_block import DataBlock, FixedWidthBlock, detached
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.file import LanceFileReader, LanceFileWriter
from lance_format.structural.indexed_values import index_into, index_into_several, reading_items
from tests.compression import blocks
from tests.compression.chunks import slices_of


def _indices(numbers: list[int]) -> FixedWidthBlock:
    return FixedWidthBlock(np.array(numbers, np.uint8), 8, len(numbers))


def _numbers(items: list[int]) -> DataBlock:
    return FixedWidthBlock(np.array(items, np.uint32).view(np.uint8), 32, len(items))


def _texts(items: list[bytes], offset_bits: int) -> DataBlock:
    return detached(blocks.block_of(items, offset_bits))


def test_each_page_has_its_items() -> None:
    dictionaries = [_numbers([7, 8, 9]), _numbers([1, 2])]
    for count, numbers, expected in ((1, [2, 0], [9, 7]), (2, [2, 0, 1, 1, 0], [9, 7, 2, 2, 1])):
        found = index_into_several(dictionaries[:count], _indices(numbers), [2, 3][:count])
        blocks.assert_same(found.look_up(), _numbers(expected))


@pytest.mark.parametrize("offset_bits", [32, 64])
def test_texts(offset_bits: int) -> None:
    dictionaries = [_texts([b"a", b"bcd"], offset_bits), _texts([b""], offset_bits), _texts([b"xy"], offset_bits)]
    found = index_into_several(dictionaries, _indices([1, 0, 0, 0]), [2, 1, 1]).look_up()
    blocks.assert_same(found, blocks.block_of([b"bcd", b"a", b"", b"xy"], offset_bits))


def test_an_index_beyond_the_items_of_its_page() -> None:
    for numbers in ([0, 2], [0, 3], [2, 200]):
        with pytest.raises(CorruptFileError, match="index"):
            index_into_several([_numbers([7, 8, 9]), _numbers([1, 2])], _indices(numbers), [1, 1])


def test_single_bits() -> None:
    bits = FixedWidthBlock(np.array([1], np.uint8), 1, 2)
    with pytest.raises(NotSupportedError, match="single bits"):
        index_into_several([bits, bits], _indices([0, 1]), [1, 1])


def _runs(numbers: np.ndarray, bits: int) -> rle.CompressedChunks:
    block = FixedWidthBlock(numbers.astype(f"<u{bits // 8}").view(np.uint8), bits, numbers.size)
    return rle.compress(block, bitpacking.measure(block)[1])


@given(
    index_bits=st.sampled_from(rle.WORD_BITS),
    item_bits=st.sampled_from(rle.WORD_BITS),
    num_items=st.integers(1, 200),
    lengths=st.lists(st.integers(1, 6000), min_size=1, max_size=20),
    seed=blocks.seeds,
)
def test_items_of_runs(index_bits: int, item_bits: int, num_items: int, lengths: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    chunks = _runs(np.repeat(rng.integers(0, num_items, len(lengths)), lengths), index_bits)
    items = FixedWidthBlock(rng.integers(0, 256, num_items * item_bits // 8, np.uint8), item_bits, num_items)
    indices = rle.parse(chunks.encoding)
    reader = reading_items(indices, items)
    assert reader is not None
    assert reader.num_buffers == 2
    found = reader.decompress(slices_of(chunks), chunks.num_values)
    blocks.assert_same(found, index_into(items, indices.decompress(slices_of(chunks), chunks.num_values)).look_up())


def test_runs_without_an_item() -> None:
    chunks = _runs(np.repeat([0, 2, 3, 1], 50), 8)
    reader = reading_items(rle.parse(chunks.encoding), _numbers([7, 8, 9]))
    assert reader is not None
    with pytest.raises(CorruptFileError, match="dictionary index 3; there are 3 items"):
        reader.decompress(slices_of(chunks), chunks.num_values)


def test_other_items_are_looked_up_by_index() -> None:
    indices = rle.RleDecompressor(8)
    assert reading_items(indices, _texts([b"a"], 32)) is None
    assert reading_items(indices, FixedWidthBlock(np.zeros(16, np.uint8), 128, 1)) is None
    assert reading_items(bitpacking.InlineBitpackingDecompressor(8), _numbers([1])) is None


_FEW = np.random.default_rng(0).integers(0, 10**6, 40).repeat(250)
_COLUMNS = {
    "numbers": pa.array(_FEW),
    "nullable": pa.array(_FEW, mask=np.arange(_FEW.size) % 7 == 0),
    "lists": pa.ListArray.from_arrays(np.arange(0, _FEW.size + 1, 10, dtype=np.int32), pa.array(_FEW)),
    "dictionary": pa.array(_FEW).dictionary_encode(),
}


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("name", _COLUMNS)
@pytest.mark.parametrize("writer", [LanceFileWriter, lance.file.LanceFileWriter])
def test_columns_of_runs(name: str, version: str, writer: type, tmp_path: Path) -> None:
    table = pa.table({"c": _COLUMNS[name]})
    with writer(str(tmp_path / "a.lance"), table.schema, version=version) as target:
        target.write_batch(table.to_batches()[0])
    reader = LanceFileReader(tmp_path / "a.lance")
    if version == "2.2" and writer is lance.file.LanceFileWriter:
        (compression,) = [page.compression for page in reader.describe_pages()]
        assert compression == "dictionary of 40 (lz4 > flat) > rle > flat"
    assert reader.read_all().to_table() == table
    assert reader.read_range(300, 411).to_table() == table.slice(300, 411)
    rows = [0, 1, 249, 250, 999]
    assert reader.take_rows(rows).to_table()["c"].to_pylist() == table["c"].take(rows).to_pylist()
