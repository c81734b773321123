"""Many ranges that are read into one buffer are the bytes of the file, or are left to reads one by one."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_format.byte_io import ByteRange, ByteRanges, RangeReader
from lance_format.file import FileReader, LanceFileWriter, SearchCache
from lance_format.file.container import joined_reads, seal, verified_reader
from lance_format.file.container.joined_reads import read_joined
from lance_format.object_store import CountedStore, ReadCounter, local_files
from lance_format.object_store.local import LocalStore
from lance_format.object_store.local_files import LocalReader

BLOCK = seal.BLOCK_BYTES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with LanceFileWriter(tmp_path / "file.lance") as writer:
        writer.write_batch(pa.table({"number": np.random.default_rng(0).integers(0, 2**62, 200_000)}))
    return tmp_path / "file.lance"


def _readers(path: Path) -> list[RangeReader]:
    """Return a reader that compares checksums, and one that does not."""
    verified = FileReader(LocalReader(str(path)), SearchCache()).source
    return [verified, LocalReader(str(path))]


def _ranges(seed: int, size: int) -> ByteRanges:
    rng = np.random.default_rng(seed)
    offsets = rng.integers(0, size - 100_000, 60)
    return ByteRanges(offsets, rng.integers(0, rng.choice([100, 100_000]), 60))


@pytest.mark.parametrize("seed", range(6))
def test_ranges_are_joined(path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        monkeypatch.setattr(verified_reader, "_UNIT_BYTES", 8 * BLOCK)
    content = path.read_bytes()
    ranges = _ranges(seed, len(content) - 20_000)
    for reader in _readers(path):
        found = read_joined(reader, ranges)
        assert found is not None
        assert found.tobytes() == b"".join(content[wanted.offset : wanted.end] for wanted in ranges)
        assert not found.flags.writeable


def test_ranges_are_a_sequence() -> None:
    ranges = ByteRanges.of([ByteRange(5, 2), ByteRange(70, 0), ByteRange(9, 4)])
    assert list(ranges) == [(5, 2), (70, 0), (9, 4)]
    assert (len(ranges), ranges.num_bytes, ranges[-1]) == (3, 6, ByteRange(9, 4))
    assert list(ranges[1:].moved(10)) == [(80, 0), (19, 4)]
    assert ByteRanges.of(ranges) is ranges
    assert len(ByteRanges.of([])) == 0


def test_what_is_not_as_it_should_be_is_left_to_others(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = path.stat().st_size
    verified, plain = _readers(path)
    good = ByteRanges(np.arange(0, 40 * BLOCK, BLOCK), np.full(40, 100))
    assert read_joined(verified, good) is not None
    for offset, length in ((-1, 5), (5, -1), (size - 3, 4), (2**62, 2**62)):
        wrong = ByteRanges(np.append(good.offsets, offset), np.append(good.sizes, min(length, 1000)))
        assert read_joined(plain, wrong) is None
        assert read_joined(verified, wrong) is None
    damaged = bytearray(path.read_bytes())
    damaged[30 * BLOCK + 7] ^= 1
    path.write_bytes(damaged)
    assert read_joined(verified, good) is None
    assert read_joined(plain, good) is not None
    os.truncate(path, 35 * BLOCK)
    assert read_joined(plain, good) is None
    monkeypatch.setattr(joined_reads, "is_compiler_imported", lambda: False)
    assert read_joined(plain, good[:20]) is None
    monkeypatch.undo()
    assert read_joined(plain, good[:20]) is not None
    for reader in (plain, verified):
        reader.close()
        assert read_joined(reader, good[:20]) is None


def test_reads_are_counted(path: Path) -> None:
    counter = ReadCounter()
    opened = CountedStore(LocalStore(), counter).open_reader(str(path))
    ranges = ByteRanges(np.arange(5, 20 * BLOCK, BLOCK), np.full(20, 10))
    assert read_joined(opened, ranges) is not None
    assert (counter.num_requests, counter.num_bytes) == (20, 200)


def test_ranges_are_announced_if_the_disk_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    announced: list[int] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, offset, *__: announced.append(offset))
    ranges = ByteRanges(np.arange(0, 60 * BLOCK, BLOCK), np.full(60, 10))
    for seconds, expected in ((0.0, ranges.offsets[16:].tolist()), (1.0, [])):
        monkeypatch.setattr(local_files, "_WAITING_SECONDS", seconds)
        for reader in _readers(path):
            announced.clear()
            read_joined(reader, ranges)
            assert announced == expected
