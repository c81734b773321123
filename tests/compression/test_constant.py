"""Constants in blocks: levels that are all the same, and the items of a dictionary."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_format.compression.choice import strategy
from lance_format.compression.codec import Context
from lance_format.compression.registry import parse_decompressor
from lance_format.data_block import BufferSlices, FixedWidthBlock
from lance_format.errors import CorruptFileError
from lance_format.file import LanceFileReader, LanceFileWriter
from tests.compression.constants import constant_of, with_constants


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_levels_that_are_all_the_same_may_be_a_constant(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = pa.array([[number] for number in range(5000)], pa.list_(pa.int32()))
    nulls = pa.array([[None]] * 5000, pa.list_(pa.int32()))
    table = pa.table({"lists": lists, "nulls": nulls})
    monkeypatch.setattr(strategy, "compress_levels", with_constants(strategy.compress_levels))
    with LanceFileWriter(tmp_path / "a.lance", table.schema, version=version) as writer:
        writer.write_batch(table)
    reader = LanceFileReader(tmp_path / "a.lance")
    assert "constant { value:" in reader.metadata().columns[0].pages[0].encoding
    assert reader.read_all().to_table() == table
    assert reader.take_rows([0, 1024, 4999]).to_table() == table.take([0, 1024, 4999])


def test_a_block_of_a_constant_repeats_it() -> None:
    decompressor = parse_decompressor(constant_of(b"\1\2\3"), Context.BLOCK)
    empty = BufferSlices(np.empty(0, np.uint8), np.zeros(2, np.int64), np.zeros(2, np.int64))
    block = decompressor.decompress([empty], np.array([2, 1]))
    assert isinstance(block, FixedWidthBlock)
    assert (block.bits_per_value, block.num_values, block.data.tobytes()) == (24, 3, b"\1\2\3" * 3)


@pytest.mark.parametrize("value", [b"", b"x" * 4097])
def test_a_constant_of_no_size_is_corrupt(value: bytes) -> None:
    with pytest.raises(CorruptFileError, match="expected 1 to 4096"):
        parse_decompressor(constant_of(value), Context.BLOCK)


def test_a_constant_claims_neither_bytes_nor_memory() -> None:
    decompressor = parse_decompressor(constant_of(b"\1\0"), Context.BLOCK)
    with pytest.raises(CorruptFileError, match="has 2 bytes; expected none"):
        decompressor.decompress([BufferSlices.whole(np.zeros(2, np.uint8))], np.array([1]))
    with pytest.raises(CorruptFileError, match="repeated 1099511627776 times"):
        decompressor.decompress([BufferSlices.whole(np.empty(0, np.uint8))], np.array([2**40]))
