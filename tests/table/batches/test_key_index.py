from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format import NotSupportedError
from lance_format.table.batches.key_index import group_rows, index_keys, null_keys

DEEP = pa.struct({"d": pa.list_(pa.list_(pa.bool_()))})
KEY = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.string()), pa.field("c", DEEP)])
LISTS = st.lists(st.none() | st.lists(st.none() | st.booleans(), max_size=2), max_size=2)
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(0, 3),
        st.none() | st.sampled_from(["", "x", "y"]),
        st.none() | st.fixed_dictionaries({"d": st.none() | LISTS}),
    ),
    max_size=30,
)


def table(rows: list[tuple[object, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(KEY.names, row, strict=True)) for row in rows], schema=KEY)


@given(ROWS, ROWS, st.lists(st.sampled_from(KEY.names), min_size=1, unique=True), st.integers(1, 9))
def test_a_join_finds_all_pairs(
    own: list[tuple[object, ...]], others: list[tuple[object, ...]], names: list[str], max_pairs: int
) -> None:
    keys, numbers = index_keys(table(own), names)
    assert numbers.size == 0 or sorted(set(numbers.tolist())) == list(range(keys.num_keys))
    found = keys.find(table(others))
    pairs = [
        (int(place), int(row))
        for places, rows in group_rows(numbers, keys.num_keys).pairs(found, max_pairs)
        for place, row in zip(places, rows, strict=True)
    ]
    places = [KEY.names.index(name) for name in names]
    by_key = defaultdict(list)
    for number, row in enumerate(own):
        by_key[str([row[place] for place in places])].append(number)
    expected = [
        (number, match) for number, row in enumerate(others) for match in by_key[str([row[place] for place in places])]
    ]
    assert pairs == expected
    nulls = [any(row[place] is None for place in places) for row in others]
    assert null_keys(table(others), names).tolist() == nulls


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_floats_are_the_same_by_their_bits(kind: type[np.floating]) -> None:
    odd_nan = -np.array([np.nan], kind)
    numbers = np.concatenate([np.array([0.0, -0.0, np.nan, 1.0], kind), odd_nan])
    _, found = index_keys(pa.table({"k": numbers}), ["k"])
    assert found.tolist() == [0, 1, 2, 3, 2]


def test_keys_are_found_whatever_their_chunks() -> None:
    whole = pa.table({"k": pa.array(["a", None, "b", "a"]).dictionary_encode(), "f": [1.0, 2.0, 3.0, 1.0]})
    pieces = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 0), whole.slice(1)])
    keys, numbers = index_keys(pieces, ["k", "f"])
    assert numbers.tolist() == keys.find(whole).tolist()
    assert numbers[0] == numbers[3]
    assert keys.find(whole.slice(0, 0)).tolist() == []


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.int8()), pa.large_list(pa.string()), pa.list_(pa.float32(), 2), pa.map_(pa.string(), pa.int8())],
    ids=str,
)
def test_lists_are_looked_up_by_their_items(kind: pa.DataType) -> None:
    pair = {pa.string(): ("a", "b"), pa.int8(): (1, 2), pa.float32(): (1.0, 2.0)}
    if pa.types.is_map(kind):
        lists = [[("a", 1), ("b", None)], None, [("a", 1)], [("b", None), ("a", 1)], []]
    else:
        first, second = pair[kind.value_type]
        lists = [[first, second], None, [first, first], [first, None], [second, first]]
    own = pa.table({"k": pa.array([*lists, lists[0]], kind), "n": [0] * 6})
    keys, numbers = index_keys(own, ["k", "n"])
    assert numbers.tolist() == [0, 1, 2, 3, 4, 0]
    others = pa.table({"k": pa.array([lists[3], lists[1], lists[0]], kind), "n": [0, 0, 1]})
    assert keys.find(others.slice(1)).tolist() == [1, -1]
    assert keys.find(pa.concat_tables([others.slice(2), others.slice(0, 2)])).tolist() == [-1, 3, 1]
    assert null_keys(own, ["k"]).tolist() == [False, True, False, False, False, False]


def test_types_that_have_no_equality_here_cannot_be_looked_up() -> None:
    with pytest.raises(NotSupportedError, match="cannot be matched"):
        index_keys(pa.table({"k": pa.array([], pa.list_view(pa.int8()))}), ["k"])
