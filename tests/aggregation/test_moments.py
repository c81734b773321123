"""States of moments against sums over all values, computed exactly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format import NotSupportedError
from lance_format.aggregation import Aggregate, PartialAggregation
from lance_format.aggregation.moments import COMOMENTS, MOMENTS
from tests.aggregation.partial_rows import partial_rows

Row = tuple[float | None, float | None]
VALUES = st.none() | st.integers(-1000, 1000).map(lambda number: number / 8)


def aggregate(function: str, rows: Sequence[Row], keys: Sequence[int], step: int) -> dict[int, dict[str, float]]:
    """Return the state of each group; each part of the rows is a slice."""
    left, right = (pa.array(values, pa.float64()) for values in zip(*rows, strict=True))
    values = left if function in MOMENTS else pa.StructArray.from_arrays([left, right], ["x", "y"])
    return {row["key"]: row["state"] for row in partial_rows(function, values, keys, step)}


def expected(function: str, rows: Sequence[Row]) -> list[Fraction]:
    is_pair = function in COMOMENTS
    pairs = [
        (Fraction(x), Fraction(y if is_pair else 0))
        for x, y in rows
        if x is not None and (y is not None or not is_pair)
    ]
    if not pairs:
        return [Fraction(0)] * len((MOMENTS | COMOMENTS)[function])
    x_mean, y_mean = (sum(values) / Fraction(len(pairs)) for values in zip(*pairs, strict=True))
    from_means = [(x - x_mean, y - y_mean) for x, y in pairs]
    if not is_pair:
        powers = range(2, len(MOMENTS[function]))
        return [
            Fraction(len(pairs)),
            x_mean,
            *(sum((x**power for x, _ in from_means), Fraction(0)) for power in powers),
        ]
    found = [Fraction(len(pairs)), x_mean, y_mean, sum((x * y for x, y in from_means), Fraction(0))]
    if function == "correlation":
        found += [sum((value**2 for value in values), Fraction(0)) for values in zip(*from_means, strict=True)]
    return found


@pytest.mark.parametrize("function", [*MOMENTS, *COMOMENTS])
@given(st.data())
def test_states(function: str, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=40))
    keys = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    found = aggregate(function, rows, keys, data.draw(st.integers(1, 41)))
    assert found.keys() == set(keys)
    for key, state in found.items():
        exact = expected(function, list(itertools.compress(rows, [other == key for other in keys])))
        scale = 125.0 ** (len(state) if function in MOMENTS else 2) * len(rows)
        for value, other in zip(state.values(), exact, strict=True):
            assert math.isclose(value, other, rel_tol=1e-12, abs_tol=1e-12 * scale)


@pytest.mark.parametrize("function", [*MOMENTS, *COMOMENTS])
def test_rows_that_are_not_grouped_have_states_of_one_value(function: str) -> None:
    num_rows = 1 << 18
    rows: list[Row] = [(1.5, -2.0), (None, 1.0)] * (num_rows // 2)
    found = aggregate(function, rows, range(num_rows), 50_000)
    first, second = found[num_rows - 2], found[num_rows - 1]
    assert list(first.values()) == expected(function, rows[:1])
    assert set(second.values()) == {0.0}


def test_numbers_that_are_not_finite() -> None:
    found = aggregate("variance", [(math.inf, 0), (1.0, 0), (math.nan, 0), (2.0, 0)], [1, 1, 2, 2], 4)
    assert [state["n"] for state in found.values()] == [2, 2]
    assert all(math.isnan(state["m2"]) for state in found.values())


@pytest.mark.parametrize("function", ["variance", "correlation"])
def test_other_types_are_refused(function: str) -> None:
    with pytest.raises(NotSupportedError, match=f"{function} of int64"):
        PartialAggregation(pa.schema([]), [Aggregate("value", function, pa.int64())])
