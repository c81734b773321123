"""Whole fragments in order, of all kinds; and the compactions and indices that read them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_format
from lance_format import LanceDataset
from lance_format.errors import ChecksumError
from lance_format.file import LanceFileReader
from lance_format.file.reading.reader import FileReader
from lance_format.table.fragments.whole_fragments import read_whole
from lance_format.table.indices.zones import zone_map_training


def _rows(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    names = [None if n % 7 == 0 else f"name {n}" for n in numbers]
    return pa.table(
        {"id": pa.array(numbers, pa.int64()), "name": pa.array(names, pa.string()), "value": [n / 4 for n in numbers]}
    )


def _mixed(path: Path, chosen: random.Random) -> LanceDataset:
    """Make a table of fragments of many sizes, with other files and deletions."""
    table = lance_format.write_dataset(_rows(0, 40), path, max_rows_per_file=2)
    sizes = [chosen.choice([1, 3, 3, 200, 3000]) for _ in range(12)]
    for start, size in zip(itertools.accumulate(sizes, initial=40), sizes, strict=False):
        version = chosen.choice(["2.0", "2.1", "2.2"])
        rows = _rows(start, start + size)
        lance_format.write_dataset(rows, path, mode="append", data_storage_version=version)
    table.checkout_latest()
    for change in chosen.sample(range(4), 4):
        if change == 0:
            table.delete(f"id % 5 = {chosen.randrange(5)}")
        elif change == 1:
            table.add_columns({"double": "id * 2"})
        elif change == 2:
            table.update({"name": "'changed'"}, where="id % 3 = 1")
        else:
            table.add_columns(pa.schema([pa.field("later", pa.int32())]))
    return table


@pytest.mark.parametrize("seed", range(6))
def test_fragments_of_all_kinds(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)
    table = _mixed(tmp_path, chosen)
    version = table._table
    for batch_size in (1, 7, 5000):
        columns = chosen.sample(table.schema.names, 2)
        schema = version.manifest.schema.select(columns)
        scans = [version.scan(fragment, schema) for fragment in version.manifest.fragments]
        batches, addresses = [], []
        for batch, parts in read_whole(scans, schema, batch_size=batch_size):
            assert 0 < batch.num_rows == sum(rows.offsets.size for rows in parts)
            assert len(parts) == 1 or batch.num_rows <= batch_size
            batches.append(batch)
            addresses += [rows.scan.fragment.id << 32 | int(offset) for rows in parts for offset in rows.offsets]
        assert pa.Table.from_batches(batches).to_pylist() == table.to_table(columns).to_pylist()
        assert addresses == table.to_table(["_rowaddr"])["_rowaddr"].to_pylist()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of which rows are read one by one."""
    found: list[str] = []
    read = FileReader.read

    def noted(self: FileReader, *arguments: object, **options: object) -> object:
        found.append(Path(self._source.path).name)
        return read(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(FileReader, "read", noted)
    return found


OPERATIONS: dict[str, Callable[[LanceDataset], object]] = {
    "compact": lambda table: table.optimize.compact_files(),
    "BTREE": lambda table: table.create_scalar_index("id", "BTREE"),
    "ZONEMAP": lambda table: table.create_scalar_index("value", "ZONEMAP"),
    "BLOOMFILTER": lambda table: table.create_scalar_index("id", "BLOOMFILTER"),
    "INVERTED": lambda table: table.create_scalar_index("name", "INVERTED"),
    "IVF_FLAT": lambda table: table.create_index("vector", "IVF_FLAT", num_partitions=2),
}


def _small(path: Path, *, is_changed: bool = True) -> LanceDataset:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.random.default_rng(0).random(600 * 8, np.float32)), 8)
    rows = _rows(0, 600).append_column("vector", vectors)
    table = lance_format.write_dataset(rows, path, max_rows_per_file=20)
    if is_changed:
        table.delete("id % 20 = 3")
    return table


@pytest.mark.parametrize("name", OPERATIONS)
def test_small_fragments_are_read_together(name: str, tmp_path: Path, reads: list[str]) -> None:
    table = _small(tmp_path)
    expected = table.to_table().to_pylist()
    data = {file.path for fragment in table.get_fragments() for file in fragment.metadata.files}
    reads.clear()
    OPERATIONS[name](table)
    assert not data.intersection(reads)
    assert table.to_table().to_pylist() == expected
    assert table.to_table(filter="id = 77 AND value > 1").num_rows == 1
    assert table.verify().problems == ()


@pytest.mark.parametrize("name", ["compact", "BTREE", "ZONEMAP"])
def test_a_damaged_fragment_is_named(name: str, tmp_path: Path) -> None:
    table = _small(tmp_path, is_changed=False)
    file = tmp_path / "data" / table.get_fragments()[17].metadata.files[0].path
    data = bytearray(file.read_bytes())
    data[0] ^= 1
    file.write_bytes(data)
    with pytest.raises(ChecksumError, match=file.name):
        OPERATIONS[name](lance_format.dataset(tmp_path))
    assert lance_format.dataset(tmp_path).version == 1


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_the_rows_of_a_small_fragment_may_come_in_pieces(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = pa.array([None if number % 5 == 1 else number for number in range(60)], pa.int64())
    rows = pa.table({"id": range(60), "x": values})
    table = lance_format.write_dataset(rows, tmp_path, max_rows_per_file=20, data_storage_version=version)
    table.create_scalar_index("x", "ZONEMAP", "whole")
    monkeypatch.setattr(zone_map_training, "_BATCH_ROWS", 7)
    table.create_scalar_index("x", "ZONEMAP", "pieces")
    whole, pieces = (sorted((tmp_path / "_indices" / index.uuid).iterdir()) for index in table._table.manifest.indices)
    assert [path.name for path in whole] == [path.name for path in pieces]
    for one, other in zip(whole, pieces, strict=True):
        assert LanceFileReader(str(one)).read_all().to_table() == LanceFileReader(str(other)).read_all().to_table()
    assert table.to_table(filter="x IS NULL") == rows.filter(pc.is_null(rows["x"]))
