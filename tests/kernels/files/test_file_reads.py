"""Reads by kernels: the bytes of a file and their checksums, and what ends a call."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xxhash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_format.kernels.files.file_reads import read_blocks, read_plain, room_for

SIZE = 300_288
CONTENT = np.random.default_rng(0).bytes(SIZE)
BLOCK_BYTES = (256, 1000, 8192, 200_000)


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    found = os.open(path, os.O_RDWR)
    yield found
    os.close(found)


def _sums(content: bytes, block_bytes: int) -> np.ndarray:
    blocks = [content[start : start + block_bytes] for start in range(0, len(content), block_bytes)]
    return np.array([xxhash.xxh3_64_intdigest(block) & 0xFFFFFFFF for block in blocks], np.uint32)


def _read(
    descriptor: int,
    block_bytes: int,
    ranges: list[tuple[int, int]],
    sums: np.ndarray,
    first_block: int = 0,
    room: int | None = None,
) -> tuple[list[bytes], int, int]:
    """Return the bytes of the ranges that were read, the block that has another sum, and the number of bytes read."""
    offsets, sizes = np.array(ranges, np.int64).reshape(-1, 2).T.copy()
    out = np.empty(int(sizes.sum()) + 128 * sizes.size if room is None else room, np.uint8)
    positions, scratch = np.empty(sizes.size + 2, np.int64), np.empty(max(block_bytes, 20_000), np.uint8)
    count = read_blocks(
        descriptor, block_bytes, SIZE, sums, first_block, offsets, sizes, scratch, False, out, positions
    )
    *places, other, num_bytes = positions.tolist()
    for place, (offset, _) in zip(places[:count], ranges, strict=False):
        assert place % 64 == offset % 64 // 8 * 8
    found = [out[place : place + size].tobytes() for place, (_, size) in zip(places[:count], ranges, strict=False)]
    return found, other, num_bytes


def _read_dense(descriptor: int, block_bytes: int, ranges: list[tuple[int, int]], sums: np.ndarray) -> bytes:
    """Return the bytes of ranges that are read without a gap; without a size of blocks they are not compared."""
    offsets, sizes = np.array(ranges, np.int64).reshape(-1, 2).T.copy()
    out, positions = np.empty(int(sizes.sum()), np.uint8), np.empty(sizes.size + 2, np.int64)
    if block_bytes:
        scratch = np.empty(max(block_bytes, 20_000), np.uint8)
        count = read_blocks(descriptor, block_bytes, SIZE, sums, 0, offsets, sizes, scratch, True, out, positions)
    else:
        count = read_plain(descriptor, offsets, sizes, out)
    assert count == len(ranges)
    return out.tobytes()


_RANGE = st.integers(0, SIZE).flatmap(
    lambda start: st.tuples(st.just(start), st.integers(0, min(SIZE - start, 3000)) | st.integers(0, SIZE - start))
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.lists(_RANGE, min_size=1, max_size=8), st.sampled_from(BLOCK_BYTES))
def test_ranges_are_read_and_compared(descriptor: int, ranges: list[tuple[int, int]], block_bytes: int) -> None:
    expected = [CONTENT[start : start + size] for start, size in ranges]
    blocks = {
        block
        for start, size in ranges
        if size
        for block in range(start // block_bytes, -(-(start + size) // block_bytes))
    }
    sums = _sums(CONTENT, block_bytes)
    found, other, num_bytes = _read(descriptor, block_bytes, ranges, sums)
    assert (found, other) == (expected, -1)
    for joined in (_read_dense(descriptor, block_bytes, ranges, sums), _read_dense(descriptor, 0, ranges, sums)):
        assert joined == b"".join(expected)
    assert num_bytes >= sum(min(block_bytes, SIZE - block * block_bytes) for block in blocks)
    for block in sorted(blocks)[:: len(blocks) // 5 + 1]:
        changed = sums.copy()
        changed[block] ^= 1
        found, other, _ = _read(descriptor, block_bytes, ranges, changed)
        assert found == expected[: len(found)]
        assert len(found) < len(expected)
        assert other == block


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=50))
def test_there_is_room_for_the_first_range_and_for_many_small_ones(sizes: list[int]) -> None:
    sizes[0] %= 1_000_000
    room = room_for(np.array(sizes)).size
    assert sizes[0] + 128 <= room <= max(sizes[0] + 128, 512 * 1024)
    if sum(sizes) + 128 * len(sizes) <= 512 * 1024:
        assert room == sum(sizes) + 128 * len(sizes)


def test_a_call_ends_where_the_sums_the_room_or_the_file_do(descriptor: int) -> None:
    sums = _sums(CONTENT, 1000)
    ranges = [(10_000, 500), (11_500, 400), (12_000, 700)]
    assert len(_read(descriptor, 1000, ranges, sums[10:12], 10)[0]) == 2
    assert _read(descriptor, 1000, ranges, sums[11:], 11) == ([], -1, 0)
    assert len(_read(descriptor, 1000, ranges, sums, room=1100)[0]) == 2
    for wrong in ((-1, 10), (SIZE - 5, 6), (5, -1), (2**62, 2**62)):
        assert _read(descriptor, 1000, [wrong], sums, room=100) == ([], -1, 0)
    os.ftruncate(descriptor, 12_600)
    assert len(_read(descriptor, 1000, ranges, sums)[0]) == 2
    assert _read(-1, 1000, ranges[:1], sums) == ([], -1, 0)
