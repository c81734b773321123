"""Rows of small fragments come in few batches, in order, and each row with its own id."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lance_format import LanceDataset, write_dataset

_NUM_FILES = 300


@pytest.fixture(params=["2.1", "2.2"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> LanceDataset:
    rows = pa.table({"id": range(_NUM_FILES), "text": [f"text {number}" for number in range(_NUM_FILES)]})
    return write_dataset(rows, tmp_path / "t", max_rows_per_file=1, data_storage_version=request.param)


def test_few_batches(table: LanceDataset) -> None:
    batches = list(table.to_batches())
    assert len(batches) < _NUM_FILES // 10
    assert pa.Table.from_batches(batches)["id"].to_pylist() == list(range(_NUM_FILES))


def test_batches_have_at_most_so_many_rows(table: LanceDataset) -> None:
    batches = list(table.to_batches(batch_size=7))
    assert max(batch.num_rows for batch in batches) == 7
    assert pa.Table.from_batches(batches)["id"].to_pylist() == list(range(_NUM_FILES))


def test_row_columns(table: LanceDataset) -> None:
    found = table.to_table(columns=["id", "_rowid", "_rowaddr", "_rowoffset"])
    assert found["_rowaddr"].to_pylist() == [number << 32 for number in range(_NUM_FILES)]
    assert found["_rowid"] == found["_rowaddr"]
    assert found["_rowoffset"].to_pylist() == list(range(_NUM_FILES))


def test_windows(table: LanceDataset) -> None:
    assert table.to_table(offset=5, limit=200)["id"].to_pylist() == list(range(5, 205))


def test_fragments_between_are_read_alone(table: LanceDataset) -> None:
    more = pa.table({"id": range(1000, 4000), "text": ["x"] * 3000})
    grown = write_dataset(more, table.uri, mode="append")
    grown = write_dataset(more.slice(0, 20), grown.uri, mode="append", max_rows_per_file=2)
    grown.delete("id IN (7, 1003)")
    expected = [
        number for number in (*range(_NUM_FILES), *range(1000, 4000), *range(1000, 1020)) if number not in (7, 1003)
    ]
    assert grown.to_table()["id"].to_pylist() == expected


def test_rows_of_each_fragment(table: LanceDataset) -> None:
    scanner = table.scanner(filter="id % 2 = 0")
    rows = list(scanner.matching())
    assert [live.scan.fragment.id for _, live in rows] == list(range(0, _NUM_FILES, 2))
    whole = list(table.scanner().matching())
    assert [live.scan.fragment.id for _, live in whole] == list(range(_NUM_FILES))
    assert [batch["id"].to_pylist() for batch, _ in whole] == [[number] for number in range(_NUM_FILES)]


def test_counts(table: LanceDataset) -> None:
    scanner = table.scanner()
    scanner.to_table()
    assert scanner.metrics is not None
    assert scanner.metrics.fragments_scanned == scanner.metrics.rows_scanned == _NUM_FILES
    assert scanner.metrics.rows_returned == _NUM_FILES
