"""Half floats are computed with as other floats are, by early releases of Arrow, too."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_format.half_floats import if_else, is_nan, nan_of, widened


@pytest.mark.parametrize("number", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_numbers_of_all_widths(number: pa.DataType) -> None:
    numbers = np.array([1.5, -0.0, np.nan, 7.0], number.to_pandas_dtype())
    values = pa.array(numbers, mask=np.array([False, False, False, True]))
    found = is_nan(values)
    assert found.to_pylist() == [False, False, True, None]
    assert widened(values).slice(0, 2).to_pylist() == [1.5, -0.0]
    for chosen in (nan_of(number), pa.scalar(None, number), values[0], values):
        for others in (values, values.slice(1), values[1]):
            condition = pa.array([True, False, None, False][: len(others) if isinstance(others, pa.Array) else 4])
            kept = chosen.slice(0, len(condition)) if isinstance(chosen, pa.Array) else chosen
            result = if_else(condition, kept, others)
            assert result.type == number
            for row, holds in enumerate(condition.to_pylist()):
                given = pa.scalar(None, number) if holds is None else kept if holds else others
                expected = given[row] if isinstance(given, pa.Array) else given
                assert str(result[row].as_py()) == str(expected.as_py())
    empty = values.slice(0, 0)
    assert if_else(pa.array([], pa.bool_()), nan_of(number), empty) == empty == if_else(found.slice(4), empty, empty)
