"""Row version sequences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format import CorruptFileError, InvalidInputError
from lance_format.proto import rowids_pb2
from lance_format.table.row_ids.row_version_sequence import (
    RowVersionSequence,
    parse_row_versions,
    serialize_row_versions,
)
from tests.table.row_ids.test_row_id_sequence import offsets, u16

Segment = rowids_pb2.U64Segment
Run = rowids_pb2.RowDatasetVersionRun


def sequence_of(*versions: int) -> RowVersionSequence:
    return RowVersionSequence.from_array(np.array(versions, np.uint64))


def serialized(*runs: rowids_pb2.RowDatasetVersionRun) -> bytes:
    return rowids_pb2.RowDatasetVersionSequence(runs=runs).SerializeToString()


versions = st.lists(st.sampled_from([1, 1, 1, 2, 7, 2**64 - 1]), max_size=30)


@given(versions, st.data())
def test_all_that_is_done_with_it(values: list[int], data: st.DataObject) -> None:
    sequence = sequence_of(*values)
    assert len(sequence) == len(values)
    assert sequence.to_numpy().dtype == np.uint64
    assert sequence.to_numpy().tolist() == values
    assert parse_row_versions(serialize_row_versions(sequence), len(values)) == sequence
    places = st.integers(0, len(values) - 1) if values else st.nothing()
    positions = data.draw(st.lists(places))
    assert sequence.take(offsets(*positions)).tolist() == [values[place] for place in positions]
    assert sequence.select(offsets(*positions)) == sequence_of(*(values[place] for place in positions))
    chosen = data.draw(st.sets(places))
    left = [value for place, value in enumerate(values) if place not in chosen]
    assert sequence.delete(offsets(*sorted(chosen))) == sequence_of(*left)
    changed = [9 if place in chosen else value for place, value in enumerate(values)]
    assert sequence.replace(offsets(*chosen), 9) == sequence_of(*changed)
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))
    assert sequence.slice(start, stop) == sequence_of(*values[start:stop])
    pieces = [sequence.slice(0, start), sequence.slice(start, stop), sequence.slice(stop, len(values))]
    assert RowVersionSequence.concatenate(pieces) == sequence
    assert hash(RowVersionSequence.concatenate(pieces)) == hash(sequence)


def test_one_version_for_a_billion_rows() -> None:
    sequence = RowVersionSequence.constant(4, 10**9)
    assert serialize_row_versions(sequence) == serialized(Run(span=Segment(range=Segment.Range(end=10**9)), version=4))
    left = sequence.delete(offsets(0, 5))
    assert left == RowVersionSequence.constant(4, 10**9 - 2)
    assert RowVersionSequence.concatenate([left, RowVersionSequence.constant(5, 2)]).take(
        offsets(10**9 - 1, 0, 10**9 - 3, 10**9 - 2)
    ).tolist() == [5, 4, 4, 5]


def test_nothing() -> None:
    for empty in (RowVersionSequence.constant(3, 0), RowVersionSequence.concatenate([]), parse_row_versions(b"", 0)):
        assert empty == sequence_of()
        assert serialize_row_versions(empty) == b""


def test_only_the_length_of_a_span_counts() -> None:
    bitmap = Segment(range_with_bitmap=Segment.RangeWithBitmap(start=0, end=10, bitmap=b"\x67\x03"))
    data = serialized(Run(span=bitmap, version=1), Run(span=Segment(array=u16(7, 3, 1)), version=2))
    assert parse_row_versions(data, 9) == sequence_of(*[1] * 7, 2, 2)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x0a", "malformed"),
        (serialized(Run(version=3)), "no known kind"),
        (serialized(Run(span=Segment(range=Segment.Range(end=4)), version=3)), "4 rows for 5"),
        (serialized(Run(span=Segment(range=Segment.Range(end=2**60)), version=3)), "at most 5"),
        (serialized(*[Run(span=Segment(range=Segment.Range(end=3)), version=3)] * 2), "at most 2"),
        (serialized(Run(span=Segment(range=Segment.Range(end=5)), version=3)) + b"\x38\x01", "not known"),
    ],
)
def test_sequences_that_contradict_themselves(data: bytes, message: str) -> None:
    with pytest.raises(CorruptFileError, match=message):
        parse_row_versions(data, 5)


def test_positions_that_are_not_there() -> None:
    sequence = sequence_of(1, 1, 2)
    for positions in (offsets(-1), offsets(3), offsets(0, 3, 1)):
        for ask in (sequence.take, sequence.select, sequence.delete, lambda wrong: sequence.replace(wrong, 4)):
            with pytest.raises(InvalidInputError):
                ask(positions)
    for positions in (offsets(1, 0), offsets(1, 1)):
        with pytest.raises(InvalidInputError, match="ascend"):
            sequence.delete(positions)
    for bounds in ((1, 4), (2, 1), (-1, 2)):
        with pytest.raises(InvalidInputError):
            sequence.slice(*bounds)
