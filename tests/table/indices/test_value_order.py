"""Values are ordered as Arrow orders them, however they are sorted."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_format.table.indices import value_order
from lance_format.table.indices.value_order import ascending

_TYPES = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _expected(values: pa.Array) -> list[int]:
    order: list[int] = pc.array_sort_indices(values, null_placement="at_start").to_pylist()
    return order


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few values count as many."""
    monkeypatch.setattr(value_order, "_FEW_VALUES", 1)


@st.composite
def _byte_strings(draw: st.DrawFn) -> list[bytes | None]:
    """Draw byte strings with a common prefix, in groups with further bytes in common, some of them null."""
    prefix = draw(st.sampled_from([b"", b"a", b"some prefix", b"x" * 70, b"\0"]))
    starts = draw(st.lists(st.binary(max_size=10), min_size=1, max_size=4))
    rest = st.one_of(st.binary(max_size=3), st.sampled_from([b"", b"\0", b"\0\0", b"\xff", b"abcdefghij"]))
    one = st.tuples(st.sampled_from(starts), rest).map(lambda pair: prefix + pair[0] + pair[1])
    return draw(st.lists(st.one_of(one, st.none()), min_size=1, max_size=60))


@pytest.mark.usefixtures("many")
@settings(max_examples=300, deadline=None)
@given(values=_byte_strings(), start=st.integers(0, 5), wide=st.booleans())
def test_byte_strings(values: list[bytes | None], start: int, wide: bool) -> None:
    array = pa.array(values, pa.large_binary() if wide else pa.binary()).slice(start)
    assert ascending(array).tolist() == _expected(array)


@pytest.mark.parametrize("arrow_type", _TYPES)
@pytest.mark.parametrize("num_distinct", [1, 700, 30_000, 70_000])
def test_many_byte_strings(arrow_type: pa.DataType, num_distinct: int) -> None:
    rng = np.random.default_rng(num_distinct)
    texts = pa.array([f"item number {number:07}" for number in rng.integers(0, num_distinct, 100_000)])
    for mask in (None, rng.random(100_000) < 0.1):
        values = texts if mask is None else pc.if_else(pa.array(mask), None, texts)
        assert ascending(values.cast(arrow_type)).tolist() == _expected(values)


def test_what_is_compared_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = Mock(wraps=value_order._by_arrow)
    monkeypatch.setattr(value_order, "_by_arrow", compared)

    def num_compared(values: list[str]) -> list[int]:
        compared.reset_mock()
        ascending(pa.array(values))
        return [len(call.args[0]) for call in compared.call_args_list]

    assert num_compared([f"{number:08}" for number in range(50_000)]) == [0], "keys differ"
    assert num_compared([f"{number:08} or more" for number in range(50_000)] + ["00000007 or less"]) == [2]
    assert num_compared([f"{number % 100:08}" for number in range(50_000)]) == [100], "few are distinct"
    assert num_compared([f"{number}" + "x" * 9 + f"{number}" for number in range(9)] * 4000) == [9]
    assert num_compared(["same start" * 7 + f"{number}" for number in range(50_000)]) == [50_000]
    assert num_compared(["few"]) == [1]
    monkeypatch.setattr(value_order, "_MOST_VALUES", 40_000)
    assert num_compared([f"{number:08}" for number in range(50_000)]) == [50_000], "too many"


@pytest.mark.parametrize(
    "values",
    [
        pa.array([3, None, 1, 3]),
        pa.array([0.0, -0.0, float("nan"), None, -1.5, float("-inf")]),
        pa.array([True, None, False]),
        pa.array(["b", None, "a"]),
        pa.array([b"b", None, b"a"], pa.binary(1)),
        pa.nulls(4, pa.string()),
        pa.array([], pa.string()),
    ],
    ids=lambda values: str(values.type),
)
@pytest.mark.usefixtures("many")
def test_other_values(values: Any) -> None:
    found = values.take(pa.array(ascending(values)))
    assert found.null_count == values.null_count
    assert not found.slice(0, values.null_count).drop_null()
    if pa.types.is_floating(values.type):
        assert repr(found.to_pylist()) == "[None, -inf, -1.5, -0.0, 0.0, nan]"
    else:
        assert found.equals(values.take(pc.array_sort_indices(values, null_placement="at_start")))
