"""Merging byte ranges, and distributing the bytes read."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from lance_format.byte_io import FILE_REQUESTS, ByteRange
from lance_format.file.container.scheduler import coalesce, fetch

_DATA = bytes(index * 37 % 251 for index in range(100_000))


class _Source:
    path = "(memory)"
    size_bytes = len(_DATA)
    request_shape = FILE_REQUESTS

    def __init__(self) -> None:
        self.requests: list[ByteRange] = []

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        self.requests += ranges
        return [_DATA[wanted.offset : wanted.end] for wanted in ranges]

    def close(self) -> None:
        pass


_ranges = st.lists(st.builds(ByteRange, st.integers(0, 90_000), st.integers(0, 9_000)), max_size=40)


@given(ranges=_ranges)
def test_everyone_gets_the_bytes_asked_for(ranges: list[ByteRange]) -> None:
    source = _Source()
    found = fetch(source, ranges)
    assert [piece.tobytes() for piece in found] == [_DATA[wanted.offset : wanted.end] for wanted in ranges]
    assert all(piece.ctypes.data % 8 == 0 for piece in found if piece.size)
    assert len(source.requests) <= len(ranges)
    gaps = [after.offset - before.end for before, after in zip(source.requests, source.requests[1:], strict=False)]
    assert all(gap > 8192 for gap in gaps)


def test_a_merged_range_does_not_grow_without_bound() -> None:
    mib = 1 << 20
    pieces = [ByteRange(index * 10 * mib, 10 * mib) for index in range(20)]
    merged = coalesce(pieces)
    assert sum(piece.size for piece in merged) == 200 * mib
    assert max(piece.size for piece in merged) <= 64 * mib
    assert coalesce([ByteRange(0, 100 * mib)]) == [ByteRange(0, 100 * mib)]
