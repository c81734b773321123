"""Bytes that are read before they are asked for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.byte_io import ByteRange, RequestShape
from lance_format.errors import CorruptFileError
from lance_format.file import HeldSource
from lance_format.object_store.memory import MemoryReader

CONTENT = bytes(range(250)) * 4


class _Counted(MemoryReader):
    request_shape = RequestShape(gap_bytes=10, max_bytes=100)  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__("memory://counted", CONTENT)
        self.requests: list[ByteRange] = []
        self.is_closed = False

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        self.requests += ranges
        return super().read_ranges(ranges)

    def close(self) -> None:
        self.is_closed = True


_RANGES = st.lists(st.builds(ByteRange, st.integers(0, 900), st.integers(0, 100)), max_size=8)


@given(held=_RANGES, wanted=_RANGES, most_bytes=st.sampled_from([0, 50, 10_000]))
def test_the_bytes_are_the_same(held: list[ByteRange], wanted: list[ByteRange], most_bytes: int) -> None:
    counted = _Counted()
    source = HeldSource(counted)
    source.hold(held, most_bytes)
    assert sum(request.size for request in counted.requests) <= most_bytes
    assert source.read_ranges(wanted) == [CONTENT[one.offset : one.end] for one in wanted]


def test_what_is_held_is_not_read_again() -> None:
    counted = _Counted()
    source = HeldSource(counted)
    source.hold([ByteRange(20, 10), ByteRange(300, 50), ByteRange(35, 15)], 1000)
    assert counted.requests == [ByteRange(20, 30), ByteRange(300, 50)]
    counted.requests.clear()
    source.read_ranges([ByteRange(22, 20), ByteRange(340, 10), ByteRange(340, 11), ByteRange(19, 2)])
    assert counted.requests == [ByteRange(340, 11), ByteRange(19, 2)]
    source.close()
    assert counted.is_closed
    source.read_ranges([ByteRange(22, 1)])
    assert counted.requests[-1] == ByteRange(22, 1)


def test_ranges_outside_of_the_file_are_refused() -> None:
    source = HeldSource(_Counted())
    with pytest.raises(CorruptFileError):
        source.hold([ByteRange(990, 20)], 1000)
    assert source.read_ranges([ByteRange(990, 10)]) == [CONTENT[990:]]
    with pytest.raises(CorruptFileError):
        source.read_ranges([ByteRange(990, 20)])
