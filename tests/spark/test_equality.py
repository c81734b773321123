"""Values of two arrays are compared row by row, nulls and NaN equal themselves."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from connector.types.equality import same_rows

PAIR = pa.struct([("x", pa.float64()), ("s", pa.string())])


@pytest.mark.parametrize(
    ("kind", "one", "other", "expected"),
    [
        (pa.int64(), [1, 2, None, None], [1, 3, None, 0], [True, False, True, False]),
        (pa.float64(), [math.nan, 0.0, 1.5, math.nan], [math.nan, -0.0, 1.5, 1.0], [True, False, True, False]),
        (pa.float32(), [math.nan, None], [math.nan, 0.0], [True, False]),
        (pa.string(), ["a", "", None], ["a", None, None], [True, False, True]),
        (pa.null(), [None, None], [None, None], [True, True]),
        (pa.list_(pa.int32()), [[1], [], [None], [1, 2], None], [[1], None, [None], [1, 3], None], [1, 0, 1, 0, 1]),
        (pa.map_(pa.string(), PAIR), [[("k", {"x": math.nan})], []], [[("k", {"x": math.nan})], [("k", None)]], [1, 0]),
        (PAIR, [{"x": math.nan, "s": "a"}, None, {}], [{"x": math.nan, "s": "a"}, {}, {}], [1, 0, 1]),
        (pa.list_(PAIR), [[{"x": 1.0}, None], [{"x": 1.0}]], [[{"x": 1.0}, None], [None]], [1, 0]),
    ],
    ids=str,
)
def test_rows(kind: pa.DataType, one: list[object], other: list[object], expected: list[bool]) -> None:
    arrays = [pa.array(values, kind) for values in (one, other)]
    assert same_rows(*arrays).tolist() == [bool(flag) for flag in expected]
    sliced = [pa.concat_arrays([array.slice(0, 1), array]).slice(1) for array in arrays]
    assert same_rows(*sliced).tolist() == [bool(flag) for flag in expected]
    assert same_rows(*(array.slice(0, 0) for array in arrays)).tolist() == []
