"""Rows of small fragments come in few batches, in order, and each row with its own id."""

from __future__ import annotations

import itertools
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import LanceDataset, write_dataset
from tests.arrays import same_values

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


@pytest.mark.parametrize("seed", range(3))
def test_fragments_of_more_rows_than_a_batch(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    path = tmp_path / "t"
    for size in rng.choice([1, 500, 8192, 9000, 20_000, 32_768, 33_000], 8).tolist():
        texts = rng.choice([f"{seed} {word}" for word in rng.permutation(5).tolist()], size)
        columns = {"id": rng.permutation(size), "x": rng.random(size), "text": texts}
        write_dataset(pa.table({**columns, "kind": pa.array(texts).dictionary_encode()}), path, mode="append")
    table = lance_format.dataset(path)
    table.delete("id % 11 = 3")
    expected = lance.dataset(str(path)).to_table(with_row_id=True)
    for batch_size, predicate in itertools.product((1000, 8192, 50_000), (None, "x < 0.001", "x < 0.7", "id = 400")):
        batches = list(table.to_batches(batch_size=batch_size, filter=predicate, with_row_id=True))
        assert max(batch.num_rows for batch in batches) <= batch_size
        wanted = lance.dataset(str(path)).to_table(filter=predicate, with_row_id=True) if predicate else expected
        assert same_values(pa.Table.from_batches(batches), wanted)
        for batch in batches:
            items = batch["kind"].dictionary
            assert len(items.unique()) == len(items)
