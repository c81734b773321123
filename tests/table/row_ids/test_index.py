"""Finding rows by their ids."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format import CorruptFileError, InvalidInputError
from lance_format.table.row_ids.index import RowIdIndex, row_addresses, sharing_ids
from lance_format.table.row_ids.row_id_sequence import RowIdSequence
from lance_format.table.row_ids.segments import Array, EncodedArray, Range
from tests.table.row_ids.test_row_id_sequence import LAST, distinct, ids, offsets

NONE = offsets()


@given(distinct(), st.data())
def test_live_rows_are_found_and_no_others(values: list[int], data: st.DataObject) -> None:
    """Rows were moved from fragment to fragment: each id is live in one of them at most, and deleted in others."""
    fragments, places = [], {}
    for fragment_id in data.draw(st.lists(st.sampled_from([0, 1, 5, 2**32 - 1]), unique=True)):
        held = data.draw(st.permutations(values))[: data.draw(st.integers(0, len(values)))]
        deleted = []
        for offset, row_id in enumerate(held):
            if row_id in places or data.draw(st.booleans()):
                deleted.append(offset)
            else:
                places[row_id] = (fragment_id, offset)
        fragments.append((fragment_id, RowIdSequence.from_array(ids(*held)).runs(), offsets(*deleted)))
    asked = [*values, *values, 0, 1, 999, LAST, *(value + 1 for value in values if value < LAST)]
    fragment_ids, row_offsets = RowIdIndex(fragments).find(ids(*asked))
    expected = [places.get(row_id, (-1, -1)) for row_id in asked]
    assert list(zip(fragment_ids.tolist(), row_offsets.tolist(), strict=True)) == expected


@given(st.lists(st.lists(st.integers(0, 30), max_size=6), max_size=6))
def test_sequences_that_share_ids(held: list[list[int]]) -> None:
    found = sharing_ids([RowIdSequence.from_array(ids(*each)).runs() for each in held])
    for position, each in enumerate(held):
        others = [value for other, values in enumerate(held) if other != position for value in values]
        shares = len({*each}) < len(each) or not {*each}.isdisjoint(others)
        assert not shares or position in found
    apart = [
        RowIdSequence.from_array(ids(*(100 * number + value for value in {*each}))).runs()
        for number, each in enumerate(held)
    ]
    assert sharing_ids(apart) == set()


def test_a_moved_row_is_found_where_it_lives() -> None:
    original = (7, RowIdSequence.from_range(100, 10**9).runs(), offsets(5, 6))
    moved = (9, RowIdSequence((Array(EncodedArray.of(ids(106, 105))), Range(10**9, 10**9 + 4))).runs(), NONE)
    for fragments in ([original, moved], [moved, original]):
        fragment_ids, row_offsets = RowIdIndex(fragments).find(ids(105, 106, 107, 10**9 + 3, 99, 10**9 + 4))
        assert fragment_ids.tolist() == [9, 9, 7, 9, -1, -1]
        assert row_offsets.tolist() == [1, 0, 7, 5, -1, -1]


def test_a_full_fragment_with_the_highest_id() -> None:
    index = RowIdIndex([(2**32 - 1, RowIdSequence.from_range(2**63, 2**63 + 2**32).runs(), NONE)])
    fragment_ids, row_offsets = index.find(ids(2**63, 2**63 + 2**32 - 1, 2**63 + 2**32))
    assert fragment_ids.tolist() == [2**32 - 1, 2**32 - 1, -1]
    assert row_offsets.tolist() == [0, 2**32 - 1, -1]
    addresses = row_addresses(fragment_ids[:2], row_offsets[:2])
    assert addresses.tolist() == [(2**32 - 1) << 32, LAST]
    assert addresses.dtype == np.uint64


def test_no_rows() -> None:
    for fragments in (
        [],
        [(3, RowIdSequence().runs(), NONE)],
        [(3, RowIdSequence.from_range(4, 5).runs(), offsets(0))],
    ):
        fragment_ids, row_offsets = RowIdIndex(fragments).find(ids(0, 4, LAST))
        assert fragment_ids.tolist() == row_offsets.tolist() == [-1, -1, -1]
        assert RowIdIndex(fragments).find(ids())[0].size == 0


@pytest.mark.parametrize("second", [[14], [3, 19], [99, 15]])
def test_two_live_rows_of_one_id(second: list[int]) -> None:
    fragments = [
        (4, RowIdSequence.from_range(10, 20).runs(), offsets(3)),
        (6, RowIdSequence.from_array(ids(*second)).runs(), NONE),
    ]
    taken = next(row_id for row_id in second if row_id in range(10, 20))
    place = f"row {second.index(taken)} of fragment 6"
    with pytest.raises(CorruptFileError, match=f"row id {taken} is that of row {taken - 10} of fragment 4 and {place}"):
        RowIdIndex(fragments)


def test_one_id_twice_in_a_fragment() -> None:
    with pytest.raises(CorruptFileError, match="row id 5 is that of row 0 of fragment 4 and row 2 of fragment 4"):
        RowIdIndex([(4, RowIdSequence.from_array(ids(5, 8, 5)).runs(), NONE)])


@pytest.mark.parametrize(
    ("fragment_id", "deleted"),
    [(-1, NONE), (2**32, NONE), (0, offsets(-1)), (0, offsets(4)), (0, offsets(2, 1)), (0, offsets(1, 1))],
)
def test_arguments_that_make_no_sense(fragment_id: int, deleted: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="fragment"):
        RowIdIndex([(fragment_id, RowIdSequence.from_range(0, 4).runs(), deleted)])
