"""Fixed-size lists and packed structs: rows of a fixed width, taken apart and put together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.compression import fixed_size_list, flat, packed_struct, registry
from lance_format.compression.fixed_size_list import ListLevel, ListShape
from lance_format.data_block import FixedSizeListBlock, FixedWidthBlock, PackedStructBlock
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.proto import encodings_pb2
from tests.compression import blocks
from tests.compression.chunks import decompress, decompress_some, slices_of

_shapes = st.builds(
    ListShape,
    st.lists(st.builds(ListLevel, st.integers(1, 9), st.booleans()), min_size=1, max_size=3).map(tuple),
    st.sampled_from([1, 8, 16, 32, 64, 128]),
)


def _bits(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.packbits(rng.integers(0, 2, count, np.uint8), bitorder="little")


def _parts(shape: ListShape, num_values: int, seed: int) -> tuple[list[np.ndarray], FixedWidthBlock]:
    rng = np.random.default_rng(seed)
    *validities, _ = shape.parts
    num_items = num_values * shape.items_per_value
    items = (
        _bits(rng, num_items)
        if shape.bits_per_item == 1
        else rng.integers(0, 256, num_items * shape.bits_per_item // 8, np.uint8)
    )
    return [_bits(rng, bits * num_values) for bits in validities], FixedWidthBlock(
        items, shape.bits_per_item, num_items
    )


@given(shape=_shapes, num_values=st.integers(1, 300), seed=blocks.seeds)
def test_lists_round_trip(shape: ListShape, num_values: int, seed: int) -> None:
    validities, items = _parts(shape, num_values, seed)
    rows = fixed_size_list.join_rows(validities, items, shape)
    assert rows.num_values == num_values
    assert rows.size_bytes == num_values * shape.bits_per_value // 8
    chunks = fixed_size_list.compress(FixedSizeListBlock(rows, shape))
    assert fixed_size_list.parse_shape(chunks.encoding) == shape
    blocks.assert_same(decompress(chunks).rows, rows)
    last = len(chunks.num_values) - 1
    tail = rows.slice(num_values - int(chunks.num_values[last]), num_values)
    blocks.assert_same(decompress_some(chunks, [last]).rows, tail)
    per_value = registry.parse_per_value_decompressor(chunks.encoding)
    found, found_items = fixed_size_list.split_rows(per_value.decompress_values(rows).rows, shape)
    assert [part.tobytes() for part in found] == [part.tobytes() for part in validities]
    blocks.assert_same(found_items, items)


def test_golden_bytes_of_rows() -> None:
    shape = ListShape((ListLevel(2, True), ListLevel(3, True)), 8)
    validities = [np.array([0b1001], np.uint8), np.array([0b111111_01, 0b1111], np.uint8)]
    items = FixedWidthBlock(np.arange(12, dtype=np.uint8), 8, 12)
    rows = fixed_size_list.join_rows(validities, items, shape)
    assert rows.data.tobytes().hex() == "013d" + "000102030405" + "023f" + "060708090a0b"
    chunks = fixed_size_list.compress(FixedSizeListBlock(rows, shape))
    assert [buffer.tobytes().hex() for buffer in chunks.buffers] == ["09", "fd0f", "000102030405060708090a0b"]


def test_wrong_list_encodings_are_refused() -> None:
    for levels in (((0, False),), ((2**31, False), (4, False)), ((1, True),) * 40):
        shape = ListShape(tuple(ListLevel(*level) for level in levels), 32)
        with pytest.raises(CorruptFileError):
            fixed_size_list.parse_shape(fixed_size_list.describe(shape))
    lists = encodings_pb2.FixedSizeList(items_per_value=2)
    with pytest.raises(NotSupportedError, match="fixed_size_list"):
        fixed_size_list.parse(encodings_pb2.CompressiveEncoding(fixed_size_list=lists))


def test_lists_that_are_too_short_are_corrupt() -> None:
    shape = ListShape((ListLevel(3, True),), 32)
    rows = fixed_size_list.join_rows(*_parts(shape, 100, 0), shape)
    chunks = fixed_size_list.compress(FixedSizeListBlock(rows, shape))
    decompressor = fixed_size_list.parse(chunks.encoding)
    for wrong in (1, 2**50):
        with pytest.raises(CorruptFileError, match="shorter"):
            decompressor.decompress(slices_of(chunks), chunks.num_values + wrong)
    with pytest.raises(CorruptFileError, match="another width"):
        registry.parse_per_value_decompressor(chunks.encoding).decompress_values(blocks.fixed_block(32, 4, "small", 0))


@given(
    widths=st.lists(st.sampled_from([8, 16, 32, 64]), min_size=1, max_size=5),
    count=st.integers(1, 3000),
    seed=blocks.seeds,
)
def test_packed_structs_round_trip(widths: list[int], count: int, seed: int) -> None:
    fields = [blocks.fixed_block(bits, count, "random", seed + index) for index, bits in enumerate(widths)]
    rows = packed_struct.join_rows(fields)
    chunks = packed_struct.compress(PackedStructBlock(rows, packed_struct.PackedStructDecompressor(tuple(widths))))
    back = decompress(chunks)
    assert isinstance(back, PackedStructBlock)
    for found, field in zip(back.codec.split_rows(back.rows), fields, strict=True):
        blocks.assert_same(found, field)


@pytest.mark.parametrize(("fields", "row"), [([], 8), ([8, 0], 8), ([8, 3], 16), ([8, 8], 24)])
def test_wrong_packed_structs_are_corrupt(fields: list[int], row: int) -> None:
    packed = encodings_pb2.PackedStruct(bits_per_value=fields, values=flat.describe(row))
    with pytest.raises(CorruptFileError, match="packed struct"):
        packed_struct.parse(encodings_pb2.CompressiveEncoding(packed_struct=packed))
