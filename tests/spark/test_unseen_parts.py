"""What Spark does not see of values stays where Spark returns what it saw, and nowhere else."""

from __future__ import annotations

import pyarrow as pa
import pytest

from connector.types.arrays import convert
from connector.types.unseen_parts import keep_unseen

NS, US = pa.timestamp("ns"), pa.timestamp("us")
PAIR = pa.struct([("at", NS), ("n", pa.int64())])
SEEN_PAIR = pa.struct([("at", US), ("n", pa.int64())])


def _kept(stored: pa.DataType, seen: pa.DataType, given: list[object], old: list[object]) -> list[object]:
    """Return what is stored, as numbers of nanoseconds, if Spark returns some values for others."""
    returned, before = pa.array(given, seen), pa.array(old, stored)
    padded = [pa.concat_arrays([array.slice(0, 1), array]) for array in (returned, before)]
    for one, other in ((returned, before), [array.slice(1) for array in padded]):
        found = keep_unseen(convert(one, stored, "c"), one, other, "c")
        found.validate(full=True)
        assert found.type == stored
    return found.to_pylist()


@pytest.mark.parametrize(
    ("given", "old", "expected"),
    [
        ([1, 2, None, 4, None, -1], [1001, 1999, None, None, 7, -1], [1001, 2000, None, 4000, None, -1]),
        ([5], [4999], [5000]),
        ([4], [4999], [4999]),
        ([-5], [-4001], [-4001]),
    ],
)
def test_values(given: list[object], old: list[object], expected: list[object]) -> None:
    found = _kept(pa.duration("ns"), pa.duration("us"), given, old)
    assert pa.array(found, pa.duration("ns")).cast(pa.int64()).to_pylist() == expected


def test_fields_of_structs_are_compared_one_by_one() -> None:
    given = [{"at": 1, "n": 9}, {"at": 2, "n": 1}, None, {"at": 1, "n": 1}]
    old = [{"at": 1001, "n": 1}, {"at": 1001, "n": 1}, {"at": 1001, "n": 1}, None]
    found = pa.array(_kept(PAIR, SEEN_PAIR, given, old), PAIR)
    assert found.flatten()[0].cast(pa.int64()).to_pylist() == [1001, 2000, None, 1000]
    assert found.flatten()[1].to_pylist() == [9, 1, None, 1]


def test_values_inside_of_nulls_are_not_those_of_the_row() -> None:
    hidden = pa.StructArray.from_arrays([pa.array([1001], NS), pa.array([1])], fields=list(PAIR), mask=pa.array([True]))
    given = pa.array([{"at": 1, "n": 1}], SEEN_PAIR)
    found = keep_unseen(convert(given, PAIR, "c"), given, hidden, "c")
    assert found.flatten()[0].cast(pa.int64()).to_pylist() == [1000]


@pytest.mark.parametrize("kind", ["list", "fixed", "map"])
def test_lists_and_maps_are_compared_as_a_whole(kind: str) -> None:
    stored, seen = {
        "list": (pa.list_(NS), pa.list_(US)),
        "fixed": (pa.list_(NS, 2), pa.list_(US)),
        "map": (pa.map_(pa.int64(), NS), pa.map_(pa.int64(), US)),
    }[kind]

    def rows(*values: list[int | None] | None) -> list[object]:
        return [list(enumerate(row)) if kind == "map" and row is not None else row for row in values]

    given = pa.array(rows([1, 2], [1, 3], None, [1, None], [None, None], [5, 6]), seen)
    old = pa.array(rows([1001, 2001], [1001, 2001], [1001, 2001], [1001, None], None, [5001, 6001]), stored)
    found = keep_unseen(convert(given, stored, "c"), given, old, "c")
    found.validate(full=True)
    expected = rows([1001, 2001], [1000, 3000], None, [1001, None], [None, None], [5001, 6001])
    assert found.to_pylist() == pa.array(expected, stored).to_pylist()


def test_lists_of_other_lengths() -> None:
    stored, seen = pa.list_(PAIR), pa.list_(SEEN_PAIR)
    some, more = {"at": 1, "n": None}, {"at": 1001, "n": None}
    given = pa.array([[some], [some, some], [], [None], []], seen)
    old = pa.array([[more, more], [more, more], [], [None], [more]], stored)
    found = keep_unseen(convert(given, stored, "c"), given, old, "c")
    assert [len(row) for row in found.to_pylist()] == [1, 2, 0, 1, 0]
    assert found.flatten().flatten()[0].cast(pa.int64()).to_pylist() == [1000, 1001, 1001, None]


def test_numbers_in_lists_are_compared_bit_by_bit() -> None:
    stored = pa.list_(pa.struct([("at", NS), ("x", pa.float64())]))
    seen = pa.list_(pa.struct([("at", US), ("x", pa.float64())]))
    given = pa.array([[{"at": 1, "x": float("nan")}], [{"at": 1, "x": 0.0}]], seen)
    old = pa.array([[{"at": 1001, "x": float("nan")}], [{"at": 1001, "x": -0.0}]], stored)
    found = keep_unseen(convert(given, stored, "c"), given, old, "c")
    assert found.flatten().flatten()[0].cast(pa.int64()).to_pylist() == [1001, 1000]


def test_columns_that_spark_sees_whole_are_new() -> None:
    new = pa.array([1])
    assert keep_unseen(new, new, pa.array([2]), "c") is new
