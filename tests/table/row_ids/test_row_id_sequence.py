"""Row id sequences: all operations on every shape of segment."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format import CorruptFileError, InvalidInputError
from lance_format.proto import rowids_pb2
from lance_format.table.row_ids.row_id_sequence import (
    RowIdSequence,
    check_external,
    parse_partial_row_ids,
    parse_row_ids,
    serialize_row_ids,
)
from lance_format.table.row_ids.segment_messages import serialize_segments
from lance_format.table.row_ids.segments import (
    Array,
    EncodedArray,
    Range,
    Ranges,
    RangeWithBitmap,
    RangeWithHoles,
    SortedArray,
    U64Segment,
)

LAST = 2**64 - 1
Message = rowids_pb2.U64Segment
Encoded = rowids_pb2.EncodedU64Array


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


def offsets(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def encoded(values: list[int]) -> EncodedArray:
    return EncodedArray.of(ids(*values))


bases = st.sampled_from([0, 1, 1000, 2**16 - 3, 2**32 - 3, 2**63 - 3, 2**64 - 300])
spreads = st.sampled_from([1, 7, 40, 2**10, 2**20, 2**40])


@st.composite
def distinct(draw: st.DrawFn) -> list[int]:
    base, spread = draw(bases), draw(spreads)
    found = draw(st.lists(st.integers(0, 40), unique=True))
    return [min(base, LAST - 40 * spread) + spread * value for value in found]


@st.composite
def segments(draw: st.DrawFn) -> tuple[U64Segment, list[int]]:
    values = draw(distinct())
    ascending = sorted(values)
    kind = draw(st.sampled_from([Range, Range, Range, RangeWithHoles, RangeWithBitmap, SortedArray, Array]))
    if kind is Array:
        return Array(encoded(values)), values
    if kind is SortedArray:
        return SortedArray(encoded(ascending)), ascending
    start = draw(bases)
    slots = draw(st.integers(0, 60))
    if kind is Range:
        return Range(start, start + slots), list(range(start, start + slots))
    holes = sorted(draw(st.sets(st.integers(start, start + slots - 1)))) if slots else []
    there = sorted(set(range(start, start + slots)) - set(holes))
    if kind is RangeWithHoles:
        return RangeWithHoles(start, start + slots, encoded(holes)), there
    bits = sum(1 << (value - start) for value in there)
    return RangeWithBitmap(start, start + slots, bits.to_bytes(-(-slots // 8), "little")), there


@st.composite
def sequences(draw: st.DrawFn) -> tuple[RowIdSequence, list[int]]:
    parts = draw(st.lists(segments(), max_size=6))
    return RowIdSequence(tuple(segment for segment, _ in parts)), [value for _, values in parts for value in values]


@given(sequences(), st.data())
def test_all_shapes_show_their_ids(both: tuple[RowIdSequence, list[int]], data: st.DataObject) -> None:
    sequence, values = both
    assert len(sequence) == len(values)
    assert sequence.to_numpy().dtype == np.uint64
    assert sequence.to_numpy().tolist() == values
    assert sequence.runs().values().tolist() == values
    joined = RowIdSequence.concatenate([sequence])
    for stored in (sequence, joined):
        assert parse_row_ids(serialize_row_ids(stored), len(values)) == joined
    assert joined.to_numpy().tolist() == joined.runs().values().tolist() == values
    positions = data.draw(st.lists(st.integers(0, len(values) - 1))) if values else []
    assert sequence.take(offsets(*positions)).tolist() == [values[position] for position in positions]
    assert sequence.select(offsets(*positions)).to_numpy().tolist() == [values[position] for position in positions]


@given(sequences(), st.data())
def test_rows_are_cut_out(both: tuple[RowIdSequence, list[int]], data: st.DataObject) -> None:
    sequence, values = both
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))
    pieces = [sequence.slice(0, start), sequence.slice(start, stop), sequence.slice(stop, len(values))]
    assert pieces[1].to_numpy().tolist() == values[start:stop]
    assert RowIdSequence.concatenate(pieces).to_numpy().tolist() == values
    deleted = sorted(data.draw(st.sets(st.integers(0, len(values) - 1)))) if values else []
    left = sequence.delete(offsets(*deleted))
    assert left.to_numpy().tolist() == [value for place, value in enumerate(values) if place not in deleted]
    assert parse_row_ids(serialize_row_ids(left), len(left)) == left


def test_ids_beyond_the_width_of_their_offsets() -> None:
    for values in ([65536, 65533], [2**32 + 1, 2**32 - 1, 7], [40_000, *range(40_002, 90_000), 90_007]):
        sequence = RowIdSequence.from_array(ids(*values))
        assert sequence.to_numpy().tolist() == sequence.runs().values().tolist() == values
        assert sequence.take(offsets(0, 1)).tolist() == values[:2]


@given(distinct())
def test_arrays_come_back(values: list[int]) -> None:
    sequence = RowIdSequence.from_array(ids(*values))
    assert sequence.to_numpy().tolist() == values
    assert parse_row_ids(serialize_row_ids(sequence), len(values)) == sequence


@pytest.mark.parametrize(
    ("values", "segment"),
    [
        ([7], Range(7, 8)),
        (range(5, 500), Range(5, 500)),
        ([*range(32), *range(33, 65)], RangeWithHoles(0, 65, EncodedArray(32, 2, b"\0\0"))),
        ([*range(16), *range(17, 32)], RangeWithHoles(0, 32, EncodedArray(16, 2, b"\0\0"))),
        ([4, 7, 25, 31], RangeWithBitmap(4, 32, bytes.fromhex("09002008"))),
        ([0, 31], RangeWithBitmap(0, 32, b"\x01\0\0\x80")),
        ([0, 32], SortedArray(EncodedArray(0, 2, b"\0\0\x20\0"))),
        ([9, 2**16 + 8], SortedArray(EncodedArray(9, 2, b"\0\0\xff\xff"))),
        ([9, 2**16 + 9], SortedArray(EncodedArray(9, 4, b"\0\0\0\0\0\0\1\0"))),
        ([1, 2**32], SortedArray(EncodedArray(1, 4, b"\0\0\0\0\xff\xff\xff\xff"))),
        ([0, 2**32], SortedArray(EncodedArray(0, 8, bytes(8) + b"\0\0\0\0\1\0\0\0"))),
        ([3, 2], Array(EncodedArray(2, 2, b"\1\0\0\0"))),
        ([LAST - 1], Range(LAST - 1, LAST)),
        ([LAST - 1, LAST], SortedArray(EncodedArray(LAST - 1, 2, b"\0\0\1\0"))),
        ([LAST, 0], Array(EncodedArray(0, 8, b"\xff" * 8 + bytes(8)))),
    ],
)
def test_the_shape_with_the_fewest_bytes_is_chosen(values: list[int], segment: U64Segment) -> None:
    assert RowIdSequence.from_array(ids(*values)).segments == (segment,)


def test_ranges_cost_nothing_until_they_are_expanded() -> None:
    sequence = RowIdSequence.concatenate(
        [RowIdSequence.from_range(10, 10**12), RowIdSequence.from_range(10**12, 2 * 10**12)]
    )
    assert sequence.segments == (Range(10, 2 * 10**12),)
    assert sequence.take(offsets(10**12, 0)).tolist() == [10**12 + 10, 10]
    left = sequence.delete(offsets(5, 10**12))
    assert left.segments == (RangeWithHoles(10, 2 * 10**12, encoded([15, 10**12 + 10])),)
    assert left.take(offsets(4, 5, len(left) - 1)).tolist() == [14, 16, 2 * 10**12 - 1]
    assert left.slice(5, 10**11).segments == (Range(16, 10**11 + 11),)
    assert parse_row_ids(serialize_row_ids(left), len(left)) == left


def test_ranges_that_follow_each_other_are_one_object() -> None:
    ranges = [Range(5, 6), Range(9, 12), Range(12, 14), Range(7, 7), Range(2, 4), Range(10**12, 2 * 10**12)]
    sequence = RowIdSequence.concatenate(RowIdSequence((segment,)) for segment in ranges)
    (segment,) = sequence.segments
    assert isinstance(segment, Ranges)
    assert sequence == RowIdSequence.concatenate([RowIdSequence(tuple(ranges[:3])), RowIdSequence(tuple(ranges[4:]))])
    assert len(sequence) == segment.num_values == 10**12 + 8
    stored = serialize_segments([segment])
    assert stored == serialize_segments([Range(5, 6), Range(9, 14), Range(2, 4), Range(10**12, 2 * 10**12)])
    assert parse_row_ids(serialize_row_ids(sequence), len(sequence)) == sequence
    assert sequence.take(offsets(0, 5, 6, 8, len(sequence) - 1)).tolist() == [5, 13, 2, 10**12, 2 * 10**12 - 1]
    assert sequence.delete(offsets(1, 7)).take(offsets(0, 1, 5, 6)).tolist() == [5, 10, 2, 10**12]
    assert serialize_segments(sequence.delete(offsets(6, 7)).segments) == [stored[0], stored[1], stored[3]]
    assert sequence.slice(8, 10).segments == (Range(10**12, 10**12 + 2),)
    assert sequence.delete(np.arange(1, 8)).segments == joined_ranges(Range(5, 6), ranges[-1])


def joined_ranges(*ranges: Range) -> tuple[U64Segment, ...]:
    return RowIdSequence.concatenate(RowIdSequence((segment,)) for segment in ranges).segments


def test_ranges_become_another_shape_where_that_is_smaller() -> None:
    row_ids = np.arange(0, 3000, 3, dtype=np.uint64)
    sequence = RowIdSequence(tuple(Range(int(row_id), int(row_id) + 1) for row_id in row_ids))
    assert len(serialize_row_ids(sequence)) > 7000
    smaller = RowIdSequence.concatenate([sequence]).slice(0, 1000)
    assert smaller == RowIdSequence.from_array(row_ids)
    assert isinstance(smaller.segments[0], RangeWithBitmap)
    backwards = RowIdSequence.concatenate(RowIdSequence((segment,)) for segment in sequence.segments[::-1])
    assert backwards.delete(offsets(0)) == RowIdSequence.from_array(row_ids[::-1][1:])


def test_an_unsorted_array_stays_one_when_rows_are_deleted() -> None:
    left = RowIdSequence((Array(encoded([5, 1, 2])),)).delete(offsets(0))
    assert left.segments == (Array(encoded([1, 2])),)
    assert left.slice(0, 2).segments == (Range(1, 3),)


def test_empty_sequences() -> None:
    for empty in (RowIdSequence(), RowIdSequence.from_range(3, 3), RowIdSequence.from_array(ids())):
        assert empty == parse_row_ids(serialize_row_ids(empty), 0)
        assert empty.to_numpy().size == empty.take(offsets()).size == 0
        assert empty.slice(0, 0) == empty.delete(offsets()) == RowIdSequence.concatenate([empty, empty]) == empty
    assert RowIdSequence.from_range(3, 6).delete(offsets(0, 1, 2)) == RowIdSequence()


@pytest.mark.parametrize("positions", [offsets(-1), offsets(5), offsets(0, 5), offsets(2, -1, 3)])
def test_positions_that_are_not_there(positions: np.ndarray) -> None:
    sequence = RowIdSequence((Range(0, 3), Array(encoded([9, 8]))))
    for ask in (sequence.take, sequence.select, sequence.delete):
        with pytest.raises(InvalidInputError):
            ask(positions)


def test_arguments_that_make_no_sense() -> None:
    sequence = RowIdSequence.from_range(0, 5)
    calls: list[Callable[[], object]] = [
        lambda: sequence.slice(2, 6),
        lambda: sequence.slice(3, 2),
        lambda: sequence.delete(offsets(2, 1)),
        lambda: sequence.delete(offsets(1, 1)),
        lambda: RowIdSequence.from_range(3, 2),
        lambda: RowIdSequence.from_range(-1, 2),
        lambda: RowIdSequence.from_range(0, 2**64),
        lambda: RowIdSequence.from_range(0, 2**63),
    ]
    for call in calls:
        with pytest.raises(InvalidInputError):
            call()


def u16(base: int, *values: int) -> rowids_pb2.EncodedU64Array:
    return Encoded(u16_array=Encoded.U16Array(base=base, offsets=np.array(values, "<u2").tobytes()))


@pytest.mark.parametrize(
    ("segment", "message"),
    [
        (Message(), "no known kind"),
        (Message(array=Encoded()), "no known kind"),
        (Message(range_with_holes=Message.RangeWithHoles(start=0, end=3)), "no known kind"),
        (Message(range=Message.Range(start=0, end=LAST)), f"{LAST} values; at most 3"),
        (Message(range=Message.Range(start=0, end=2)), "2 ids for 3 rows"),
        (Message(range=Message.Range(start=4, end=1)), "starts at 4 and ends at 1"),
        (Message(range_with_holes=Message.RangeWithHoles(start=0, end=2**60, holes=u16(0, 5))), "at most 3"),
        (Message(range_with_holes=Message.RangeWithHoles(start=0, end=5, holes=u16(0, 1, 1))), "not ascend"),
        (Message(range_with_holes=Message.RangeWithHoles(start=0, end=5, holes=u16(0, 2, 1))), "not ascend"),
        (Message(range_with_holes=Message.RangeWithHoles(start=0, end=5, holes=u16(0, 1, 5))), "outside"),
        (Message(range_with_holes=Message.RangeWithHoles(start=1, end=6, holes=u16(0, 0, 1))), "outside"),
        (Message(range_with_bitmap=Message.RangeWithBitmap(start=0, end=2**60, bitmap=b"\7")), "1 bytes"),
        (Message(range_with_bitmap=Message.RangeWithBitmap(start=0, end=3, bitmap=b"\7\0")), "2 bytes"),
        (Message(range_with_bitmap=Message.RangeWithBitmap(start=0, end=3, bitmap=b"\x0e")), "past the end"),
        (Message(range_with_bitmap=Message.RangeWithBitmap(start=0, end=8, bitmap=b"\x0f")), "at most 3"),
        (Message(sorted_array=u16(0, 1, 3, 2)), "not ascend"),
        (Message(array=u16(LAST - 1, 0, 1, 2)), "64 bits"),
        (Message(array=Encoded(u16_array=Encoded.U16Array(offsets=b"12345"))), "5 bytes"),
        (Message(array=Encoded(u32_array=Encoded.U32Array(offsets=b"12345"))), "5 bytes"),
        (Message(array=Encoded(u64_array=Encoded.U64Array(values=b"12345"))), "5 bytes"),
    ],
)
def test_segments_that_contradict_themselves(segment: rowids_pb2.U64Segment, message: str) -> None:
    data = rowids_pb2.RowIdSequence(segments=[segment]).SerializeToString()
    with pytest.raises(CorruptFileError, match=message):
        parse_row_ids(data, 3)


def test_more_ids_than_rows() -> None:
    data = serialize_row_ids(RowIdSequence((Range(0, 3), Range(7, 9))))
    assert len(parse_partial_row_ids(data, 8)) == 5
    for read, rows in ((parse_partial_row_ids, 4), (parse_row_ids, 4), (parse_row_ids, 6)):
        with pytest.raises(CorruptFileError):
            read(data, rows)


def test_fields_that_are_not_known() -> None:
    data = serialize_row_ids(RowIdSequence((Range(0, 3),)))
    for stray in (b"\x38\x01", b"\x08\x01"):  # Field 7; field 1, which is a message, as an integer.
        with pytest.raises(CorruptFileError, match="not known"):
            parse_row_ids(data + stray, 3)


def test_external_files_stay_in_the_table() -> None:
    assert check_external("abc.rowids", 5, 10, "the row ids of fragment 3") == "abc.rowids"
    for path, offset in (("../x", 0), ("/etc/passwd", 0), ("a/b", 0), ("", 0), ("fine", 2**63)):
        with pytest.raises(CorruptFileError, match="fragment 3"):
            check_external(path, offset, 1, "the row ids of fragment 3")
