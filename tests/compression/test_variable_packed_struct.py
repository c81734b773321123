"""Packed structs with fields of any length."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.compression import fsst, registry, variable, variable_packed_struct
from lance_format.compression.variable_packed_struct import VariablePackedStructDecompressor
from lance_format.data_block import DataBlock, VariableWidthBlock
from lance_format.errors import CorruptFileError
from lance_format.proto import encodings_pb2
from tests.compression import blocks


def _parse(encoding: encodings_pb2.CompressiveEncoding) -> VariablePackedStructDecompressor:
    decompressor = registry.parse_per_value_decompressor(encoding)
    assert isinstance(decompressor, VariablePackedStructDecompressor)
    return decompressor


def _fields(kinds: list[int], count: int, seed: int) -> list[DataBlock]:
    return [
        blocks.fixed_block(kind, count, "random", seed)
        if kind > 0
        else blocks.byte_strings(count, "small", seed, -kind)
        for kind in kinds
    ]


@given(
    kinds=st.lists(st.sampled_from([8, 16, 32, 64, -32, -64]), min_size=1, max_size=5),
    count=st.integers(1, 500),
    seed=blocks.seeds,
)
def test_round_trip(kinds: list[int], count: int, seed: int) -> None:
    fields = _fields(kinds, count, seed)
    rows = variable_packed_struct.join_rows(fields)
    decompressor = _parse(variable_packed_struct.describe(fields))
    assert decompressor.decompress_values(rows).rows is rows
    for found, field in zip(decompressor.split_rows(rows), fields, strict=True):
        blocks.assert_same(found, field)


def test_golden_bytes() -> None:
    fields = [
        blocks.fixed_block(16, 2, "constant", 0),
        blocks.block_of([b"ab", b""]),
        blocks.block_of([b"c", b"d"], 64),
    ]
    number = fields[0].data[:2].tobytes()
    rows = variable_packed_struct.join_rows(fields)
    assert blocks.values_of(rows) == [
        number + b"\x02\0\0\0ab" + b"\x01\0\0\0\0\0\0\0c",
        number + b"\0\0\0\0" + b"\x01\0\0\0\0\0\0\0d",
    ]


def test_fields_that_are_compressed() -> None:
    strings = blocks.byte_strings(5000, "small", 0)
    result = fsst.compress(strings)
    assert result is not None
    values, table = result
    encoding = variable_packed_struct.describe([values])
    encoding.variable_packed_struct.fields[0].value.CopyFrom(fsst.describe(variable.describe(32), table))
    (found,) = _parse(encoding).split_rows(variable_packed_struct.join_rows([values]))
    blocks.assert_same(found, strings)


@given(position=st.integers(0, 40), value=st.integers(0, 255), cut=st.integers(0, 3))
def test_damage(position: int, value: int, cut: int) -> None:
    fields = _fields([16, -32, -64], 2, 0)
    rows = variable_packed_struct.join_rows(fields)
    data = rows.data.copy()
    data[position % data.size] = value
    offsets = rows.offsets.copy()
    offsets[-1] -= cut
    try:
        found = _parse(variable_packed_struct.describe(fields)).split_rows(VariableWidthBlock(data, offsets))
    except CorruptFileError:
        return
    assert [block.num_values for block in found] == [2, 2, 2]


def test_lengths_beyond_the_row_are_corrupt() -> None:
    fields = [blocks.block_of([b"abc"], 64)]
    decompressor = _parse(variable_packed_struct.describe(fields))
    rows = variable_packed_struct.join_rows(fields)
    for wrong in (2, 4, 2**63 - 1, 2**63, 2**64 - 1):
        data = rows.data.copy()
        data[:8] = np.array([wrong], "<u8").view(np.uint8)
        with pytest.raises(CorruptFileError, match="do not fill"):
            decompressor.split_rows(VariableWidthBlock(data, rows.offsets))


def test_wrong_encodings_are_corrupt() -> None:
    plain = variable.describe(32)
    field = encodings_pb2.VariablePackedStruct.FieldEncoding
    for fields in (
        [],
        [field(value=plain)],
        [field(value=plain, bits_per_length=16)],
        [field(value=plain, bits_per_value=12)],
        [field(value=plain, bits_per_value=1)],
        [field(value=plain, bits_per_value=0)],
        [field(bits_per_length=32)],
    ):
        packed = encodings_pb2.VariablePackedStruct(fields=fields)
        with pytest.raises(CorruptFileError):
            registry.parse_per_value_decompressor(encodings_pb2.CompressiveEncoding(variable_packed_struct=packed))
