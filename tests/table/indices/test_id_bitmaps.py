"""Bitmaps of ids are those that Roaring writes, or mean the same."""

from __future__ import annotations

import struct
from unittest.mock import Mock

import numpy as np
import numpy.typing as npt
import pyroaring
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_format import NotSupportedError
from lance_format.table.indices.kinds import id_bitmaps
from lance_format.table.indices.kinds.id_bitmaps import serialize_groups, serialize_ids

Ids = npt.NDArray[np.uint64]


def _parsed(data: bytes) -> list[int]:
    """Return the ids of a bitmap, whose parts Roaring parses."""
    (count,) = struct.unpack_from("<I", data)
    found, position = [], 4
    for _ in range(count):
        high, size = struct.unpack_from("<II", data, position)
        low = pyroaring.BitMap.deserialize(data[position + 8 : position + 8 + size])
        assert low.serialize() == data[position + 8 : position + 8 + size] or low.run_optimize() is not None
        found += [high << 32 | number for number in low]
        position += 8 + size
    assert position == len(data)
    return found


_IDS = st.one_of(
    st.integers(0, 40),
    st.integers(65_530, 65_540),
    st.integers(2**32 - 4, 2**32 + 4),
    st.builds(lambda high, low: high << 32 | low, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
)


@settings(max_examples=300, deadline=None)
@given(groups=st.lists(st.lists(_IDS, max_size=30), max_size=6))
def test_groups(groups: list[list[int]]) -> None:
    starts = np.cumsum([0, *map(len, groups)])
    ids = np.array([number for group in groups for number in sorted(group)], np.uint64)
    found = serialize_groups(ids, starts)
    found.validate(full=True)
    assert [_parsed(data) for data in found.to_pylist()] == [sorted(set(group)) for group in groups]


@pytest.mark.parametrize(
    "numbers",
    [
        np.arange(100_000),
        np.arange(0, 200_000, 2),
        np.arange(0, 2**20, 16),
        np.arange(0, 2**20, 17),
        np.concatenate([np.arange(70_000), np.arange(2**33, 2**33 + 9, 3), np.arange(2**34, 2**34 + 5000, 2)]),
    ],
    ids=["run", "bits", "most of an array", "arrays", "all"],
)
def test_containers_of_every_kind(numbers: npt.NDArray[np.int64]) -> None:
    assert _parsed(serialize_ids(numbers.astype(np.uint64))) == numbers.tolist()


def test_small_arrays_are_as_roaring_writes_them() -> None:
    numbers = np.array([3, 5, 7, 70_000, 70_002, 1 << 31], np.uint64)
    low = pyroaring.BitMap(numbers.tolist()).serialize()
    high = 9 << 32
    assert serialize_ids(numbers + np.uint64(high)) == struct.pack("<III", 1, 9, len(low)) + low


def test_bitmaps_of_many_fragments_are_not_made_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Mock(wraps=id_bitmaps.to_bitmap)
    monkeypatch.setattr(id_bitmaps, "to_bitmap", made)
    ids = (np.arange(1000, dtype=np.uint64) << np.uint64(32)) + np.uint64(7)
    assert _parsed(serialize_ids(ids)) == ids.tolist()
    assert not made.called


def test_nothing() -> None:
    assert serialize_ids(np.zeros(0, np.uint64)) == bytes(4)
    assert serialize_groups(np.zeros(0, np.uint64), np.zeros(1, np.int64)).to_pylist() == []


def test_too_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_bitmaps, "MAX_INT32", 40)
    with pytest.raises(NotSupportedError, match="the bitmaps of 1 values have 60 bytes"):
        serialize_ids(np.arange(0, 32, 2, dtype=np.uint64))
