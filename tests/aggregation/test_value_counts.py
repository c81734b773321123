"""How often each value occurs, read back from the bytes of states."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format import NotSupportedError
from lance_format.aggregation import Aggregate, PartialAggregation
from tests.aggregation.partial_rows import partial_rows

_READ = {
    pa.int8(): "<b7x",
    pa.int32(): "<i4x",
    pa.int64(): "<q",
    pa.float32(): "<f4x",
    pa.float64(): "<d",
    pa.decimal128(18, 2): "<q",
}
_Counts = Counter[Any]


def read(state: bytes, arrow_type: pa.DataType) -> _Counts:
    """Return the values and their numbers; the text of floating-point ones, which tells zeros and NaN apart."""
    found: _Counts = Counter()
    position = 0
    while struct.unpack_from(">i", state, position) == (24,):
        nulls, word, count = struct.unpack_from("<q8sq", state, position + 4)
        (value,) = struct.unpack(_READ[arrow_type], word)
        shown = repr(value) if isinstance(value, float) else value
        assert nulls == 0
        assert shown not in found
        found[shown] = count
        position += 28
    assert state[position:] == b"\xff" * 4
    return found


def aggregate(values: pa.Array, keys: Sequence[int], step: int, max_bytes: int) -> dict[int, _Counts]:
    found: dict[int, _Counts] = {}
    for row in partial_rows("value_counts", values, keys, step, max_bytes=max_bytes):
        found.setdefault(row["key"], Counter()).update(read(row["state"], values.type))
    return found


def expected(values: pa.Array, keys: Sequence[int]) -> dict[int, _Counts]:
    found: dict[int, _Counts] = {key: Counter() for key in keys}
    for key, value in zip(keys, values.to_pylist(), strict=True):
        if value is not None:
            unscaled = int(value.scaleb(2)) if isinstance(value, Decimal) else value
            found[key][repr(unscaled) if isinstance(unscaled, float) else unscaled] += 1
    return found


_VALUES = {
    pa.int8(): st.integers(-128, 127),
    pa.int32(): st.sampled_from([-(2**31), -1, 0, 7, 2**31 - 1]),
    pa.int64(): st.sampled_from([-(2**63), -1, 0, 7, 2**63 - 1]),
    pa.float32(): st.sampled_from([0.0, 1.5, math.nan, -math.inf]),
    pa.float64(): st.sampled_from([-0.0, 1.5, math.nan, math.inf, 5e-324]),
    pa.decimal128(18, 2): st.sampled_from([Decimal("-0.01"), Decimal(0), Decimal("9" * 16)]),
}


@given(st.data())
def test_states_have_all_values(data: st.DataObject) -> None:
    arrow_type = data.draw(st.sampled_from(list(_VALUES)))
    rows = data.draw(st.lists(st.tuples(st.integers(0, 3), st.none() | _VALUES[arrow_type]), min_size=1, max_size=60))
    keys = [key for key, _ in rows]
    values = pa.array([value for _, value in rows], arrow_type)
    found = aggregate(values, keys, data.draw(st.integers(1, 30)), data.draw(st.sampled_from([1, 1 << 20])))
    assert found == expected(values, keys)


@pytest.mark.parametrize("arrow_type", [pa.float32(), pa.float64()])
def test_zeros_are_one_value_where_a_group_has_both(arrow_type: pa.DataType) -> None:
    keys = [0, 0, 0, 1, 1, 2, 3]
    values = pa.array([-0.0, 0.0, -0.0, -0.0, -0.0, 0.0, None], arrow_type)
    found = aggregate(values, keys, 4, 1 << 20)
    assert found == {0: {"0.0": 3}, 1: {"-0.0": 2}, 2: {"0.0": 1}, 3: {}}


def test_many_values_in_groups_of_hardly_a_row() -> None:
    rng = np.random.default_rng(5)
    keys, values = rng.integers(0, 1 << 40, 300_000).tolist(), pa.array(rng.random(300_000))
    assert aggregate(values, keys, 100_000, 1 << 27) == expected(values, keys)


def test_many_values_in_few_groups() -> None:
    rng = np.random.default_rng(6)
    keys, values = rng.integers(0, 5, 200_000).tolist(), pa.array(rng.integers(0, 50_000, 200_000))
    assert aggregate(values, keys, 65_536, 1 << 27) == expected(values, keys)


@pytest.mark.parametrize("arrow_type", [pa.string(), pa.decimal128(19, 0), pa.bool_(), pa.date32()])
def test_other_types_are_refused(arrow_type: pa.DataType) -> None:
    with pytest.raises(NotSupportedError, match="value_counts of"):
        PartialAggregation(pa.schema([]), [Aggregate("state", "value_counts", arrow_type)])
