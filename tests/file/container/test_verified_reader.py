"""Every way of reading a sealed file returns its bytes, and notices the first damaged block that it reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pytest

from lance_format.byte_io import ByteRange
from lance_format.errors import ChecksumError, CorruptFileError, StorageError
from lance_format.file import FileReader, LanceFileWriter, SearchCache
from lance_format.file.container import block_sums, seal, verified_reader
from lance_format.file.container.verified_reader import VerifiedReader
from lance_format.object_store import CountedStore, ReadCounter, local_files
from lance_format.object_store.local import LocalStore
from lance_format.object_store.local_files import LocalReader

BLOCK = seal.BLOCK_BYTES


@pytest.fixture(params=["kernel", "no compiler", "several units of sums"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file of some 200 blocks, to be read in one of several ways, or of more."""
    if request.param == "no compiler":
        for module in (block_sums, verified_reader):
            monkeypatch.setattr(module, "is_compiler_imported", lambda: False)
    num_rows = 200_000
    if request.param == "several units of sums":
        monkeypatch.setattr(verified_reader, "_UNIT_BYTES", BLOCK)
        num_rows = 2_200_000
    with LanceFileWriter(tmp_path / "file.lance") as writer:
        writer.write_batch(pa.table({"number": np.random.default_rng(0).integers(0, 2**62, num_rows)}))
    return tmp_path / "file.lance"


def _open(path: Path) -> VerifiedReader:
    reader = FileReader(LocalReader(str(path)), SearchCache())._source
    assert isinstance(reader, VerifiedReader)
    return reader


def _ranges(size: int, seed: int) -> list[list[ByteRange]]:
    """Return small ranges, few and many, that repeat and overlap, in any order; large ones; and all of them."""
    rng = np.random.default_rng(seed)

    def random(count: int, most: int) -> list[ByteRange]:
        offsets = rng.integers(0, size, count).tolist()
        return [ByteRange(offset, min(int(rng.integers(0, most)), size - offset)) for offset in offsets]

    large = [ByteRange(5, size - 5), ByteRange(0, BLOCK * 20), ByteRange(BLOCK - 1, BLOCK * 9)]
    return [random(3, 100), random(400, 20_000), large, random(30, 50_000) + large]


def test_ranges_are_read(path: Path) -> None:
    content, reader = path.read_bytes(), _open(path)
    for seed in range(2):
        for ranges in _ranges(len(content), seed):
            found = [bytes(part) for part in reader.stream_ranges(ranges)]
            assert found == [content[wanted.offset : wanted.end] for wanted in ranges]


@pytest.mark.parametrize("seconds", [0.0, 1.0], ids=["the disk is waited for", "the system remembers the file"])
def test_many_small_ranges_are_announced_if_the_disk_is_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    content, announced = path.read_bytes(), []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, offset, size, __: announced.append(ByteRange(offset, size)))
    monkeypatch.setattr(local_files, "_WAITING_SECONDS", seconds)
    ranges = [ByteRange(offset, 100) for offset in range(0, len(content) - BLOCK, BLOCK)]
    ranges[20] = ByteRange(5, 600_000)
    for reader in (_open(path), LocalReader(str(path))):
        announced.clear()
        found = [bytes(part) for part in reader.stream_ranges(ranges)]
        assert found == [content[wanted.offset : wanted.end] for wanted in ranges]
        small = [wanted.offset // BLOCK for wanted in ranges[16:] if wanted.size == 100]
        assert [wanted.offset // BLOCK for wanted in announced][-len(small) :] == ([] if seconds else small)
        assert all(wanted.size <= BLOCK for wanted in announced)
        announced.clear()
        assert [bytes(part) for part in reader.stream_ranges(ranges[:10])] == found[:10]
        assert not announced


def test_a_damaged_block_is_named_by_those_that_read_it_only(path: Path) -> None:
    content = path.read_bytes()
    reader = _open(path)
    reader.read_ranges([ByteRange(0, len(content))])  # Its sums are known.
    for block in (0, 77, 190):
        damaged = bytearray(content)
        damaged[block * BLOCK + 1234] ^= 4
        path.write_bytes(damaged)
        for ranges in _ranges(len(content), block):
            touching = [
                wanted
                for wanted in ranges
                if wanted.size and wanted.offset < (block + 1) * BLOCK and wanted.end > block * BLOCK
            ]
            others = [wanted for wanted in ranges if wanted not in touching]
            assert reader.read_ranges(others) == [content[wanted.offset : wanted.end] for wanted in others]
            if touching:
                with pytest.raises(ChecksumError, match=r"bytes \d+ to \d+, which hold rows 0 to") as caught:
                    reader.read_ranges(ranges)
                assert caught.value.offset == block * BLOCK


def test_failures_of_the_file_are_those_of_plain_reads(path: Path) -> None:
    """A kernel that cannot read a range leaves the error to the store."""
    reader, content = _open(path), path.read_bytes()
    ranges = [ByteRange(start, 100) for start in range(0, 40 * BLOCK, BLOCK)]
    reader.read_ranges(ranges)  # Their sums are known.
    os.truncate(path, 20 * BLOCK + 50)
    stream = reader.stream_ranges(ranges)
    assert [bytes(next(stream)) for _ in range(20)] == [content[x.offset : x.end] for x in ranges[:20]]
    with pytest.raises(CorruptFileError, match="became shorter while it was read"):
        next(stream)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.dup2(directory, cast("LocalReader", reader._source)._descriptor)
        with pytest.raises(StorageError, match=r"cannot read .*file.lance: Is a directory"):
            reader.read_ranges(ranges)
    finally:
        os.close(directory)


def test_ranges_beyond_the_file_are_refused(path: Path) -> None:
    reader, size = _open(path), path.stat().st_size
    reader.read_ranges([ByteRange(0, size)])
    for wrong in (ByteRange(size - 5, 6), ByteRange(-1, 5), ByteRange(2**63, 5), ByteRange(5, 2**64)):
        with pytest.raises(CorruptFileError):
            reader.read_ranges([ByteRange(0, 10), wrong])
    reader.close()
    with pytest.raises(StorageError, match="Bad file descriptor"):
        reader.read_ranges([ByteRange(0, 10)])


def test_reads_by_kernels_are_counted(path: Path) -> None:
    counter = ReadCounter()
    reader = _open(path).over(CountedStore(LocalStore(), counter).open_reader(str(path)))
    ranges = [ByteRange(3 * BLOCK + 5, 10), ByteRange(9 * BLOCK - 1, 2)]
    reader.read_ranges(ranges)
    known = counter.num_requests, counter.num_bytes
    reader.read_ranges(ranges)
    assert (counter.num_requests, counter.num_bytes) == (known[0] + 2, known[1] + 3 * BLOCK)


def test_a_reader_that_is_closed_midway_reads_no_other_file(path: Path, tmp_path: Path) -> None:
    """The next file that is opened has its descriptor."""
    reader = _open(path)
    ranges = [ByteRange(offset, BLOCK) for offset in range(0, reader.size_bytes - 2 * BLOCK, 2 * BLOCK)]
    list(reader.stream_ranges(ranges))  # From now on all sums are known.
    stream = reader.stream_ranges(ranges)
    next(stream)
    reader.close()
    other = tmp_path / "other"
    other.write_bytes(bytes(reader.size_bytes))
    with other.open("rb"), pytest.raises(StorageError):
        list(stream)
