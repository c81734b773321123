"""Row ids and row versions that were cut, flipped or made up: a typed error, or one for every row, in little memory."""

import random
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

from lance_format import CorruptFileError, LanceError
from lance_format.proto import rowids_pb2
from lance_format.table.row_ids.index import RowIdIndex
from lance_format.table.row_ids.row_id_sequence import RowIdSequence, parse_row_ids, serialize_row_ids
from lance_format.table.row_ids.row_version_sequence import (
    RowVersionSequence,
    parse_row_versions,
    serialize_row_versions,
)
from lance_format.table.row_ids.segment_messages import serialize_segments
from lance_format.table.row_ids.segments import Array, EncodedArray, Range, RangeWithBitmap, RangeWithHoles, SortedArray

pytestmark = pytest.mark.system

NUM_MUTATIONS = 6000


def array(width: int, *offsets: int) -> EncodedArray:
    return EncodedArray(0 if width == 8 else 1000, width, np.array(offsets, f"<u{width}").tobytes())


SEQUENCE = RowIdSequence(
    (
        Range(5, 25),
        RangeWithHoles(2000, 2040, array(2, 1000, 1003, 1009)),
        RangeWithHoles(2040, 2050, array(8, 2041)),
        RangeWithBitmap(3000, 3021, b"\x5a\xff\x11"),
        SortedArray(array(4, 4000, 4001, 90000)),
        SortedArray(array(8, 2**40, 2**63)),
        Array(array(2, 60000, 50000, 60001)),
        Array(array(4, 2**31, 7, 9)),
    )
)
VERSIONS = RowVersionSequence.from_array(np.repeat(np.array([1, 5, 2**60, 1], np.uint64), [40, 10, 4, 20]))


def mutations(data: bytes, seed: int) -> Iterator[bytes]:
    for size in range(len(data)):
        yield data[:size]
        yield data[size + 1 :]
    chosen = random.Random(seed)
    for _ in range(NUM_MUTATIONS):
        broken = bytearray(data)
        for _ in range(chosen.choice([1, 1, 2, 6])):
            place = chosen.randrange(len(broken))
            match chosen.randrange(4):
                case 0:
                    broken[place] ^= 1 << chosen.randrange(8)
                case 1:
                    broken[place] = chosen.choice([0, 1, 0x7F, 0x80, 0xFF])
                case 2:
                    broken[place:place] = chosen.randbytes(chosen.choice([1, 2, 9]))
                case 3:
                    del broken[place : place + chosen.choice([1, 2, 5])]
            if not broken:
                break
        yield bytes(broken)
    for _ in range(NUM_MUTATIONS):
        yield chosen.randbytes(chosen.randrange(40))


def test_row_ids() -> None:
    num_rows = len(SEQUENCE)
    parsed = 0
    positions = np.arange(num_rows)
    for data in mutations(serialize_row_ids(SEQUENCE), 1):
        try:
            sequence = parse_row_ids(data, num_rows)
        except LanceError:
            continue
        parsed += 1
        row_ids = sequence.to_numpy()
        assert row_ids.size == len(sequence) == num_rows
        assert sequence.take(positions).tolist() == sequence.runs().values().tolist() == row_ids.tolist()
        assert sequence.delete(positions[::3]).to_numpy().tolist() == np.delete(row_ids, positions[::3]).tolist()
        assert sequence.slice(7, 60).to_numpy().tolist() == row_ids[7:60].tolist()
        assert parse_row_ids(serialize_row_ids(sequence), num_rows) == sequence
        if np.unique(row_ids).size == num_rows:
            _, offsets = RowIdIndex([(0, sequence.runs(), positions[:0])]).find(row_ids)
            assert offsets.tolist() == positions.tolist()
    assert parsed > NUM_MUTATIONS // 60


def test_row_versions() -> None:
    num_rows = len(VERSIONS)
    parsed = 0
    for data in mutations(serialize_row_versions(VERSIONS), 2):
        try:
            sequence = parse_row_versions(data, num_rows)
        except LanceError:
            continue
        parsed += 1
        assert sequence.to_numpy().size == len(sequence) == num_rows
        assert parse_row_versions(serialize_row_versions(sequence), num_rows) == sequence
    assert parsed > NUM_MUTATIONS // 60


def test_few_bytes_that_claim_many_rows_take_little_memory() -> None:
    claims = [
        Range(0, 2**64 - 1),
        RangeWithHoles(0, 2**62, array(8, 5)),
        RangeWithBitmap(0, 2**62, b"\xff"),
        RangeWithHoles(0, 2**33, array(8, *range(1000))),
    ]
    tracemalloc.start()
    for claim in claims:
        (segment,) = serialize_segments([claim])
        for parse, message in (
            (parse_row_ids, rowids_pb2.RowIdSequence(segments=[segment])),
            (parse_row_versions, rowids_pb2.RowDatasetVersionSequence(runs=[{"span": segment, "version": 1}])),
        ):
            for num_rows in (0, 1, 1000, 2**32):
                with pytest.raises(CorruptFileError, match=r"at most|bitmap of 1 bytes"):
                    parse(message.SerializeToString(), num_rows)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
