"""CASE over values that are all there, against Arrow's `case_when`."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_format.expressions.values.choice import choose, first_valid

_VALUES = {
    pa.int8(): [None, -1, 0, 7],
    pa.uint16(): [None, 0, 2**16 - 1],
    pa.date32(): [None, 0, 7],
    pa.float32(): [None, 0.5, float("inf")],
    pa.int64(): [None, -(2**63), 7],
    pa.timestamp("ns", "UTC"): [None, 1, 2**62],
    pa.decimal128(20, 2): [None, Decimal("1.25"), Decimal("-123456789012345678.00")],
    pa.bool_(): [None, True, False],
    pa.string(): [None, "", "owl"],
}


@pytest.mark.parametrize("arrow_type", _VALUES, ids=str)
@settings(max_examples=40)
@given(data=st.data())
def test_values(arrow_type: pa.DataType, data: st.DataObject) -> None:
    num_rows, start = data.draw(st.integers(0, 40)), data.draw(st.integers(0, 9))

    def column(of: pa.DataType, values: list[object]) -> pa.Array:
        size = start + num_rows
        return pa.array(data.draw(st.lists(st.sampled_from(values), min_size=size, max_size=size)), of).slice(start)

    def value() -> pa.Array | pa.Scalar:
        whole = column(arrow_type, _VALUES[arrow_type])
        return (
            pa.scalar(data.draw(st.sampled_from(_VALUES[arrow_type])), arrow_type)
            if data.draw(st.booleans())
            else whole
        )

    given = [value() for _ in range(data.draw(st.integers(1, 3)))]
    first, coalesced = first_valid(*given), pc.coalesce(*given)
    assert first.type == arrow_type
    assert (first.as_py() if isinstance(first, pa.Scalar) else first.to_pylist()) == (
        coalesced.as_py() if isinstance(coalesced, pa.Scalar) else coalesced.to_pylist()
    )
    conditions = [column(pa.bool_(), [None, True, False]) for _ in range(data.draw(st.integers(1, 3)))]
    values, default = [value() for _ in conditions], value()
    found = choose(conditions, values, default)
    found.validate(full=True)
    names = [str(place) for place in range(len(conditions))]
    repeated = [pa.repeat(given, num_rows) if isinstance(given, pa.Scalar) else given for given in (*values, default)]
    expected = pc.case_when(pa.StructArray.from_arrays(conditions, names), *repeated)
    assert found.type == arrow_type
    assert found.to_pylist() == expected.to_pylist()
