"""Sets of constant strings and binaries, against Arrow's lookups."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.expressions.values.order import is_among
from lance_format.expressions.values.text_set import TextSet

TYPES = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]
TEXTS = st.one_of(
    st.text("ab\0", max_size=20),
    st.text(max_size=5),
    st.integers(0, 30).map(lambda size: "x" * size),
    st.sampled_from(["", "\0", "\0" * 8, "a" * 7, "a" * 8, "a" * 9, "a" * 64 + "b", "a" * 64 + "c"]),
)


@st.composite
def sets(draw: st.DrawFn) -> tuple[pa.Array, pa.Array]:
    """Return constants, and values that may be null."""
    arrow_type = draw(st.sampled_from(TYPES))
    constants = draw(st.lists(TEXTS, min_size=1, max_size=200))
    values = draw(st.lists(st.one_of(TEXTS, st.none(), st.sampled_from(constants)), max_size=100))
    return tuple(pa.array(texts, pa.string()).cast(arrow_type) for texts in (constants, values))


@given(sets(), st.integers(0, 7), st.integers(0, 7))
def test_values_are_found_as_arrow_finds_them(arrays: tuple[pa.Array, pa.Array], start: int, skipped: int) -> None:
    constants, values = arrays
    constants = constants.slice(min(skipped, len(constants)))
    values = values.slice(min(start, len(values)))
    known = TextSet(constants)
    assert known.contains(values).equals(pc.is_in(values, value_set=constants))
    distinct = constants.unique()
    assert known.count == len(distinct)
    expected = pc.fill_null(pc.index_in(values, value_set=distinct), -1)
    is_valid = values.is_valid().to_numpy(zero_copy_only=False)
    assert known.find(values)[is_valid].tolist() == expected.filter(values.is_valid()).to_pylist()


@given(sets(), st.lists(st.tuples(TEXTS | st.none(), TEXTS | st.none()), max_size=30))
def test_ranges_that_may_hold_a_constant(arrays: tuple[pa.Array, pa.Array], bounds: list[tuple[str, str]]) -> None:
    constants = arrays[0]
    ranges = [(low, high) if None in (low, high) or low <= high else (high, low) for low, high in bounds]
    lower, upper = (pa.array([each[end] for each in ranges], pa.string()).cast(constants.type) for end in (0, 1))
    may_be_in, may_be_out = TextSet(constants).among(lower, upper)
    known = constants.cast(pa.binary()).to_pylist()
    for number, ends in enumerate(ranges):
        low, high = (None if end is None else end.encode() for end in ends)
        within = [text for text in known if (low is None or low <= text) and (high is None or text <= high)]
        assert may_be_in[number] == bool(within)
        assert may_be_out[number] == (low is None or low != high or low not in known)


@pytest.mark.parametrize("arrow_type", TYPES, ids=str)
def test_many(arrow_type: pa.DataType) -> None:
    numbers = pa.array(range(200_000)).cast(pa.string()).cast(arrow_type)
    constants = numbers.slice(500, 30_000)
    among = is_among(numbers, constants)
    assert among.true_count == 30_000
    assert among.slice(500, 30_000).true_count == 30_000


@pytest.mark.parametrize(
    "constants",
    [pa.array(["a"] * 63), pa.array([*map(str, range(100)), None]), pa.array(range(100))],
    ids=["few", "null", "integers"],
)
def test_other_constants_are_left_to_others(constants: pa.Array) -> None:
    assert TextSet.of(constants) is None


def test_values_without_buffers() -> None:
    known = TextSet(pa.array(["", "a"]))
    assert known.contains(pa.nulls(3, pa.string())).to_pylist() == [False] * 3
    assert known.contains(pa.array([], pa.string())).to_pylist() == []
    assert TextSet(pa.array([], pa.string())).contains(pa.array(["", None])).to_pylist() == [False, False]
