"""LZ4 blocks, against the library."""

from __future__ import annotations

import lz4.block
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format.kernels.compression import lz4 as kernels

_GUARD = 0xA5


def _decode(pieces: list[bytes], sizes: list[int]) -> list[bytes] | int:
    """Decode blocks with guards around everything that they may touch; returns the index of a wrong one."""
    data = np.frombuffer(b"??" + b"".join(pieces), np.uint8)
    lengths = np.array([len(piece) for piece in pieces], np.int64)
    starts = 2 + np.cumsum(lengths) - lengths
    out_sizes = np.array(sizes, np.int64)
    out_starts = np.cumsum(out_sizes) - out_sizes
    total = int(out_sizes.sum())
    out = np.full(total + kernels.SLACK + 16, _GUARD, np.uint8)
    found = kernels.decode(data, starts, lengths, out[: total + kernels.SLACK], out_starts, out_sizes)
    assert (out[total + kernels.SLACK :] == _GUARD).all()
    if found < 0:
        return -1 - found
    return [out[start : start + size].tobytes() for start, size in zip(out_starts, sizes, strict=True)]


_repetitive = st.builds(
    lambda pieces: b"".join(piece * times for piece, times in pieces),
    st.lists(st.tuples(st.binary(min_size=1, max_size=20), st.integers(1, 400)), max_size=8),
)


@given(values=st.lists(st.one_of(st.binary(max_size=600), _repetitive), min_size=1, max_size=5))
def test_what_the_library_compresses(values: list[bytes]) -> None:
    pieces = [lz4.block.compress(value, store_size=False) for value in values]
    assert _decode(pieces, [len(value) for value in values]) == values


@given(value=_repetitive, position=st.integers(0, 10**6), byte=st.integers(0, 255), wrong=st.integers(-20, 20))
def test_damaged_blocks_are_told(value: bytes, position: int, byte: int, wrong: int) -> None:
    piece = bytearray(lz4.block.compress(value, store_size=False))
    piece[position % len(piece)] = byte
    size = max(len(value) + wrong, 0)
    found = _decode([bytes(piece), lz4.block.compress(b"after", store_size=False)], [size, 5])
    if isinstance(found, list):
        assert found[1] == b"after"
        assert lz4.block.decompress(bytes(piece), uncompressed_size=max(size, 1)) == found[0]
    else:
        assert found == 0


@pytest.mark.parametrize(
    "piece",
    [
        b"",
        b"\xf0",
        b"\xf0\xff",
        b"\x10",
        b"\x10a\x01",
        b"\x10a\x00\x00\x50bbbbb",
        b"\x10a\x02\x00\x50bbbbb",
        b"\x1fa\x01\x00",
    ],
)
def test_ends_and_distances_are_checked(piece: bytes) -> None:
    assert _decode([piece], [10]) == 0


@given(
    plane=st.integers(1, 700),
    parts=st.lists(st.tuples(st.booleans(), st.integers(0, 255)), min_size=1, max_size=9),
    seed=st.integers(0, 2**32 - 1),
)
def test_planes_are_read_by_the_library(plane: int, parts: list[tuple[bool, int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    noise = rng.integers(0, 256, (2, plane), np.uint8)
    rows = [noise[byte % 2] if is_noise else np.full(plane, byte, np.uint8) for is_noise, byte in parts]
    chunk = np.concatenate(rows)
    data = np.concatenate([chunk, chunk[::-1], np.zeros(16, np.uint8)])
    sizes = np.array([chunk.size, chunk.size], np.int64)
    out = np.empty(2 * (chunk.size + chunk.size // 255 + 16) + kernels.SLACK, np.uint8)
    written = np.empty(2, np.int64)
    total = kernels.encode_planes(
        data, np.array([0, chunk.size], np.int64), sizes, np.full(2, plane, np.int64), out, written
    )
    assert total == written.sum()
    for start, size, expected in ((0, written[0], chunk), (written[0], written[1], chunk[::-1])):
        block = out[start : start + size].tobytes()
        assert int.from_bytes(block[:4], "little") == chunk.size
        assert lz4.block.decompress(block[4:], uncompressed_size=chunk.size) == expected.tobytes()
        assert _decode([block[4:]], [chunk.size]) == [expected.tobytes()]
