"""Scans of many small fragments: they are read at once where that is possible, and the others for themselves."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_format
from lance_format.errors import ChecksumError, DatasetNotFoundError
from lance_format.file.reading.reader import FileReader
from lance_format.table.scan.metrics import ScanMetrics


def _rows(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    names = [None if n % 7 == 0 else f"name {n}" for n in numbers]
    return pa.table({"id": pa.array(numbers, pa.int64()), "name": names, "value": [n / 4 for n in numbers]})


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files from which rows are read one by one."""
    found: list[str] = []
    read = FileReader.read

    def noted(self: FileReader, *arguments: object, **options: object) -> object:
        found.append(Path(self._source.path).name)
        return read(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(FileReader, "read", noted)
    return found


def _names(dataset: lance_format.LanceDataset) -> list[str]:
    return [file.path for fragment in dataset.get_fragments() for file in fragment.metadata.files]


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("rows_per_file", [1, 3])
def test_few_files_are_opened(rows_per_file: int, version: str, tmp_path: Path, reads: list[str]) -> None:
    rows = _rows(0, 300)
    lance_format.write_dataset(rows, tmp_path / "t", max_rows_per_file=rows_per_file, data_storage_version=version)
    dataset = lance_format.dataset(tmp_path / "t")
    found: list[ScanMetrics] = []
    assert dataset.scanner(scan_stats_callback=found.append).to_table() == rows
    assert not reads
    assert dataset.to_table(filter="id = 17") == rows.slice(17, 1)
    assert dataset.count_rows("id % 3 = 1") == 100
    assert len(reads) <= 3
    assert found[0].files_opened == found[0].fragments == 300 // rows_per_file
    assert found[0].rows_scanned == found[0].rows_returned == 300
    assert found[0].bytes_read >= sum(path.stat().st_size for path in (tmp_path / "t" / "data").iterdir())


def test_row_columns_limits_and_batches(tmp_path: Path) -> None:
    rows = _rows(0, 100)
    lance_format.write_dataset(rows, tmp_path / "t", max_rows_per_file=5)
    dataset = lance_format.dataset(tmp_path / "t")
    addresses = dataset.to_table(["_rowaddr", "_rowoffset", "id"])
    assert addresses["_rowaddr"].to_pylist() == [n // 5 << 32 | n % 5 for n in range(100)]
    assert addresses["_rowoffset"].to_pylist() == addresses["id"].to_pylist() == list(range(100))
    assert dataset.to_table(limit=31, offset=13) == rows.slice(13, 31)
    assert dataset.to_table(filter="id >= 13", limit=31, offset=2) == rows.slice(15, 31)
    assert [batch.num_rows for batch in dataset.to_batches(batch_size=3)] == [3, 2] * 20
    assert dataset.to_table([]).num_rows == 100
    assert dataset.head(7) == rows.slice(0, 7)


def test_fragments_of_all_kinds(tmp_path: Path) -> None:
    path = tmp_path / "t"
    lance_format.write_dataset(_rows(0, 40), path, max_rows_per_file=2)
    dataset = lance_format.write_dataset(_rows(40, 60), path, max_rows_per_file=1, mode="append")
    dataset.add_columns({"double": "id * 2"})
    dataset.delete("id % 10 = 3")
    dataset.add_columns(pa.schema([pa.field("later", pa.int32())]))
    more = _rows(60, 90).append_column("double", pa.nulls(30, pa.int64()))
    dataset.insert(more.append_column("later", pa.array(range(30), pa.int32())))
    dataset = lance_format.write_dataset(
        more.append_column("later", pa.array(range(30), pa.int32())), path, mode="append", max_rows_per_file=1
    )
    ids = [n for n in range(60) if n % 10 != 3] + list(range(60, 90)) * 2
    expected = [
        {
            "id": n,
            "name": None if n % 7 == 0 else f"name {n}",
            "value": n / 4,
            "double": 2 * n if n < 60 else None,
            "later": None if n < 60 else n - 60,
        }
        for n in ids
    ]
    assert dataset.to_table().to_pylist() == expected
    assert dataset.to_table(filter="later IS NULL").to_pylist() == [row for row in expected if row["later"] is None]
    assert dataset.to_table(["name"], filter="double > 50").num_rows == sum(1 for n in ids if 25 < n < 60)


@pytest.mark.parametrize("filter", [None, "id >= 0"])
def test_errors_name_the_file(filter: str | None, tmp_path: Path, reads: list[str]) -> None:
    lance_format.write_dataset(_rows(0, 60), tmp_path / "t", max_rows_per_file=1)
    dataset = lance_format.dataset(tmp_path / "t")
    name = _names(dataset)[30]
    file = tmp_path / "t" / "data" / name
    data = bytearray(file.read_bytes())
    data[0] ^= 1
    file.write_bytes(data)
    with pytest.raises(ChecksumError, match=name):
        dataset.to_table(filter=filter)
    assert reads == [name]
    file.unlink()
    with pytest.raises(DatasetNotFoundError, match=name):
        lance_format.dataset(tmp_path / "t").to_table(filter=filter)


def test_a_damaged_column_that_is_not_read(tmp_path: Path, reads: list[str]) -> None:
    """The damage is within a block of its own, so that the other columns can be read."""
    rows = pa.table({"id": range(60), "text": ["x" * 9000] * 60})
    lance_format.write_dataset(rows, tmp_path / "t", max_rows_per_file=1)
    dataset = lance_format.dataset(tmp_path / "t")
    name = _names(dataset)[30]
    file = tmp_path / "t" / "data" / name
    data = bytearray(file.read_bytes())
    data[6000] ^= 1
    file.write_bytes(data)
    assert dataset.to_table(["id"])["id"].to_pylist() == list(range(60))
    assert reads == [name]
