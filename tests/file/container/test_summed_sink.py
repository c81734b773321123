"""Checksums of a file that is written in pieces of any size."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_format.checksums import checksum32
from lance_format.file.container.summed_sink import SummedSink


class _Sink:
    path = "<memory>"

    def __init__(self) -> None:
        self.data = b""
        self.is_closed = False

    @property
    def position(self) -> int:
        return len(self.data)

    def write(self, data: bytes | memoryview) -> None:
        self.data += bytes(data)

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        """Nothing is left to do."""


def _sums(data: bytes, block_bytes: int) -> list[int]:
    return [checksum32(data[start : start + block_bytes]) for start in range(0, len(data), block_bytes)]


@given(
    st.lists(st.sampled_from([0, 1, 3, 63, 255, 256, 4096, 65_535, 65_536, 70_001, 200_000]), max_size=12),
    st.lists(st.integers(0, 5000), max_size=6),
    st.sampled_from([256, 4096]),
)
def test_two_regions(first: list[int], second: list[int], block_bytes: int) -> None:
    below = _Sink()
    sink = SummedSink(below, block_bytes)
    rng = np.random.default_rng(sum(first))
    regions = []
    for sizes in (first, second):
        pieces = [rng.bytes(size) for size in sizes]
        for number, piece in enumerate(pieces):
            before = sink.position
            sink.write(memoryview(np.frombuffer(piece, "<u2")) if number % 2 and len(piece) % 2 == 0 else piece)
            assert sink.position == before + len(piece)
        regions.append(b"".join(pieces))
        assert sink.end_region().tolist() == _sums(regions[-1], block_bytes)
        assert below.data == b"".join(regions)
    sink.write(b"the end")
    sink.close()
    assert below.data == b"".join(regions) + b"the end"
    assert below.is_closed
