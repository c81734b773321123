"""Numbers of keys against a model: a number stands for one key, and `keys` returns it."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from lance_format.aggregation import small_keys
from lance_format.aggregation.keys import KeyTable, make_key_table

EDGES = [-(2**63), 2**63 - 1, -(2**63) + 1, 2**31, -1, 0]
COLUMNS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-3, 3) | st.integers(-70_000, 70_000) | st.sampled_from(EDGES),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.uint32(): st.sampled_from([0, 1, 2**31, 2**32 - 1]),
    pa.bool_(): st.booleans(),
    pa.date32(): st.integers(18_000, 18_050),
    pa.float64(): st.sampled_from([0.0, 1.5, -2.0]),
    pa.string(): st.sampled_from(["", "a", "b", "a longer text"]),
    pa.decimal128(38, 0): st.integers(-2, 2),
}
TYPES = st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=3)


def as_stored(array: pa.Array, number: int) -> pa.Array:
    """Return strings as a dictionary with an item that no row has; those of every third batch as they are."""
    if not pa.types.is_string(array.type) or number % 3 == 2:
        return array
    items = pa.array(["no row has this", "", "a", "b", "a longer text"])
    return pa.DictionaryArray.from_arrays(pc.index_in(array, items, skip_nulls=True).cast(pa.int16()), items)


def check(table: KeyTable, types: list[pa.DataType], batches: list[list[tuple[Any, ...]]]) -> None:
    numbers: dict[tuple[Any, ...], int] = {}
    for place, rows in enumerate(batches):
        arrays = [pa.array([row[index] for row in rows], kind) for index, kind in enumerate(types)]
        found = table.number([as_stored(array, place) for array in arrays], len(rows)).tolist()
        for key, number in zip(zip(*(array.to_pylist() for array in arrays), strict=True), found, strict=True):
            assert numbers.setdefault(key, number) == number
    assert len(set(numbers.values())) == len(numbers) == table.count
    if not numbers:
        return
    columns = table.keys()
    known = list(zip(*(array.to_pylist() for array in columns), strict=True))
    assert {key: number for number, key in enumerate(known)} == numbers


@st.composite
def keys(draw: st.DrawFn) -> tuple[list[pa.DataType], list[list[tuple[Any, ...]]]]:
    types = draw(TYPES)
    row = st.tuples(*(st.none() | COLUMNS[kind] for kind in types))
    return types, draw(st.lists(st.lists(row, max_size=8), max_size=5))


@given(keys(), st.sampled_from([0, 4, 100, 1 << 16]))
def test_keys_are_told_apart(case: tuple[list[pa.DataType], list[list[tuple[Any, ...]]]], most_codes: int) -> None:
    types, batches = case
    with patch.object(small_keys, "_MOST_CODES", most_codes):
        table = make_key_table(types)
        check(table, types, batches)
        table.clear()
        check(table, types, batches)


def test_ranges_that_grow() -> None:
    """Numbers come from the table of codes until there are too many; each batch has keys of the ones before."""
    table = make_key_table([pa.int64(), pa.bool_()])
    batches = [
        [(number, number % 3 == 0) for number in (-bound, -1, 0, 1, bound)] for bound in (2**k for k in range(40))
    ]
    check(table, [pa.int64(), pa.bool_()], [*batches, *reversed(batches)])
