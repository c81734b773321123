"""Sets of integer constants, against Arrow's lookups and against plain comparisons."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.expressions.values.integer_set import IntegerSet

ENDS = {bits: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)}
TYPES = [
    (pa.int8(), 8),
    (pa.int16(), 16),
    (pa.int32(), 32),
    (pa.int64(), 64),
    (pa.date32(), 32),
    (pa.timestamp("us", "UTC"), 64),
    (pa.time64("ns"), 64),
]


def near(bits: int) -> st.SearchStrategy[int]:
    """Return integers that are close together, at the ends, or anywhere."""
    least, greatest = ENDS[bits]
    close = st.integers(max(least, -200), min(greatest, 200))
    return st.one_of(
        close, st.integers(least, least + 100), st.integers(greatest - 100, greatest), st.integers(least, greatest)
    )


@st.composite
def sets(draw: st.DrawFn) -> tuple[pa.Array, pa.Array]:
    """Return constants, and values that may be null."""
    arrow_type, bits = draw(st.sampled_from(TYPES))
    integers = draw(st.sampled_from([st.integers(-100, 100), near(bits)]))
    constants = draw(st.lists(integers, min_size=1, max_size=200))
    values = draw(st.lists(st.one_of(integers, st.none(), st.sampled_from(constants)), max_size=100))
    stored = pa.int32() if bits == 32 else pa.int64() if bits == 64 else arrow_type
    return tuple(pa.array(numbers, stored).cast(arrow_type) for numbers in (constants, values))


@given(sets(), st.integers(0, 7))
def test_values_are_found_as_arrow_finds_them(arrays: tuple[pa.Array, pa.Array], start: int) -> None:
    constants, values = arrays
    values = values.slice(min(start, len(values)))
    assert IntegerSet(constants).contains(values).equals(pc.is_in(values, value_set=constants))


@given(sets())
def test_bounds(arrays: tuple[pa.Array, pa.Array]) -> None:
    constants, bounds = arrays
    known = set(constants.cast(constants.type).view(f"int{constants.type.bit_width}").to_pylist())
    numbers = bounds.view(f"int{bounds.type.bit_width}").to_pylist()
    pairs = [(one, other) for one in numbers for other in numbers[:5] if one is None or other is None or one <= other]
    lower, upper = (
        pa.array([pair[i] for pair in pairs], f"int{bounds.type.bit_width}").view(bounds.type) for i in (0, 1)
    )
    may_be_in, may_be_out = IntegerSet(constants).among(lower, upper)
    for (least, greatest), is_in, is_out in zip(pairs, may_be_in, may_be_out, strict=True):
        above = [number for number in known if least is None or number >= least]
        assert is_in == any(greatest is None or number <= greatest for number in above)
        ends = (-(2**63) if least is None else least, 2**63 - 1 if greatest is None else greatest)
        assert is_out or (ends[0] == ends[1] and ends[0] in known)


@pytest.mark.parametrize(
    "constants",
    [
        pa.array([], pa.int64()),
        pa.array([*range(4), None]),
        pa.array(range(4), pa.uint64()),
        pa.array(map(str, range(4))),
        pa.array(map(float, range(4))),
    ],
    ids=lambda constants: str(constants.type),
)
def test_other_constants_are_left_to_arrow(constants: pa.Array) -> None:
    assert IntegerSet.of(constants) is None


def test_a_set_is_made_once() -> None:
    constants = pa.array(range(4))
    assert IntegerSet.of(constants) is IntegerSet.of(constants)
    assert IntegerSet.of(pa.array(range(4))) is not IntegerSet.of(constants)
