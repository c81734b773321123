"""Indices of several pages into the dictionary of each."""

from __future__ import annotations

import numpy as np
import pytest

from lance_format.data_block import DataBlock, FixedWidthBlock, detached
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.structural.indexed_values import index_into_several
from tests.compression import blocks


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
