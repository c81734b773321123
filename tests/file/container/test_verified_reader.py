"""Every way of reading a sealed file returns its bytes, and notices the first damaged block that it reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_format.byte_io import ByteRange
from lance_format.errors import ChecksumError
from lance_format.file import FileReader, LanceFileWriter, SearchCache
from lance_format.file.container import block_sums, verified_reader
from lance_format.file.container.verified_reader import VerifiedReader
from lance_format.object_store.local_files import LocalReader

BLOCK = 8192


@pytest.fixture(params=["kernel", "no compiler", "several units of sums"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file of some 200 blocks, to be read in one of several ways, or of more."""
    if request.param == "no compiler":
        monkeypatch.setattr(block_sums, "is_compiler_imported", lambda: False)
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
