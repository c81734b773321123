"""The cost of reads: requests and bytes, counted at the storage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_format.byte_io import ByteRange
from lance_format.errors import CorruptFileError
from lance_format.file import LanceFileWriter, SearchCache
from tests.file.counting import CountedFile

_ROWS = 20_000
_RNG = np.random.default_rng(0)
_CHUNK = 8 * 1024
_LEAF = pa.array([{"a": row, "b": f"b{row}"} for row in range(_ROWS)])
_LARGE = pa.array([f"{row}" * 100 for row in range(_ROWS)])
_COLUMNS = {
    "random": pa.array(_RNG.integers(-(2**62), 2**62, _ROWS)),
    "packed": pa.array(_RNG.integers(0, 1000, _ROWS), mask=_RNG.random(_ROWS) < 0.2),
    "bits": pa.array(_RNG.random(_ROWS) < 0.5),
    "symbols": pa.array([f"https://example.org/{row * 7919}" for row in range(_ROWS)]),
    "items": pa.array([f"item number {row % 97}" for row in range(_ROWS)]),
    "lists": pa.array([list(range(row, row + row % 7)) for row in range(_ROWS)]),
    "structs": _LEAF,
    "lists of structs": pa.array([[{"a": row, "b": f"b{row}"}] * (row % 3) for row in range(_ROWS)]),
    "vectors": pa.FixedSizeListArray.from_arrays(pa.array(_RNG.random(_ROWS * 64, np.float32)), 64),
    "large": _LARGE,
    "large lists": pa.array([[f"{row}" * 100] * (row % 3) for row in range(_ROWS)]),
    "constant": pa.array([7] * _ROWS),
    "constant string": pa.array(["x" * 40] * _ROWS),
    "nothing": pa.nulls(_ROWS, pa.int32()),
    "empty lists": pa.array([[], None] * (_ROWS // 2), pa.list_(pa.int32())),
}
_WARM = {  # column: requests for a row once the cache is warm, and how many bytes they are at most
    "random": (1, _CHUNK),
    "packed": (1, _CHUNK),
    "bits": (1, _CHUNK),
    "symbols": (1, _CHUNK),
    "items": (1, _CHUNK),
    "lists": (1, _CHUNK),
    "structs": (2, 2 * _CHUNK),
    "lists of structs": (2, 2 * _CHUNK),
    "vectors": (1, 64 * 4),
    "large": (2, 1000),
    "large lists": (2, 3000),
    "constant": (0, 0),
    "constant string": (0, 0),
    "nothing": (0, 0),
    "empty lists": (0, 0),
}


def _write(path: Path, table: pa.Table, **options: object) -> Path:
    with LanceFileWriter(path, table.schema, **options) as writer:
        writer.write_batch(table)
    return path


@pytest.mark.parametrize("name", _COLUMNS)
def test_one_row(tmp_path: Path, name: str) -> None:
    table = pa.table({name: _COLUMNS[name]})
    file = CountedFile(_write(tmp_path / "a.lance", table))
    assert file.opened[0] == 1
    row = 12_345
    found, cold, _ = file.take([row])
    assert found.equals(table.slice(row, 1))
    requests, size = _WARM[name]
    leaves = 2 if "structs" in name else 1
    assert cold <= requests + 3 * leaves
    for other in (row, row + 1):
        found, num_requests, num_bytes = file.take([other])
        assert found.equals(table.slice(other, 1))
        assert num_requests == requests
        assert num_bytes <= size


@pytest.mark.parametrize("name", _COLUMNS)
def test_a_range_of_rows(tmp_path: Path, name: str) -> None:
    """Neighbouring rows cost no more requests than one; a whole page, one request and no index."""
    table = pa.table({name: _COLUMNS[name]})
    path = _write(tmp_path / "a.lance", table)
    file = CountedFile(path)
    file.take([0])
    found, num_requests, _ = file.read(5000, 5500)
    assert found.equals(table.slice(5000, 500))
    assert num_requests <= _WARM[name][0]
    scan = CountedFile(path)
    found, num_requests, _ = scan.read()
    assert found.equals(table)
    pages = scan.reader.pages(0)
    assert len(pages) == 1
    assert num_requests == (1 if any(buffer.size for buffer in pages[0].buffers) else 0)
    if pages[0].layout.WhichOneof("layout") == "full_zip_layout":
        indices = pages[0].buffers[1:]
        assert not any(_overlap(read, index) for read in scan.ranges for index in indices)


def _overlap(one: ByteRange, other: ByteRange) -> bool:
    return one.offset < other.end and other.offset < one.end


def test_a_scan_leaves_the_pages_of_others_in_the_cache(tmp_path: Path) -> None:
    cache = SearchCache()
    file = CountedFile(_write(tmp_path / "a.lance", pa.table(_COLUMNS)), cache)
    names = ["random", "items", "lists", "large"]
    file.take([0], names)
    entries = len(cache)
    CountedFile(_write(tmp_path / "b.lance", pa.table(_COLUMNS)), cache).read(names=names)
    assert len(cache) == entries + 1 + len(names), "more than the end and the columns of the second file"


@pytest.mark.parametrize(("num_rows", "requests"), [(500, [2, 1, 1]), (_ROWS, [2, 2, 2])])
def test_repetition_index_of_large_values(tmp_path: Path, num_rows: int, requests: list[int]) -> None:
    """A small index is read whole and kept; of a larger one, eight bytes a row."""
    table = pa.table({"large": _LARGE[:num_rows]})
    file = CountedFile(_write(tmp_path / "a.lance", table))
    costs = [file.take([row]) for row in (100, 200, 300)]
    assert [cost[1] for cost in costs] == requests
    assert all(found.equals(table.slice(row, 1)) for row, (found, _, _) in zip((100, 200, 300), costs, strict=True))
    if num_rows == _ROWS:
        assert max(size for _, _, size in costs) < 8 + 600
        rows = list(range(0, num_rows, 500))
        assert file.take(rows)[0].equals(table.take(rows))
        assert file.take([4321])[1] == 1, "many rows at once read the index, which should have been kept"


def test_rows_of_one_chunk_are_one_request(tmp_path: Path) -> None:
    table = pa.table({"random": _COLUMNS["random"]})
    file = CountedFile(_write(tmp_path / "a.lance", table))
    file.take([0])
    assert file.take([5120, 5200, 5300, 5631])[1:] == file.take([5120])[1:]
    _, requests, size = file.take([0, 10_000, 19_999])
    assert requests == 3
    assert size <= 3 * _CHUNK


@pytest.mark.parametrize("num_columns", [50, 2000])
def test_one_row_of_one_of_many_columns_cold(tmp_path: Path, num_columns: int) -> None:
    """One read of the end of the file finds the column, unless the metadata of all columns is larger."""
    rng = np.random.default_rng(1)
    table = pa.table({f"column {index}": rng.integers(0, 2**62, 2000) for index in range(num_columns)})
    file = CountedFile(_write(tmp_path / "a.lance", table))
    requests, size = file.opened
    assert requests <= (1 if num_columns == 50 else 3)
    assert size <= 64 * 1024 + (0 if num_columns == 50 else 400_000)
    found, requests, size = file.take([1500], ["column 7"])
    assert found.equals(table.select(["column 7"]).slice(1500, 1))
    assert requests <= (2 if num_columns == 50 else 3)
    assert size <= 2 * _CHUNK


@pytest.mark.slow
def test_metadata_of_many_columns_is_read_together(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    table = pa.table({f"column {index}": rng.integers(0, 2**62, 100) for index in range(3000)})
    file = CountedFile(_write(tmp_path / "a.lance", table))
    names = [f"column {index}" for index in range(100)]
    found, requests, _ = file.take([50], names)
    assert found.equals(table.select(names).slice(50, 1))
    assert requests <= 3, "metadata, chunk tables and chunks of neighbours are a request each"


def test_overlapping_rows_of_an_index_are_refused(tmp_path: Path) -> None:
    """Each may lie within the page, yet together they would take the page's memory many times over."""
    table = pa.table({"large": _LARGE[:500]})
    path = _write(tmp_path / "a.lance", table)
    index = CountedFile(path).reader.pages(0)[0].buffers[1]
    damaged = bytearray(path.read_bytes())
    width = index.size // 501
    damaged[index.offset + 11 * width : index.offset + 12 * width] = damaged[
        index.offset + 400 * width : index.offset + 401 * width
    ]
    path.write_bytes(damaged)
    with pytest.raises(CorruptFileError, match="column 'large': the repetition index lets rows overlap"):
        CountedFile(path).take([10, 20])
