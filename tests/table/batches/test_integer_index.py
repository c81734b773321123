"""Distinct values of columns of integers, numbered and found."""

import pickle
from typing import Any

import pyarrow as pa
import pytest

from lance_format.table.batches.integer_index import IntegerIndex, is_integral

VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [-128, 127, 0]),
    (pa.uint8(), [255, 128, 0]),
    (pa.int16(), [-(2**15), 1, 5]),
    (pa.uint32(), [2**32 - 1, 1, 2**31]),
    (pa.int64(), [-(2**63), 2**63 - 1, -1]),
    (pa.uint64(), [2**64 - 1, 2**63, 2**63 - 1]),
    (pa.date32(), [-1, 0, 1]),
    (pa.time64("ns"), [0, 1, 2]),
    (pa.timestamp("us", "UTC"), [-(2**63), 0, 1]),
    (pa.duration("s"), [-5, 5, 6]),
]


@pytest.mark.parametrize("with_null", [False, True])
@pytest.mark.parametrize(("arrow_type", "values"), VALUES, ids=lambda part: str(part))
def test_values_are_found(arrow_type: pa.DataType, values: list[Any], with_null: bool) -> None:
    assert is_integral(arrow_type)
    first, second, absent = (pa.scalar(value, integers_like(arrow_type)).cast(arrow_type) for value in values)
    index = IntegerIndex.of(chunked([first, second], [second, *[None] * with_null], arrow_type))
    assert len(index) == 2 + with_null
    expected = [-1, 1, 0, 1, 2 if with_null else -1, -1]
    for found in (index, pickle.loads(pickle.dumps(index))):
        # The first chunk is a part of an array, the second one is without rows.
        wanted = chunked([second, absent, second, first], [], arrow_type, [second, None, absent])
        assert found.find(wanted.slice(1)).tolist() == expected
        assert found.find(wanted.slice(1, 2)).tolist() == expected[:2]
        assert found.find(wanted.slice(0, 0)).tolist() == []


def integers_like(arrow_type: pa.DataType) -> pa.DataType:
    return (
        pa.int32()
        if arrow_type.bit_width == 32 and not pa.types.is_integer(arrow_type)
        else (arrow_type if pa.types.is_integer(arrow_type) else pa.int64())
    )


def chunked(*parts: Any) -> pa.ChunkedArray:
    (arrow_type,) = [part for part in parts if isinstance(part, pa.DataType)]
    return pa.chunked_array([pa.array(part, arrow_type) for part in parts if isinstance(part, list)], arrow_type)
