"""The cost of reads of a table with a warm cache."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Generator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError
from lance_format.byte_io import ByteRange, RangeReader
from lance_format.object_store.local import LocalStore
from lance_format.object_store.local_files import LocalReader
from lance_format.table.dataset.dataset import LanceDataset
from lance_format.table.format.table_directory import TableDirectory


class _Reader(LocalReader):
    def __init__(self, path: str, requests: list[ByteRange]) -> None:
        super().__init__(path)
        self._requests = requests

    def stream_ranges(self, ranges: Sequence[ByteRange]) -> Generator[bytes, None, None]:
        self._requests += ranges
        return super().stream_ranges(ranges)


class _Store(LocalStore):
    """Local files; `requests` are the ranges that were read of data files."""

    def __init__(self) -> None:
        self.requests: list[ByteRange] = []

    def open_reader(self, path: str, size_bytes: int | None = None) -> RangeReader:
        del size_bytes
        return _Reader(path, self.requests)


def _table(tmp_path: Path) -> tuple[LanceDataset, _Store, pa.Table]:
    table = pa.table({"id": range(0, 30_000 * 7919, 7919), "name": [f"n{row}" for row in range(30_000)]})
    written = lance_format.write_dataset(table, tmp_path / "table", max_rows_per_file=10_000)
    store = _Store()
    return (
        LanceDataset(
            written.uri,
            dataclasses.replace(written._table, directory=TableDirectory(store, written._table.root, verifies=False)),
        ),
        store,
        table,
    )


def test_rows_cost_their_chunks_only(tmp_path: Path) -> None:
    dataset, store, table = _table(tmp_path)
    rows = [5, 15_000, 25_000]
    assert dataset.take(rows).equals(table.take(rows))
    cold = len(store.requests)
    store.requests.clear()
    assert dataset.take(rows, ["id"]).equals(table.select(["id"]).take(rows))
    assert len(store.requests) == 3 < cold
    assert sum(read.size for read in store.requests) < 3 * 8192
    store.requests.clear()
    older = dataset.checkout_version(1).take(rows, ["id"])
    assert len(store.requests) == 3, "versions of a table do not share what they know"
    assert older.equals(table.select(["id"]).take(rows))


def test_the_size_of_the_cache_travels(tmp_path: Path) -> None:
    _table(tmp_path)
    for size in (0, 12_345):
        dataset = lance_format.dataset(tmp_path / "table", metadata_cache_size_bytes=size)
        assert pickle.loads(pickle.dumps(dataset))._table.cache.capacity_bytes == size
        assert dataset.checkout_version(1)._table.cache is dataset._table.cache


def test_fields_below_a_column_are_read_alone(tmp_path: Path) -> None:
    """By scans and takes, and where a filter needs another one."""
    numbers = [row * 7919**4 % 2**61 for row in range(20_000)]
    table = pa.table(
        {"a": [{"x": row, "y": {"z": f"text {number}", "w": number}} for row, number in enumerate(numbers)]}
    )
    written = lance_format.write_dataset(table, tmp_path / "table")
    store = _Store()
    dataset = LanceDataset(
        written.uri,
        dataclasses.replace(written._table, directory=TableDirectory(store, written._table.root, verifies=False)),
    )
    dataset.to_table()
    whole = _drain(store)
    expected = pa.table({"a.x": range(20_000)})
    assert dataset.to_table(["a.x"]).equals(expected)
    assert _drain(store) < whole / 5
    assert dataset.to_table(["a.x"], filter="a.y.w % 7 >= 0").equals(expected)
    assert whole / 5 < _drain(store) < whole / 1.5
    dataset.take([7], ["a.x"])
    assert _drain(store) < 3000


def test_a_schema_selects_fields_of_structs(tmp_path: Path) -> None:
    """Null structs stay null, and what only the filter needs does not come along."""
    rows = [{"x": 1, "y": {"z": "a", "w": 2}}, None, {"x": None, "y": None}, {"x": 4, "y": {"z": None, "w": 5}}]
    inner = pa.struct([("z", pa.string()), ("w", pa.int64())])
    table = pa.table({"s": pa.array(rows, pa.struct([("x", pa.int64()), ("y", inner)])), "n": range(4)})
    dataset = lance_format.write_dataset(table, tmp_path / "table")
    wanted = pa.schema([("n", pa.int64()), ("s", pa.struct([("y", pa.struct([("w", pa.int64())]))]))])
    expected = [
        {"n": 0, "s": {"y": {"w": 2}}},
        {"n": 1, "s": None},
        {"n": 2, "s": {"y": None}},
        {"n": 3, "s": {"y": {"w": 5}}},
    ]
    found = dataset.to_table(wanted)
    assert found.schema == wanted
    assert found.to_pylist() == expected
    assert dataset.to_table(wanted, filter="s.x >= 1 OR s.y.z = 'b'").to_pylist() == [expected[0], expected[3]]
    swapped = pa.schema([("s", pa.struct([("y", inner), ("x", pa.int64())]))])
    assert dataset.to_table(swapped).column("s").type == swapped.field("s").type
    assert dataset.to_table(swapped).to_pylist() == [{"s": row} for row in rows]
    with pytest.raises(InvalidInputError, match=r"s\.y has no field 'q'"):
        dataset.to_table(pa.schema([("s", pa.struct([("y", pa.struct([("q", pa.int64())]))]))]))


def _drain(store: _Store) -> int:
    size = sum(read.size for read in store.requests)
    store.requests.clear()
    return size
